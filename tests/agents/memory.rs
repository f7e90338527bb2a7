//! Policies that remember: what rollouts record of their memory, that episodes begin without one, and that it is kept from rollout to rollout
//! and in checkpoints. Most tests stand for a bug that public implementations have had.

use gradus::agents::{Collection, End, EpsilonGreedy, Exploration, Rollout};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{EnvSpec, registry};
use gradus::nets::cpu::{ActorCritic, QNetwork};
use gradus::nets::{ActionRows, Cell, NetworkConfig, Policy, QHead, QNetwork as _, Sampling, threads};
use gradus::rollouts::{Collector, Observer, WrapperConfig, play_episodes};
use gradus::{Config, Mode};

fn config(cell: Cell, shared: bool, sequence_length: usize) -> NetworkConfig {
    NetworkConfig { cell, cell_width: 8, hidden: vec![8], shared, sequence_length, ..NetworkConfig::default() }
}

fn policy(world: &EnvSpec, config: &NetworkConfig) -> ActorCritic {
    let env = world.env();
    ActorCritic::new(config, &env.observation_space(), &env.action_space(), 1).unwrap()
}

/// CartPole ends after some 20 steps, at different times in each environment, so rollouts of 16 steps begin and end within episodes.
fn world() -> EnvSpec {
    registry::find("cartpole-masked").unwrap()
}

/// The log-probabilities that the policy now computes from a rollout's sequences are those with which it acted. An episode that begins with
/// the memory of the one before, a memory that is lost between rollouts, sequences in another order than their decisions, and steps and
/// environments that are taken for each other all break this.
#[test]
fn sequences_give_the_probabilities_of_the_rollout() {
    for (cell, shared, length) in [(Cell::Gru, false, 0), (Cell::Lstm, true, 0), (Cell::Gru, true, 5), (Cell::Lstm, false, 1)] {
        for collection in [Collection::Steps(16), Collection::Episodes { per_env: 2, group: 1, greedy: false }] {
            let mut policy = policy(&world(), &config(cell, shared, length));
            let mut collector = Collector::new(&world(), 9, 3, collection).unwrap();
            let (mut lengths, mut log_probs) = (Vec::new(), Vec::new());
            for _ in 0..6 {
                let (rollout, _) = collector.collect(&policy).unwrap();
                policy.log_probs(&rollout.store, &mut log_probs);
                let pairs = || log_probs.iter().zip(&rollout.log_probs);
                assert!(pairs().all(|(now, then)| (now - then).abs() < 1e-6), "{cell} {length} {collection:?}");
                let sequences = &rollout.store.sequences.as_ref().unwrap().list;
                lengths.extend(sequences.iter().map(|sequence| sequence.decisions.len()));
                // the successor of a segment belongs to its last sequence
                let of_segments = rollout.segments.iter().filter_map(|segment| segment.end.successor());
                assert!(sequences.iter().filter_map(|sequence| sequence.successor).eq(of_segments));
            }
            let longest = *lengths.iter().max().unwrap();
            assert!(if length > 0 { longest == length } else { longest > 10 }, "{longest}");
        }
    }
}

#[test]
fn episodes_begin_without_memory() {
    let policy = policy(&world(), &config(Cell::Lstm, false, 0));
    let mut collector = Collector::new(&world(), 5, 3, Collection::Steps(40)).unwrap();
    let (mut begun, mut continued) = (0, 0);
    for number in 0..4 {
        let (rollout, _) = collector.collect(&policy).unwrap();
        let sequences = rollout.store.sequences.as_ref().unwrap();
        for (i, sequence) in sequences.list.iter().enumerate() {
            let is_empty = sequences.memory(i).iter().all(|x| *x == 0.0);
            // only the first sequence of an environment continues an episode of the last rollout, unless that ended with it
            let is_first = sequence.decisions.start.is_multiple_of(40);
            assert!(is_empty || is_first && number > 0, "rollout {number}, sequence {i}");
            begun += usize::from(is_empty && !is_first);
            continued += usize::from(!is_empty);
        }
    }
    assert!(begun > 10 && continued > 5, "{begun} {continued}");
}

/// The value after a rollout that was cut is that of the next observation, with what is remembered of the ones before.
#[test]
fn the_value_of_a_successor_is_that_of_the_episode_that_goes_on() {
    let mut policy = policy(&world(), &config(Cell::Gru, false, 2));
    let mut collector = Collector::new(&world(), 4, 3, Collection::Steps(3)).unwrap();
    let rollouts: [Rollout; 2] = std::array::from_fn(|_| collector.collect(&policy).unwrap().0);
    let [before, after] = rollouts.map(|rollout| {
        let mut values = Vec::new();
        policy.values(&rollout.store, &mut values);
        values
    });
    for env in 0..4 {
        assert!((before[12 + env] - after[3 * env]).abs() < 1e-6, "environment {env}");
    }
}

/// A played episode does not depend on the episodes before it in the same environment, or beside it.
#[test]
fn evaluations_forget_at_the_end_of_an_episode() {
    for world in [world(), world().without_saving()] {
        let policy = policy(&world, &config(Cell::Gru, false, 0));
        let seeds: Vec<u64> = (0..23).map(|i| 1000 + 7 * i).collect();
        let stream = |id: usize| Stream::new(3, Purpose::Evaluation, id as u64);
        let play = |most| play_episodes(&policy, &world, &seeds, (&Sampling::default(), &stream), most).unwrap();
        let (one, all) = (play(1), play(0));
        for (id, (one, all)) in one.iter().zip(&all).enumerate() {
            let own = |_: usize| stream(id);
            let alone = &play_episodes(&policy, &world, &seeds[id..=id], (&Sampling::default(), &own), 0).unwrap()[0];
            assert!(one.rewards == all.rewards && alone.rewards == all.rewards && alone.observation == all.observation, "episode {id}");
        }
    }
}

