//! Agents that learn action values reach the exact values of small Markov decision processes. A3C with one worker is A2C.

use std::fs;

use gradus::agents::tabular::value_iteration;
use gradus::agents::{ActionNoise, Collection, Exploration, Noisy};
use gradus::envs::tabular::{FrozenLake, Tabular};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step, registry};
use gradus::nets::cpu::QActorCritic;
use gradus::nets::tensors::{Data, Tensors};
use gradus::nets::{ActionRows, Behaviour, Choice, NetworkConfig, QActor, QActorHead};
use gradus::rollouts::Collector;
use gradus::{Config, Run, Show, Trainer};

/// Three states in a circle: every action leads from state s to state s + 1 modulo 3, with the reward 1, 0 or 2, and action 1 pays `bonus`
/// more. `is_continuous` replaces the two actions by a number that has no effect. After five steps a time limit truncates the episode, or terminates it (`ends`), which is a mistake in the environment.
#[derive(Clone)]
struct Circle {
    bonus: f64,
    ends: bool,
    is_continuous: bool,
    state: usize,
    step: u32,
}

const LIMIT: u32 = 5;

impl Env for Circle {
    fn observation_space(&self) -> Space {
        Space::Discrete(3)
    }
    fn action_space(&self) -> Space {
        if self.is_continuous { Space::Box { low: vec![-2.0], high: vec![1.0] } } else { Space::Discrete(2) }
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.state, self.step) = (seed as usize % 3, 0);
        observation[0] = self.state as f32;
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let reward = [1.0, 0.0, 2.0][self.state] + if matches!(action, Action::Discrete(1)) { self.bonus } else { 0.0 };
        (self.state, self.step) = ((self.state + 1) % 3, self.step + 1);
        observation[0] = self.state as f32;
        let is_over = self.step == LIMIT;
        Step { reward, terminated: is_over && self.ends, truncated: is_over && !self.ends }
    }
    fn save(&self) -> Vec<u64> {
        vec![self.state as u64, u64::from(self.step)]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        (self.state, self.step) = (state[0] as usize, state[1] as u32);
        Ok(())
    }
}

const GAMMA: f64 = 0.9;

/// Returns the exact Q(s, a) of the circle, with the greedy policy.
fn exact(bonus: f64) -> Vec<f64> {
    let rewards = [1.0 + bonus, bonus, 2.0 + bonus];
    let value = |s: usize| (0..3).map(|k| GAMMA.powi(k) * rewards[(s + k as usize) % 3]).sum::<f64>() / (1.0 - GAMMA.powi(3));
    (0..3).flat_map(|s| [0.0, bonus].map(|extra| [1.0, 0.0, 2.0][s] + extra + GAMMA * value((s + 1) % 3))).collect()
}

/// Returns a training with a table of values: a network without hidden layers over states that are encoded one-hot.
fn table(agent: &str, steps: u64, settings: &[&str]) -> Config {
    let common = ["network.hidden=[]", "network.orthogonal=false", "optimiser.learning_rate=0.1", "optimiser.max_grad_norm=inf"];
    let config = Config { environment: "circle".into(), ..Config::default() };
    let config = config
        .with_toml(&format!("agent = \"{agent}\"\n[{agent}]\ngamma = {GAMMA}\nexploration_initial_eps = 1.0\nexploration_final_eps = 1.0"))
        .unwrap();
    let config = common.iter().chain(settings).fold(config, |config, setting| config.with_setting(setting).unwrap());
    Config { steps, envs: 4, ..config }
}

/// Returns Q(s, a) of a trained table; with several atoms, their mean.
fn q_values(tensors: &Tensors, states: usize, actions: usize) -> Vec<f64> {
    let numbers = |name: &str| match &tensors[name].data {
        Data::F32(numbers) => numbers.clone(),
        _ => panic!("{name}: expected f32"),
    };
    let (weights, biases) = (numbers("q.0.weight"), numbers("q.0.bias"));
    let atoms = biases.len() / actions;
    let value = |state: usize, output: usize| f64::from(weights[output * states + state] + biases[output]);
    let mean = |state, action| (0..atoms).map(|k| value(state, action * atoms + k)).sum::<f64>() / atoms as f64;
    (0..states).flat_map(|state| (0..actions).map(move |action| mean(state, action)).collect::<Vec<_>>()).collect()
}

