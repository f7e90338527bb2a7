//! Semi-gradient Sarsa with tile coding: control with continuous observations.

use std::collections::VecDeque;

use gradus_base::math::ln;
use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, at_least, from};
use gradus_base::settings;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f64, get_u64};
use gradus_envs::Space;
use gradus_nets::{ActionRows, Actor, Behaviour, Choice, Inspection, Observations};

use super::Tiles;
use super::agent::check_observations;
use crate::agent::{Collection, Report, UpdateContext};
use crate::algorithm::Algorithm;
use crate::bandit::epsilon_greedy;
use crate::config::{AgentConfig, AgentKind, Preset, Setup};
use crate::error::{AgentError, ConfigError};
use crate::rollout::{End, Rollout};

/// Settings of [`semi_gradient_sarsa`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SarsaSettings {
    /// Step size for each weight; the step of a value is this times the number of tilings.
    pub alpha: f64,
    /// Probability of a random action.
    pub epsilon: f64,
    /// Discount.
    pub gamma: f64,
    /// The number of rewards in a target (equation 10.4); 1: one-step Sarsa.
    pub n: usize,
}

/// A decision: its active tiles and its action.
type Decision = (Vec<usize>, usize);

/// The last n decisions, with the reward after each, which wait for their targets.
#[derive(Clone, Debug, Default)]
struct Waiting {
    decisions: VecDeque<Decision>,
    rewards: VecDeque<f64>,
}

impl Waiting {
    /// Adds a step. `next` is the decision in the next state; `None` if the process terminated. As soon as n rewards are known, and for all decisions at the end of an
    /// episode, moves w += alpha (G - q(S, A, w)) times the gradient of q, with G = R + ... + gamma^n q(S', A', w) (equations 10.4 and 10.5).
    fn learn(
        &mut self,
        q: &mut Tiles,
        (decision, reward): (Decision, f64),
        next: Option<&Decision>,
        is_last: bool,
        settings: SarsaSettings,
    ) {
        let SarsaSettings { alpha, gamma, n, .. } = settings;
        self.decisions.push_back(decision);
        self.rewards.push_back(reward);
        while self.rewards.len() >= n || is_last && !self.rewards.is_empty() {
            let after = next.map_or(0.0, |(active, action)| q.value(active, *action));
            let target = self.rewards.iter().rev().fold(after, |later, reward| reward + gamma * later);
            let Some((active, action)) = self.decisions.pop_front() else { break };
            self.rewards.pop_front();
            let change = alpha * (target - q.value(&active, action));
            q.add(&active, action, change);
        }
    }
}

/// Plays an episode with episodic semi-gradient n-step Sarsa (sections 10.1 and 10.2). `step` takes an action and returns the reward, and the next state or `None` at the
/// end. After `most` steps the episode ends, too, without more updates. Returns the number of steps.
pub fn semi_gradient_sarsa(
    q: &mut Tiles,
    start: [f64; 2],
    mut step: impl FnMut(usize) -> (f64, Option<[f64; 2]>),
    settings: SarsaSettings,
    most: usize,
    stream: &mut Stream,
) -> usize {
    let choose = |q: &Tiles, point: [f64; 2], stream: &mut Stream| {
        let active = q.active(point);
        let action = epsilon_greedy(&q.values(&active), settings.epsilon, stream);
        (active, action)
    };
    let (mut waiting, mut steps) = (Waiting::default(), 0);
    let mut decision = choose(q, start, stream);
    loop {
        let (reward, next) = step(decision.1);
        steps += 1;
        let Some(point) = next else {
            waiting.learn(q, (decision, reward), None, true, settings);
            return steps;
        };
        if steps == most {
            return steps;
        }
        let next = choose(q, point, stream);
        waiting.learn(q, (decision, reward), Some(&next), false, settings);
        decision = next;
    }
}

settings! {
    /// The settings of semi-gradient Sarsa with tile coding.
    #[derive(Clone, Debug, PartialEq)]
    pub struct TileSarsaConfig {
        /// Discount factor gamma.
        pub gamma: f64 = 1.0 => from(0.0).to(1.0),
        /// Step size of a value, above 0, to 1; that of a weight is smaller by the number of tilings.
        pub alpha: f64 = 0.5 => above(0.0).to(1.0),
        /// Probability of a random action, epsilon.
        pub epsilon: f64 = 0.0 => from(0.0).to(1.0),
        /// Number of rewards in a return, at least 1; 1: one-step Sarsa.
        pub n: usize = 1 => at_least(1),
        /// Number of tilings, 1 to 256.
        pub tilings: usize = 8 => at_least(1).up_to(256),
        /// Tiles of a tiling along each of the two axes, 1 to 1024.
        pub tiles: usize = 8 => at_least(1).up_to(1024),
    }
}

