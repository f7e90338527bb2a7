//! For every agent, every kind of environment and every wrapper, a training does not depend on the number of threads, and a resumed
//! training equals an uninterrupted one.

use gradus::agents::Collection;
use gradus::agents::groups::against_greedy;
use gradus::agents::registry as agents;
use gradus::config::WrapperConfig;
use gradus::envs::registry;
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::tensors::Tensors;
use gradus::nets::threads;
use gradus::nets::{ActionRows, Device, NetworkConfig, TransformerConfig, cpu::ActorCritic};
use gradus::rollouts::Collector;
use gradus::{Agent, Config, Run, Show, Trainer};

/// Returns small trainings of every kind, with their names.
fn trainings() -> Vec<(String, Config)> {
    let wrapped = [
        "wrappers.normalise_observations=true",
        "wrappers.normalise_rewards=true",
        "wrappers.reward_scale=0.4",
        "wrappers.clip_reward=0.3",
        "wrappers.frame_stack=2",
        "wrappers.time_aware=true",
    ];
    let gsde = ["network.gsde=true", "network.gsde_sample_every=3", "network.orthogonal=false"];
    let images = ["network.trunk=section3,5x2", "wrappers.frame_stack=2"];
    let gru = ["network.cell=gru", "network.cell_width=10", "network.sequence_length=4", "wrappers.normalise_observations=true"];
    let lstm = ["network.cell=lstm", "network.cell_width=8"];
    let worlds: [(&str, &[&str]); 12] = [
        ("cartpole", &[]),
        ("cartpole", &wrapped),
        ("pendulum", &wrapped[..2]),
        ("mountain-car-continuous", &gsde),
        ("taxi", &[]),
        ("frozen-lake", &wrapped[3..]),
        ("contextual-bandit", &[]),
        ("target-sum", &[]),
        ("seaquest", &images),
        ("cartpole-masked", &gru),
        ("pendulum-masked", &lstm),
        ("mountain-car", &[]), // for the agent that needs two bounded numbers
    ];
    let of_agent = |agent: &str| -> &[&str] {
        match agent {
            "reinforce" => &["reinforce.baseline=mean", "reinforce.episodes_per_env=2"],
            "a2c" => &[],
            "a3c" => &["a3c.workers=3"],
            "dqn" => &["dqn.dueling=true", "dqn.n_step=3", "dqn.priority_exponent=0.6", "dqn.learning_starts=300", "dqn.buffer_size=1500"],
            "qr-dqn" => &["qr-dqn.quantiles=5", "qr-dqn.double=true", "qr-dqn.learning_starts=300", "qr-dqn.tau=0.1"],
            "ddpg" => &["ddpg.action_noise=ornstein-uhlenbeck", "ddpg.action_noise_std=0.5", "ddpg.learning_starts=300"],
            "td3" => &["td3.policy_delay=3", "td3.n_step=3", "td3.priority_exponent=0.6", "td3.learning_starts=300"],
            "sac" => &["sac.log_std_bounds=tanh", "sac.learning_starts=300"],
            "pqn" => &["network.layer_norm=true", "optimiser.rule=radam"],
            "trpo" => &["trpo.rollout_steps=40", "trpo.fisher_stride=2", "trpo.critic_minibatch_size=32"],
            "ppo" => &["ppo.rollout_steps=40", "ppo.minibatch_size=50", "ppo.kl_coefficient=0.5", "ppo.adaptive_kl_target=0.01"],
            "grpo" => &["grpo.group_size=3", "reference.coefficient=0.05", "reference.adaptive_target=0.1", "grpo.episodes_per_env=2"],
            "dpo" => &["dpo.group_size=3", "dpo.epochs=2", "dpo.minibatches=2", "reference.refresh_every=2"],
            _ => &[], // a new agent is tested with its defaults
        }
    };
    let mut trainings = Vec::new();
    for (world, settings) in worlds {
        for agent in agents::all().iter().map(|entry| entry.name).filter(|agent| world != "mountain-car" || *agent == "tile-sarsa") {
            let mut all = of_agent(agent).iter().chain(settings);
            // an agent may refuse an environment or a network; the first test counts the accepted trainings
            let Ok(mut config) = all.try_fold(plain(agent, world), |config, setting| config.with_setting(setting)) else { continue };
            config.device = device();
            let Ok(mut probe) = Trainer::new(config.clone()) else { continue };
            // train for at least three iterations, however long the rollouts are, because trainings are interrupted after two iterations
            probe.iterate().unwrap();
            config.steps = config.steps.max(3 * probe.steps());
            trainings.push((format!("{agent} on {world} {settings:?}"), config));
        }
    }
    trainings
}