fn trained(config: &Config, world: EnvSpec) -> Tensors {
    let mut trainer = Trainer::in_world(config.clone(), world).unwrap();
    trainer.finish().unwrap();
    trainer.export()
}

fn circle(bonus: f64, ends: bool) -> EnvSpec {
    EnvSpec::new("circle", move || Circle { bonus, ends, is_continuous: false, state: 0, step: 0 })
}

fn continuous_circle(ends: bool) -> EnvSpec {
    EnvSpec::new("circle", move || Circle { bonus: 0.0, ends, is_continuous: true, state: 0, step: 0 })
}

fn distance(got: &[f64], exact: &[f64]) -> f64 {
    assert_eq!(got.len(), exact.len());
    got.iter().zip(exact).map(|(got, exact)| (got - exact).abs()).fold(0.0, f64::max)
}

/// The rewards of several steps include those of actions that are not greedy, so the bonus is 0 with them.
#[test]
fn values_are_exact_although_a_time_limit_cuts_every_episode() {
    let off_policy = |agent: &'static str, n_step: usize| {
        let settings = ["rollout_steps=8", "updates_per_step=1", "learning_starts=100", "buffer_size=2000", "target_update_interval=80"];
        let own = settings.map(|setting| format!("{agent}.{setting}"));
        let more: &[&str] = if agent == "dqn" { &["dqn.loss=squared"] } else { &["qr-dqn.quantiles=3"] };
        let n_step = format!("{agent}.n_step={n_step}");
        let all: Vec<&str> = own.iter().map(String::as_str).chain(more.iter().copied()).chain([n_step.as_str()]).collect();
        table(agent, 12_000, &all)
    };
    let on_policy = |lambda: &str| {
        table("pqn", 60_000, &["pqn.rollout_steps=7", "pqn.epochs=2", "pqn.minibatches=2", &format!("pqn.q_lambda={lambda}")])
    };
    let mut cases = vec![("pqn, lambda 0".to_string(), on_policy("0"), 0.5), ("pqn, lambda 0.65".into(), on_policy("0.65"), 0.0)];
    for agent in ["dqn", "qr-dqn"] {
        cases.extend([1, 3, 5].map(|n| (format!("{agent}, n = {n}"), off_policy(agent, n), if n == 1 { 0.5 } else { 0.0 })));
    }
    for (name, config, bonus) in cases {
        let far = |ends| distance(&q_values(&trained(&config, circle(bonus, ends)), 3, 2), &exact(bonus));
        let (got, mistaken) = (far(false), far(true));
        assert!(got < 1e-3, "{name}: the values are {got} from the exact ones");
        assert!(mistaken > 0.5, "{name}: without the value after a truncated episode, expected a large error, got {mistaken}");
    }
}