#[test]
fn a_loaded_collector_remembers() {
    let policy = policy(&world(), &config(Cell::Lstm, true, 4));
    let new = || Collector::new(&world(), 6, 3, Collection::Steps(7)).unwrap();
    let (mut whole, mut first) = (new(), new());
    let expected: Vec<Rollout> = (0..5).map(|_| whole.collect(&policy).unwrap().0).collect();
    (0..2).for_each(|_| drop(first.collect(&policy).unwrap()));
    let mut second = threads::with(3, new);
    second.load(&first.save()).unwrap();
    for expected in &expected[2..] {
        assert!(threads::with(2, || second.collect(&policy).unwrap().0) == *expected);
    }
    let mut wrong = first.save();
    let memory = wrong.get_mut("memory").unwrap();
    memory.shape = vec![3, memory.shape[1] * 2];
    let problem = new().load(&wrong).unwrap_err().to_string();
    assert!(problem.contains("memory: expected a row for each of 6 environments"), "{problem}");
}

/// Random actions do not interrupt the memory.
#[test]
fn exploration_remembers() {
    let (seen, done) = (world().env().observation_space(), world().env().action_space());
    let mut network = QNetwork::new(&config(Cell::Gru, false, 0), QHead::default(), &seen, &done, 1).unwrap();
    // all actions of the first rollout are random, and none of the second
    let exploration = Exploration::EpsilonGreedy(EpsilonGreedy { random_steps: 40, first: 1.0, last: 0.0, over: 0 });
    let mut collector = Collector::new(&world(), 5, 3, Collection::Steps(8)).unwrap().with_exploration(exploration);
    let rollouts: [Rollout; 2] = std::array::from_fn(|_| collector.collect(&network).unwrap().0);
    let [before, after] = rollouts.each_ref().map(|rollout| {
        let mut q = Vec::new();
        network.q_values(&rollout.store, 0..rollout.store.rows(), &mut q);
        q
    });
    let ActionRows::Discrete(actions) = &rollouts[1].store.actions else { unreachable!() };
    assert!(actions.iter().zip(after.chunks(2)).all(|(action, q)| *action == u32::from(q[1] > q[0])));
    // episodes that go on do so with the memory of the random actions
    let cut = rollouts[0].segments.iter().filter_map(|segment| match segment.end {
        End::Cut { successor } => Some((segment.range.start / 8, successor)),
        _ => None,
    });
    let (mut compared, near) = (0, |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6));
    for (env, successor) in cut {
        assert!(near(&before[2 * successor..2 * successor + 2], &after[16 * env..16 * env + 2]), "environment {env}");
        compared += 1;
    }
    assert!(compared > 2, "{compared}");
}

/// Who steps the environments alone gets the rollouts of a collector.
#[test]
fn an_observer_remembers_as_a_collector_does() {
    let policy = policy(&world(), &config(Cell::Gru, false, 5));
    let mut collector = Collector::new(&world(), 4, 9, Collection::Steps(12)).unwrap();
    let mut envs = world().vec_env(0..4, 9).unwrap();
    let spaces = (envs.observation_space(), envs.action_space());
    let mut observer = Observer::new(spaces, 4, 9, Collection::Steps(12), &WrapperConfig::default());
    for _ in 0..5 {
        while !observer.is_complete() {
            envs.step(observer.act(&policy, envs.observation_rows(), envs.action_masks())).unwrap();
            observer.observe(&envs.outcome());
        }
        assert!(observer.take().0 == collector.collect(&policy).unwrap().0);
    }
}

/// A caller that holds the memory plays the episode that an evaluation plays.
#[test]
fn predictions_take_the_memory_of_their_caller() {
    let settings = ["network.cell=lstm", "network.cell_width=8", "wrappers.normalise_observations=true"];
    let preset = Config::preset("ppo", "cartpole-masked", None).unwrap();
    let config = settings.iter().try_fold(preset, |config, setting| config.with_setting(setting)).unwrap();
    let mut policy = gradus::Policy::train(Config { steps: 2_000, ..config }).unwrap();
    let mut env = policy.world().single_episode(77).unwrap();
    let (mut memory, mut total) = (policy.memory(), 0.0);
    assert_eq!(memory, [0.0; 32]); // h and c, of actor and critic
    loop {
        let step = env.step(policy.predict_with(env.observation(), &mut memory, None, Mode::Greedy).unwrap()).unwrap();
        total += step.reward;
        if step.done() {
            break;
        }
    }
    let stream = |_: usize| Stream::new(0, Purpose::Evaluation, 0);
    let played = play_episodes(policy.behaviour(), &policy.normalised_world(), &[77], (&Sampling::GREEDY, &stream), 0).unwrap();
    assert_eq!(total, played[0].episode_return());
    assert!(memory.iter().any(|x| *x != 0.0));
    let message = |policy: &mut gradus::Policy, memory: &mut [f32]| {
        policy.predict_with(&[0.0; 4], memory, None, Mode::Greedy).unwrap_err().to_string()
    };
    assert_eq!(message(&mut policy, &mut [0.0; 31]), "memory: expected 32 numbers, as Policy::memory returns them for each row, got 31");
    assert_eq!(message(&mut policy, &mut [f32::NAN; 32]), "memory: expected finite numbers, got NaN");
    let problem = policy.predict(&[0.0; 4], Mode::Greedy).unwrap_err().to_string();
    assert_eq!(problem, "memory: expected 32 numbers, as Policy::memory returns them for each row, got 0");
}
