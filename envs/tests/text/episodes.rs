//! How a text episode starts, continues, ends, is rewarded and is saved.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::{Finish, Split, TextOptions};
use gradus_envs::{Action, Env, EnvSpec, Step};

use super::{GOES_ON, encode, ends_with, eos, play, scores, world};

fn said(world: &EnvSpec, text: &str, ends: bool) -> Vec<u32> {
    let mut said = encode(world, text);
    said.extend(ends.then(|| eos(world)));
    said
}

#[test]
fn each_action_appends_its_token_and_eos_ends_the_episode() {
    let addition = world("addition");
    let (env, row, steps) = play(&addition, "37+45=", &said(&addition, "28", true));
    assert_eq!(steps, [(GOES_ON, false), (GOES_ON, false), (ends_with(1.0), true)]);
    assert_eq!(row.len(), 6 + 4 + 1); // the longest prompt, the largest number of new tokens, and the length
    assert_eq!(row, [9.0, 3.0, 7.0, 10.0, 4.0, 5.0, 11.0, 2.0, 8.0, 12.0, 0.0]);
    assert_eq!(env.ansi().unwrap(), "37+45=28");
    assert_eq!(scores(&*env), [("exact".to_string(), 1.0), ("finish/length".to_string(), 0.0)]);
}

#[test]
fn a_text_ends_at_its_maximum_length() {
    let addition = world("addition");
    let (env, _, steps) = play(&addition, "37+45=", &said(&addition, "2855", false));
    assert_eq!(steps.last().unwrap().0, ends_with(2.0 / 5.0));
    assert_eq!(scores(&*env), [("exact".to_string(), 0.0), ("finish/length".to_string(), 1.0)]);
    // EOS as the last possible token is not a truncation
    let (env, _, steps) = play(&addition, "99+99=", &said(&addition, "891", true));
    assert_eq!((steps[3].0, scores(&*env)[1].1), (ends_with(1.0), 0.0));

    let options = TextOptions { length_bootstraps: true, ..TextOptions::default() };
    let bootstraps = world("addition").with_text_options(options).unwrap();
    assert_eq!((addition.max_episode_steps, bootstraps.max_episode_steps), (None, Some(4)));
    let (_, _, steps) = play(&bootstraps, "37+45=", &said(&addition, "2855", false));
    assert_eq!(steps[3].0, Step { reward: 2.0 / 5.0, terminated: false, truncated: true });
    let (_, _, steps) = play(&bootstraps, "99+99=", &said(&addition, "891", true));
    assert_eq!(steps[3].0, ends_with(1.0));
}

#[test]
fn options_change_length_and_reward_and_add_scores() {
    let options = TextOptions { max_new_tokens: Some(3), missing_eos_penalty: 0.5, length_penalty: 0.125, ..TextOptions::default() };
    let addition = world("addition").with_text_options(options).unwrap();
    let named = |scores: [f64; 4]| {
        let names = ["exact", "finish/length", "penalty/missing-eos", "penalty/length"];
        names.into_iter().map(String::from).zip(scores).collect::<Vec<_>>()
    };
    let (env, row, steps) = play(&addition, "37+45=", &said(&addition, "28", true));
    assert_eq!((steps[2].0, scores(&*env)), (ends_with(1.0 - 0.375), named([1.0, 0.0, 0.0, 0.375])));
    assert_eq!(row.len(), 6 + 3 + 1);
    let (env, _, steps) = play(&addition, "37+45=", &said(&addition, "288", false));
    assert_eq!((steps[2].0, scores(&*env)), (ends_with(2.0 / 4.0 - 0.5 - 0.375), named([0.0, 1.0, 0.5, 0.375])));
    assert_eq!(addition.about, world("addition").about);
}

/// The penalty of an overlong completion rises from 0, at the maximum length without the buffer, to 1 at the end of the buffer (Yu et al.,
/// arXiv 2503.14476, equation 13).
#[test]
fn the_overlong_buffer_is_penalised_evenly() {
    let plain = world("addition");
    let addition = plain.clone().with_text_options(TextOptions { overlong_buffer: 4, ..TextOptions::default() }).unwrap();
    let text = addition.text.as_ref().unwrap();
    assert_eq!((text.max_new_tokens(), text.score_names().last().unwrap().as_str()), (8, "penalty/overlong"));
    for (answer, ends, penalty) in
        [("891", true, 0.0), ("8910", true, 0.25), ("89100", true, 0.5), ("8910000", true, 1.0), ("89100000", false, 1.0)]
    {
        let (env, _, steps) = play(&addition, "99+99=", &said(&addition, answer, ends));
        let finish = if ends { Finish::Eos } else { Finish::Length };
        let of_task = text.task.verify(&encode(&addition, "99+99="), &said(&addition, answer, false), finish).unwrap().reward;
        assert_eq!((steps.last().unwrap().0, scores(&*env)[2].1), (ends_with(of_task - penalty), penalty), "{answer}");
    }
}