/// The same process with an action that has no effect. Every critic is a table of values, plus a weight of the action.
#[test]
fn critics_of_actions_are_exact_although_a_time_limit_cuts_every_episode() {
    let own = ["rollout_steps=8", "updates_per_step=1", "learning_starts=100", "buffer_size=2000", "batch_size=64", "tau=0.1"];
    let common = ["network.hidden=[]", "network.orthogonal=false", "optimiser.learning_rate=0.1", "optimiser.max_grad_norm=inf"];
    // the entropy is not part of the values
    let of_agent = |agent: &str| if agent == "sac" { vec!["sac.auto_ent_coef=false", "sac.ent_coef=1e-6"] } else { Vec::new() };
    for (agent, critics) in [("ddpg", 1), ("td3", 2), ("sac", 2)] {
        for n in [1, 3, 5] {
            let config = Config { environment: "circle".into(), ..Config::default() }.with_toml(&format!("agent = \"{agent}\"")).unwrap();
            let own = own.map(|setting| format!("{agent}.{setting}"));
            let (gamma, n_step) = (format!("{agent}.gamma={GAMMA}"), format!("{agent}.n_step={n}"));
            let all = own.iter().map(String::as_str).chain(common).chain(of_agent(agent)).chain([gamma.as_str(), n_step.as_str()]);
            let config = all.fold(config, |config, setting| config.with_setting(setting).unwrap());
            let config = Config { steps: 12_000, envs: 4, ..config };
            let far = |ends| {
                let tensors = trained(&config, continuous_circle(ends));
                let numbers = |name: String| match &tensors[&name].data {
                    Data::F32(numbers) => numbers.clone(),
                    _ => panic!("{name}: expected f32"),
                };
                let of_critic = |k: usize| {
                    let (weights, bias) = (numbers(format!("critic.{k}.0.weight")), numbers(format!("critic.{k}.0.bias"))[0]);
                    let at_bound = |a: f32| (0..3).map(|s| f64::from(weights[s] + a * weights[3] + bias)).collect::<Vec<_>>();
                    let exact: Vec<f64> = exact(0.0).into_iter().step_by(2).collect();
                    distance(&at_bound(-1.0), &exact).max(distance(&at_bound(1.0), &exact))
                };
                (0..critics).map(of_critic).fold(0.0, f64::max)
            };
            let (got, mistaken) = (far(false), far(true));
            assert!(got < 1e-3, "{agent}, n = {n}: the values are {got} from the exact ones");
            assert!(
                mistaken > 0.5,
                "{agent}, n = {n}: without the value after a truncated episode, expected a large error, got {mistaken}"
            );
        }
    }
}

#[test]
fn dqn_reaches_the_fixed_point_on_a_frozen_lake() {
    let lake = FrozenLake::deterministic(&FrozenLake::MAP_4X4).unwrap();
    let settings = ["rollout_steps=8", "updates_per_step=1", "learning_starts=2000", "buffer_size=40000", "target_update_interval=160"];
    let settings = settings.map(|setting| format!("dqn.{setting}"));
    for double in ["false", "true"] {
        let mut all: Vec<&str> = settings.iter().map(String::as_str).collect();
        let double = format!("dqn.double={double}");
        all.extend(["dqn.loss=squared", &double]);
        let config = Config { environment: "frozen-lake-deterministic".into(), ..table("dqn", 40_000, &all) };
        let world = gradus::envs::registry::find("frozen-lake-deterministic").unwrap();
        let got = q_values(&trained(&config, world), 16, 4);
        let values = value_iteration(lake.table(), GAMMA, 1e-9, 1000).values;
        for state in 0..16 {
            // an episode never goes on from a hole or the goal, so nothing is learnt there
            let outcomes = |action| lake.table().outcomes(state, action)[0];
            if (0..4).all(|action| outcomes(action).next as usize == state) {
                continue;
            }
            for action in 0..4 {
                let outcome = outcomes(action);
                let exact = outcome.reward + if outcome.terminated { 0.0 } else { GAMMA * values[outcome.next as usize] };
                let got = got[state * 4 + action];
                assert!((got - exact).abs() < 1e-3, "{double}, state {state}, action {action}: expected {exact}, got {got}");
            }
        }
    }
}

#[test]
fn a3c_with_one_worker_is_a2c_bit_for_bit() {
    for world in ["cartpole", "pendulum"] {
        let config = |agent: &str, settings: &[&str]| {
            let config = Config { environment: world.into(), ..Config::default() };
            let config = config
                .with_toml(&format!("agent = \"{agent}\"\n[{agent}]\nentropy_coefficient = 0.01\nnormalise_advantages = true"))
                .unwrap();
            let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
            Config { steps: 3000, envs: 6, ..config }
        };
        let train = |config: Config| {
            let mut trainer = Trainer::new(config).unwrap();
            let reports: Vec<_> = (0..60).map(|_| trainer.iterate().unwrap().metrics).collect();
            (trainer.export(), reports)
        };
        let rule = "optimiser.rule=rmsprop";
        let (a2c, reports) = train(config("a2c", &[rule]));
        let (a3c, others) = train(config("a3c", &[rule, "a3c.workers=1"]));
        assert!(a2c == a3c, "{world}");
        for (report, other) in reports.iter().zip(&others) {
            assert_eq!(other.iter().find(|(name, _)| name == "train/staleness").unwrap().1, 0.0);
            let shared: Vec<_> = other.iter().filter(|(name, _)| name != "train/staleness").map(|(name, x)| (name, x.to_bits())).collect();
            assert_eq!(report.iter().map(|(name, x)| (name, x.to_bits())).collect::<Vec<_>>(), shared);
        }
    }
}

