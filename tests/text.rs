//! Texts are collected like anything else: neither the number of threads nor that of the slots shows in what is written.

#[path = "text/copycat.rs"]
mod copycat;

use std::sync::atomic::Ordering;

use copycat::{Copycat, Dice};
use gradus::agents::{Collection, End, Rollout};
use gradus::collect::{Collector, Episode};
use gradus::envs::Action;
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::{ActionRows, threads};

const EPISODES: Collection = Collection::Episodes { per_env: 2, group: 3, greedy: true };

/// Two rollouts of 12 environments, the most rows that were acted on at once, and how much was drawn.
fn collect(collection: Collection, threads: usize, slots: usize) -> (Vec<(Rollout, Vec<Episode>)>, usize, gradus::nets::tensors::Tensors) {
    threads::with(threads, || {
        let dice = Dice::default();
        let mut collector = Collector::new(&Copycat::world(), 12, 7, collection).unwrap().with_slots(slots);
        let rollouts = (0..2).map(|_| collector.collect(&dice).unwrap()).collect();
        (rollouts, dice.most_rows.load(Ordering::Relaxed), collector.save())
    })
}

#[test]
fn neither_threads_nor_slots_show() {
    for collection in [EPISODES, Collection::Episodes { per_env: 1, group: 1, greedy: false }, Collection::Steps(9)] {
        let (rollouts, most, saved) = collect(collection, 1, 0);
        assert_eq!(most, 12);
        for (threads, slots, expected_most) in [(2, 0, 6), (5, 0, 3), (1, 1, 1), (1, 3, 3), (2, 3, 2), (5, 3, 1), (1, 99, 12), (2, 5, 3)] {
            let (other, most, other_saved) = collect(collection, threads, slots);
            assert!(other == rollouts, "{collection:?}: {threads} threads, {slots} slots");
            assert!(other_saved == saved, "{collection:?}: {threads} threads, {slots} slots: the checkpoint");
            assert_eq!(most, expected_most, "{collection:?}: {threads} threads, {slots} slots");
        }
        assert_ne!(rollouts[0], rollouts[1]);
    }
}

/// Every decision saw the prompt and the tokens before it, and each text is kept once.
#[test]
fn observations_are_the_beginnings_of_texts() {
    let (rollouts, ..) = collect(EPISODES, 2, 4);
    for (rollout, episodes) in &rollouts {
        let texts = rollout.store.texts();
        let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("discrete") };
        let cut = rollout.segments.iter().filter(|segment| segment.end != End::Terminated).count();
        assert_eq!((rollout.segments.len(), episodes.len(), texts.len()), (24, 24, 24 + cut));
        assert!(cut > 0, "no text was cut");
        for segment in &rollout.segments {
            let range = segment.range.clone();
            let first = texts.prefix(range.start).to_vec();
            assert_eq!(first.len(), 2);
            for i in range.clone() {
                assert_eq!(texts.prefix(i), [&first, &actions[range.start..i]].concat());
                assert_eq!(rollout.step_ends[i], actions[i] == 1);
                assert_eq!(rollout.log_probs[i], -(texts.prefix(i).len() as f32));
            }
            if let End::Truncated { successor } = segment.end {
                assert_eq!(texts.prefix(successor), [&first, &actions[range]].concat());
            }
        }
        // scores are the numbers of tokens of the whole texts
        assert!(episodes.iter().all(|episode| episode.scores == [f64::from(episode.length) + 2.0]));
    }
}

/// The greedy episode of a group begins as the group does; its luck is that of its seed.
#[test]
fn each_group_has_its_greedy_return() {
    let (rollouts, ..) = collect(EPISODES, 2, 4);
    for (rollout, episodes) in &rollouts {
        // 12 environments in groups of 3, with two episodes each
        assert_eq!(rollout.greedy_returns.len(), 8);
        for segment in &rollout.segments {
            let group = segment.group.0 as usize;
            let prompt = rollout.store.texts().prefix(segment.range.start);
            let seed = episodes.iter().find(|episode| episode.env == 3 * (group / 2) && episode_number(episodes, episode) == group % 2);
            let mut env = Copycat::world().env();
            let mut row = vec![0.0; 13];
            env.reset(seed.unwrap().seed, &mut row);
            let tokens: Vec<u32> = gradus::envs::text::tokens(&row).collect();
            assert_eq!(tokens, prompt, "group {group}");
            let actions = [prompt[0], prompt[0], prompt[0], prompt[0], prompt[0], 0];
            let total: f64 = actions.iter().map(|action| f64::from(env.step(Action::Discrete(*action), &mut row).reward as f32)).sum();
            assert_eq!(rollout.greedy_returns[group], total as f32, "group {group}");
        }
    }
}

/// Which of its environment's episodes this one is.
fn episode_number(episodes: &[Episode], episode: &Episode) -> usize {
    episodes.iter().filter(|other| other.env == episode.env && other.step < episode.step).count()
}

#[test]
fn evaluations_do_not_depend_on_threads() {
    for mode in [Mode::Greedy, Mode::Sampled] {
        let played = |count| threads::with(count, || evaluate(&Dice::default(), &Copycat::world(), 150, 3, mode).unwrap());
        let one = played(1);
        assert_eq!((&one, &one), (&played(2), &played(5)));
        assert_eq!((one.scores.len(), one.scores[0].name.as_str()), (1, "tokens"));
        let lengths: f64 = one.lengths.iter().map(|length| f64::from(*length) + 2.0).sum();
        assert!((one.score("tokens").unwrap() - lengths / 150.0).abs() < 1e-12);
        let is_even = one.lengths.iter().all(|length| *length == 6);
        assert_eq!(is_even, mode == Mode::Greedy);
    }
}
