//! Tile coding: a linear function of two continuous numbers.

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

    /// Returns all weights.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns all weights mutably.
    pub fn weights_mut(&mut self) -> &mut [f64] {
        &mut self.weights
    }

    /// Returns the number of actions.
    pub fn actions(&self) -> usize {
        self.actions
    }
}
