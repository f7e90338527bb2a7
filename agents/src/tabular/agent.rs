//! The parts that all tabular agents share: the settings, the step sizes, and the loop that hands steps to an update rule.

use std::sync::Arc;

use gradus_base::math::{exp, ln};
use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, finite, from};
use gradus_base::settings;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_envs::Space;
use gradus_envs::tabular::{Table, Tabular};
use gradus_nets::{ActionRows, Behaviour, Observations};

use super::value_table::state_of;
use super::{ActionValues, Experience, ValueTable};
use crate::agent::{Collection, Report, UpdateContext};
use crate::algorithm::Algorithm;
use crate::config::{AgentKind, Preset, Setup};
use crate::error::{AgentError, ConfigError};
use crate::exploration::EpsilonGreedy;
use crate::rollout::{End, Rollout};

settings! {
    /// The settings that tabular agents share. The letters are those of Sutton and Barto.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TableConfig {
        /// Discount factor gamma.
        pub gamma: f64 = 0.99 => from(0.0).to(1.0),
        /// Step size alpha.
        pub alpha: f64 = 0.1 => above(0.0).to(1.0),
        /// Decay of the step size: at the n-th update of a value it is alpha n^-alpha_decay; 1 with alpha = 1: a mean. Values that traces or
        /// planning update besides take the step size of the visited one.
        pub alpha_decay: f64 = 0.0 => from(0.0).to(1.0),
        /// Probability of a random action, epsilon.
        pub epsilon: f64 = 0.1 => from(0.0).to(1.0),
        /// Epsilon at the beginning, from which it changes linearly; unused if epsilon_fraction is 0.
        pub first_epsilon: f64 = 1.0 => from(0.0).to(1.0),
        /// Fraction of the training in which epsilon changes; 0: it is constant.
        pub epsilon_fraction: f64 = 0.0 => from(0.0).to(1.0),
        /// Every value at the beginning; a high one makes a greedy agent explore.
        pub initial: f64 = 0.0 => finite(),
    }
}

impl TableConfig {
    /// Returns epsilon: see [`AgentConfig::scheduled`](crate::AgentConfig::scheduled).
    pub(super) fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        vec![("epsilon", self.exploration(steps).epsilon(done))]
    }

    /// How the agent explores in a training of `steps` environment steps.
    pub fn exploration(&self, steps: u64) -> EpsilonGreedy {
        let over = (self.epsilon_fraction * steps as f64).round() as u64;
        EpsilonGreedy { random_steps: 0, first: self.first_epsilon, last: self.epsilon, over }
    }

    /// Returns the agent `agent` with this update rule.
    pub(super) fn built(&self, setup: &Setup<'_>, rule: impl Rule + 'static) -> Result<AgentKind, ConfigError> {
        let (states, actions) = sizes(setup)?;
        // the exact values of planning are those of the table's rewards
        let scale = match setup.world.model() {
            Some(_) if rule.plans() => Some(1.0),
            Some(_) if rule.predicts() => Some(reward_scale(setup)?),
            _ => setup.reward_scale,
        };
        Ok(AgentKind::Own(Box::new(TabularAgent::new(self.clone(), setup, (states, actions), Box::new(rule), scale))))
    }
}

/// Returns the numbers of states and actions of the environment.
pub(super) fn sizes(setup: &Setup<'_>) -> Result<(usize, usize), ConfigError> {
    check_observations(setup, "the agent has a table of states")?;
    let env = setup.world.env();
    let (observations, actions) = (env.observation_space(), env.action_space());
    match (setup.world.one_hot_states(), actions) {
        (Some(states), Space::Discrete(n)) => Ok((states, n as usize)),
        _ => {
            let got = format!("{}, whose observations are {} numbers", setup.world.name, observations.width());
            Err(ConfigError {
                key: "environment".into(),
                expected: "one with discrete observations and actions, without wrappers".into(),
                got,
            })
        }
    }
}

/// Returns an error if observations are normalised, which an agent cannot use for this reason.
pub(super) fn check_observations(setup: &Setup<'_>, why: &str) -> Result<(), ConfigError> {
    let expected = format!("false, because {why}");
    ConfigError::unless(!setup.normalises_observations, "wrappers.normalise_observations", &expected, true)
}

