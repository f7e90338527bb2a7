//! A table of action values as a behaviour.

use gradus_base::math::ln;
use gradus_base::random::Stream;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f64};
use gradus_nets::{ActionRows, Actor, Behaviour, Choice, Inspection};

use super::ActionValues;

/// A table of action values as a behaviour: epsilon-greedy, with ties broken at random. Its greedy action is the first of the best ones.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueTable {
    /// Q(s, a).
    pub q: ActionValues,
    /// V(s), of agents that learn state values; else empty.
    pub v: Vec<f64>,
    /// Probability of a random action.
    pub epsilon: f64,
}

impl ValueTable {
    /// Returns the best of the allowed actions, and the number of allowed ones. Without `mask`, those of the table are allowed.
    fn best(&self, state: usize, mask: Option<&[bool]>) -> (impl Iterator<Item = usize> + Clone, usize) {
        let row = self.q.row(state);
        let allowed = move |action: &usize| mask.map_or_else(|| self.q.is_allowed(state, *action), |mask| mask[*action]);
        let all = (0..row.len()).filter(allowed);
        let highest = all.clone().map(|action| row[action]).fold(f64::NEG_INFINITY, f64::max);
        (all.clone().filter(move |action| row[*action] >= highest || row[*action].is_nan()), all.count())
    }

    /// Draws an action and returns it with its probability.
    pub fn choose(&self, state: usize, mask: Option<&[bool]>, stream: &mut Stream) -> (usize, f64) {
        let (best, count) = self.best(state, mask);
        let ties = best.clone().count();
        let is_random = self.epsilon > 0.0 && stream.unit_f64() < self.epsilon;
        let action = if is_random {
            let is_allowed = |action: &usize| mask.map_or_else(|| self.q.is_allowed(state, *action), |mask| mask[*action]);
            let mut allowed = (0..self.q.actions()).filter(is_allowed);
            allowed.nth(stream.below(count as u32) as usize)
        } else {
            best.clone().nth(if ties > 1 { stream.below(ties as u32) as usize } else { 0 })
        };
        let action = action.expect("every state has an action");
        let greedy = if best.clone().any(|other| other == action) { (1.0 - self.epsilon) / ties as f64 } else { 0.0 };
        (action, greedy + self.epsilon / count as f64)
    }
}

impl Behaviour for ValueTable {
    fn observation_width(&self) -> usize {
        self.q.states()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TableActor(self))
    }

    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let look = |row: &[f32]| {
            let state = state_of(row);
            let n = self.q.actions();
            let (best, count) = self.best(state, None);
            let ties = best.clone().count() as f64;
            let random = |action| if self.q.is_allowed(state, action) { self.epsilon / count as f64 } else { 0.0 };
            let mut probabilities: Vec<f64> = (0..n).map(random).collect();
            best.for_each(|action| probabilities[action] += (1.0 - self.epsilon) / ties);
            // a forbidden action is never the best one
            let value = |action| if self.q.is_allowed(state, action) { self.q.row(state)[action] } else { f64::NEG_INFINITY };
            Inspection { value: self.v.get(state).copied(), action_values: (0..n).map(value).collect(), probabilities }
        };
        observations.chunks_exact(self.q.states()).map(look).collect()
    }

    fn save(&self) -> Tensors {
        let shape = [self.q.states(), self.q.actions()];
        let mut tensors = Tensors::from([("action_values".to_string(), Tensor::f64(&shape, self.q.all().to_vec()))]);
        tensors.insert("epsilon".into(), Tensor::f64(&[1], vec![self.epsilon]));
        if !self.v.is_empty() {
            tensors.insert("state_values".into(), Tensor::f64(&[self.v.len()], self.v.clone()));
        }
        tensors
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let q = get_f64(tensors, "action_values", &[self.q.states(), self.q.actions()])?;
        let epsilon = get_f64(tensors, "epsilon", &[1])?[0];
        if !q.iter().all(|value| value.is_finite()) || !(0.0..=1.0).contains(&epsilon) {
            return Err(TensorsError::State("action values: expected finite numbers, and epsilon from 0 to 1".into()));
        }
        if !self.v.is_empty() {
            let v = get_f64(tensors, "state_values", &[self.v.len()])?;
            self.v.copy_from_slice(v);
        }
        self.q.all_mut().copy_from_slice(q);
        self.epsilon = epsilon;
        Ok(())
    }
}

struct TableActor<'a>(&'a ValueTable);

/// Returns the state of a one-hot row.
pub(super) fn state_of(row: &[f32]) -> usize {
    row.iter().position(|x| *x == 1.0).expect("a state is a one-hot row")
}

impl Actor for TableActor<'_> {
    fn act(&mut self, rows: &[f32], masks: Option<&[bool]>, mut choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let (width, n) = (self.0.q.states(), self.0.q.actions());
        let mut chosen = Vec::with_capacity(log_probs.len());
        for (i, (row, log_prob)) in rows.chunks_exact(width).zip(log_probs).enumerate() {
            let mask = masks.map(|masks| &masks[i * n..(i + 1) * n]);
            let (action, probability) = match &mut choice {
                Choice::Sample(streams) | Choice::Truncated(streams, _) => self.0.choose(state_of(row), mask, &mut streams[i]),
                Choice::Greedy => (self.0.best(state_of(row), mask).0.next().expect("every state has an action"), 1.0),
            };
            chosen.push(action as u32);
            *log_prob = ln(probability as f32);
        }
        *actions = ActionRows::Discrete(chosen);
    }
}