/// Returns the device in the environment variable `GRADUS_TEST_DEVICE`, such as `torch-cpu`, or else `cpu`.
fn device() -> Device {
    std::env::var("GRADUS_TEST_DEVICE").map_or(Device::Cpu, |name| name.parse().unwrap())
}

/// Returns the settings of a short training: the defaults of `agent`, without a preset.
fn plain(agent: &str, world: &str) -> Config {
    let config = Config { environment: world.into(), ..Config::default() };
    let config = config.with_toml(&format!("agent = \"{agent}\"")).unwrap();
    let small = TransformerConfig { layers: 1, width: 16, heads: 1, feed_forward_width: 16, ..TransformerConfig::default() };
    let is_text = registry::find(world).unwrap().text.is_some();
    let network = if is_text { small.into() } else { NetworkConfig { hidden: vec![16], ..NetworkConfig::default() }.into() };
    Config { steps: 700, envs: 6, network, ..config }
}

/// Trains and returns the final state, which does not depend on the clock.
fn train(config: &Config, threads: usize, stop_after: Option<u64>) -> Tensors {
    threads::with(threads, || {
        let mut trainer = Trainer::new(config.clone()).unwrap();
        while !trainer.is_finished() && stop_after.is_none_or(|n| trainer.iteration() < n) {
            trainer.iterate().unwrap();
        }
        if stop_after.is_some() && !trainer.is_finished() {
            let state = trainer.save();
            trainer = Trainer::new(config.clone()).unwrap();
            trainer.load(&state).unwrap();
            while !trainer.is_finished() {
                trainer.iterate().unwrap();
            }
        }
        trainer.save()
    })
}

/// Trains in a loop written by hand, one vector of environments per worker, and returns the final state.
fn train_by_hand(config: &Config) -> Tensors {
    let mut agent = Agent::new(config.clone()).unwrap();
    let workers = config.envs / agent.environments().len();
    let n = agent.environments().len();
    let mut envs: Vec<_> = (0..workers).map(|worker| agent.vec_env(worker * n..(worker + 1) * n).unwrap()).collect();
    while !agent.is_finished() {
        let envs = &mut envs[agent.environments().start / n];
        let actions = agent.act(envs.observation_rows(), envs.action_masks()).unwrap();
        envs.step_unfinished(actions).unwrap();
        agent.observe(&envs.outcome()).unwrap();
        agent.update().unwrap();
        agent.begin_episodes(envs).unwrap();
    }
    agent.save()
}

/// Returns the number of iterations of a training.
fn iterations(config: &Config) -> u64 {
    let mut trainer = Trainer::new(config.clone()).unwrap();
    trainer.finish().unwrap();
    trainer.iteration()
}