/// Returns the transition table of the environment.
pub(super) fn model(setup: &Setup<'_>) -> Result<Arc<dyn Tabular>, ConfigError> {
    setup.world.model().ok_or_else(|| ConfigError {
        key: "environment".into(),
        expected: "one with a known transition table".into(),
        got: setup.world.name.clone(),
    })
}

/// Returns the factor between the rewards of the environment's transition table and those of an agent that learns from both.
pub(super) fn reward_scale(setup: &Setup<'_>) -> Result<f64, ConfigError> {
    setup.reward_scale.ok_or_else(|| ConfigError {
        key: "wrappers".into(),
        expected:
            "neither clip_reward nor normalise_rewards, because the agent also reads the rewards of the environment's transition table"
                .into(),
        got: "one of them".into(),
    })
}

/// The preset of a tabular agent for all environments.
pub(super) const fn preset(agent: &'static str) -> Preset {
    Preset { agent, environment: "any", name: "default", text: include_str!("../../presets/any-tabular-default.toml") }
}

/// Returns the values of uniformly random actions, among those that are allowed.
pub(super) fn of_random_actions(model: &dyn Tabular, gamma: f64) -> super::Sweeps {
    let (table, allowed) = (model.table(), model.allowed());
    let share = |row: &[bool]| 1.0 / row.iter().filter(|is_allowed| **is_allowed).count() as f64;
    let uniform = |row: &[bool]| row.iter().map(|is_allowed| if *is_allowed { share(row) } else { 0.0 }).collect::<Vec<f64>>();
    let policy: Vec<f64> = allowed.chunks_exact(table.actions()).flat_map(uniform).collect();
    super::policy_evaluation(table, &policy, gamma, TOLERANCE, sweeps(table))
}

/// The step sizes of a table: alpha, or alpha n^-decay at the n-th update of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSizes {
    alpha: f64,
    decay: f64,
    /// Updates of each value; empty if step sizes are constant.
    updates: Vec<u64>,
}

impl StepSizes {
    /// Creates the step sizes of `values` values.
    pub fn new(alpha: f64, decay: f64, values: usize) -> Self {
        Self { alpha, decay, updates: if decay > 0.0 { vec![0; values] } else { Vec::new() } }
    }

    /// Returns the step size of the next update of a value.
    pub fn next(&mut self, place: usize) -> f64 {
        let Some(updates) = self.updates.get_mut(place) else { return self.alpha };
        *updates += 1;
        // exact for a mean
        let divisor = if self.decay == 1.0 { *updates as f64 } else { f64::from(exp(self.decay as f32 * ln(*updates as f32))) };
        self.alpha / divisor
    }
}

/// A step of a training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Number of the environment.
    pub env: usize,
    /// The transition.
    pub step: Experience,
    /// The action A' in S', if the rule [needs](Rule::needs_next_action) it and the process has not terminated.
    pub next_action: usize,
    /// The probability with which the behaviour chose the action A.
    pub probability: f64,
    /// Whether the episode ended: the process terminated, or a time limit truncated the episode.
    pub is_last: bool,
}

/// What a rule learns with.
pub struct Learning<'a> {
    /// The values, which the rule changes.
    pub table: &'a mut ValueTable,
    /// Step sizes, by the place of a value.
    pub sizes: &'a mut StepSizes,
    /// Discount factor.
    pub gamma: f64,
    /// Random numbers of the rule.
    pub stream: &'a mut Stream,
    /// Steps of the training so far, this one included.
    pub time: u64,
}

/// An update rule for a table.
pub trait Rule: Send {
    /// Whether the rule needs the next action A'. It then learns from a step when A' is known, as in the textbook's Sarsa.
    fn needs_next_action(&self) -> bool {
        false
    }

    /// The exact values that the rule's values approach, if the environment's transition table is known. Those of the optimal policy unless overridden.
    fn truth(&self, model: &dyn Tabular, gamma: f64) -> super::Sweeps {
        let (table, allowed) = (model.table(), model.allowed());
        let is_allowed = |state: usize, action: usize| allowed[state * table.actions() + action];
        super::value_iteration_among(table, is_allowed, gamma, TOLERANCE, sweeps(table))
    }

