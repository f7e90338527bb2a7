//! Tile coding, and semi-gradient Sarsa with it.

use gradus_envs::random::Stream;

use crate::bandit::epsilon_greedy;

/// A linear function of an action's features over two continuous numbers. Each of several tilings divides the plane into equal tiles, of which one is active, and
/// the value is the sum of the active tiles' weights (section 9.5.4). Tiling i is displaced by i (1, 3) / tilings tiles, which the book recommends over equal
/// displacements.
///
/// ```
/// use gradus_agents::tabular::Tiles;
///
/// let mut tiles = Tiles::new([(0.0, 1.0), (0.0, 1.0)], 8, 8, 3);
/// let active = tiles.active([0.3, 0.7]);
/// assert_eq!(active.len(), 8);
/// tiles.add(&active, 2, 0.25);
/// assert_eq!((tiles.value(&active, 2), tiles.value(&active, 1)), (2.0, 0.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    bounds: [(f64, f64); 2],
    tilings: usize,
    /// Tiles in a row of a tiling: one more than `per_side` for each displacement.
    sides: [usize; 2],
    per_side: f64,
    actions: usize,
    weights: Vec<f64>,
}

impl Tiles {
    /// Creates tilings with `per_side` x `per_side` tiles over `bounds`, and weights 0 for each of `actions`.
    pub fn new(bounds: [(f64, f64); 2], tilings: usize, per_side: usize, actions: usize) -> Self {
        let sides = [per_side + 2, per_side + 4];
        Self { bounds, tilings, sides, per_side: per_side as f64, actions, weights: vec![0.0; tilings * sides[0] * sides[1] * actions] }
    }

    /// Returns the number of tilings.
    pub fn tilings(&self) -> usize {
        self.tilings
    }

    /// Returns the active tile of each tiling.
    pub fn active(&self, point: [f64; 2]) -> Vec<usize> {
        let scaled = [0, 1].map(|axis| {
            let (low, high) = self.bounds[axis];
            ((point[axis] - low) / (high - low)).clamp(0.0, 1.0) * self.per_side
        });
        let tile = |tiling: usize| {
            let share = tiling as f64 / self.tilings as f64;
            let [x, y] = [(scaled[0] + share) as usize, (scaled[1] + 3.0 * share) as usize];
            (tiling * self.sides[0] + x) * self.sides[1] + y
        };
        (0..self.tilings).map(tile).collect()
    }

    /// Returns q(s, a, w), the sum of the weights of the active tiles (equation 9.8).
    pub fn value(&self, active: &[usize], action: usize) -> f64 {
        active.iter().map(|tile| self.weights[tile * self.actions + action]).sum()
    }

    /// Returns q(s, a, w) for every action.
    pub fn values(&self, active: &[usize]) -> Vec<f64> {
        (0..self.actions).map(|action| self.value(active, action)).collect()
    }

    /// Adds `change` to the weights of the active tiles, whose features are 1: a step along the gradient of q(s, a, w).
    pub fn add(&mut self, active: &[usize], action: usize, change: f64) {
        active.iter().for_each(|tile| self.weights[tile * self.actions + action] += change);
    }
}

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

/// Plays an episode with episodic semi-gradient n-step Sarsa (sections 10.1 and 10.2): w += alpha (G - q(S, A, w)) times the gradient of q, with
/// G = R + ... + gamma^n q(S', A', w). `step` takes an action and returns the reward, and the next state or `None` at the end. The episode also ends, without an
/// update, after `most` steps. Returns the number of steps.
pub fn semi_gradient_sarsa(
    q: &mut Tiles,
    start: [f64; 2],
    mut step: impl FnMut(usize) -> (f64, Option<[f64; 2]>),
    settings: SarsaSettings,
    most: usize,
    stream: &mut Stream,
) -> usize {
    let SarsaSettings { alpha, epsilon, gamma, n } = settings;
    let active = q.active(start);
    let action = epsilon_greedy(&q.values(&active), epsilon, stream);
    // the last n decisions, with the reward after each
    let (mut decisions, mut rewards) = (vec![(active, action)], Vec::new());
    let mut steps = 0;
    let update = |q: &mut Tiles, decisions: &[(Vec<usize>, usize)], rewards: &[f64], after: f64| {
        let (active, action) = &decisions[0];
        let target = rewards.iter().rev().fold(after, |later, reward| reward + gamma * later);
        let change = alpha * (target - q.value(active, *action));
        q.add(active, *action, change);
    };
    loop {
        let (_, action) = decisions[decisions.len() - 1];
        let (reward, next) = step(action);
        steps += 1;
        rewards.push(reward);
        let Some(next) = next else { break };
        if steps == most {
            return steps;
        }
        let active = q.active(next);
        let action = epsilon_greedy(&q.values(&active), epsilon, stream);
        if rewards.len() == n {
            let after = q.value(&active, action);
            update(q, &decisions, &rewards, after);
            decisions.remove(0);
            rewards.remove(0);
        }
        decisions.push((active, action));
    }
    while !rewards.is_empty() {
        update(q, &decisions, &rewards, 0.0);
        decisions.remove(0);
        rewards.remove(0);
    }
    steps
}
