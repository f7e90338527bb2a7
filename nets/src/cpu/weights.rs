//! A policy's parameters in one flat vector: their names, their gradient, and the state of the optimiser.

use super::aligned::Aligned;
use super::update::{Moments, Reduce, Squares, Update};
use crate::clocks::{self, in_range};
use crate::optimiser::{BETA1, BETA2};
use crate::{Group, OptimiserStep, UpdatedGroups};
use gradus_base::simd::{Level, dispatch};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f32};
use gradus_base::threads;

/// Number of parameters summed in one piece of work.
const CHUNK: usize = 8192;
/// Number of parameters updated in one piece of work, in groups of more than [`CHUNK`].
const UPDATED: usize = 2048;

/// Takes the name and the shape of a tensor, and a function that maps the index of an element to its position in the flat vector.
pub(super) type Visit<'a> = &'a mut dyn FnMut(String, &[usize], &dyn Fn(usize) -> usize);

/// The positions of named tensors in a flat vector.
pub(super) trait Named {
    /// Calls `visit` for every tensor.
    fn for_each_tensor(&self, visit: Visit<'_>);

    /// Returns the numbers of `flat` by name, with `prefix` before each name.
    fn to_tensors(&self, flat: &[f32], prefix: &str) -> Tensors {
        let mut tensors = Tensors::new();
        self.for_each_tensor(&mut |name, shape, at| {
            let data = (0..shape.iter().product()).map(|i| flat[at(i)]).collect();
            tensors.insert(format!("{prefix}{name}"), Tensor::f32(shape, data));
        });
        tensors
    }

    /// Returns the flat vector, with padding 0: the inverse of [`to_tensors`](Named::to_tensors).
    fn flat_from(&self, length: usize, tensors: &Tensors, prefix: &str) -> Result<Aligned, TensorsError> {
        let mut flat = Aligned::zeros(length);
        let mut result = Ok(());
        self.for_each_tensor(&mut |name, shape, at| match get_f32(tensors, &format!("{prefix}{name}"), shape) {
            Ok(data) => data.iter().enumerate().for_each(|(i, x)| flat[at(i)] = *x),
            Err(error) => result = std::mem::replace(&mut result, Ok(())).and(Err(error)),
        });
        result.map(|()| flat)
    }
}

/// Parameters and the state of their optimiser.
#[derive(Clone)]
pub(super) struct Weights {
    pub values: Aligned,
    pub gradient: Aligned,
    pub gradient_norm: f32,
    /// Which groups the gradient updates.
    pub updates: UpdatedGroups,
    groups: Vec<Group>,
    moments: Moments,
}

fn only_known(tensors: &Tensors, known: &Tensors) -> Result<(), TensorsError> {
    match tensors.keys().find(|name| !known.contains_key(*name)) {
        Some(name) => Err(TensorsError::Unexpected(name.clone())),
        None => Ok(()),
    }
}

impl Weights {
    /// Creates the weights from `values`. The groups must follow one another without gaps.
    pub fn new(values: Aligned, groups: Vec<Group>) -> Self {
        let zeros = Aligned::zeros(values.len());
        let moments = Moments { first: zeros.clone(), second: zeros.clone(), clocks: vec![clocks::START; groups.len()] };
        Self { values, gradient: zeros, gradient_norm: 0.0, updates: UpdatedGroups::All, groups, moments }
    }

    /// The groups, in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Sets the gradient to the sum of the lanes' gradients, added in order. `updates` are the groups that the gradient updates.
    pub fn take_gradient(&mut self, level: Level, lanes: &[&[f32]], updates: UpdatedGroups) {
        self.updates = updates;
        self.gradient_norm = reduce(level, lanes, &mut self.gradient);
    }

    /// Updates the parameters of the groups in `updates`.
    pub fn apply(&mut self, level: Level, step: &OptimiserStep) {
        // the gradient is clipped as by PyTorch's `clip_grad_norm_`
        let scale = |norm: f32| (step.max_grad_norm / (norm + 1e-6)).min(1.0);
        let Self { values, gradient, gradient_norm, updates, groups, moments: Moments { first, second, clocks }, .. } = self;
        // no chunk extends over two groups, because each group has its own learning rate, scale and clock
        let mut chunks = Vec::new();
        let mut rest = (&mut **values, &**gradient, &mut **first, &mut **second);
        for (Group { name, range }, clock) in groups.iter().zip(clocks) {
            assert_eq!(range.start + rest.0.len(), gradient.len(), "groups: expected {name} to follow the previous group");
            let (values, behind) = rest.0.split_at_mut(range.len());
            let (gradient, gradient_behind) = rest.1.split_at(range.len());
            let (first, first_behind) = rest.2.split_at_mut(range.len());
            let (second, second_behind) = rest.3.split_at_mut(range.len());
            rest = (behind, gradient_behind, first_behind, second_behind);
            if !updates.includes(name) {
                continue;
            }
            *clock = [clock[0] * f64::from(BETA1), clock[1] * f64::from(BETA2)];
            let learning_rate = if *name == "critic" { step.critic_learning_rate } else { step.learning_rate };
            let scale = scale(if step.clip_per_group { norm(level, gradient.chunks(CHUNK)) } else { *gradient_norm });
            let of_group = (learning_rate, scale, *clock);
            let size = if range.len() > CHUNK { UPDATED } else { CHUNK };
            let moments = first.chunks_mut(size).zip(second.chunks_mut(size));
            chunks.extend(values.chunks_mut(size).zip(gradient.chunks(size)).zip(moments).map(|chunk| (of_group, chunk)));
        }
        threads::for_each(&mut chunks, |_, ((learning_rate, scale, powers), ((parameters, gradient), (first, second)))| {
            let OptimiserStep { rule, epsilon, weight_decay, .. } = *step;
            let (learning_rate, scale, powers) = (*learning_rate, *scale, *powers);
            dispatch(level, Update { rule, learning_rate, epsilon, weight_decay, scale, powers, parameters, gradient, first, second });
        });
    }