/// Between copying the parameters and applying a gradient, every other worker applies about one.
#[test]
fn the_staleness_is_the_number_of_the_other_workers() {
    for (workers, spread) in [(2, "0"), (6, "0"), (6, "0.5"), (6, "1")] {
        let config = Config::default().with_toml("agent = \"a3c\"").unwrap();
        let config = config.with_setting(&format!("a3c.workers={workers}")).unwrap().with_setting(&format!("a3c.spread={spread}")).unwrap();
        let mut trainer = Trainer::new(Config { steps: 60_000, envs: 6, ..config }).unwrap();
        let mut staleness = Vec::new();
        while !trainer.is_finished() {
            let metrics = trainer.iterate().unwrap().metrics;
            staleness.push(metrics.iter().find(|(name, _)| name == "train/staleness").unwrap().1);
        }
        let mean = staleness[20..].iter().sum::<f64>() / (staleness.len() - 20) as f64;
        let expected = f64::from(workers - 1);
        // the gradients that are still under way at the end make the mean a little smaller
        assert!((mean - expected).abs() < 0.05, "{workers} workers, spread {spread}: expected {expected}, got {mean}");
        if spread == "0" {
            assert!(staleness[20..].iter().all(|s| *s == expected), "workers that take turns: {staleness:?}");
        }
    }
}

/// The pages of a replay buffer are files of their own: a page of another run, a damaged or a missing one is refused in one line.
#[test]
fn a_replay_buffer_of_another_run_is_refused() {
    let folder = gradus_testing::tempdir().unwrap();
    let run = |name: &str, seed: u64| {
        let config = Config::preset("dqn", "cartpole", None).unwrap().with_setting("network.hidden=[8]").unwrap();
        let dir = folder.path().join(name);
        Run::create(Config { steps: 1500, seed, ..config }, &dir).unwrap().train(Show::Nothing).unwrap();
        let page = fs::read_dir(dir.join("replay")).unwrap().next().unwrap().unwrap().path();
        (dir, page)
    };
    let ((dir, page), (_, other)) = (run("one", 1), run("two", 2));
    assert_eq!(page.file_name(), other.file_name());
    let bytes = fs::read(&page).unwrap();
    let refused = |expected: &str| {
        let message = Run::resume(&dir).expect_err("the page must be refused").to_string();
        assert!(message.lines().count() == 1 && message.contains(expected) && message.contains(page.to_str().unwrap()), "{message}");
    };
    fs::copy(&other, &page).unwrap();
    refused("it is not the page of the replay buffer that the checkpoint was written with");
    fs::write(&page, &bytes[..bytes.len() / 2]).unwrap();
    refused("it is not the page of the replay buffer that the checkpoint was written with");
    fs::remove_file(&page).unwrap();
    refused("a page of the replay buffer is missing");
    fs::write(&page, &bytes).unwrap();
    Run::resume(&dir).unwrap();
}

