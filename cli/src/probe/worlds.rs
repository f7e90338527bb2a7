//! Probe worlds: environments so small that an agent that fails in one of them fails for a reason that has a name (after Andy Jones, "Debugging Reinforcement Learning
//! Systems", 2021).

use std::sync::{Arc, Mutex};

use gradus::agents::registry as agents;
use gradus::config::Network;
use gradus::envs::tabular::{Outcome, Table, TableEnv, Tabular};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step, registry};
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::{Cell, Inspection, Wrapped, threads};
use gradus::{Config, Error, Trainer};

/// What a probe expects.
enum Expected {
    /// The value of the first state, given the discount.
    Value(fn(f64) -> f64),
    /// The values of the two first states.
    Values([f64; 2]),
    /// The mean return of the greedy policy, at least.
    Return(f64),
}

/// A probe: a world, and what an agent must learn in it.
struct Probe {
    name: &'static str,
    /// What an agent can do that passes.
    property: &'static str,
    /// What may be wrong with an agent that fails, if it passes all probes before.
    suspect: &'static str,
    world: fn(&str) -> EnvSpec,
    expected: Expected,
}

fn end(reward: f64) -> Outcome {
    Outcome { probability: 1.0, next: 0, reward, terminated: true }
}

fn to(next: u32) -> Outcome {
    Outcome { next, reward: 0.0, terminated: false, ..end(0.0) }
}

/// Most steps of an episode.
const LIMIT: u32 = 10;

/// Two outcomes with equal probability.
fn coin(rewards: [f64; 2]) -> Vec<Outcome> {
    rewards.map(|reward| Outcome { probability: 0.5, ..end(reward) }).to_vec()
}

fn table(name: &str, actions: usize, outcomes: fn() -> Vec<Vec<Outcome>>, starts: &'static [f64]) -> EnvSpec {
    EnvSpec::of_table(name, LIMIT, move || Table::new(actions, outcomes(), starts.to_vec()).expect("the tables below are distributions"))
}

/// A world in which action 0 is forbidden in state 1, where it would be the better one.
struct Masked(Table);

impl Tabular for Masked {
    fn table(&self) -> &Table {
        &self.0
    }

    fn action_mask(&self, state: u32, mask: &mut [bool]) -> bool {
        mask[0] = state == 0;
        mask[1] = true;
        true
    }
}

fn masked() -> Masked {
    let outcomes = vec![vec![to(1)], vec![to(1)], vec![end(1.0)], vec![end(-1.0)]];
    Masked(Table::new(2, outcomes, vec![1.0, 0.0]).expect("the table is one of distributions"))
}

/// The probes for discrete actions, in the order of what they need.
const DISCRETE: [Probe; 8] = [
    Probe {
        name: "probe-constant",
        property: "learns the value of a constant reward",
        suspect: "the loss of the critic, or the optimiser",
        world: |name| table(name, 1, || vec![vec![end(1.0)]], &[1.0]),
        expected: Expected::Value(|_| 1.0),
    },
    Probe {
        name: "probe-observation",
        property: "learns values that depend on the observation",
        suspect: "how observations reach the critic",
        world: |name| table(name, 1, || vec![vec![end(1.0)], vec![end(-1.0)]], &[0.5, 0.5]),
        expected: Expected::Values([1.0, -1.0]),
    },
    Probe {
        name: "probe-delay",
        property: "discounts a reward that comes a step later",
        suspect: "the discount, or the target after a step that does not end the episode",
        world: |name| table(name, 1, || vec![vec![to(1)], vec![end(1.0)]], &[1.0, 0.0]),
        expected: Expected::Value(|gamma| gamma),
    },
    Probe {
        name: "probe-choice",
        property: "prefers the action with the higher reward",
        suspect: "the loss of the policy, or the sign of the advantages",
        world: |name| table(name, 2, || vec![vec![end(0.0)], vec![end(1.0)]], &[1.0]),
        expected: Expected::Return(0.99),
    },
    Probe {
        name: "probe-both",
        property: "prefers another action for another observation",
        suspect: "how observations reach the policy, or the order of actions and observations in a batch",
        world: |name| table(name, 2, || vec![vec![end(1.0)], vec![end(0.0)], vec![end(0.0)], vec![end(1.0)]], &[0.5, 0.5]),
        expected: Expected::Return(0.99),
    },
    Probe {
        name: "probe-later",
        property: "finds the action that is rewarded a step later",
        suspect: "returns or advantages that cross steps or episodes in a wrong way",
        world: |name| {
            let outcomes = || vec![vec![to(1)], vec![to(2)], vec![end(0.0)], vec![end(0.0)], vec![end(1.0)], vec![end(1.0)]];
            table(name, 2, outcomes, &[1.0, 0.0, 0.0])
        },
        expected: Expected::Return(0.99),
    },
    Probe {
        name: "probe-noise",
        property: "prefers the better action in spite of noise",
        suspect: "a learning rate or step size that is too large, or too little exploration",
        world: |name| table(name, 2, || vec![coin([0.5, -0.5]), coin([1.0, 0.0])], &[1.0]),
        // the better action returns 0.5 on average, the other one 0
        expected: Expected::Return(0.25),
    },
    Probe {
        name: "probe-mask",
        property: "values states by the actions that are allowed",
        suspect: "action masks, where actions are chosen or where targets take the best next action",
        world: |name| EnvSpec::of_table(name, LIMIT, masked),
        expected: Expected::Value(|gamma| -gamma),
    },
];