/// A world verifies a text without an environment.
#[test]
fn a_world_verifies_whole_texts() {
    let addition = world("addition");
    let text = addition.text.as_ref().unwrap();
    let verify = |answer: &str, ends| text.verify(&encode(&addition, "37+45="), &said(&addition, answer, ends)).unwrap();
    assert_eq!(verify("28", true), (1.0, vec![1.0, 0.0]));
    assert_eq!(verify("28", false), (2.0 / 3.0, vec![0.0, 1.0]), "an unfinished text counts as truncated");
    assert_eq!(verify("2855", false), (2.0 / 5.0, vec![0.0, 1.0]));
    let finish = |answer: &str, ends| text.finish(&said(&addition, answer, ends));
    assert_eq!((finish("", false), finish("285", false), finish("28", true)), (None, None, Some(Finish::Eos)));
    assert_eq!((finish("2855", false), finish("285", true)), (Some(Finish::Length), Some(Finish::Eos)));
}

/// Each total is rewarded on the token that ends it, and the sum on the last token. Penalties are part of the last token's reward.
#[test]
fn steps_are_rewarded_when_they_end() {
    let chain = world("chain-sum");
    let rewards = |text: &str, ends| {
        let (env, _, steps) = play(&chain, "3+4+2=", &said(&chain, text, ends));
        let paid: Vec<(f64, bool)> = steps.iter().map(|(step, ends)| (step.reward, *ends)).collect();
        (paid, scores(&*env)[1].1)
    };
    let [no, one, nothing] = [(0.0, false), (1.0, true), (0.0, true)];
    assert_eq!(rewards("7;9#9", true), (vec![no, one, no, one, no, one], 1.0));
    assert_eq!(rewards("7;8#8", true), (vec![no, one, no, nothing, no, nothing], 0.5));
    assert_eq!(rewards("7;9", true), (vec![no, one, no, nothing], 0.5)); // EOS does not end a total, so stopping early has no reward
    assert_eq!(rewards("7;9;9;9;9", false).0, [no, one, no, one, no, nothing, no, nothing, nothing]);
    let options = TextOptions { length_penalty: 0.25, ..TextOptions::default() };
    let (_, _, steps) = play(&chain.clone().with_text_options(options).unwrap(), "3+4+2=", &said(&chain, "7;9#9", true));
    assert_eq!(steps.iter().map(|(step, _)| step.reward).collect::<Vec<_>>(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0 - 1.5]);
}

#[test]
fn a_saved_text_continues_identically() {
    for name in ["addition", "chain-sum", "program-3", "preference"] {
        let world = world(name).on_split(Split::Test);
        for seed in 0..20 {
            let (mut env, mut other) = (world.env(), world.env());
            let mut row = vec![0.0; env.observation_space().width()];
            let mut other_row = row.clone();
            let text = world.text.as_ref().unwrap();
            let stream = &mut Stream::new(seed, Purpose::Environment, 0);
            let answer = text.task.problem(Split::Test, stream).answer;
            env.reset(seed, &mut row);
            other.reset(seed + 1, &mut other_row);
            for token in answer {
                other.load(&env.save()).unwrap();
                let step = env.step(Action::Discrete(token), &mut row);
                assert_eq!(other.step(Action::Discrete(token), &mut other_row), step, "{name} {seed}");
                assert_eq!((&row, env.ends_step(), scores(&*env)), (&other_row, other.ends_step(), scores(&*other)), "{name} {seed}");
            }
        }
    }
}

#[test]
fn a_damaged_state_is_an_error() {
    let world = world("addition");
    let mut env = world.env();
    let mut row = vec![0.0; env.observation_space().width()];
    env.reset(3, &mut row);
    env.step(Action::Discrete(4), &mut row);
    let saved = env.save();
    let changed = |place: usize, word: u64| {
        let mut state = saved.clone();
        state[place] = word;
        state
    };
    let states = [
        saved[..saved.len() - 1].to_vec(),
        saved[..2].to_vec(),
        [saved.clone(), vec![1]].concat(),
        changed(0, 0),
        changed(0, 8),
        changed(0, u64::MAX),
        changed(1, f64::NAN.to_bits()),
        changed(4, 13),
        [vec![6, 0, 11], vec![1; 11]].concat(),
        [vec![7, 0, 8], vec![1; 8]].concat(),
    ];
    for state in states {
        let error = env.load(&state).unwrap_err().to_string();
        assert!(error.contains("expected") && error.contains("got"), "{state:?}: {error}");
    }
    assert_eq!(env.save(), saved, "a failed load changes nothing");
}