/// The numbers of the actions of three Pendulum environments that explore like this, and the residuals a - mu(s) in units of the bound 2.
fn explored(noisy: Noisy, steps: usize) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let world = registry::find("pendulum").unwrap();
    let env = world.env();
    let head = QActorHead { actor: QActor::Deterministic, critics: 1 };
    let config = NetworkConfig { hidden: vec![8], ..NetworkConfig::default() };
    let network = QActorCritic::new(&config, head, &env.observation_space(), &env.action_space(), 1).unwrap();
    let mut collector = Collector::new(&world, 3, 1, Collection::Steps(steps)).unwrap().with_exploration(Exploration::Noisy(noisy));
    let (rollout, _) = collector.collect(&network).unwrap();
    let ActionRows::Continuous { rows, .. } = &rollout.store.actions else { panic!("expected rows") };
    let observations: Vec<f32> = (0..rollout.len()).flat_map(|row| rollout.store.observation(row).to_vec()).collect();
    let (mut means, mut log_probs) = (ActionRows::empty(&env.action_space()), vec![0.0; rollout.len()]);
    network.actor().act(&observations, None, Choice::Greedy, &mut means, &mut log_probs);
    let ActionRows::Continuous { rows: means, .. } = means else { panic!("expected rows") };
    let residuals: Vec<f32> = rows.iter().zip(&means).map(|(a, mean)| (a - mean) / 2.0).collect();
    let by_env = |numbers: &[f32]| numbers.chunks(steps).map(<[f32]>::to_vec).collect();
    (by_env(rows), by_env(&residuals))
}

fn mean_and_std(numbers: &[f32]) -> (f64, f64) {
    let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / numbers.len() as f64;
    (mean, (numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / numbers.len() as f64).sqrt())
}

/// Random actions at the beginning are uniform between the environment's bounds, not between -1 and 1. Then every environment has noise of its
/// own, scaled to the bounds.
#[test]
fn noise_is_scaled_to_the_bounds_of_the_actions() {
    let (actions, _) = explored(Noisy { random_steps: 1_000_000, noise: ActionNoise::None, std: 0.0 }, 2000);
    for actions in &actions {
        let ((mean, std), greatest) = (mean_and_std(actions), actions.iter().fold(0.0_f32, |a, b| a.max(b.abs())));
        assert!(
            mean.abs() < 0.1 && (std - 2.0 / 3_f64.sqrt()).abs() < 0.05 && (1.99..=2.0).contains(&greatest),
            "{mean}, {std}, {greatest}"
        );
    }
    let (_, residuals) = explored(Noisy { random_steps: 3 * 50, noise: ActionNoise::Normal, std: 0.1 }, 2000);
    assert_ne!(residuals[0][50..], residuals[1][50..]);
    for residuals in &residuals {
        let (mean, std) = mean_and_std(&residuals[50..]);
        assert!(mean.abs() < 0.01 && (std - 0.1).abs() < 0.01 && mean_and_std(&residuals[..50]).1 > 0.3, "{mean}, {std}");
    }
    let (actions, residuals) = explored(Noisy { random_steps: 0, noise: ActionNoise::Normal, std: 100.0 }, 200);
    assert!(actions.iter().flatten().all(|a| a.abs() <= 2.0) && residuals.iter().flatten().any(|x| x.abs() > 0.5), "not clipped");
    let (_, residuals) = explored(Noisy { random_steps: 0, noise: ActionNoise::None, std: 1.0 }, 50);
    assert!(residuals.iter().flatten().all(|x| *x == 0.0));
}

/// The process of Ornstein and Uhlenbeck: x' = 0.9985 x + 0.1 std N(0, 1); it begins at 0 in every episode of 200 steps.
#[test]
fn correlated_noise_begins_anew_in_every_episode() {
    let (_, residuals) = explored(Noisy { random_steps: 0, noise: ActionNoise::OrnsteinUhlenbeck, std: 0.2 }, 1000);
    for residuals in &residuals {
        let starts: Vec<f32> = residuals.iter().step_by(200).copied().collect();
        assert!(starts.iter().all(|x| x.abs() < 0.08), "{starts:?}");
        let steps: Vec<f32> =
            residuals.chunks(200).flat_map(|x| x.windows(2).map(|pair| pair[1] - 0.9985 * pair[0]).collect::<Vec<_>>()).collect();
        let (mean, std) = mean_and_std(&steps);
        assert!(mean.abs() < 0.003 && (std - 0.02).abs() < 0.002, "{mean}, {std}");
        assert!(mean_and_std(residuals).1 > 0.05, "the noise is not correlated");
    }
}

