//! Worlds on a device are the host's worlds: the same chance, the same physics, the same rollouts and checkpoints. On the processor, or on the
//! device that `GRADUS_TEST_DEVICE` names.

use gradus::agents::{Collection, End, Rollout};
use gradus::config::WrapperConfig;
use gradus::envs::bandits::ContextualBandit;
use gradus::envs::random::{Purpose, Stream, episode_seed, philox};
use gradus::envs::text::TextOptions;
use gradus::envs::{CartPole, TensorEnvSpec, World, registry};
use gradus::nets::torch::tch::Tensor;
use gradus::nets::torch::{ActorCritic, Hand, Transformer, worlds};
use gradus::nets::{ActionRows, Behaviour, Choice, Device, NetworkConfig, Observations, Policy, Store, TorchConfig, TransformerConfig};
use gradus::train::collect::{Collector, NotThere};
use gradus::{Config, Trainer};

fn device() -> Device {
    std::env::var("GRADUS_TEST_DEVICE").map_or(Device::TorchCpu, |name| name.parse().unwrap())
}

fn policy(world: &World, seed: u64) -> ActorCritic {
    let env = world.env();
    let config = NetworkConfig { hidden: vec![16], ..NetworkConfig::default() };
    let spaces = (&env.observation_space(), &env.action_space());
    ActorCritic::new((&config, &TorchConfig::default()), spaces, seed, device()).unwrap()
}

/// A CartPole whose episodes are truncated early.
fn short_cartpole(limit: u32) -> World {
    let mut world = World::limited("cartpole", limit, CartPole::default);
    world.tensor_spec = Some(TensorEnvSpec::CartPole { limit });
    world
}

fn collector(world: &World, envs: usize, seed: u64, steps: usize, policy: &ActorCritic) -> Collector {
    let wrappers = Config::default().wrappers;
    Collector::on_device(world, envs, seed, (Collection::Steps(steps), &wrappers), policy).unwrap()
}

fn actions(store: &Store) -> &[u32] {
    let ActionRows::Discrete(actions) = &store.actions else { panic!("discrete actions") };
    actions
}

fn is_near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs())
}

#[test]
fn philox_has_the_words_of_the_host() {
    let mut stream = Stream::new(3, Purpose::Problem, 0);
    let keys: Vec<[u32; 6]> = (0..200).map(|_| std::array::from_fn(|_| stream.word())).chain([[0; 6], [u32::MAX; 6]]).collect();
    let column = |i: usize| Tensor::from_slice(&keys.iter().map(|key| i64::from(key[i])).collect::<Vec<_>>());
    let words = worlds::philox(&[column(0), column(1)], &[column(2), column(3), column(4), column(5)]).unwrap();
    let words = words.map(|words| Vec::<i64>::try_from(words).unwrap());
    for (row, [k0, k1, c0, c1, c2, c3]) in keys.into_iter().enumerate() {
        let expected = philox([k0, k1], [c0, c1, c2, c3]);
        assert_eq!(expected.map(i64::from), [0, 1, 2, 3].map(|i| words[i][row]), "row {row}");
    }
}

