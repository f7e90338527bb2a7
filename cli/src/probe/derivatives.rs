//! Compares the derivatives of an objective with differences of its loss, while an agent trains.

use std::sync::{Arc, Mutex, PoisonError};

use gradus::nets::tensors::{Tensors, TensorsError};
use gradus::nets::{
    Actor, Batch, Behaviour, Evaluation, Group, Inspection, Network, Objective, OptimiserStep, Outputs, Policy, PolicyOutput, Store, Sums,
    UpdatedGroups,
};

/// Decisions that are looked at: those of the first gradients.
const MOST: usize = 400;
/// Step of the differences, of outputs whose size is about 1.
const STEP: f32 = 0.01;

/// What was found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Derivatives that were compared, of one output of one decision each.
    compared: usize,
    /// Those that differ, and the largest difference: the output, its derivative, and the differences to either side.
    wrong: usize,
    worst: Option<(&'static str, f32, [f32; 2])>,
}

impl Found {
    /// Returns what was found in words, and whether it is right; `None` if nothing was compared.
    pub(super) fn verdict(&self) -> Option<(String, bool)> {
        if self.compared == 0 {
            return None;
        }
        let is_right = self.wrong * 20 <= self.compared;
        let all = format!("{} of {} derivatives differ from differences of the loss by more than 5 %", self.wrong, self.compared);
        let example = self.worst.filter(|_| !is_right).map_or_else(String::new, |(output, derivative, [below, above])| {
            format!("; with respect to {output}: {derivative:.3}, and differences of {below:.3} and {above:.3}")
        });
        Some((all + &example, is_right))
    }

    fn compare(&mut self, output: &'static str, derivative: f32, sides: [f32; 2]) {
        let (low, high) = (sides[0].min(sides[1]), sides[0].max(sides[1]));
        // where the loss bends, the derivative is one of either side
        let outside = (low - derivative).max(derivative - high).max(0.0);
        let size = derivative.abs().max(low.abs()).max(high.abs());
        self.compared += 1;
        if outside > 0.05 * size + 1e-3 {
            self.wrong += 1;
            if self.worst.is_none_or(|(_, other, [a, b])| outside > (a.min(b) - other).max(other - a.max(b))) {
                self.worst = Some((output, derivative, sides));
            }
        }
    }
}

/// A policy that checks the derivatives of the objectives that it is given.
pub(super) struct Checked {
    pub(super) policy: Box<dyn Policy>,
    pub(super) found: Arc<Mutex<Found>>,
}

/// An objective whose derivatives are checked.
struct CheckedObjective<'a> {
    objective: &'a dyn Objective,
    found: &'a Mutex<Found>,
}

/// The place of a number in an output.
type Place = fn(&mut PolicyOutput) -> &mut f32;

const OUTPUTS: [(&str, Place); 5] = [
    ("log_prob", |output| &mut output.log_prob),
    ("entropy", |output| &mut output.entropy),
    ("value", |output| &mut output.value),
    ("kl_old", |output| &mut output.kl_old),
    ("kl_ref", |output| &mut output.kl_ref),
];

impl Objective for CheckedObjective<'_> {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.objective.decision(index, pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        let before = outputs.to_vec();
        self.objective.slice(indices, weights, outputs, sums);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.compared >= 5 * MOST {
            return;
        }
        let loss = |changed: &[PolicyOutput]| {
            let (mut changed, mut sums) = (changed.to_vec(), Sums::default());
            self.objective.slice(indices, weights, &mut changed, &mut sums);
            sums.loss
        };
        let here = loss(&before);
        // decisions are spread over the slice
        for i in (0..before.len()).step_by(before.len().div_ceil(8).max(1)).filter(|i| weights[*i] > 0.0) {
            for (name, place) in OUTPUTS {
                let side = |step: f32| {
                    let mut changed = before.clone();
                    let number = place(&mut changed[i]);
                    let from = *number;
                    *number = from + step;
                    let step = f64::from(*place(&mut changed[i]) - from);
                    ((loss(&changed) - here) / step) as f32 / weights[i]
                };
                let derivative = *place(&mut outputs[i].clone()) / weights[i];
                found.compare(name, derivative, [side(-STEP), side(STEP)]);
            }
        }
    }

    fn updates(&self) -> UpdatedGroups {
        self.objective.updates()
    }
}