/// TD3 without its three changes is DDPG.
#[test]
fn td3_without_its_changes_is_ddpg_bit_for_bit() {
    let config = |agent: &str, settings: &[&str]| {
        let config = Config { environment: "pendulum".into(), ..Config::default() }.with_toml(&format!("agent = \"{agent}\"")).unwrap();
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        Config { steps: 1500, envs: 2, network: NetworkConfig { hidden: vec![8], ..NetworkConfig::default() }.into(), ..config }
    };
    let train = |config: Config| {
        let mut trainer = Trainer::new(config).unwrap();
        trainer.finish().unwrap();
        trainer.export()
    };
    let changes = ["td3.n_critics=1", "td3.policy_delay=1", "td3.target_policy_noise=0", "td3.learning_starts=200"];
    let ddpg = train(config("ddpg", &["ddpg.learning_starts=200"]));
    assert!(ddpg == train(config("td3", &changes)));
    for change in ["td3.policy_delay=2", "td3.target_policy_noise=0.2"] {
        assert!(ddpg != train(config("td3", &[&changes[..], &[change]].concat())), "{change} changes nothing");
    }
}

/// Returns a training after an iteration, and one that was resumed from it.
fn saved_and_resumed(agent: &str, world: &EnvSpec, changes: &[&str]) -> (Trainer, Trainer) {
    let config = Config::preset(agent, &world.name, None).unwrap();
    let config = changes.iter().fold(config, |config, change| config.with_setting(change).unwrap());
    let [mut trainer, mut resumed] = [(); 2].map(|()| Trainer::in_world(config.clone(), world.clone()).unwrap());
    trainer.iterate().unwrap();
    resumed.load(&trainer.save()).unwrap();
    (trainer, resumed)
}

/// A world that cannot be saved begins new episodes when a training is resumed: the old ones end in the replay buffer.
#[test]
fn a_resumed_training_ends_the_episodes_of_a_world_that_cannot_be_saved() {
    for (world, is_other) in [(registry::find("cartpole").unwrap(), false), (registry::find("cartpole").unwrap().without_saving(), true)] {
        let changes = ["envs=4", "learning_starts=200", "batch_size=8", "steps=2000"];
        let (trainer, resumed) = saved_and_resumed("dqn", &world, &changes);
        let pages = |trainer: &Trainer| trainer.replay().unwrap().pages();
        assert_eq!(pages(&resumed) != pages(&trainer), is_other);
    }
}

/// What tables, cells, noise and scales of rewards keep of the old episodes is gone after it, and nothing is where nothing has to be.
#[test]
fn a_resumed_training_forgets_the_episodes_of_a_world_that_cannot_be_saved() {
    let tables = ["n-step-sarsa", "monte-carlo", "sarsa-lambda", "off-policy-monte-carlo"]
        .map(|agent| (agent, "taxi", &["envs=3"][..], "agent.rule"));
    let networks: [(&str, &str, &[&str], &str); 3] = [
        ("ppo", "cartpole", &["network.cell=gru"], "memory"),
        ("ppo", "cartpole", &["wrappers.normalise_rewards=true"], "return_statistics"),
        ("ddpg", "pendulum", &["ddpg.action_noise=ornstein-uhlenbeck", "ddpg.learning_starts=100", "ddpg.rollout_steps=7"], "action_noise"),
    ];
    for (agent, name, changes, tensor) in
        tables.into_iter().chain(networks).chain([("tile-sarsa", "mountain-car", &["envs=3"][..], "agent.state")])
    {
        for can_be_saved in [true, false] {
            let world = registry::find(name).unwrap();
            let world = if can_be_saved { world } else { world.without_saving() };
            let (trainer, resumed) = saved_and_resumed(agent, &world, changes);
            let of = |trainer: &Trainer| trainer.save().get(tensor).unwrap_or_else(|| panic!("{agent}: no {tensor}")).data.clone();
            assert_eq!(of(&resumed) == of(&trainer), can_be_saved, "{agent}, {tensor}");
        }
    }
}