impl AgentConfig for TileSarsaConfig {
    const NAME: &'static str = "tile-sarsa";
    const ABOUT: &'static str = "semi-gradient Sarsa with tile coding: two observed numbers, discrete actions";
    const PRESETS: &'static [Preset] = &[
        Preset {
            agent: Self::NAME,
            environment: "mountain-car",
            name: "default",
            text: include_str!("../../presets/mountain-car-tile-sarsa-default.toml"),
        },
        super::agent::preset(Self::NAME),
    ];
    const HAS_ACTOR_CRITIC: bool = false;

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        check_observations(setup, "the tiles lie between the bounds of the environment's own numbers")?;
        let env = setup.world.env();
        let (observations, actions) = (env.observation_space(), env.action_space());
        let bounds = match &observations {
            Space::Box { low, high } if low.iter().chain(high).all(|bound| bound.is_finite()) => {
                low.iter().zip(high).map(|(a, b)| (f64::from(*a), f64::from(*b))).collect()
            }
            _ => Vec::new(),
        };
        let ([first, second], Space::Discrete(actions)) = (&bounds[..], &actions) else {
            let (expected, got) =
                ("one with two bounded numbers as observations and with discrete actions".into(), setup.world.name.clone());
            return Err(ConfigError { key: "environment".into(), expected, got });
        };
        let q = Tiles::new([*first, *second], self.tilings, self.tiles, *actions as usize);
        let settings = SarsaSettings { alpha: self.alpha / self.tilings as f64, epsilon: self.epsilon, gamma: self.gamma, n: self.n };
        let (table, stream) = (TileTable { q, epsilon: self.epsilon }, Stream::new(setup.seed, Purpose::Shuffle, 0));
        let (last, waiting) = (vec![None; setup.envs], vec![Waiting::default(); setup.envs]);
        Ok(AgentKind::Own(Box::new(TileSarsa { settings, table, stream, last, waiting, steps: 0 })))
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma as f32, 1.0)
    }
}

/// Tile coding as a behaviour: epsilon-greedy, with ties broken at random. Its greedy action is the first of the best ones.
struct TileTable {
    q: Tiles,
    epsilon: f64,
}

fn point(row: &[f32]) -> [f64; 2] {
    [f64::from(row[0]), f64::from(row[1])]
}

/// Returns the values of the allowed actions in an observation, and these actions.
fn allowed(q: &Tiles, row: &[f32], mask: Option<&[bool]>) -> (Vec<f64>, Vec<usize>) {
    let values = q.values(&q.active(point(row)));
    let is_allowed = |(action, _): &(usize, f64)| mask.is_none_or(|mask| mask[*action]);
    values.into_iter().enumerate().filter(is_allowed).map(|(action, value)| (value, action)).unzip()
}

struct TileActor<'a>(&'a TileTable);

impl Actor for TileActor<'_> {
    fn act(&mut self, rows: &[f32], masks: Option<&[bool]>, mut choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let TileTable { q, epsilon } = self.0;
        let mut chosen = Vec::with_capacity(log_probs.len());
        for (i, row) in rows.chunks_exact(2).enumerate() {
            let (values, actions) = allowed(q, row, masks.map(|masks| &masks[i * q.actions()..(i + 1) * q.actions()]));
            let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let ties = values.iter().filter(|value| **value == best).count();
            let (at, probability) = match &mut choice {
                Choice::Sample(streams) | Choice::Truncated(streams, _) => {
                    let at = epsilon_greedy(&values, *epsilon, &mut streams[i]);
                    let greedy = if values[at] == best { (1.0 - epsilon) / ties as f64 } else { 0.0 };
                    (at, greedy + epsilon / values.len() as f64)
                }
                Choice::Greedy => (values.iter().position(|value| *value == best).unwrap_or(0), 1.0),
            };
            chosen.push(actions[at] as u32);
            log_probs[i] = ln(probability as f32);
        }
        *actions = ActionRows::Discrete(chosen);
    }
}

impl Behaviour for TileTable {
    fn observation_width(&self) -> usize {
        2
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TileActor(self))
    }

    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let values = |row: &[f32]| self.q.values(&self.q.active(point(row)));
        observations.chunks_exact(2).map(|row| Inspection { action_values: values(row), ..Inspection::default() }).collect()
    }

    fn save(&self) -> Tensors {
        Tensors::from([("weights".to_string(), Tensor::f64(&[self.q.weights().len()], self.q.weights().to_vec()))])
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let weights = get_f64(tensors, "weights", &[self.q.weights().len()])?;
        self.q.weights_mut().copy_from_slice(weights);
        Ok(())
    }
}

/// Steps between two checks that all weights are finite.
const CHECKED: u64 = 1000;