/// A table whose states are points of a plane, for agents that need two observed numbers.
struct Plane(TableEnv<dyn Tabular>);

/// What the name of such a world ends with.
const PLANE: &str = "-plane";

fn on_plane(world: &EnvSpec) -> Option<EnvSpec> {
    let model = world.model()?;
    Some(EnvSpec::limited(&format!("{}{PLANE}", world.name), LIMIT, move || Plane(TableEnv::new(model.clone()))))
}

impl Env for Plane {
    fn observation_space(&self) -> Space {
        let Space::Discrete(states) = self.0.observation_space() else { unreachable!("the states of a table") };
        Space::Box { low: vec![0.0, 0.0], high: vec![states as f32, 1.0] }
    }

    fn action_space(&self) -> Space {
        self.0.action_space()
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.0.reset(seed, &mut observation[..1]);
        observation[1] = 0.0;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        observation[1] = 0.0;
        self.0.step(action, &mut observation[..1])
    }

    fn save(&self) -> Vec<u64> {
        self.0.save()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0.load(state)
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.0.action_mask(mask)
    }
}

/// An environment whose first observation says which action is rewarded after the second, which is always the same.
#[derive(Clone, Default)]
struct Recall {
    cue: u32,
    step: u32,
}

impl Recall {
    fn write(&self, observation: &mut [f32]) {
        let cue = if self.step == 0 { [-1.0, 1.0][self.cue as usize] } else { 0.0 };
        observation.copy_from_slice(&[cue, self.step as f32]);
    }
}

impl Env for Recall {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, 2.0] }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        *self = Self { cue: seed.count_ones() % 2, step: 0 };
        self.write(observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let is_right = action == Action::Discrete(self.cue);
        self.step += 1;
        self.write(observation);
        let terminated = self.step == 2;
        Step { reward: f64::from(u8::from(terminated && is_right)), terminated, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![self.cue.into(), self.step.into()]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        match *state {
            [cue @ 0..2, step @ 0..3] => {
                *self = Self { cue: cue as u32, step: step as u32 };
                Ok(())
            }
            ref other => Err(EnvError::State(format!("probe: expected a cue and a step, got {other:?}"))),
        }
    }
}

/// The probe for networks with a recurrent cell.
const MEMORY: Probe = Probe {
    name: "probe-memory",
    property: "acts on what it has seen a step ago",
    suspect: "what the policy remembers: where an episode begins, from step to step, or in the sequences of an update",
    world: |name| EnvSpec::new(name, Recall::default),
    // without memory it is 0.5
    expected: Expected::Return(0.99),
};

/// An environment with one continuous action: its reward is 1 less the square of the action's distance from a target.
#[derive(Clone)]
struct Target {
    /// Whether the target is half of the observation, instead of 1/2.
    follows: bool,
    observation: f32,
}

impl Env for Target {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }

    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.observation = if self.follows && seed.count_ones().is_multiple_of(2) { -1.0 } else { 1.0 };
        observation[0] = self.observation;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Continuous(action) = action else { panic!("expected one number, got {action:?}") };
        observation[0] = self.observation;
        let distance = f64::from(action[0]) - 0.5 * f64::from(self.observation);
        Step { reward: 1.0 - distance * distance, terminated: true, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![u64::from(self.observation.to_bits())]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        match state {
            [bits] => {
                self.observation = f32::from_bits(*bits as u32);
                Ok(())
            }
            other => Err(EnvError::State(format!("probe: expected one word, got {}", other.len()))),
        }
    }
}

