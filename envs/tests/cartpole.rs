//! CartPole: Gymnasium's episodes, and the same bits in a batch and in a single environment.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Action, Actions, Autoreset, Batch, CartPole, CartPoleBatch, Ending, Env, EnvSpec, Space, TimeLimit, VecEnv, registry};

const LIMIT: u32 = 500;

fn cartpole() -> EnvSpec {
    registry::find("cartpole").unwrap()
}

/// Returns a random action in even environments, and mostly a balancing action in odd environments, so that both kinds of endings occur.
fn action(id: usize, stream: &mut Stream, observation: &[f32]) -> u32 {
    let random = stream.below(2);
    match id % 2 == 1 && stream.below(8) > 0 {
        true => u32::from(observation[2] + 0.3 * observation[3] + 0.05 * observation[0] + 0.1 * observation[1] > 0.0),
        false => random,
    }
}

/// Returns the players of the environments `ids`: the number of each environment, and a stream for its actions. With separate streams, the
/// actions do not depend on the grouping of the environments.
fn players(ids: std::ops::Range<usize>) -> Vec<(usize, Stream)> {
    ids.map(|id| (id, Stream::new(99, Purpose::Action, id as u64))).collect()
}

fn act(players: &mut [(usize, Stream)], envs: &VecEnv) -> Vec<u32> {
    let rows = envs.observation_rows().chunks_exact(4);
    players.iter_mut().zip(rows).map(|((id, stream), row)| action(*id, stream, row)).collect()
}

/// What a step returns for one environment, with floating-point numbers as bits.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    row: [u32; 4],
    reward: u32,
    ending: Ending,
    reset: bool,
    finished: Option<(u64, u64, u32, Vec<u32>)>,
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn step(envs: &mut VecEnv, actions: &[u32]) -> Vec<Seen> {
    let transition = envs.step(Actions::Discrete(actions)).unwrap().clone();
    (0..envs.len())
        .map(|i| {
            let finished = transition.finished.iter().find(|finished| finished.env == i);
            Seen {
                row: bits(&envs.observation_rows()[4 * i..4 * i + 4]).try_into().unwrap(),
                reward: transition.rewards[i].to_bits(),
                ending: transition.endings[i],
                reset: transition.resets[i],
                finished: finished.map(|f| (f.seed, f.episode_return.to_bits(), f.length, bits(&f.observation))),
            }
        })
        .collect()
}

fn play(envs: &mut VecEnv, players: &mut [(usize, Stream)], steps: usize) -> Vec<Vec<Seen>> {
    (0..steps)
        .map(|_| {
            let actions = act(players, envs);
            step(envs, &actions)
        })
        .collect()
}

#[test]
fn the_batch_gives_the_bits_of_the_single_environment() {
    for n in [1, 3, 64, 65, 200] {
        let mut many = cartpole().vec_env(0..n, 7).unwrap();
        let mut one_by_one = cartpole().scalar().vec_env(0..n, 7).unwrap();
        let mut players = players(0..n);
        let mut ended = [0; 4];
        for t in 0..1500 {
            assert_eq!(bits(many.observation_rows()), bits(one_by_one.observation_rows()), "{n} environments, before step {t}");
            let actions = act(&mut players, &many);
            let seen = step(&mut many, &actions);
            assert_eq!(seen, step(&mut one_by_one, &actions), "{n} environments, step {t}");
            seen.iter().for_each(|seen| ended[seen.ending as usize] += 1);
        }
        assert_eq!(many.save(), one_by_one.save(), "{n} environments");
        assert!(ended[Ending::Terminated as usize] > 0 && (n == 1 || ended[Ending::Truncated as usize] > 0), "{n}: {ended:?}");
    }
}

/// With Gymnasium's default autoreset, the step after an episode's end resets the environment. How the batch treats finished environments
/// must not affect the results.
#[test]
fn the_batch_gives_the_bits_of_the_single_environment_with_next_step_autoreset() {
    let mut many = cartpole().vec_env_with(0..65, 7, Autoreset::NextStep).unwrap();
    let mut one_by_one = cartpole().scalar().vec_env_with(0..65, 7, Autoreset::NextStep).unwrap();
    let seen = play(&mut many, &mut players(0..65), 600);
    assert_eq!(seen, play(&mut one_by_one, &mut players(0..65), 600));
    assert!(seen.iter().flatten().any(|seen| seen.reset));
}

struct Golden {
    start: Vec<f64>,
    end: Vec<f64>,
    actions: Vec<u32>,
    observations: Vec<Vec<f32>>,
    ending: Ending,
}