/// The agent. It learns from a step when the next action is known.
struct TileSarsa {
    settings: SarsaSettings,
    table: TileTable,
    stream: Stream,
    /// The last decision of every environment and its reward.
    last: Vec<Option<(Decision, f64)>>,
    waiting: Vec<Waiting>,
    steps: u64,
}

impl Algorithm for TileSarsa {
    fn behaviour(&self) -> &dyn Behaviour {
        &self.table
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        &mut self.table
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        Box::new(self.table)
    }

    fn interrupt(&mut self) {
        self.last.fill(None);
        self.waiting.fill(Waiting::default());
    }

    fn collection(&self) -> Collection {
        Collection::Steps(1)
    }

    fn rollouts_per_iteration(&self) -> usize {
        1000_usize.div_ceil(self.last.len())
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let (Observations::Rows { rows, .. }, ActionRows::Discrete(actions)) = (rollout.store.observations(), &rollout.store.actions)
        else {
            unreachable!("rows of two numbers and discrete actions")
        };
        let Self { settings, table: TileTable { q, epsilon }, stream, last, waiting, steps } = self;
        for segment in &rollout.segments {
            let (i, env) = (segment.range.start, segment.group.0 as usize);
            let decision = (q.active(point(&rows[2 * i..])), actions[i] as usize);
            if let Some(earlier) = last[env].take() {
                waiting[env].learn(q, earlier, Some(&decision), false, *settings);
            }
            let step = (decision, f64::from(rollout.rewards[i]));
            match segment.end {
                End::Cut { .. } => last[env] = Some(step),
                End::Terminated => waiting[env].learn(q, step, None, true, *settings),
                // a time limit: the action that the agent would take
                End::Truncated { successor } => {
                    let row = &rows[2 * successor..];
                    let n = q.actions();
                    let at = successor - rollout.len();
                    let mask = rollout.store.next_masks.as_ref().map(|masks| &masks[at * n..(at + 1) * n]);
                    let (values, actions) = allowed(q, row, mask);
                    let action = actions[epsilon_greedy(&values, *epsilon, stream)];
                    waiting[env].learn(q, step, Some(&(q.active(point(row)), action)), true, *settings);
                }
            }
            *steps += 1;
        }
        // not after every step, because the scan takes longer than the step
        let is_checked = *steps / CHECKED != (*steps - rollout.len() as u64) / CHECKED;
        if let Some(weight) = q.weights().iter().find(|weight| is_checked && !weight.is_finite()) {
            return Err(context.not_finite("weight", *weight, 0));
        }
        Ok(vec![("train/n_updates", *steps as f64), ("rollout/exploration_rate", *epsilon)])
    }

    fn save(&self) -> Tensors {
        let mut words = vec![self.steps, self.stream.position()];
        let write = |words: &mut Vec<u64>, ((active, action), reward): (&Decision, f64)| {
            words.extend(active.iter().map(|tile| *tile as u64).chain([*action as u64, reward.to_bits()]));
        };
        for (last, Waiting { decisions, rewards }) in self.last.iter().zip(&self.waiting) {
            words.extend([u64::from(last.is_some()), decisions.len() as u64]);
            last.iter().for_each(|(decision, reward)| write(&mut words, (decision, *reward)));
            decisions.iter().zip(rewards).for_each(|(decision, reward)| write(&mut words, (decision, *reward)));
        }
        Tensors::from([("state".to_string(), Tensor::u64(words))])
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let words = get_u64(tensors, "state")?;
        self.read(words).ok_or_else(|| TensorsError::State("state: expected the state of this agent".into()))
    }
}

impl TileSarsa {
    fn read(&mut self, words: &[u64]) -> Option<()> {
        let (tilings, actions) = (self.table.q.tilings(), self.table.q.actions());
        let tiles = self.table.q.weights().len() / actions;
        let mut words = words.iter().copied();
        let step = |words: &mut dyn Iterator<Item = u64>| {
            let active: Vec<usize> = words.take(tilings).map(|tile| tile as usize).collect();
            let (action, reward) = (words.next()? as usize, f64::from_bits(words.next()?));
            let is_known = active.len() == tilings && active.iter().all(|tile| *tile < tiles) && action < actions;
            is_known.then_some(((active, action), reward))
        };
        self.steps = words.next()?;
        self.stream.seek(words.next()?);
        for (last, waiting) in self.last.iter_mut().zip(&mut self.waiting) {
            let (has_last, count) = (words.next()?, words.next()?);
            *last = if has_last == 1 { Some(step(&mut words)?) } else { None };
            *waiting = Waiting::default();
            for _ in 0..count {
                let (decision, reward) = step(&mut words)?;
                waiting.decisions.push_back(decision);
                waiting.rewards.push_back(reward);
            }
        }
        words.next().is_none().then_some(())
    }
}
