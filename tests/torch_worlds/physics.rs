//! Random words, CartPole and the bandits on a device match the host, step by step.

use gradus::agents::End;
use gradus::envs::random::{Purpose, Stream, philox};
use gradus::envs::{CartPole, EnvSpec, registry};
use gradus::nets::torch::tch::Tensor;
use gradus::nets::torch::worlds;

use super::{actions, collector, is_near, policy, short_cartpole};

#[test]
fn philox_matches_the_host() {
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

/// Replays a rollout's actions in the host's environments, and compares observations, rewards, endings, seeds and the observations after
/// truncated episodes.
fn replays(world: &EnvSpec, envs: usize, steps: usize, rollouts: usize) {
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
                assert!(is_near(rollout.rewards[env * steps + step], transition.rewards[env]), "reward of step {step}, environment {env}");
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
                    same(store.observation(successor), &host.observation_rows()[env * store.width()..][..store.width()], "at the end");
                }
            }
        }
        before += (envs * steps) as u64;
        all += episodes.len();
    }
    assert!(all > rollouts, "expected more than {rollouts} episodes, got {all}");
    let expects_truncations = world.max_episode_steps.is_some_and(|limit| limit < 100);
    assert_eq!(truncations > 0, expects_truncations, "got {truncations} truncated episodes");
}

/// The test makes 1000 steps of each of 64 environments. An episode of an untrained policy has twenty to a hundred steps. In so few steps
/// the device's sine, which rounds in another way, makes no difference in f32.
#[test]
fn cartpole_matches_the_host() {
    replays(&registry::find("cartpole").unwrap(), 64, 250, 4);
}

#[test]
fn truncated_cartpole_matches_the_host() {
    // on a GPU rollouts are recorded and repeated: with 47 steps one of four kinds, and all of them with 5
    replays(&short_cartpole(12), 33, 47, 6);
    replays(&short_cartpole(1), 3, 5, 9);
}

#[test]
fn bandits_match_the_host() {
    // these are enough pulls for every branch of the ziggurat, the sampler of normal noise, including its tail
    for (name, envs) in [("bandit", 400), ("bernoulli-bandit", 20), ("contextual-bandit", 100)] {
        replays(&registry::find(name).unwrap(), envs, 37, 9);
    }
}

/// Every episode of CartPole has at least 8 steps, for any start and any actions; the device relies on at least 7.
#[test]
fn the_shortest_episode_of_cartpole_has_8_steps() {
    use gradus::envs::{Action, Env};
    let mut shortest = 100;
    for corner in 0..81_u32 {
        let state: Vec<f64> = (0..4).map(|i| [-0.05, 0.0, 0.05][(corner / 3_u32.pow(i) % 3) as usize]).collect();
        for actions in 0..512_u32 {
            let (mut env, mut observation) = (CartPole::default(), [0.0; 4]);
            env.start_from(&state, &mut observation).unwrap();
            let ends = |step: &u32| env.step(Action::Discrete(actions >> step & 1), &mut observation).terminated;
            shortest = shortest.min((0..9).find(ends).map_or(100, |step| step + 1));
        }
    }
    assert_eq!(shortest, 8);
}
