//! Agents in loops that are written by hand: in environments that are not ours, with every kind of reset, saved and loaded, and with wrong
//! input. `every_agent.rs` compares all agents with the training loop.

use gradus::agents::{Collection, End, Replay};
use gradus::config::WrapperConfig;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Autoreset, Ending, EnvSpec, Finished, Outcome, Space, registry};
use gradus::nets::{NetworkConfig, cpu::ActorCritic};
use gradus::rollouts::Observer;
use gradus::{Agent, Config, Error, Mode, Trainer};

fn config(agent: &str, world: &str, settings: &[&str]) -> Config {
    let config = Config { environment: world.into(), ..Config::default() }.with_toml(&format!("agent = \"{agent}\"")).unwrap();
    let config = Config { envs: 1, steps: 1_000, ..config };
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

/// A corridor of five cells that knows nothing of Gradus: right is action 1, the reward for the last cell is 1, and 20 steps are too many.
#[derive(Default)]
struct Corridor {
    cell: u32,
    steps: u32,
}

impl Corridor {
    /// Returns the reward, and whether the episode is over and too long.
    fn step(&mut self, action: u32) -> (f32, bool, bool) {
        self.cell = if action == 1 { self.cell + 1 } else { self.cell.saturating_sub(1) };
        self.steps += 1;
        (if self.cell == 4 { 1.0 } else { -0.01 }, self.cell == 4, self.steps == 20)
    }
}

fn discrete(actions: gradus::envs::Actions<'_>) -> Vec<u32> {
    let gradus::envs::Actions::Discrete(actions) = actions else { panic!("expected discrete actions") };
    actions.to_vec()
}

/// Trains in the corridor until `updates` updates are done, or to the end; observations are the number of the cell or, if `is_coded`, its
/// one-hot code.
fn walk(agent: &mut Agent, corridor: &mut Corridor, is_coded: bool, updates: usize) -> Vec<f64> {
    let mut done = 0;
    let mut returns = Vec::new();
    let seen = |cell: u32| if is_coded { (0..5).map(|i| if i == cell { 1.0 } else { 0.0 }).collect() } else { vec![cell as f32] };
    while !agent.is_finished() && done < updates {
        let action = discrete(agent.act(&seen(corridor.cell), None).unwrap())[0];
        let (reward, terminated, truncated) = corridor.step(action);
        let ending = Ending::new(terminated, truncated);
        agent.observe(&Outcome::new(&[reward], &[ending], &seen(corridor.cell))).unwrap();
        if ending.done() {
            *corridor = Corridor::default();
        }
        if agent.update().unwrap().is_some() {
            done += 1;
            returns.extend(agent.episodes().iter().map(|episode| episode.episode_return));
        }
    }
    returns
}

#[test]
fn every_family_learns_in_an_environment_that_is_not_ours() {
    let spec = EnvSpec::of_spaces("corridor", Space::Discrete(5), Space::Discrete(2));
    let small = "network.hidden=[16]";
    let trainings: [(&str, &[&str]); 5] = [
        ("ppo", &[small, "steps=4000", "ppo.rollout_steps=100", "ppo.minibatch_size=25"]),
        ("reinforce", &[small, "steps=6000", "optimiser.learning_rate=0.01", "reinforce.episodes_per_env=8", "reinforce.baseline=mean"]),
        ("a2c", &[small, "steps=6000"]),
        ("dqn", &[small, "steps=4000", "dqn.learning_starts=200", "dqn.target_update_interval=100", "optimiser.learning_rate=0.003"]),
        ("q-learning", &["steps=2000", "q-learning.alpha=0.5"]),
    ];
    for (name, settings) in trainings {
        for is_coded in [false, true] {
            let mut agent = Agent::in_world(config(name, "corridor", settings), &spec).unwrap();
            let returns = walk(&mut agent, &mut Corridor::default(), is_coded, usize::MAX);
            let steps = agent.steps();
            assert!(steps >= agent.total_steps() && returns.len() > 20, "{name}: {steps} steps, {} episodes", returns.len());
            let late = &returns[returns.len() - 10..];
            // the shortest way has four steps: 1 - 3/100
            assert!(late.iter().sum::<f64>() / 10.0 > 0.9, "{name}: {late:?}");
            let mut policy = agent.into_policy();
            for cell in 0..4 {
                let action = policy.predict(&[cell as f32], Mode::Greedy).unwrap();
                assert_eq!(action, gradus::envs::Action::Discrete(1), "{name} in cell {cell}");
            }
        }
    }
}

/// Gymnasium's three modes of reset: an environment that waits for its next episode, or takes a step for the reset, adds nothing to a rollout.
#[test]
fn every_kind_of_reset_gives_the_same_decisions() {
    let correlated = ["ddpg.action_noise=ornstein-uhlenbeck", "ddpg.learning_starts=100", "ddpg.batch_size=16", "network.hidden=[16]"];
    for (name, world, settings) in [
        ("ppo", "cartpole", vec!["ppo.rollout_steps=64", "ppo.minibatch_size=64"]),
        ("dqn", "cartpole", vec!["dqn.learning_starts=100"]),
        ("ddpg", "pendulum", correlated.to_vec()),
    ] {
        let of = |autoreset: Autoreset| {
            let mut agent = Agent::new(config(name, world, &settings)).unwrap();
            let mut envs = agent.world().vec_env_with(0..1, agent.config().seed, autoreset).unwrap();
            while !agent.is_finished() {
                let actions = agent.act(envs.observation_rows(), envs.action_masks()).unwrap();
                envs.step(actions).unwrap();
                agent.observe(&envs.outcome()).unwrap();
                agent.update().unwrap();
                envs.reset_finished().unwrap();
            }
            agent.behaviour().save()
        };
        let same_step = of(Autoreset::SameStep);
        assert!(same_step == of(Autoreset::Disabled), "{name}: reset by hand");
        // `reset_finished` begins the next episode at once, so NextStep needs a loop without it
        let mut agent = Agent::new(config(name, world, &settings)).unwrap();
        let mut envs = agent.world().vec_env_with(0..1, agent.config().seed, Autoreset::NextStep).unwrap();
        let mut resets = 0;
        while !agent.is_finished() {
            let actions = agent.act(envs.observation_rows(), envs.action_masks()).unwrap();
            let transition = envs.step(actions).unwrap();
            resets += usize::from(transition.resets[0]);
            assert_eq!(transition.resets, transition.idle);
            agent.observe(&envs.outcome()).unwrap();
            agent.update().unwrap();
        }
        assert!(resets > if world == "pendulum" { 3 } else { 10 }, "{name}: {resets}");
        assert!(same_step == agent.behaviour().save(), "{name}: a step for the reset");
    }
}

/// A buffer keeps pixels as bytes, so pictures that are scaled to 0 to 1 would be lost.
#[test]
fn pixels_are_whole_numbers() {
    let mut agent = Agent::new(config("pqn", "breakout", &["network.trunk=arcade"])).unwrap();
    let width = agent.world().env().observation_space().width();
    for wrong in [0.5, 2.0, -1.0] {
        let error = agent.act(&vec![wrong; width], None).err().unwrap().to_string();
        assert_eq!(error, format!("observation: expected pixels from 0 to 1, whole numbers, got {wrong}"));
    }
    agent.act(&vec![1.0; width], None).unwrap();
}

/// A single environment, whose final observation comes with the outcome.
#[test]
fn a_single_environment_learns_what_the_training_loop_learns() {
    for (name, world) in [("ppo", "cartpole"), ("dqn", "cartpole"), ("sac", "pendulum"), ("q-learning", "taxi"), ("reinforce", "cartpole")]
    {
        let settings = ["dqn.learning_starts=100", "sac.learning_starts=100", "ppo.rollout_steps=100", "ppo.minibatch_size=50"];
        let settings: Vec<&str> = settings.into_iter().filter(|setting| setting.starts_with(&format!("{name}."))).collect();
        let mut agent = Agent::new(config(name, world, &settings)).unwrap();
        let mut env = agent.world().single(agent.config().seed).unwrap();
        while !agent.is_finished() {
            let action = agent.act(env.observation(), env.action_mask()).unwrap();
            env.step(action.get(0)).unwrap();
            agent.observe(&env.outcome()).unwrap();
            agent.update().unwrap();
        }
        let mut trainer = Trainer::new(config(name, world, &settings)).unwrap();
        trainer.finish().unwrap();
        assert!(trainer.policy().save() == agent.behaviour().save(), "{name}");
    }
}

/// With several environments, some have their episodes earlier than others. What such an environment does until the update is left out, and of
/// its next rollout the rest of the episode that it is in.
#[test]
fn rollouts_of_whole_episodes_have_only_whole_episodes() {
    let settings = ["reinforce.episodes_per_env=1", "reinforce.baseline=mean"];
    let mut agent = Agent::new(Config { envs: 4, steps: 2_000, ..config("reinforce", "cartpole", &settings) }).unwrap();
    let mut envs = agent.world().vec_env(0..4, 1).unwrap(); // begins the next episode within the step
    let mut lengths = [0; 4];
    let mut ended: Vec<Vec<u32>> = vec![Vec::new(); 4]; // of each environment, the lengths of its episodes
    while !agent.is_finished() {
        let actions = agent.act(envs.observation_rows(), None).unwrap();
        let transition = envs.step(actions).unwrap();
        for env in 0..4 {
            lengths[env] += 1;
            if transition.endings[env].done() {
                ended[env].push(std::mem::take(&mut lengths[env]));
            }
        }
        agent.observe(&envs.outcome()).unwrap();
        if agent.update().unwrap().is_some() {
            let learned = agent.episodes();
            assert_eq!(learned.len(), 4);
            for episode in learned {
                assert!(ended[episode.env].contains(&episode.length), "{episode:?}");
                assert_eq!(episode.episode_return, f64::from(episode.length));
            }
        }
    }
    assert!(ended.iter().map(Vec::len).sum::<usize>() * 2 > agent.iterations() as usize * 4);
}

/// Environments whose only observation counts their steps, so that a transition is right if it leads from t to t + 1. While one of them resets,
/// the others take steps that are in no rollout; a replay buffer must not take the rollout after them for its continuation.
#[test]
fn a_rollout_does_not_continue_one_before_steps_that_were_left_out() {
    let spaces = (Space::Box { low: vec![0.0], high: vec![1e6] }, Space::Discrete(2));
    let policy = ActorCritic::new(&NetworkConfig::default(), &spaces.0, &spaces.1, 1).unwrap();
    for steps in [1, 2, 5] {
        let mut observer = Observer::new(spaces.clone(), 3, 1, Collection::Steps(steps), &WrapperConfig::default());
        let (mut replay, mut stream, mut counts) = (Replay::new(3_000, 3), Stream::new(7, Purpose::Replay, 0), [0.0_f32; 3]);
        let mut truncated = 0;
        for _ in 0..200 {
            while !observer.is_complete() {
                observer.act(&policy, &counts, None);
                let idle = counts.map(|_| stream.below(4) == 0);
                counts.iter_mut().zip(idle).filter(|(_, is_idle)| !is_idle).for_each(|(count, _)| *count += 1.0);
                observer.observe(&Outcome { idle: &idle, ..Outcome::new(&[1.0; 3], &[Ending::Running; 3], &counts) });
            }
            let (rollout, _) = observer.take();
            assert_eq!(rollout.len(), 3 * steps);
            truncated += rollout.segments.iter().filter(|segment| matches!(segment.end, End::Truncated { .. })).count();
            replay.extend(&rollout);
        }
        assert!(truncated > 50, "{steps}: {truncated}");
        for horizon in [1, 3] {
            let sample = replay.sample(2_000, horizon, &mut stream).rollout;
            let at = |row: usize| sample.store.observation(row)[0];
            for segment in &sample.segments {
                let (End::Cut { successor } | End::Truncated { successor }) = segment.end else { panic!("no episode ends") };
                let (first, n) = (segment.range.start, segment.range.len());
                assert_eq!(at(successor), at(first) + n as f32, "{n} steps, rollouts of {steps}");
            }
        }
    }
}

#[test]
fn an_agent_that_is_loaded_goes_on_as_the_one_that_was_saved() {
    let spec = EnvSpec::of_spaces("corridor", Space::Discrete(5), Space::Discrete(2));
    let trainings: [(&str, &[&str]); 4] = [
        ("reinforce", &["reinforce.episodes_per_env=8", "reinforce.baseline=mean", "wrappers.normalise_rewards=true"]),
        ("ppo", &["ppo.rollout_steps=50", "ppo.minibatch_size=25", "wrappers.normalise_observations=true"]),
        ("dqn", &["dqn.learning_starts=100", "dqn.n_step=3"]),
        ("a3c", &["a3c.workers=1"]),
    ];
    for (name, settings) in trainings {
        let mut straight = Agent::in_world(config(name, "corridor", settings), &spec).unwrap();
        walk(&mut straight, &mut Corridor::default(), false, usize::MAX);
        for updates in [1, 3] {
            let (mut first, mut corridor) = (Agent::in_world(config(name, "corridor", settings), &spec).unwrap(), Corridor::default());
            walk(&mut first, &mut corridor, false, updates);
            let mut second = Agent::in_world(config(name, "corridor", settings), &spec).unwrap();
            second.load(&first.save()).unwrap();
            assert_eq!((second.steps(), second.iterations()), (first.steps(), first.iterations()));
            walk(&mut second, &mut corridor, false, usize::MAX);
            assert!(second.save() == straight.save(), "{name} after {updates} updates");
        }
    }
}

/// An episode that has ended elsewhere, without a mask.
fn finished(env: usize, ending: Ending, observation: Vec<f32>) -> Finished {
    Finished { env, seed: 0, ending, episode_return: 0.0, length: 0, observation, mask: None, scores: Vec::new() }
}

#[test]
fn wrong_input_is_refused_in_one_line_and_changes_nothing() {
    let spec = EnvSpec::of_spaces("arm", Space::Box { low: vec![-1.0; 3], high: vec![1.0; 3] }, Space::Discrete(4));
    let mut agent = Agent::in_world(Config { envs: 2, ..config("ppo", "arm", &[]) }, &spec).unwrap();
    let message = |result: Result<(), Error>| result.unwrap_err().to_string();
    let (rows, rewards, endings) = ([0.5; 6], [0.0; 2], [Ending::Running; 2]);
    let outcome = Outcome { masks: Some(&[true; 8]), ..Outcome::new(&rewards, &endings, &rows) };
    assert_eq!(message(agent.observe(&outcome)), "observe: expected `act` before every `observe`, got no `act`");
    let act = |agent: &mut Agent, rows: &[f32], masks: Option<&[bool]>| agent.act(rows, masks).map(|_| ()).unwrap_err().to_string();
    assert_eq!(act(&mut agent, &[0.5; 5], None), "observations: expected 2 x 3 numbers, a row for each environment, got 5");
    assert_eq!(act(&mut agent, &[0.5; 8], None), "observations: expected 2 x 3 numbers, a row for each environment, got 8");
    assert_eq!(act(&mut agent, &[0.5, 0.5, 0.5, 0.5, f32::NAN, 0.5], None), "observation[1][1]: expected a finite number, got NaN");
    assert_eq!(act(&mut agent, &rows, Some(&[true; 4])), "action mask: expected 2 x 4 entries, got 4");
    assert_eq!(act(&mut agent, &rows, Some(&[false; 8])), "action mask: expected at least one allowed action, got none");
    agent.act(&rows, Some(&[true; 8])).unwrap();
    assert_eq!(act(&mut agent, &rows, None), "act: expected `observe` after every `act`, got a second `act`");
    assert!(agent.update().unwrap().is_none());
    let observe = |agent: &mut Agent, outcome: &Outcome<'_>| message(agent.observe(outcome));
    assert_eq!(
        observe(&mut agent, &Outcome { rewards: &[0.0], ..outcome }),
        "rewards: expected 2 entries, one for each environment, got 1"
    );
    assert_eq!(observe(&mut agent, &Outcome { endings: &[], ..outcome }), "endings: expected 2 entries, one for each environment, got 0");
    assert_eq!(
        observe(&mut agent, &Outcome { rewards: &[0.0, f32::INFINITY], ..outcome }),
        "rewards[1]: expected a finite number, got inf"
    );
    assert_eq!(observe(&mut agent, &Outcome { idle: &[true], ..outcome }), "idle: expected 2 entries, one for each environment, got 1");
    assert_eq!(
        observe(&mut agent, &Outcome { observations: &rows[..3], ..outcome }),
        "observations: expected 2 x 3 numbers, a row for each environment, got 3"
    );
    let masks = [true, true, true, true, false, false, false, false];
    let masked = Outcome { masks: Some(&masks), ..outcome };
    assert_eq!(observe(&mut agent, &masked), "action mask: expected at least one allowed action, got none");
    assert_eq!(observe(&mut agent, &Outcome { masks: None, ..outcome }), "action mask: expected one, as in the steps before, got none");
    let cut = |env, ending| finished(env, ending, vec![0.5; 3]);
    for (finished, got) in [
        (
            vec![cut(2, Ending::Truncated)],
            "finished[0]: expected each environment whose episode has ended, once, with its ending, got environment 2, Truncated",
        ),
        (
            vec![cut(0, Ending::Truncated)],
            "finished[0]: expected each environment whose episode has ended, once, with its ending, got environment 0, Truncated",
        ),
    ] {
        assert_eq!(observe(&mut agent, &Outcome { finished: &finished, ..outcome }), got);
    }
    agent.observe(&Outcome { endings: &[Ending::Running, Ending::Terminated], ..masked }).unwrap(); // no action follows
    assert_eq!(act(&mut agent, &rows, None), "action mask: expected one, as in the steps before, got none");

    let of = |config: Config, spec: &EnvSpec| message(Agent::in_world(config, spec).map(|_| ()));
    let text = of(config("ppo", "arm", &["wrappers.time_aware=true"]), &spec);
    assert_eq!(text, "wrappers.time_aware: expected false, because this environment has no time limit, got true");
    let mut replanned = config("ppo", "arm", &[]);
    replanned.earlier_steps =
        Config::default().with_toml("[[earlier_steps]]\nsteps = 10\nuntil = 5\n").map_or(Vec::new(), |c| c.earlier_steps);
    assert_eq!(replanned.earlier_steps.len(), 1);
    let text = of(replanned, &spec);
    assert!(text.starts_with("earlier_steps: expected none: only the training loop"), "{text}");
    let upside_down = EnvSpec::of_spaces("arm", Space::Box { low: vec![1.0], high: vec![-1.0] }, Space::Discrete(4));
    assert!(!of(config("ppo", "arm", &[]), &upside_down).contains('\n'));
    let text = of(config("dqn", "pendulum", &[]), &registry::find("pendulum").unwrap());
    assert!(text.contains("dqn") || text.contains("action"), "{text}");
    let text = of(config("ppo", "pendulum", &[]), &spec);
    assert_eq!(text, "environment: expected arm, the name of the environment that is passed beside the settings, got pendulum");
    // the environment cannot take a step here
    let stepped_elsewhere = "arm: its environments are stepped elsewhere, only their spaces are known here";
    assert_eq!(message(Trainer::in_world(config("ppo", "arm", &[]), spec.clone()).unwrap().iterate().map(|_| ())), stepped_elsewhere);
    while agent.act(&rows, Some(&[true; 8])).is_ok() {
        agent.observe(&outcome).unwrap();
    }
    assert_eq!(act(&mut agent, &rows, None), "act: expected `update` after every `observe`, got a complete rollout without an update");
    assert_eq!(message(agent.into_policy().evaluate(1, Mode::Greedy).map(|_| ())), stepped_elsewhere);
}

/// A final observation without a mask allows every action, also in the sample of a replay buffer.
#[test]
fn final_observations_need_no_masks() {
    let spec = EnvSpec::of_spaces("arm", Space::Box { low: vec![-1.0; 3], high: vec![1.0; 3] }, Space::Discrete(2));
    let settings = ["dqn.learning_starts=4", "dqn.batch_size=8", "dqn.rollout_steps=2", "network.hidden=[4]"];
    let mut agent = Agent::in_world(Config { envs: 2, steps: 200, ..config("dqn", "arm", &settings) }, &spec).unwrap();
    let rows = [0.5; 6];
    for step in 0..40 {
        agent.act(&rows, Some(&[true, false, true, true])).unwrap();
        let has_ended = step % 3 == 2;
        let endings = if has_ended { [Ending::Truncated, Ending::Running] } else { [Ending::Running; 2] };
        let finished = if has_ended { vec![finished(0, Ending::Truncated, vec![0.1; 3])] } else { Vec::new() };
        let outcome = Outcome { masks: Some(&[true, false, true, true]), finished: &finished, ..Outcome::new(&[0.0; 2], &endings, &rows) };
        agent.observe(&outcome).unwrap();
        agent.update().unwrap();
    }
    assert!(agent.steps() == 80);
}

/// Texts come as environments write them; one that waits has none.
#[test]
fn texts_are_checked() {
    let small = ["transformer.layers=1", "transformer.width=16", "transformer.heads=1", "transformer.feed_forward_width=16"];
    let preset = small.iter().fold(Config::preset("grpo", "target-sum", None).unwrap(), |c, setting| c.with_setting(setting).unwrap());
    let mut agent = Agent::new(Config { envs: 8, ..preset }.with_setting("grpo.group_size=4").unwrap()).unwrap();
    let Space::Text { vocabulary, context } = *agent.spaces().0 else { panic!("expected texts") };
    let row = |numbers: &[f32]| {
        let mut rows = vec![0.0; 8 * (context + 1)];
        rows.chunks_exact_mut(context + 1).for_each(|row| row[0] = 1.0);
        rows[..numbers.len()].copy_from_slice(numbers);
        rows
    };
    let mut error = |numbers: &[f32]| agent.act(&row(numbers), None).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error(&[0.0]), "observation: expected a text of at least 1 token, got none");
    assert_eq!(error(&[1.5]), format!("observation[0], the number of tokens: expected a whole number from 0 to {context}, got 1.5"));
    assert_eq!(error(&[1.0, vocabulary as f32]), format!("observation: expected tokens below {vocabulary}, got {vocabulary}"));
}