/// The probes for continuous actions.
const CONTINUOUS: [Probe; 2] = [
    Probe {
        name: "probe-target",
        property: "finds the best continuous action",
        suspect: "the loss of the actor, or the scale of actions",
        world: |name| EnvSpec::new(name, || Target { follows: false, observation: 1.0 }),
        // without learning it is 0.75
        expected: Expected::Return(0.9),
    },
    Probe {
        name: "probe-targets",
        property: "finds another continuous action for another observation",
        suspect: "how observations reach the actor",
        world: |name| EnvSpec::new(name, || Target { follows: true, observation: 1.0 }),
        // without learning it is 0.75
        expected: Expected::Return(0.9),
    },
];

/// Applies settings to the configuration of a probe.
pub(crate) type Change<'a> = &'a (dyn Fn(Config) -> Result<Config, Error> + Sync);

/// The agent that is probed.
#[derive(Clone, Copy)]
struct Probed<'a> {
    agent: &'a str,
    seed: u64,
    change: Change<'a>,
}

/// The result of a probe.
pub(crate) struct Verdict {
    pub(crate) property: &'static str,
    pub(crate) suspect: &'static str,
    /// What was expected and what was found; `None`: the agent has no values to look at.
    pub(crate) found: Option<(String, bool)>,
}

/// Runs all probes that fit an agent. `change` applies the user's settings to the configuration of each.
pub(crate) fn probe(agent: &str, seed: u64, change: Change<'_>) -> Result<Vec<Verdict>, Error> {
    for probe in DISCRETE.iter().chain(&CONTINUOUS).chain([&MEMORY]) {
        let world = (probe.world)(probe.name);
        for world in on_plane(&world).into_iter().chain([world]) {
            if !registry::is_registered(&world.name) {
                registry::register(world)?;
            }
        }
    }
    // an agent that refuses the first world is one for continuous actions, for two observed numbers, or for none of these
    let accepts = |world: &str| trainer(agent, world, seed, change).is_ok();
    let discrete = ["", PLANE].into_iter().find(|kind| accepts(&format!("{}{kind}", DISCRETE[0].name)));
    let mut all: Vec<(&Probe, String)> = Vec::new();
    all.extend(discrete.into_iter().flat_map(|kind| DISCRETE.iter().map(move |probe| (probe, format!("{}{kind}", probe.name)))));
    let remembers = |config: &Config| matches!(&config.network, Network::Perceptron(network) if network.cell != Cell::None);
    if discrete == Some("") && trainer(agent, MEMORY.name, seed, change).is_ok_and(|trainer| remembers(trainer.config())) {
        all.push((&MEMORY, MEMORY.name.to_owned()));
    }
    if accepts(CONTINUOUS[0].name) {
        all.extend(CONTINUOUS.iter().map(|probe| (probe, probe.name.to_owned())));
    }
    if all.is_empty() {
        // says why
        trainer(agent, DISCRETE[0].name, seed, change)?;
    }
    let own = all.iter().find(|_| agents::is_registered(agent)).map(|(_, world)| world.clone());
    let probed = Probed { agent, seed, change };
    let attempt = |(probe, world): &mut (&Probe, String)| threads::with(1, || try_probe(probe, world, probed));
    let verdicts = threads::with_default(|| threads::map(&mut all, |_, probe| attempt(probe)));
    let derivatives = own.map_or(Ok(None), |world| check_derivatives(&world, probed))?;
    verdicts.into_iter().chain(derivatives.map(Ok)).collect()
}

/// Compares the derivatives of the losses of an agent of one's own with differences, in its first updates.
fn check_derivatives(world: &str, Probed { agent, seed, change }: Probed<'_>) -> Result<Option<Verdict>, Error> {
    let found = Arc::new(Mutex::new(super::derivatives::Found::default()));
    let config = trainer(agent, world, seed, change)?.config().clone();
    let wrap = |policy| -> Box<dyn gradus::nets::Policy> {
        Box::new(Wrapped { policy, listener: super::derivatives::Checked(Arc::clone(&found)) })
    };
    let Some(mut trainer) = Trainer::around(config, &wrap)? else { return Ok(None) };
    for _ in 0..3 {
        threads::with(1, || trainer.iterate())?;
    }
    let found = found.lock().map_or_else(|poisoned| poisoned.into_inner().clone(), |found| found.clone());
    let suspect =
        "the derivatives that the objective gives to `Of::function`; a factor that `Of::stop` holds constant on purpose differs, too";
    Ok(Some(Verdict { property: "has the derivatives of its loss", suspect, found: found.verdict() }))
}