impl Behaviour for Checked {
    fn observation_width(&self) -> usize {
        self.policy.observation_width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        self.policy.actor()
    }

    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        self.policy.inspect(observations)
    }

    fn save(&self) -> Tensors {
        self.policy.save()
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load(tensors)
    }

    fn fault(&self) -> Option<String> {
        self.policy.fault()
    }

    fn wants_one_actor(&self) -> bool {
        self.policy.wants_one_actor()
    }

    fn save_optimiser(&self) -> Tensors {
        self.policy.save_optimiser()
    }

    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load_optimiser(tensors)
    }
}

impl Network for Checked {
    fn gradient_norm(&self) -> f32 {
        self.policy.gradient_norm()
    }

    fn apply(&mut self, step: &OptimiserStep) {
        self.policy.apply(step);
    }

    fn groups(&self) -> Vec<Group> {
        self.policy.groups()
    }

    fn parameters(&self) -> &[f32] {
        self.policy.parameters()
    }

    fn set_parameters(&mut self, parameters: &[f32]) {
        self.policy.set_parameters(parameters);
    }

    fn last_gradient(&self) -> &[f32] {
        self.policy.last_gradient()
    }
}

impl Policy for Checked {
    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        self.policy.values(store, values);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        self.policy.log_probs(store, log_probs);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        self.policy.distributions(store, rows);
    }

    fn distribution_width(&self) -> usize {
        self.policy.distribution_width()
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.evaluate(store, batch, objective)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.gradient(store, batch, &CheckedObjective { objective, found: &self.found })
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        self.policy.fisher_vector_product(store, batch, vector, product);
    }

    fn supports_fisher(&self) -> bool {
        self.policy.supports_fisher()
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        self.policy.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::{Config, Trainer};

    /// A squared error of the value, and the surrogate without a clip; `factor` times its derivative.
    struct Loss {
        factor: f32,
    }

    impl Objective for Loss {
        fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
            let surrogate = pi.log_prob.function(-2.0 * pi.log_prob.value(), -2.0 * self.factor);
            (0.5 * (pi.value - index as f32).squared() + surrogate).into()
        }
    }

    #[test]
    fn a_wrong_derivative_is_found() {
        for (factor, expected) in [(1.0, true), (2.0, false)] {
            let found = Mutex::new(Found::default());
            let mut outputs = vec![PolicyOutput { value: 0.3, log_prob: -0.7, ..PolicyOutput::default() }; 16];
            let indices: Vec<u32> = (0..16).collect();
            CheckedObjective { objective: &Loss { factor }, found: &found }.slice(
                &indices,
                &[0.25; 16],
                &mut outputs,
                &mut Sums::default(),
            );
            let found = found.into_inner().unwrap();
            let (text, is_right) = found.verdict().unwrap();
            assert_eq!((found.compared, is_right), (5 * 8, expected), "{text}");
            assert_eq!(text.contains("with respect to log_prob: -4.000, and differences of -2.000 and -2.000"), !expected, "{text}");
            assert_eq!(outputs[1].log_prob, -0.5 * factor, "the objective's own derivatives are used");
        }
    }

    /// The agents here pass, clips and penalties included, and learn the same as without the check.
    #[test]
    fn the_objectives_of_the_agents_have_the_derivatives_of_their_losses() {
        for (agent, settings) in [
            ("ppo", &["ppo.clip_value=0.2", "ppo.entropy_coefficient=0.01", "ppo.kl_coefficient=0.5"][..]),
            ("a2c", &["a2c.entropy_coefficient=0.01"]),
            ("reinforce", &[]),
            ("grpo", &["reference.coefficient=0.1"]),
        ] {
            let config = settings
                .iter()
                .fold(Config::preset(agent, "cartpole", None).unwrap(), |config, setting| config.with_setting(setting).unwrap());
            let found = Arc::new(Mutex::new(Found::default()));
            let wrap = |policy| -> Box<dyn Policy> { Box::new(Checked { policy, found: Arc::clone(&found) }) };
            let mut checked = Trainer::around(config.clone(), &wrap).unwrap().unwrap();
            let mut plain = Trainer::new(config).unwrap();
            for _ in 0..2 {
                checked.iterate().unwrap();
                plain.iterate().unwrap();
            }
            let (text, is_right) = found.lock().unwrap().verdict().unwrap();
            assert!(is_right, "{agent}: {text}");
            assert_eq!(checked.actor_critic().unwrap().parameters(), plain.actor_critic().unwrap().parameters(), "{agent}");
        }
    }
}