fn golden() -> Vec<Golden> {
    let text = std::fs::read_to_string(gradus_testing::golden::path("cartpole.jsonl")).unwrap();
    let numbers = |value: &serde_json::Value| -> Vec<f64> { value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect() };
    text.lines()
        .map(|line| {
            let episode: serde_json::Value = serde_json::from_str(line).unwrap();
            let row = |row| numbers(row).into_iter().map(|x| x as f32).collect();
            Golden {
                start: numbers(&episode["start"]),
                end: numbers(&episode["end"]),
                actions: numbers(&episode["actions"]).into_iter().map(|action| action as u32).collect(),
                observations: episode["observations"].as_array().unwrap().iter().map(row).collect(),
                ending: Ending::new(episode["terminated"].as_bool().unwrap(), episode["truncated"].as_bool().unwrap()),
            }
        })
        .collect()
}

/// A batch stores environments in blocks, and pads the last block. This batch has three copies of each of Gymnasium's recorded episodes, so
/// that some are in a full block and some in a padded block. Observations can be compared to the bit, because our arithmetic is the same on
/// every machine. At least nine episodes in ten also end in exactly the same f64 state. The others do not, because our sine and cosine are
/// not always correctly rounded.
#[test]
fn the_batch_replays_gymnasiums_episodes() {
    let golden = golden();
    let n = 3 * golden.len();
    let mut batch = CartPoleBatch::new(n, LIMIT);
    let (mut rows, mut rewards) = (vec![0.0; 4 * n], vec![0.0; n]);
    let (mut endings, mut finished, mut same_state) = (vec![Ending::Running; n], vec![false; n], 0);
    for env in 0..n {
        let mut state: Vec<u64> = golden[env % golden.len()].start.iter().map(|number| number.to_bits()).collect();
        state.push(0);
        batch.load(env, &state).unwrap();
    }
    for t in 0..LIMIT as usize {
        let actions: Vec<u32> = (0..n).map(|env| golden[env % golden.len()].actions.get(t).copied().unwrap_or(0)).collect();
        batch.step(Actions::Discrete(&actions), &finished, &mut rows, &mut rewards, &mut endings);
        for env in (0..n).filter(|env| t < golden[*env % golden.len()].actions.len()) {
            let episode = &golden[env % golden.len()];
            let place = format!("line {}, step {}", env % golden.len() + 1, t + 1);
            assert_eq!(bits(&rows[4 * env..4 * env + 4]), bits(&episode.observations[t + 1]), "{place}");
            assert_eq!(rewards[env], 1.0, "{place}");
            finished[env] = t + 1 == episode.actions.len();
            assert_eq!(endings[env], if finished[env] { episode.ending } else { Ending::Running }, "{place}");
            if finished[env] {
                let state: Vec<f64> = batch.save(env)[..4].iter().map(|word| f64::from_bits(*word)).collect();
                assert!(state.iter().zip(&episode.end).all(|(got, expected)| (got - expected).abs() < 1e-12), "{place}: {state:?}");
                same_state += usize::from(state == episode.end);
            }
        }
    }
    assert!(finished.iter().all(|finished| *finished) && n >= 3 * 36);
    assert!(10 * same_state >= 9 * n, "{same_state} of {n} end in the same f64 state");
}

#[test]
fn episodes_do_not_depend_on_the_grouping() {
    let whole = play(&mut cartpole().vec_env(0..8, 5).unwrap(), &mut players(0..8), 700);
    let left = play(&mut cartpole().vec_env(0..3, 5).unwrap(), &mut players(0..3), 700);
    let right = play(&mut cartpole().vec_env(3..8, 5).unwrap(), &mut players(3..8), 700);
    for (t, whole) in whole.iter().enumerate() {
        assert_eq!(*whole, [left[t].as_slice(), right[t].as_slice()].concat(), "step {t}");
    }
}

#[test]
fn a_saved_vector_environment_continues_in_mid_episode() {
    for autoreset in [Autoreset::SameStep, Autoreset::NextStep] {
        let mut envs = cartpole().vec_env_with(0..5, 3, autoreset).unwrap();
        let mut players = players(0..5);
        for _ in 0..40 {
            play(&mut envs, &mut players, 17);
            let words = envs.save();
            let later_players = players.clone();
            let expected = play(&mut envs, &mut players, 60);
            for world in [cartpole(), cartpole().scalar()] {
                let mut later = world.vec_env_with(0..5, 3, autoreset).unwrap();
                assert!(later.load(&words).unwrap().is_empty());
                assert_eq!(play(&mut later, &mut later_players.clone(), 60), expected, "{autoreset:?}");
            }
        }
    }
}

/// A run may be continued with another number of workers.
#[test]
fn two_vector_environments_can_load_the_state_of_one() {
    let mut whole = cartpole().vec_env(0..8, 5).unwrap();
    play(&mut whole, &mut players(0..8), 33);
    let words = whole.save();
    let (mut left, mut right) = (cartpole().vec_env(0..3, 5).unwrap(), cartpole().vec_env(3..8, 5).unwrap());
    let rest = left.load(&words).unwrap();
    assert!(right.load(rest).unwrap().is_empty());
    assert_eq!([left.save(), right.save()].concat(), words);
    assert_eq!([left.observation_rows(), right.observation_rows()].concat(), whole.observation_rows());
}