/// Steps of a training: agents with a replay buffer learn from each of them many times. A continuous action takes three times as many.
const STEPS: u64 = 16_000;
const STEPS_WITH_REPLAY: u64 = 2_000;

fn trainer(agent: &str, world: &str, seed: u64, change: Change<'_>) -> Result<Trainer, Error> {
    let config = Config::preset(agent, world, None)?;
    let starts = format!("{agent}.learning_starts");
    let has_replay = config.settings().iter().any(|(key, _)| *key == starts);
    let config = if has_replay { config.with_setting(&format!("{starts}=200"))? } else { config };
    // several groups in every update, because a group has one start
    let has_groups = config.settings().iter().any(|(key, _)| *key == format!("{agent}.group_size"));
    let config = Config { envs: if has_groups { 32 } else { config.envs }, ..config };
    // small and fast, because these worlds are
    let config = if config.settings().iter().any(|(key, _)| key == "network.hidden") {
        config.with_setting("network.hidden=[32, 32]")?.with_setting("optimiser.learning_rate=0.003")?
    } else {
        config
    };
    // with a discount near 1 nobody would see whether it is used
    let gamma = format!("{agent}.gamma");
    let has_gamma = world.starts_with("probe-delay") && config.settings().iter().any(|(key, _)| *key == gamma);
    let config = if has_gamma { config.with_setting(&format!("{gamma}=0.5"))? } else { config };
    let is_continuous = CONTINUOUS.iter().any(|probe| probe.name == world);
    let steps = if has_replay { STEPS_WITH_REPLAY } else { STEPS } * if is_continuous { 3 } else { 1 };
    let config = Config { steps, seed, ..config };
    Trainer::new(change(config)?)
}

fn try_probe(probe: &Probe, world: &str, Probed { agent, seed, change }: Probed<'_>) -> Result<Verdict, Error> {
    let states = (probe.world)(probe.name).model().map_or(1, |model| model.table().states());
    let rows: Vec<f32> = match world.ends_with(PLANE) {
        true => (0..states).flat_map(|state| [state as f32, 0.0]).collect(),
        false => (0..states * states).map(|i| if i % (states + 1) == 0 { 1.0 } else { 0.0 }).collect(),
    };
    let mut before = trainer(agent, world, seed, change)?.into_policy();
    let mut trainer = trainer(agent, world, seed, change)?;
    while !trainer.is_finished() {
        trainer.iterate()?;
    }
    let gamma = f64::from(trainer.config().algorithm.discounts().0);
    let world = trainer.evaluation_world();
    let verdict = |found| Ok(Verdict { property: probe.property, suspect: probe.suspect, found });
    let is_near = |found: f64, expected: f64| (found - expected).abs() < 0.15;
    if let Expected::Return(least) = probe.expected {
        let mean = evaluate(trainer.policy(), &world, 400, seed, Mode::Greedy)?.mean;
        return verdict(Some((format!("mean return {mean:.2}, at least {least:.2}"), mean >= least)));
    }
    let after = trainer.into_policy().inspect(&rows)?;
    let values_of = |looks: &[Inspection]| looks.iter().filter_map(Inspection::best_value).collect::<Vec<f64>>();
    let values = values_of(&after);
    // a critic that never changes is one that the agent does not use, or one that gets no gradient
    let needs_none = matches!(agent, "grpo" | "reinforce") || agents::is_registered(agent);
    if values.len() != states || needs_none && values == values_of(&before.inspect(&rows)?) {
        return verdict(None);
    }
    verdict(Some(match probe.expected {
        Expected::Value(expected) => {
            let expected = expected(gamma);
            (format!("value {:.2}, expected {expected:.2}", values[0]), is_near(values[0], expected))
        }
        Expected::Values([a, b]) => {
            let is_right = is_near(values[0], a) && is_near(values[1], b);
            (format!("values {:.2} and {:.2}, expected {a:.2} and {b:.2}", values[0], values[1]), is_right)
        }
        Expected::Return(_) => unreachable!("handled above"),
    }))
}
