//! Compares the derivatives of an objective with differences of its loss, while an agent trains.

use std::sync::{Arc, Mutex, PoisonError};

use gradus::nets::{Batch, Evaluation, Listener, Objective, Outputs, Policy, PolicyOutput, Store, Sums, UpdatedGroups};

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

/// A listener that checks the derivatives of the objectives.
pub(super) struct Checked(pub(super) Arc<Mutex<Found>>);

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

impl Listener for Checked {
    fn gradient(&mut self, policy: &mut dyn Policy, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        policy.gradient(store, batch, &CheckedObjective { objective, found: &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::nets::Wrapped;
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
            let wrap = |policy| -> Box<dyn Policy> { Box::new(Wrapped { policy, listener: Checked(Arc::clone(&found)) }) };
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