/// The rollout's own actions, given to the host's environments: observations, rewards, endings, seeds and what follows a truncated episode.
fn replays(world: &World, envs: usize, steps: usize, rollouts: usize) {
    let policy = policy(world, 5);
    let mut device = collector(world, envs, 9, steps, &policy);
    let mut host = world.vec_env(0..envs, 9).unwrap();
    let (mut before, mut truncations, mut all) = (0, 0, 0);
    for _ in 0..rollouts {
        let (rollout, episodes) = device.collect(&policy).unwrap();
        let store = worlds::on_host(&rollout.store).unwrap();
        let taken = actions(&store);
        let same = |row: &[f32], expected: &[f32], what: &str| {
            assert!(row.iter().zip(expected).all(|(a, b)| is_near(*a, *b)), "{what}: expected {expected:?}, got {row:?}");
        };
        let mut finished = Vec::new();
        for step in 0..steps {
            let now: Vec<u32> = (0..envs).map(|env| taken[env * steps + step]).collect();
            let width = store.width();
            for env in 0..envs {
                let expected = &host.observation_rows()[env * width..][..width];
                same(store.observation(env * steps + step), expected, &format!("step {step} of environment {env}"));
            }
            let transition = host.step(gradus::envs::Actions::Discrete(&now)).unwrap();
            for env in 0..envs {
                assert!(is_near(rollout.rewards[env * steps + step], transition.rewards[env]), "reward {step} of environment {env}");
            }
            finished.extend(transition.finished.iter().map(|episode| (step, episode.clone())));
        }
        assert_eq!(finished.len(), episodes.len());
        for ((step, expected), got) in finished.iter().zip(&episodes) {
            assert_eq!((got.env, got.seed, got.length, got.ending), (expected.env, expected.seed, expected.length, expected.ending));
            assert!((got.episode_return - expected.episode_return).abs() < 1e-5 * (1.0 + expected.episode_return.abs()));
            assert_eq!(got.step, before + (envs * (step + 1)) as u64);
        }
        for segment in &rollout.segments {
            let (env, last) = (segment.group.0 as usize, (segment.range.end - 1) % steps);
            match segment.end {
                End::Terminated => {}
                End::Truncated { successor } => {
                    let (_, episode) = finished.iter().find(|(step, episode)| (*step, episode.env) == (last, env)).unwrap();
                    same(store.observation(successor), &episode.observation, "after a truncated episode");
                    truncations += 1;
                }
                End::Cut { successor } => {
                    assert_eq!(last, steps - 1);
                    same(store.observation(successor), &host.observation_rows()[env * store.width()..][..store.width()], "after all");
                }
            }
        }
        before += (envs * steps) as u64;
        all += episodes.len();
    }
    assert!(all > rollouts, "{all} episodes");
    let expects_truncations = world.max_episode_steps.is_some_and(|limit| limit < 100);
    assert_eq!(truncations > 0, expects_truncations, "{truncations} truncated episodes");
}

/// 1000 steps of 64 environments. An episode of a policy that has learnt nothing lasts twenty steps or a hundred: as long the device's sine
/// makes no difference in f32.
#[test]
fn cartpole_is_the_hosts() {
    replays(&registry::find("cartpole").unwrap(), 64, 250, 4);
}

#[test]
fn truncated_cartpole_is_the_hosts() {
    replays(&short_cartpole(12), 33, 47, 3);
    replays(&short_cartpole(1), 3, 5, 2);
}

#[test]
fn bandits_are_the_hosts() {
    // enough pulls for every way through the ziggurat, the tail among them
    for (name, envs) in [("bandit", 400), ("bernoulli-bandit", 20), ("contextual-bandit", 100)] {
        replays(&registry::find(name).unwrap(), envs, 37, 5);
    }
}

/// No episode of CartPole falls short of 8 steps, whatever it begins from and whoever plays: the device counts on 7.
#[test]
fn the_shortest_episode_of_cartpole() {
    use gradus::envs::{Action, Env};
    let mut shortest = 100;
    for corner in 0..81_u32 {
        let state: Vec<f64> = (0..4).map(|i| [-0.05, 0.0, 0.05][(corner / 3_u32.pow(i) % 3) as usize]).collect();
        for play in 0..512_u32 {
            let (mut env, mut observation) = (CartPole::default(), [0.0; 4]);
            env.start_from(&state, &mut observation).unwrap();
            let ends = |step: &u32| env.step(Action::Discrete(play >> step & 1), &mut observation).terminated;
            shortest = shortest.min((0..9).find(ends).map_or(100, |step| step + 1));
        }
    }
    assert_eq!(shortest, 8);
}