    /// Replaces the parameters by name. On an error, nothing changes.
    pub fn load(&mut self, names: &impl Named, tensors: &Tensors) -> Result<(), TensorsError> {
        let values = names.flat_from(self.values.len(), tensors, "")?;
        only_known(tensors, &names.to_tensors(&self.values, ""))?;
        self.values = values;
        Ok(())
    }

    pub fn save_optimiser(&self, names: &impl Named) -> Tensors {
        let mut tensors = names.to_tensors(&self.moments.first, "first.");
        tensors.extend(names.to_tensors(&self.moments.second, "second."));
        clocks::save(&self.groups, &self.moments.clocks, &mut tensors);
        tensors
    }

    pub fn load_optimiser(&mut self, names: &impl Named, tensors: &Tensors) -> Result<(), TensorsError> {
        let tensors = &clocks::converted(&self.groups, tensors);
        let flat = |prefix| names.flat_from(self.values.len(), tensors, prefix);
        let moments = Moments { first: flat("first.")?, second: flat("second.")?, clocks: clocks::load(&self.groups, tensors)? };
        in_range("second", moments.second.iter().map(|x| f64::from(*x)), f64::MAX)?;
        only_known(tensors, &self.save_optimiser(names))?;
        self.moments = moments;
        Ok(())
    }
}

/// Sets `gradient` to the sum of the lanes' gradients, added in order. Returns the norm of the sum.
pub(super) fn reduce(level: Level, lanes: &[&[f32]], gradient: &mut [f32]) -> f32 {
    let mut chunks: Vec<(&mut [f32], f32)> = gradient.chunks_mut(CHUNK).map(|chunk| (chunk, 0.0)).collect();
    threads::for_each(&mut chunks, |i, (gradient, squares)| {
        *squares = dispatch(level, Reduce { lanes, first: i * CHUNK, gradient });
    });
    chunks.iter().map(|(_, squares)| squares).sum::<f32>().sqrt()
}

/// Returns the Euclidean norm of some numbers. The squares of each part are added up in order, and then the sums of the parts.
pub(super) fn norm<'a>(level: Level, parts: impl Iterator<Item = &'a [f32]>) -> f32 {
    let mut chunks: Vec<(&[f32], f32)> = parts.map(|part| (part, 0.0)).collect();
    threads::for_each(&mut chunks, |_, (numbers, squares)| *squares = dispatch(level, Squares(numbers)));
    chunks.iter().map(|(_, squares)| squares).sum::<f32>().sqrt()
}

/// The methods of [`Behaviour`](crate::Behaviour) that a network shares with every other one that has `layout`, `weights` and
/// `parameters_changed`.
macro_rules! behaviour_by_weights {
    () => {
        fn save(&self) -> gradus_base::tensors::Tensors {
            $crate::cpu::weights::Named::to_tensors(&self.layout, &self.weights.values, "")
        }

        fn load(&mut self, tensors: &gradus_base::tensors::Tensors) -> Result<(), gradus_base::tensors::TensorsError> {
            self.weights.load(&self.layout, tensors)?;
            self.parameters_changed();
            Ok(())
        }

        fn save_optimiser(&self) -> gradus_base::tensors::Tensors {
            self.weights.save_optimiser(&self.layout)
        }

        fn load_optimiser(&mut self, tensors: &gradus_base::tensors::Tensors) -> Result<(), gradus_base::tensors::TensorsError> {
            self.weights.load_optimiser(&self.layout, tensors)
        }
    };
}

/// Implements [`Network`](crate::Network) for a network with `level`, `weights` and `parameters_changed`.
macro_rules! network_by_weights {
    ($network:ty) => {
        impl $crate::Network for $network {
            fn gradient_norm(&self) -> f32 {
                self.weights.gradient_norm
            }

            fn apply(&mut self, step: &$crate::OptimiserStep) {
                self.weights.apply(self.level, step);
                self.parameters_changed();
            }

            fn groups(&self) -> Vec<$crate::Group> {
                self.weights.groups().to_vec()
            }

            fn parameters(&self) -> &[f32] {
                &self.weights.values
            }

            fn set_parameters(&mut self, parameters: &[f32]) {
                self.weights.values.copy_from_slice(parameters);
                self.parameters_changed();
            }

            fn last_gradient(&self) -> &[f32] {
                &self.weights.gradient
            }
        }
    };
}

pub(super) use {behaviour_by_weights, network_by_weights};
