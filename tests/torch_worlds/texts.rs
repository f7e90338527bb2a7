//! Texts that are generated on a device, and their verdicts, match those of the host.

use gradus::Config;
use gradus::agents::Collection;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::text::TextOptions;
use gradus::envs::{TensorEnvSpec, registry};
use gradus::nets::torch::{StreamPosition, worlds};
use gradus::nets::{ActionRows, Behaviour, Choice, Observations, Policy};
use gradus::rollouts::Collector;

use super::{actions, is_near, target_sums, transformer};

/// Compares texts that are generated on the device with those of an actor on the host: prompts, tokens, rewards, scores and checkpoints.
#[test]
fn texts_match_the_host() {
    let collections =
        [Collection::Episodes { per_env: 1, group: 4, greedy: true }, Collection::Episodes { per_env: 3, group: 1, greedy: false }];
    for name in ["target-sum", "addition-2", "countdown"] {
        let mut world = registry::find(name).unwrap();
        world.tensor_spec = Some(TensorEnvSpec::Text); // the device generates and the host verifies, here for target sum too
        let (policy, envs, wrappers) = (transformer(&world), 24, Config::default().wrappers);
        for (collection, max_concurrent) in collections.into_iter().zip([0, 7]) {
            let mut host = Collector::new(&world, envs, 11, collection).unwrap().with_max_concurrent(max_concurrent);
            let mut device =
                Collector::on_device(&world, envs, 11, (collection, &wrappers), &policy).unwrap().with_max_concurrent(max_concurrent);
            assert!(device.is_on_device());
            for _ in 0..2 {
                let ((expected, host_episodes), (got, episodes)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
                assert_eq!(expected.store, got.store, "{}", world.name);
                assert_eq!((&expected.rewards, &expected.segments), (&got.rewards, &got.segments));
                assert_eq!((&expected.greedy_rewards, &expected.step_ends), (&got.greedy_rewards, &got.step_ends));
                assert!(expected.log_probs.iter().zip(&got.log_probs).all(|(a, b)| is_near(*a, *b)));
                assert_eq!(host_episodes, episodes);
                assert!(host.save() == device.save(), "{}", world.name);
            }
            // the collector on the device continues from the host's state
            host.collect(&policy).unwrap();
            device.load(&host.save()).unwrap();
            assert_eq!(host.collect(&policy).unwrap().1, device.collect(&policy).unwrap().1);
        }
    }
}

/// Runs target sum on the device, which draws the prompts, generates the completions and verifies them. Compares everything with the host.
#[test]
fn target_sums_match_the_host() {
    let collections =
        [Collection::Episodes { per_env: 1, group: 4, greedy: true }, Collection::Episodes { per_env: 3, group: 1, greedy: false }];
    for world in target_sums() {
        let (mut policy, envs, wrappers) = (transformer(&world), 60, Config::default().wrappers);
        for (collection, max_concurrent) in collections.into_iter().zip([0, 7]) {
            let mut host = Collector::new(&world, envs, 11, collection).unwrap().with_max_concurrent(max_concurrent);
            let mut device =
                Collector::on_device(&world, envs, 11, (collection, &wrappers), &policy).unwrap().with_max_concurrent(max_concurrent);
            assert_eq!(host.score_names(), device.score_names());
            for _ in 0..2 {
                let ((expected, host_episodes), (got, episodes)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
                assert!(matches!(got.store.observations(), Observations::TextsOnDevice(_)), "{}", world.name);
                let store = worlds::on_host(&got.store).unwrap();
                assert_eq!(expected.store, store, "{}", world.name);
                assert_eq!((&expected.rewards, &expected.segments), (&got.rewards, &got.segments));
                assert_eq!((&expected.greedy_rewards, &expected.step_ends), (&got.greedy_rewards, &got.step_ends));
                assert!(expected.log_probs.iter().zip(&got.log_probs).all(|(a, b)| is_near(*a, *b)));
                assert_eq!(host_episodes, episodes);
                assert!(host.save() == device.save(), "{}", world.name);
                // a policy has the same outputs for a store on the device as on the host
                for compute in [Policy::values, Policy::log_probs, Policy::distributions] {
                    let (mut there, mut here) = (Vec::new(), Vec::new());
                    compute(&mut policy, &got.store, &mut there);
                    compute(&mut policy, &store, &mut here);
                    assert!(there.len() >= got.len() && there.iter().zip(&here).all(|(a, b)| is_near(*a, *b)));
                }
            }
            // each collector can load the other's state
            host.collect(&policy).unwrap();
            device.load(&host.save()).unwrap();
            let (after, episodes) = device.collect(&policy).unwrap();
            let (expected, host_episodes) = host.collect(&policy).unwrap();
            assert_eq!((expected.rewards, host_episodes), (after.rewards, episodes));
            host.load(&device.save()).unwrap();
            assert!(host.save() == device.save());
            // a damaged state is refused
            let saved = device.save();
            for (place, problem) in
                [(None, "too short"), (Some(1), "expected the start of episode"), (Some(6), "expected the start of episode")]
            {
                let mut broken = saved.clone();
                let gradus::nets::tensors::Data::U64(words) = &mut broken.get_mut("environments").unwrap().data else {
                    panic!("expected whole numbers")
                };
                match place {
                    Some(place) => words[place] ^= 1,
                    None => drop(words.pop()),
                }
                let error = device.load(&broken).unwrap_err().to_string();
                assert!(error.contains(problem) && !error.contains('\n'), "{error}");
            }
        }
    }
}

/// Compares the verdicts of thousands of completions, among them right, wrong, cut-off and empty ones.
#[test]
fn verdicts_match_the_host() {
    let (wrappers, mut right) = (Config::default().wrappers, 0);
    for world in target_sums() {
        let (policy, collection) = (transformer(&world), Collection::Episodes { per_env: 1, group: 1, greedy: false });
        let mut device = Collector::on_device(&world, 3000, 5, (collection, &wrappers), &policy).unwrap();
        let (rollout, episodes) = device.collect(&policy).unwrap();
        let (store, text) = (worlds::on_host(&rollout.store).unwrap(), world.text.as_ref().unwrap());
        let mut by_env: Vec<_> = episodes.iter().collect();
        by_env.sort_by_key(|episode| episode.env);
        let (mut ended, mut cut) = (0, 0);
        for (segment, episode) in rollout.segments.iter().zip(by_env) {
            let prompt = store.texts().prefix(segment.range.start);
            let completion = &actions(&store)[segment.range.clone()];
            let (reward, scores) = text.verify(prompt, completion).unwrap();
            let last = segment.range.end - 1;
            assert_eq!((rollout.rewards[last], &scores), (reward as f32, &episode.scores));
            assert!(rollout.rewards[segment.range.start..last].iter().all(|reward| *reward == 0.0));
            let is_cut = scores[1] == 1.0;
            right += u32::from(scores[0] == 1.0);
            *if is_cut { &mut cut } else { &mut ended } += 1;
        }
        assert!(ended > 100 && cut > 100, "{}: expected more than 100 of each, got {ended} ended and {cut} cut completions", world.name);
    }
    assert!(right > 100, "expected more than 100 right answers, got {right}");
}

/// The random streams are at different positions, the prompts have different lengths, and only some completions reach an end token.
#[test]
fn written_tokens_match_those_of_an_actor() {
    let world = registry::find("addition-3").unwrap();
    let policy = transformer(&world);
    let vocabulary = world.text.as_ref().unwrap().task.vocabulary();
    let prompts: Vec<Vec<u32>> = ["1+2=", "123+45=", "999+999=", "7+7=", "7+7="].map(|text| vocabulary.encode(text).unwrap()).into();
    let hands: Vec<StreamPosition> = [0, 1, 2, 3, 9].iter().map(|i| StreamPosition { index: *i, position: 5 * i }).collect();
    let most = 4;
    let written = policy.write(&prompts, (3, &hands), most, &vec![false; vocabulary.len()]).unwrap();
    assert_eq!((written.length, written.tokens.len()), (most, most * prompts.len()));
    let (width, mut texts) = (world.env().observation_space().width(), prompts.clone());
    let mut streams: Vec<Stream> = hands.iter().map(|hand| Stream::new(3, Purpose::Action, hand.index)).collect();
    streams.iter_mut().zip(&hands).for_each(|(stream, hand)| stream.seek(hand.position));
    let (mut actor, mut actions, mut log_probs) = (policy.actor(), ActionRows::Discrete(Vec::new()), vec![0.0; prompts.len()]);
    for t in 0..most {
        let mut rows = vec![0.0; width * texts.len()];
        rows.chunks_exact_mut(width).zip(&texts).for_each(|(row, text)| gradus::envs::text::write(text, row));
        actor.act(&rows, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
        let ActionRows::Discrete(tokens) = &actions else { panic!("expected tokens") };
        for (row, text) in texts.iter_mut().enumerate() {
            assert_eq!(written.tokens[row * most + t], tokens[row], "token {t} of text {row}");
            assert!(is_near(written.log_probs[row * most + t], log_probs[row]));
            text.push(tokens[row]);
        }
    }
    // every 16 tokens, generation stops if all texts have ended; texts that have ended do not change the others
    let options = TextOptions { max_new_tokens: Some(40), ..TextOptions::default() };
    let policy = transformer(&registry::find("addition-3").unwrap().with_text_options(options).unwrap());
    let with_ends = |ends: &dyn Fn(usize) -> bool| {
        let ends: Vec<bool> = (0..vocabulary.len()).map(ends).collect();
        policy.write(&prompts, (3, &hands), 40, &ends).unwrap()
    };
    let whole = with_ends(&|_| false);
    assert_eq!((with_ends(&|_| true).length, whole.length), (16, 40));
    let mut parted = 0;
    for token in 0..vocabulary.len() {
        let some = with_ends(&|end| end == token);
        let end_of = |tokens: &[u32]| tokens.iter().position(|other| *other == token as u32).map_or(40, |last| last + 1);
        let lengths: Vec<usize> = whole.tokens.chunks_exact(40).map(end_of).collect();
        for (row, end) in lengths.iter().enumerate() {
            assert_eq!(some.tokens[row * some.length..][..*end], whole.tokens[row * 40..][..*end]);
        }
        parted += u32::from(lengths.iter().any(|end| *end <= 16) && lengths.iter().any(|end| *end > 16));
    }
    assert!(parted > 2, "{parted}");
}