    /// Whether values follow from the transition table alone, and not from the rewards of the steps.
    fn plans(&self) -> bool {
        false
    }

    /// The number of tables of action values, each with step sizes of its own.
    fn tables(&self) -> usize {
        1
    }

    /// Whether the rule learns V of uniformly random actions, instead of action values.
    fn predicts(&self) -> bool {
        false
    }

    /// The probability of a random action, if the rule does not leave it to the settings: 1 for a rule that [predicts](Rule::predicts).
    fn epsilon(&self) -> Option<f64> {
        self.predicts().then_some(1.0)
    }

    /// Called once, when the table has the values that training begins with.
    fn begin(&mut self, _: &ValueTable) {}

    /// Learns from a step.
    fn learn(&mut self, seen: &Seen, learning: Learning<'_>);

    /// Forgets the steps of episodes that are going on, because the environments begin new ones.
    fn interrupt(&mut self) {}

    /// Returns the rule's own state as words, for a checkpoint.
    fn save(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Restores the state that [`save`](Rule::save) returned; `None` if the words are no such state.
    fn load(&mut self, words: &[u64], _: Sizes) -> Option<()> {
        words.is_empty().then_some(())
    }
}

/// Numbers of states and actions, within which the numbers in a checkpoint must be.
pub type Sizes = (usize, usize);

/// Whether a step is one of a world of this size.
pub(super) fn fits(step: &Experience, (states, actions): Sizes) -> bool {
    step.state < states && step.next < states && step.action < actions
}

/// Tolerance of exact values, and the outcomes to look at for them: a fraction of a second.
const TOLERANCE: f64 = 1e-10;
const OUTCOMES: usize = 200_000_000;

/// Returns the largest number of sweeps for exact values; none if a table is so large that it would not be enough.
fn sweeps(table: &Table) -> usize {
    let pairs = (0..table.states()).flat_map(|state| (0..table.actions()).map(move |action| (state, action)));
    let outcomes: usize = pairs.map(|(state, action)| table.outcomes(state, action).len()).sum();
    let sweeps = OUTCOMES / outcomes.max(1);
    if sweeps < 200 { 0 } else { sweeps.min(20_000) }
}

/// Number of decisions in an iteration, at least.
const ITERATION: usize = 1000;

/// A tabular agent: a rule, its table, and the exact values if they are known.
pub struct TabularAgent {
    config: TableConfig,
    rule: Box<dyn Rule>,
    table: ValueTable,
    sizes: StepSizes,
    stream: Stream,
    exploration: EpsilonGreedy,
    envs: usize,
    total_steps: u64,
    steps: u64,
    /// Rollouts of this iteration.
    rollouts: usize,
    /// The last step of every environment, of a rule that needs the next action.
    waiting: Vec<Option<Seen>>,
    model: Option<Arc<dyn Tabular>>,
    /// The factor between the table's rewards and those that the agent learns from, if there is one.
    reward_scale: Option<f64>,
    /// The states that can be reached, and the exact value of each.
    truth: Vec<(usize, f64)>,
}

impl TabularAgent {
    fn new(
        config: TableConfig,
        setup: &Setup<'_>,
        (states, actions): (usize, usize),
        rule: Box<dyn Rule>,
        reward_scale: Option<f64>,
    ) -> Self {
        let exploration = config.exploration(setup.steps);
        let values = if rule.predicts() { states } else { rule.tables() * states * actions };
        let model = setup.world.model();
        let truth = model.as_ref().zip(reward_scale).map_or(Vec::new(), |(model, scale)| {
            let exact = rule.truth(model.as_ref(), config.gamma);
            let is_exact = exact.change <= TOLERANCE;
            let allowed = model.allowed();
            let is_allowed = |state: usize, action: usize| allowed[state * actions + action];
            super::reachable_by(model.table(), is_allowed)
                .into_iter()
                .filter(|_| is_exact)
                .map(|state| (state, scale * exact.values[state]))
                .collect()
        });
        let epsilon = rule.epsilon().unwrap_or_else(|| exploration.epsilon(0));
        Self {
            table: ValueTable {
                q: {
                    let q = ActionValues::new(states, actions, config.initial);
                    match model.as_ref().map(|model| model.allowed()) {
                        Some(allowed) if allowed.contains(&false) => q.with_allowed(allowed),
                        _ => q,
                    }
                },
                v: if rule.predicts() { vec![config.initial; states] } else { Vec::new() },
                epsilon,
            },
            sizes: StepSizes::new(config.alpha, config.alpha_decay, values),
            stream: Stream::new(setup.seed, Purpose::Shuffle, 0),
            exploration,
            envs: setup.envs,
            total_steps: setup.steps,
            steps: 0,
            rollouts: 0,
            waiting: vec![None; setup.envs],
            model,
            reward_scale,
            truth,
            config,
            rule,
        }
    }

    fn learn(&mut self, seen: Seen) {
        let Self { table, sizes, stream, rule, config, .. } = self;
        rule.learn(&seen, Learning { table, sizes, gamma: config.gamma, stream, time: self.steps });
    }

    /// Hands a step to the rule, or keeps it until the next action is known.
    fn observe(&mut self, seen: Seen) {
        if !self.rule.needs_next_action() {
            return self.learn(seen);
        }
        if let Some(earlier) = self.waiting[seen.env].take() {
            self.learn(Seen { next_action: seen.step.action, ..earlier });
        }
        match seen {
            Seen { is_last: false, .. } => self.waiting[seen.env] = Some(seen),
            Seen { step: Experience { terminated: true, .. }, .. } => self.learn(seen),
            // a time limit: the action that the agent would take
            _ => {
                let (next_action, _) = self.table.choose(seen.step.next, None, &mut self.stream);
                self.learn(Seen { next_action, ..seen });
            }
        }
    }

    /// Returns the root mean square difference between the values and the exact ones; NaN if these are not known.
    fn error(&self) -> f64 {
        let value = |state: usize| self.table.v.get(state).copied().unwrap_or_else(|| self.table.q.best(state));
        let squares: f64 = self.truth.iter().map(|(state, exact)| (value(*state) - exact).powi(2)).sum();
        (squares / self.truth.len() as f64).sqrt()
    }

    fn report(&mut self, context: UpdateContext) -> Result<Report, AgentError> {
        if let Some(wrong) = self.table.q.all().iter().chain(&self.table.v).find(|value| !value.is_finite()) {
            return Err(context.not_finite("value", *wrong, 0));
        }
        if let (Some(model), Some(scale), false) = (&self.model, self.reward_scale, self.table.v.is_empty()) {
            // the greedy policy of a prediction is that of a look ahead, in the table's rewards
            let values: Vec<f64> = self.table.v.iter().map(|value| value / scale).collect();
            super::look_ahead(model.table(), &values, self.config.gamma, &mut self.table.q);
            self.table.q.all_mut().iter_mut().for_each(|value| *value *= scale);
        }
        Ok(vec![
            ("train/value_error", self.error()),
            ("train/n_updates", self.steps as f64),
            ("rollout/exploration_rate", self.table.epsilon),
        ])
    }
}

impl Algorithm for TabularAgent {
    fn behaviour(&self) -> &dyn Behaviour {
        &self.table
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        &mut self.table
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        Box::new(self.table)
    }

    fn begin(&mut self) {
        self.rule.begin(&self.table);
    }

    fn interrupt(&mut self) {
        self.waiting.fill(None);
        self.rule.interrupt();
    }

    fn collection(&self) -> Collection {
        Collection::Steps(1)
    }

    fn rollouts_per_iteration(&self) -> usize {
        ITERATION.div_ceil(self.envs)
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let (Observations::Rows { rows, width }, ActionRows::Discrete(actions)) = (rollout.store.observations(), &rollout.store.actions)
        else {
            unreachable!("one-hot rows and discrete actions")
        };
        let state = |row: usize| state_of(&rows[row * width..(row + 1) * width]);
        // without a transition table, the agent learns from the masks which actions are allowed
        let masks = rollout.store.masks.as_ref().zip(rollout.store.next_masks.as_ref()).filter(|_| self.model.is_none());
        if let Some((masks, next_masks)) = masks {
            let all = masks.chunks_exact(self.table.q.actions()).chain(next_masks.chunks_exact(self.table.q.actions()));
            all.enumerate().filter(|(_, mask)| mask.contains(&true)).for_each(|(row, mask)| self.table.q.allow(state(row), mask));
        }
        for segment in &rollout.segments {
            let (i, env) = (segment.range.start, segment.group.0 as usize);
            let (next, terminated, is_last) = match segment.end {
                End::Terminated => (state(i), true, true),
                End::Truncated { successor } => (state(successor), false, true),
                End::Cut { successor } => (state(successor), false, false),
            };
            let reward = f64::from(rollout.rewards[i]);
            let step = Experience { state: state(i), action: actions[i] as usize, reward, next, terminated };
            self.steps += 1;
            self.observe(Seen { env, step, next_action: 0, probability: f64::from(exp(rollout.log_probs[i])), is_last });
        }
        self.table.epsilon = self.rule.epsilon().unwrap_or_else(|| self.exploration.epsilon(self.steps));
        self.rollouts += 1;
        if self.rollouts < self.rollouts_per_iteration() && self.steps < self.total_steps {
            return Ok(Vec::new());
        }
        // a training that goes on from here begins an iteration
        self.rollouts = 0;
        self.report(context)
    }

    fn save(&self) -> Tensors {
        let waiting = self.waiting.iter().flat_map(|seen| match seen {
            None => vec![0],
            Some(Seen { step, probability, .. }) => {
                vec![1, step.state as u64, step.action as u64, step.reward.to_bits(), step.next as u64, probability.to_bits()]
            }
        });
        let learned = if self.model.is_none() { self.table.q.allowed() } else { &[] };
        Tensors::from([
            ("counters".to_string(), Tensor::u64(vec![self.steps, self.rollouts as u64, self.stream.position()])),
            ("waiting".to_string(), Tensor::u64(waiting.collect())),
            ("updates".to_string(), Tensor::u64(self.sizes.updates.clone())),
            ("rule".to_string(), Tensor::u64(self.rule.save())),
            ("allowed".to_string(), Tensor::u64(learned.iter().map(|is_allowed| u64::from(*is_allowed)).collect())),
        ])
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let wrong = |what: &str| TensorsError::State(format!("{what}: expected the state of this agent"));
        let [steps, rollouts, position] = *get_u64(tensors, "counters")? else { return Err(wrong("counters")) };
        let sizes = (self.table.q.states(), self.table.q.actions());
        let mut words = get_u64(tensors, "waiting")?;
        let mut waiting = Vec::new();
        while let [is_waiting, rest @ ..] = words {
            words = rest;
            if *is_waiting == 0 {
                waiting.push(None);
                continue;
            }
            let [state, action, reward, next, probability, rest @ ..] = rest else { return Err(wrong("waiting")) };
            let reward = f64::from_bits(*reward);
            let step = Experience { state: *state as usize, action: *action as usize, reward, next: *next as usize, terminated: false };
            let env = waiting.len();
            if !fits(&step, sizes) {
                return Err(wrong("waiting"));
            }
            waiting.push(Some(Seen { env, step, next_action: 0, probability: f64::from_bits(*probability), is_last: false }));
            words = rest;
        }
        let updates = get_u64(tensors, "updates")?;
        if waiting.len() != self.envs || updates.len() != self.sizes.updates.len() {
            return Err(wrong("waiting, updates"));
        }
        // earlier versions did not learn masks
        let learned = if tensors.contains_key("allowed") { get_u64(tensors, "allowed")? } else { &[] };
        let allowed: Vec<bool> = learned.iter().map(|word| *word == 1).collect();
        if !allowed.is_empty() {
            let rows = allowed.chunks_exact(sizes.1);
            if self.model.is_some() || allowed.len() != sizes.0 * sizes.1 || rows.clone().any(|row| !row.contains(&true)) {
                return Err(wrong("allowed"));
            }
            rows.enumerate().for_each(|(state, row)| self.table.q.allow(state, row));
        }
        self.rule.load(get_u64(tensors, "rule")?, sizes).ok_or_else(|| wrong("rule"))?;
        self.sizes.updates.copy_from_slice(updates);
        // checkpoints of before have all rollouts
        let rollouts = rollouts as usize % self.rollouts_per_iteration();
        (self.steps, self.rollouts, self.waiting) = (steps, rollouts, waiting);
        self.stream.seek(position);
        Ok(())
    }
}