/// Both collectors with one policy: where nothing was rounded the other way, decision for decision the same.
#[test]
fn a_rollout_is_the_hosts() {
    for (world, tolerance) in [("cartpole", 0.02), ("bandit", 0.0), ("contextual-bandit", 0.01)] {
        let world = registry::find(world).unwrap();
        let (policy, envs, steps) = (policy(&world, 3), 128, 100);
        let mut host = Collector::new(&world, envs, 21, Collection::Steps(steps)).unwrap();
        let mut device = collector(&world, envs, 21, steps, &policy);
        assert!(device.is_on_device() && !host.is_on_device());
        let ((expected, host_episodes), (got, episodes)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
        assert_eq!(host.steps(), device.steps());
        let store = worlds::on_host(&got.store).unwrap();
        let (theirs, ours) = (actions(&expected.store), actions(&store));
        assert_eq!(theirs.len(), ours.len());
        // an environment with another action goes another way from there
        let parts = (0..envs).filter(|env| theirs[env * steps..][..steps] != ours[env * steps..][..steps]).count();
        assert!(parts as f64 <= tolerance * envs as f64, "{parts} of {envs} environments of {} part ways", world.name);
        let rest = |rollout: &Rollout, store: &Store| {
            let of = |env: usize| theirs[env * steps..][..steps] == ours[env * steps..][..steps];
            let decisions: Vec<usize> = (0..envs * steps).filter(|i| of(i / steps)).collect();
            let rows: Vec<f32> = decisions.iter().flat_map(|i| store.observation(*i).to_vec()).collect();
            let pairs: Vec<f32> = decisions.iter().flat_map(|i| [rollout.rewards[*i], rollout.log_probs[*i]]).collect();
            let segments: Vec<_> = rollout.segments.iter().filter(|s| of(s.range.start / steps)).map(|s| s.range.clone()).collect();
            (rows, pairs, segments)
        };
        let (a, b) = (rest(&expected, &expected.store), rest(&got, &store));
        assert!(a.0.iter().zip(&b.0).all(|(a, b)| is_near(*a, *b)) && a.1.iter().zip(&b.1).all(|(a, b)| is_near(*a, *b)));
        assert_eq!(a.2, b.2);
        let mut numbers = vec![0; envs];
        for episode in &episodes {
            let number = &mut numbers[episode.env];
            assert_eq!(episode.seed, episode_seed(21, episode.env as u64, *number));
            *number += 1;
        }
        if parts == 0 {
            let of = |episodes: &[gradus::train::collect::Episode]| {
                episodes.iter().map(|e| (e.step, e.env, e.seed, e.length)).collect::<Vec<_>>()
            };
            assert_eq!(of(&host_episodes), of(&episodes));
            assert_eq!(store.rows(), expected.store.rows());
        }
        // and a store that is on the device gives what the same store on the host does
        let (mut policy, mut values, mut host_values) = (policy, Vec::new(), Vec::new());
        policy.values(&got.store, &mut values);
        policy.values(&store, &mut host_values);
        assert_eq!(values, host_values);
        policy.log_probs(&got.store, &mut values);
        assert!(values.iter().zip(&got.log_probs).all(|(a, b)| is_near(*a, *b)));
    }
}

/// What the host does to rewards it does to those that come down from a device.
#[test]
fn rewards_are_normalised_as_the_hosts_are() {
    let world = registry::find("bandit").unwrap();
    let wrappers = WrapperConfig { normalise_rewards: true, clip_reward: 1.5, ..WrapperConfig::default() };
    let (policy, collection) = (policy(&world, 3), Collection::Steps(40));
    let mut host = Collector::with_wrappers(&world, 64, 2, collection, &wrappers).unwrap();
    let mut device = Collector::on_device(&world, 64, 2, (collection, &wrappers), &policy).unwrap();
    for _ in 0..2 {
        let ((expected, _), (got, _)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
        assert!(expected.rewards.iter().zip(&got.rewards).all(|(a, b)| is_near(*a, *b)));
        assert!(got.rewards.iter().any(|reward| *reward > 1.5), "divided by a standard deviation below 1");
    }
    let world = registry::find("target-sum").unwrap();
    let wrappers = WrapperConfig { clip_reward: 0.5, ..wrappers };
    let (policy, collection) = (transformer(&world), Collection::Episodes { per_env: 2, group: 4, greedy: true });
    let mut host = Collector::with_wrappers(&world, 64, 2, collection, &wrappers).unwrap();
    let mut device = Collector::on_device(&world, 64, 2, (collection, &wrappers), &policy).unwrap();
    for _ in 0..2 {
        let ((expected, _), (got, _)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
        assert_eq!((expected.rewards, expected.greedy_rewards), (got.rewards, got.greedy_rewards));
    }
    assert!(host.save() == device.save());
}

/// The rest of a training after a checkpoint, whoever made it: here, on a device that begins anew, and on the host.
#[test]
fn checkpoints_go_on_where_they_were() {
    for world in [registry::find("cartpole").unwrap(), short_cartpole(20), registry::find("contextual-bandit").unwrap()] {
        let (policy, envs, steps) = (policy(&world, 1), 16, 21);
        let mut first = collector(&world, envs, 4, steps, &policy);
        let mut host = Collector::new(&world, envs, 4, Collection::Steps(steps)).unwrap();
        // one that has gone elsewhere in the meantime
        let mut other = collector(&world, envs, 4, steps, &policy);
        for _ in 0..3 {
            first.collect(&policy).unwrap();
            let saved = first.save();
            other.collect(&policy).unwrap();
            other.load(&saved).unwrap();
            host.load(&saved).unwrap();
            assert!(saved == other.save(), "{}", world.name);
            assert!(saved == host.save(), "{}", world.name);
            let ((a, a_episodes), (b, b_episodes)) = (first.collect(&policy).unwrap(), other.collect(&policy).unwrap());
            assert_eq!((&a.rewards, &a.log_probs, &a.segments, a_episodes), (&b.rewards, &b.log_probs, &b.segments, b_episodes));
            assert_eq!(worlds::on_host(&a.store).unwrap(), worlds::on_host(&b.store).unwrap());
            host.collect(&policy).unwrap();
            other.load(&host.save()).unwrap();
            assert!(host.save() == other.save(), "{}", world.name);
        }
        let saved = first.save();
        for (key, problem) in [("environments", "too short"), ("action_streams", "expected 16 streams")] {
            let mut broken = saved.clone();
            let gradus::nets::tensors::Data::U64(words) = &mut broken.get_mut(key).unwrap().data else { panic!("whole numbers") };
            words.pop();
            let error = other.load(&broken).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }
}

fn transformer(world: &World) -> Transformer {
    let env = world.env();
    let config = TransformerConfig { layers: 2, width: 32, heads: 2, feed_forward_width: 48, ..TransformerConfig::default() };
    let spaces = (&env.observation_space(), &env.action_space());
    Transformer::new((&config, &TorchConfig::default()), spaces, 7, device()).unwrap()
}

/// Texts written on the device beside those that an actor says on the host, token by token: prompts, tokens, rewards, scores and checkpoints.
#[test]
fn texts_are_the_hosts() {
    let collections =
        [Collection::Episodes { per_env: 1, group: 4, greedy: true }, Collection::Episodes { per_env: 3, group: 1, greedy: false }];
    for name in ["target-sum", "addition-2", "countdown"] {
        let mut world = registry::find(name).unwrap();
        world.tensor_spec = Some(TensorEnvSpec::Text); // judged by the host, all of them
        let (policy, envs, wrappers) = (transformer(&world), 24, Config::default().wrappers);
        for (collection, slots) in collections.into_iter().zip([0, 7]) {
            let mut host = Collector::new(&world, envs, 11, collection).unwrap().with_max_concurrent(slots);
            let mut device = Collector::on_device(&world, envs, 11, (collection, &wrappers), &policy).unwrap().with_max_concurrent(slots);
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
            // on from where the other is
            host.collect(&policy).unwrap();
            device.load(&host.save()).unwrap();
            assert_eq!(host.collect(&policy).unwrap().1, device.collect(&policy).unwrap().1);
        }
    }
}

/// Target sums by level, with every option.
fn target_sums() -> Vec<World> {
    let of = |name: &str, options| registry::find(name).unwrap().with_text_options(options).unwrap();
    let free = TextOptions::default();
    let penalties = TextOptions { missing_eos_penalty: 0.3, length_penalty: 0.07, ..free.clone() };
    let bootstraps = TextOptions { max_new_tokens: Some(3), length_bootstraps: true, ..penalties.clone() };
    vec![
        of("target-sum-1", free.clone()),
        of("target-sum-2", penalties),
        of("target-sum-3", TextOptions { max_new_tokens: Some(21), ..free }),
        of("target-sum-3", bootstraps),
    ]
}

/// Target sums that are asked for, written and judged on the device beside those of the host.
#[test]
fn target_sums_are_the_hosts() {
    let collections =
        [Collection::Episodes { per_env: 1, group: 4, greedy: true }, Collection::Episodes { per_env: 3, group: 1, greedy: false }];
    for world in target_sums() {
        let (mut policy, envs, wrappers) = (transformer(&world), 60, Config::default().wrappers);
        for (collection, slots) in collections.into_iter().zip([0, 7]) {
            let mut host = Collector::new(&world, envs, 11, collection).unwrap().with_max_concurrent(slots);
            let mut device = Collector::on_device(&world, envs, 11, (collection, &wrappers), &policy).unwrap().with_max_concurrent(slots);
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
                // and what a policy says of a store that is on the device it says of the same store on the host
                for ask in [Policy::values, Policy::log_probs, Policy::distributions] {
                    let (mut there, mut here) = (Vec::new(), Vec::new());
                    ask(&mut policy, &got.store, &mut there);
                    ask(&mut policy, &store, &mut here);
                    assert!(there.len() >= got.len() && there.iter().zip(&here).all(|(a, b)| is_near(*a, *b)));
                }
            }
            // on from where the other is
            host.collect(&policy).unwrap();
            device.load(&host.save()).unwrap();
            let (after, episodes) = device.collect(&policy).unwrap();
            let (expected, host_episodes) = host.collect(&policy).unwrap();
            assert_eq!((expected.rewards, host_episodes), (after.rewards, episodes));
            host.load(&device.save()).unwrap();
            assert!(host.save() == device.save());
            // a state of another place is no state of this
            let saved = device.save();
            for (place, problem) in
                [(None, "too short"), (Some(1), "expected the start of episode"), (Some(6), "expected the start of episode")]
            {
                let mut broken = saved.clone();
                let gradus::nets::tensors::Data::U64(words) = &mut broken.get_mut("environments").unwrap().data else {
                    panic!("whole numbers")
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

/// The verdicts of thousands of completions, right and wrong ones, cut and empty ones.
#[test]
fn verdicts_are_the_hosts() {
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
        assert!(ended > 100 && cut > 100, "{}: {ended} {cut}", world.name);
    }
    assert!(right > 100, "{right}");
}

/// The same training with texts on the device and on the host.
#[test]
fn a_training_on_target_sums_is_the_hosts() {
    let grpo = ["agent=grpo", "grpo.group_size=4", "grpo.epochs=2", "grpo.minibatches=2", "reference.coefficient=0.05"];
    let sequences = ["agent=grpo", "grpo.group_size=4", "grpo.ratio=sequence", "text.length_penalty=0.01"];
    let remax = ["agent=reinforce", "reinforce.baseline=greedy", "slots=9"];
    let critic = ["agent=reinforce", "reinforce.baseline=value", "text.max_new_tokens=2", "text.length_bootstraps=true"];
    for settings in [&grpo[..], &sequences, &remax, &critic] {
        let train = |place: &str| {
            let place = format!("torch.worlds={place}");
            let settings = [&["environment=target-sum", "envs=48"], settings, &[&*place]].concat();
            let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
            for _ in 0..6 {
                trainer.iterate().unwrap();
            }
            (trainer.policy().parameters().to_vec(), trainer.recent_return())
        };
        let ((host, host_return), (device, device_return)) = (train("host"), train("device"));
        let norm = |numbers: &mut dyn Iterator<Item = f32>| numbers.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let apart = norm(&mut host.iter().zip(&device).map(|(a, b)| a - b)) / norm(&mut host.iter().copied());
        assert!(apart < 1e-4, "{settings:?}: {apart}");
        assert!((host_return - device_return).abs() < 1e-5, "{host_return} {device_return}");
    }
}

/// Streams of actions that have drawn any number of words, prompts of any length, an end that some come to and some do not.
#[test]
fn what_is_written_is_what_an_actor_says() {
    let world = registry::find("addition-3").unwrap();
    let policy = transformer(&world);
    let vocabulary = world.text.as_ref().unwrap().task.vocabulary();
    let prompts: Vec<Vec<u32>> = ["1+2=", "123+45=", "999+999=", "7+7=", "7+7="].map(|text| vocabulary.encode(text).unwrap()).into();
    let hands: Vec<Hand> = [0, 1, 2, 3, 9].iter().map(|i| Hand { index: *i, position: 5 * i }).collect();
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
        let ActionRows::Discrete(said) = &actions else { panic!("tokens") };
        for (row, text) in texts.iter_mut().enumerate() {
            assert_eq!(written.tokens[row * most + t], said[row], "token {t} of text {row}");
            assert!(is_near(written.log_probs[row * most + t], log_probs[row]));
            text.push(said[row]);
        }
    }
    // nobody goes on once it was seen that all have ended, and those who have do not change what the others say
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
        let end_of = |said: &[u32]| said.iter().position(|said| *said == token as u32).map_or(40, |last| last + 1);
        let lengths: Vec<usize> = whole.tokens.chunks_exact(40).map(end_of).collect();
        for (row, end) in lengths.iter().enumerate() {
            assert_eq!(some.tokens[row * some.length..][..*end], whole.tokens[row * 40..][..*end]);
        }
        parted += u32::from(lengths.iter().any(|end| *end <= 16) && lengths.iter().any(|end| *end > 16));
    }
    assert!(parted > 2, "{parted}");
}

fn on_device(settings: &[&str]) -> Result<Config, gradus::Error> {
    let device = format!("device={}", device());
    let settings = [&[&*device, "torch.worlds=device"], settings].concat();
    settings.into_iter().try_fold(Config::preset("ppo", "cartpole", None)?, |config, setting| config.with_setting(setting))
}

#[test]
fn ppo_learns_cartpole_on_the_device() {
    let settings =
        ["envs=32", "steps=40000", "ppo.rollout_steps=64", "ppo.minibatch_size=512", "ppo.epochs=8", "optimiser.learning_rate=0.002"];
    let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
    trainer.finish().unwrap();
    assert!(trainer.recent_return() > 120.0, "{}", trainer.recent_return());
}

#[test]
fn a_training_resumes_to_the_same_bits() {
    let on_text = ["environment=target-sum", "agent=grpo", "envs=16", "grpo.group_size=4", "slots=5"];
    let judged_by_the_host = [&on_text[..], &["environment=addition"]].concat();
    for settings in [&["envs=8", "ppo.rollout_steps=19", "ppo.minibatch_size=64"][..], &on_text, &judged_by_the_host] {
        resumes(|| on_device(settings).unwrap());
    }
}

fn resumes(config: impl Fn() -> Config) {
    let mut whole = Trainer::new(config()).unwrap();
    let mut resumed = Trainer::new(config()).unwrap();
    for _ in 0..4 {
        whole.iterate().unwrap();
        resumed.load(&whole.save()).unwrap();
        let (a, b) = (whole.iterate().unwrap(), resumed.iterate().unwrap());
        assert_eq!(a.episodes, b.episodes);
        assert!(whole.save() == resumed.save());
        // on with another
        resumed = Trainer::new(config()).unwrap();
    }
}

/// Every agent that collects steps, and what is said to those who cannot have it.
#[test]
fn who_can_be_on_the_device() {
    for (agent, setting) in [("a2c", "envs=4"), ("trpo", "trpo.rollout_steps=30"), ("ppo", "wrappers.normalise_rewards=true")] {
        let config = Config::preset(agent, "cartpole", None).unwrap().with_setting(setting).unwrap().with_setting("torch.worlds=device");
        let config = config.unwrap().with_setting(&format!("device={}", device())).unwrap();
        let mut trainer = Trainer::new(config).unwrap();
        trainer.iterate().unwrap();
        trainer.iterate().unwrap();
    }
    let refused = |settings: &[&str]| match Trainer::new(on_device(settings).unwrap()) {
        Ok(_) => panic!("{settings:?} is accepted"),
        Err(error) => error.to_string(),
    };
    let cases: [(&[&str], &str); 7] = [
        (&["environment=target-sum"], "this agent collects parts of texts"),
        (&["environment=addition"], "this agent collects parts of texts"),
        (&["agent=reinforce"], "this agent collects whole episodes"),
        (&["wrappers.normalise_observations=true"], "observations are normalised on the host"),
        (&["wrappers.frame_stack=2"], "this world, with what is wrapped around it, has no tensor program"),
        (&["environment=acrobot"], "this world, with what is wrapped around it, has no tensor program"),
        (&["device=cpu"], "the policy is no perceptron on libtorch"),
    ];
    for (settings, reason) in cases {
        assert_eq!(refused(settings), format!("torch.worlds: expected auto or host, for {reason}, got device"));
    }
    // who reads texts on the host, or has a prompt of one's own, has them written on the device all the same
    for setting in ["grpo.sampling_rounds=3", "reward_model.pairs=4"] {
        let settings = ["environment=target-sum", "agent=grpo", "envs=16", "grpo.group_size=4", setting];
        let mut trainer = Trainer::new(on_device(&settings).unwrap()).unwrap();
        trainer.iterate().unwrap();
    }
    let world = registry::find("target-sum").unwrap();
    let world = world.with_prompt(&[7, 8]).unwrap();
    let (text_policy, collection) = (transformer(&world), Collection::Episodes { per_env: 1, group: 1, greedy: false });
    let mut written = Collector::on_device(&world, 4, 1, (collection, &Config::default().wrappers), &text_policy).unwrap();
    let (rollout, _) = written.collect(&text_policy).unwrap();
    assert!(written.is_on_device() && rollout.segments.iter().all(|s| rollout.store.texts().prefix(s.range.start) == [7, 8]));
    // what nobody asked for is no error
    let auto = [&*format!("device={}", device()), "environment=acrobot"];
    Trainer::new(auto.into_iter().try_fold(Config::default(), |config, setting| config.with_setting(setting)).unwrap()).unwrap();
    // noise that would begin within a block of its stream
    let narrow = || ContextualBandit::new(5, 3, 0);
    let mut world = World::new("narrow", narrow);
    world.tensor_spec = Some(TensorEnvSpec::ContextualBandit(narrow()));
    let policy = policy(&world, 1);
    let wrappers = Config::default().wrappers;
    let got = Collector::on_device(&world, 2, 1, (Collection::Steps(4), &wrappers), &policy);
    assert!(matches!(got.map(|_| ()), Err(NotThere::Unsuited(_))));
}