#[test]
fn a_loop_written_by_hand_learns_the_same_bit_for_bit() {
    let mut tried = 0;
    for (name, config) in trainings() {
        // libtorch rounds a text's numbers by the number of texts beside it, and those of finished texts wait in this loop
        if config.device != Device::Cpu && registry::find(&config.environment).unwrap().text.is_some() {
            continue;
        }
        let (ours, by_hand) = (train(&config, 2, None), threads::with(2, || train_by_hand(&config)));
        // the trainer's own: its environments, and the scores that it shows
        let of_trainer = ["environments", "recent_episodes", "progress", "best_evaluation"];
        let ours: Tensors = ours.into_iter().filter(|(key, _)| !of_trainer.contains(&key.as_str())).collect();
        let of_agent = ["iteration", "current_episodes"];
        let by_hand: Tensors = by_hand.into_iter().filter(|(key, _)| !of_agent.contains(&key.as_str())).collect();
        assert_eq!(ours.keys().collect::<Vec<_>>(), by_hand.keys().collect::<Vec<_>>(), "{name}");
        for (key, tensor) in &ours {
            assert!(*tensor == by_hand[key], "{name}: {key} differs");
        }
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
}

#[test]
fn every_agent_trains_wherever_its_actions_and_its_network_fit() {
    let all = trainings();
    let trained = |agents: &[&str]| all.iter().filter(|(_, config)| agents.contains(&config.agent.as_str())).count();
    // TRPO trains no transformer and no network with a memory; GRPO's reference needs whole sequences
    assert_eq!(trained(&["reinforce", "a2c", "a3c", "trpo", "ppo", "grpo"]), 6 * 11 - 5);
    assert_eq!(trained(&["dpo"]), 1);
    // of them only PQN has one
    assert_eq!(trained(&["dqn", "qr-dqn", "pqn"]), 3 * 6 + 1);
    // a deterministic actor has no gSDE
    assert_eq!((trained(&["ddpg", "td3"]), trained(&["sac"])), (2, 2));
    // taxi, and mountain car; the frozen lake has wrappers here
    assert_eq!((trained(&["q-learning"]), trained(&["tile-sarsa"])), (1, 1));
    for agent in agents::all() {
        assert!(all.iter().any(|(_, config)| config.agent == agent.name), "{} trains nowhere with its defaults", agent.name);
    }
}

#[test]
fn trainings_do_not_depend_on_threads_or_interruptions() {
    for (name, config) in trainings() {
        let straight = train(&config, 1, None);
        assert!(iterations(&config) > 2, "{name}: expected more than two iterations");
        // tables have one environment and one thread; an interruption is enough
        let is_tabular = agents::find(&config.agent).unwrap().help.iter().any(|(setting, _)| *setting == "alpha_decay");
        let all = [(2, Some(2)), (2, None), (5, None), (1, Some(1))];
        for (threads, stop_after) in all.into_iter().take(if is_tabular { 1 } else { 4 }) {
            let other = train(&config, threads, stop_after);
            for (key, tensor) in &straight {
                assert!(other.get(key) == Some(tensor), "{name}: {key} differs with {threads} threads, stopped after {stop_after:?}");
            }
            assert_eq!(straight.len(), other.len(), "{name}");
        }
    }
}

#[test]
fn another_seed_gives_another_training() {
    for (name, config) in trainings() {
        let other = Config { seed: 2, ..config.clone() };
        assert!(train(&config, 1, None) != train(&other, 1, None), "{name}");
    }
}

/// Episodes of a group have the same start state and then differ. Different groups have different start states.
#[test]
fn episodes_of_a_group_share_only_their_start_state() {
    let world = registry::find("cartpole").unwrap();
    let policy = {
        let env = world.env();
        ActorCritic::new(&NetworkConfig::default(), &env.observation_space(), &env.action_space(), 1).unwrap()
    };
    let collection = Collection::Episodes { per_env: 2, group: 3, greedy: false };
    for threads in [1, 2, 5] {
        threads::with(threads, || {
            let mut collector = Collector::new(&world, 6, 1, collection).unwrap();
            let (rollout, episodes) = collector.collect(&policy).unwrap();
            assert_eq!((rollout.segments.len(), episodes.len()), (12, 12));
            assert_eq!(collector.steps(), rollout.len() as u64);
            assert_eq!(episodes.last().unwrap().step, collector.steps());
            assert!(episodes.is_sorted_by_key(|episode| episode.step));
            let start = |i: usize| rollout.store.observation(rollout.segments[i].range.start).to_vec();
            for a in 0..12 {
                for b in 0..a {
                    let same_group = rollout.segments[a].group == rollout.segments[b].group;
                    assert_eq!(start(a) == start(b), same_group, "episodes {a} and {b}");
                    // the first episodes of environments 0 to 2 form a group, and so do their second episodes; environments 3 to 5 form two
                    // more groups
                    assert_eq!(same_group, a / 6 == b / 6 && a % 2 == b % 2, "episodes {a} and {b}");
                }
            }
            let lengths: Vec<usize> = rollout.segments.iter().map(|segment| segment.range.len()).collect();
            assert!(lengths.iter().any(|n| *n != lengths[0]), "{lengths:?}");
        });
    }
}

/// Rewards are multiplied before they are clipped. Reported returns are those of the environment.
#[test]
fn rewards_are_scaled_and_returns_are_not() {
    let world = registry::find("cartpole").unwrap();
    let env = world.env();
    let policy = ActorCritic::new(&NetworkConfig::default(), &env.observation_space(), &env.action_space(), 1).unwrap();
    for (clip_reward, expected) in [(f32::INFINITY, 0.25), (0.5, 0.25), (0.1, 0.1)] {
        let wrappers = WrapperConfig { reward_scale: 0.25, clip_reward, ..WrapperConfig::default() };
        let mut collector = Collector::with_wrappers(&world, 2, 1, Collection::Steps(100), &wrappers).unwrap();
        let (rollout, episodes) = collector.collect(&policy).unwrap();
        assert!(rollout.rewards.iter().all(|reward| *reward == expected), "{:?}", rollout.rewards);
        assert!(!episodes.is_empty() && episodes.iter().all(|episode| episode.episode_return == f64::from(episode.length)));
    }
}

/// The rewards of greedy episodes are clipped and normalised like the rewards of the rollout. On CartPole, all these rewards are equal. The
/// greedy baseline that an agent subtracts uses the agent's discount.
#[test]
fn greedy_rewards_are_scaled_as_those_of_the_rollout() {
    let world = registry::find("cartpole").unwrap();
    let env = world.env();
    let policy = ActorCritic::new(&NetworkConfig::default(), &env.observation_space(), &env.action_space(), 1).unwrap();
    let collection = Collection::Episodes { per_env: 2, group: 3, greedy: true };
    let wrappers = WrapperConfig { clip_reward: 0.5, normalise_rewards: true, ..WrapperConfig::default() };
    let mut collector = Collector::with_wrappers(&world, 6, 1, collection, &wrappers).unwrap();
    for _ in 0..2 {
        let (rollout, _) = collector.collect(&policy).unwrap();
        let reward = rollout.rewards[0];
        assert!(rollout.rewards.iter().all(|r| *r == reward) && reward != 1.0 && reward != 0.5, "{reward}");
        assert_eq!(rollout.greedy_rewards.len(), 4);
        assert!(rollout.greedy_rewards.iter().all(|rewards| !rewards.is_empty() && rewards.iter().all(|r| *r == reward)));
        let (first, discounted) =
            (rollout.segments[0].group.0 as usize, |n: usize| f64::from(reward) * (1.0 - 0.5_f64.powi(n as i32)) / 0.5);
        let returns = vec![0.0; rollout.len()];
        let against = against_greedy(&rollout, &returns, 0.5);
        let expected = -discounted(rollout.greedy_rewards[first].len());
        assert!((f64::from(against[0]) - expected).abs() < 1e-5, "expected an advantage of {expected}, got {}", against[0]);
    }
}

/// On a contextual bandit, the pulls of a group have the same context, but rewards of the same arm differ between pulls.
#[test]
fn pulls_of_a_group_share_the_context_but_not_the_noise() {
    let world = registry::find("contextual-bandit").unwrap();
    let env = world.env();
    let policy = ActorCritic::new(&NetworkConfig::default(), &env.observation_space(), &env.action_space(), 1).unwrap();
    let collection = Collection::Episodes { per_env: 1, group: 32, greedy: false };
    let mut collector = Collector::new(&world, 32, 1, collection).unwrap();
    let (rollout, _) = collector.collect(&policy).unwrap();
    assert!((1..32).all(|i| rollout.store.observation(i) == rollout.store.observation(0)));
    let ActionRows::Discrete(arms) = &rollout.store.actions else { panic!("expected discrete actions") };
    let of_one_arm: Vec<f32> = (0..32).filter(|i| arms[*i] == arms[0]).map(|i| rollout.rewards[i]).collect();
    assert!(of_one_arm.len() > 1 && of_one_arm.iter().any(|reward| *reward != of_one_arm[0]), "{of_one_arm:?}");
}

/// Evaluations normalise observations by the frozen statistics of the training, also for a policy from a run folder.
#[test]
fn normalisation_statistics_are_saved_with_the_policy() {
    let dir = gradus_testing::tempdir().unwrap();
    let settings = ["wrappers.normalise_observations=true", "wrappers.normalise_rewards=true"];
    let config = settings.iter().fold(plain("ppo", "pendulum"), |config, setting| config.with_setting(setting).unwrap());
    let mut run = Run::create(Config { steps: 5_000, ..config }, dir.path().join("run")).unwrap();
    run.train(Show::Nothing).unwrap();
    let here = run.evaluate(5).unwrap();
    drop(run);
    let (_, world, policy) = gradus::saved::load_policy(dir.path().join("run")).unwrap();
    assert_eq!(evaluate(policy.as_ref(), &world, 5, 1, Mode::Greedy).unwrap(), here);
    // an unfinished run has its policy in the checkpoint
    std::fs::remove_file(dir.path().join("run/policy.safetensors")).unwrap();
    let (_, world, policy) = gradus::saved::load_policy(dir.path().join("run")).unwrap();
    assert_eq!(evaluate(policy.as_ref(), &world, 5, 1, Mode::Greedy).unwrap(), here);
    // evaluations report returns without normalisation; on Pendulum they are below -100
    assert!(here.mean < -100.0, "{}", here.mean);
}

#[test]
fn invalid_settings_give_an_error_of_one_line() {
    let message = |config: Result<Config, gradus::Error>| match config.and_then(Trainer::new) {
        Ok(_) => panic!("expected an error, got a trainer"),
        Err(error) => error.to_string(),
    };
    let set = |agent, world, setting: &str| plain(agent, world).with_setting(setting);
    for (text, expected) in [
        (
            message(set("grpo", "cartpole", "grpo.group_size=1")),
            "grpo.group_size: expected at least 2 (a group of one has nothing to compare), got 1",
        ),
        (
            message(set("grpo", "cartpole", "grpo.group_size=4")),
            "grpo.group_size: expected a divisor of 6, the number of environments, got 4",
        ),
        (message(set("trpo", "cartpole", "network.shared=true")), "network.shared: expected false (TRPO moves only the actor), got true"),
        (
            message(set("trpo", "pendulum", "network.gsde=true")),
            "network.gsde: expected false (gSDE has no Fisher-vector product), got true",
        ),
        (message(set("ppo", "cartpole", "wrappers.frame_stack=0")), "wrappers.frame_stack: expected 1 to 1024, got 0"),
        (
            message(set("ppo", "bandit", "wrappers.time_aware=true")),
            "wrappers.time_aware: expected false, because this environment has no time limit, got true",
        ),
        (message(set("ppo", "cartpole", "wrappers.reward_scale=-1")), "wrappers.reward_scale: expected a number above 0, got -1"),
        (message(set("ppo", "cartpole", "wrappers.clip_reward=0")), "wrappers.clip_reward: expected a number above 0, or inf, got 0"),
    ] {
        assert_eq!(text, expected);
    }
}