/// A common mistake is a reward of 0 on the step in which the pole falls.
#[test]
fn the_terminating_step_has_reward_1() {
    let mut env = CartPole::default();
    let mut row = [0.0; 4];
    env.reset(1, &mut row);
    let last = std::iter::repeat_with(|| env.step(Action::Discrete(1), &mut row)).find(|step| step.done()).unwrap();
    assert_eq!((last.reward, last.terminated, last.truncated), (1.0, true, false));

    for world in [cartpole(), cartpole().scalar()] {
        let mut envs = world.vec_env(0..3, 1).unwrap();
        let mut ended = 0;
        for _ in 0..200 {
            let transition = envs.step(Actions::Discrete(&[1, 0, 1])).unwrap();
            assert_eq!(transition.rewards, [1.0; 3]);
            for finished in &transition.finished {
                ended += 1;
                assert_eq!((finished.ending, finished.episode_return), (Ending::Terminated, f64::from(finished.length)));
            }
        }
        assert!(ended > 30, "{ended} episodes");
    }
}

/// At zero velocity the first step moves neither cart nor pole, so the state after it can be exactly at a limit or just beyond it.
#[test]
fn an_episode_ends_beyond_the_limits_and_not_at_them() {
    let angle = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
    for sign in [1.0, -1.0] {
        for (i, limit) in [(0, 2.4_f64), (2, angle)] {
            for (value, terminated) in [(limit, false), (limit.next_up(), true)] {
                let mut state = [0.0; 4];
                state[i] = sign * value;
                let (mut env, mut row) = (CartPole::default(), [0.0; 4]);
                env.start_from(&state, &mut row).unwrap();
                assert_eq!(env.step(Action::Discrete(0), &mut row).terminated, terminated, "{state:?}");

                let mut batch = CartPoleBatch::new(1, LIMIT);
                let mut words = state.map(f64::to_bits).to_vec();
                words.push(0);
                batch.load(0, &words).unwrap();
                let mut endings = [Ending::Running];
                batch.step(Actions::Discrete(&[0]), &[false], &mut row, &mut [0.0], &mut endings);
                assert_eq!(endings[0].terminated(), terminated, "{state:?}");
            }
        }
    }
}

#[test]
fn start_states_are_uniform_within_0_05() {
    let (mut env, mut row) = (CartPole::default(), [0.0; 4]);
    let (mut low, mut high, mut sum) = ([0.0_f32; 4], [0.0_f32; 4], [0.0_f32; 4]);
    for seed in 0..2000 {
        env.reset(seed, &mut row);
        for i in 0..4 {
            (low[i], high[i], sum[i]) = (low[i].min(row[i]), high[i].max(row[i]), sum[i] + row[i]);
        }
    }
    for i in 0..4 {
        assert!((-0.05..-0.0495).contains(&low[i]) && (0.0495..=0.05).contains(&high[i]), "observation[{i}]: {} to {}", low[i], high[i]);
        assert!((sum[i] / 2000.0).abs() < 0.003, "observation[{i}]: mean {}", sum[i] / 2000.0); // 4.6 standard errors
    }
}

#[test]
fn spaces_match_gymnasium() {
    let angle = 12.0 * 2.0 * std::f64::consts::PI / 360.0;
    let high = vec![4.8, f32::INFINITY, (2.0 * angle) as f32, f32::INFINITY];
    let observations = Space::Box { low: high.iter().map(|bound| -bound).collect(), high };
    let (env, batch) = (cartpole().env(), CartPoleBatch::new(1, LIMIT));
    assert_eq!((env.observation_space(), env.action_space()), (observations.clone(), Space::Discrete(2)));
    assert_eq!((batch.observation_space(), batch.action_space()), (observations, Space::Discrete(2)));
}

#[test]
fn an_invalid_state_is_an_error() {
    let good = [0.01, 0.02, 0.03, 0.04].map(f64::to_bits);
    let with = |words: &[u64], elapsed: u64| [words, &[elapsed]].concat();
    let mut nan = good;
    nan[2] = f64::NAN.to_bits();
    let bad = [vec![], with(&good[..3], 0), with(&nan, 0), with(&good, u64::from(LIMIT) + 1), with(&good, u64::MAX)];
    for words in bad {
        let mut lone = TimeLimit::new(CartPole::default(), LIMIT);
        assert!(lone.load(&words).is_err(), "{words:?}");
        assert!(CartPoleBatch::new(2, LIMIT).load(1, &words).is_err(), "{words:?}");
    }
    let mut row = [0.0; 4];
    let error = CartPole::default().start_from(&[0.0, 0.0, f64::INFINITY, 0.0], &mut row).unwrap_err();
    assert_eq!(error.to_string(), "state of the environment: CartPole: expected finite numbers, got inf");
}
