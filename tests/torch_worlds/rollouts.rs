//! Rollouts, normalised rewards and checkpoints of a device match those of the host.

use gradus::agents::{Collection, Rollout};
use gradus::config::WrapperConfig;
use gradus::envs::random::episode_seed;
use gradus::envs::registry;
use gradus::nets::torch::worlds;
use gradus::nets::{Policy, Store};
use gradus::rollouts::Collector;

use super::{actions, collector, is_near, policy, short_cartpole, transformer};

/// The collectors on the host and on the device use the same policy. Their decisions are the same in every environment in which no action
/// differs by rounding.
#[test]
fn rollouts_match_the_host() {
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
        // after its first different action, an environment's decisions differ
        let parts = (0..envs).filter(|env| theirs[env * steps..][..steps] != ours[env * steps..][..steps]).count();
        assert!(parts as f64 <= tolerance * envs as f64, "{parts} of {envs} environments of {} differ", world.name);
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
            let of =
                |episodes: &[gradus::rollouts::Episode]| episodes.iter().map(|e| (e.step, e.env, e.seed, e.length)).collect::<Vec<_>>();
            assert_eq!(of(&host_episodes), of(&episodes));
            assert_eq!(store.rows(), expected.store.rows());
        }
        // a store on the device gives the same values as on the host
        let (mut policy, mut values, mut host_values) = (policy, Vec::new(), Vec::new());
        policy.values(&got.store, &mut values);
        policy.values(&store, &mut host_values);
        assert_eq!(values, host_values);
        policy.log_probs(&got.store, &mut values);
        assert!(values.iter().zip(&got.log_probs).all(|(a, b)| is_near(*a, *b)));
    }
}

/// Rewards from a device are clipped and normalised as those of environments on the host.
#[test]
fn rewards_are_normalised_as_on_the_host() {
    let world = registry::find("bandit").unwrap();
    let wrappers = WrapperConfig { normalise_rewards: true, reward_scale: 0.5, clip_reward: 0.75, ..WrapperConfig::default() };
    let (policy, collection) = (policy(&world, 3), Collection::Steps(40));
    let mut host = Collector::with_wrappers(&world, 64, 2, collection, &wrappers).unwrap();
    let mut device = Collector::on_device(&world, 64, 2, (collection, &wrappers), &policy).unwrap();
    for _ in 0..2 {
        let ((expected, _), (got, _)) = (host.collect(&policy).unwrap(), device.collect(&policy).unwrap());
        assert!(expected.rewards.iter().zip(&got.rewards).all(|(a, b)| is_near(*a, *b)));
        assert!(got.rewards.iter().any(|reward| *reward > 1.5), "expected clipped rewards to be divided by a standard deviation below 1");
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

/// A checkpoint of a collector on the device can be loaded by another collector on the device and by one on the host.
#[test]
fn checkpoints_resume_on_the_device_and_on_the_host() {
    for world in [registry::find("cartpole").unwrap(), short_cartpole(20), registry::find("contextual-bandit").unwrap()] {
        let (policy, envs, steps) = (policy(&world, 1), 16, 21);
        let mut first = collector(&world, envs, 4, steps, &policy);
        let mut host = Collector::new(&world, envs, 4, Collection::Steps(steps)).unwrap();
        // a collector in another state
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
        for (key, problem) in [("environments", "too short"), ("action_streams", "expected 16 action streams")] {
            let mut broken = saved.clone();
            let gradus::nets::tensors::Data::U64(words) = &mut broken.get_mut(key).unwrap().data else { panic!("expected whole numbers") };
            words.pop();
            let error = other.load(&broken).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }
}
