//! What the policies of this engine have in common.

/// The methods of [`Policy`](crate::Policy) that every policy with `parameters`, a `fault` and a `forward_backward` has alike.
macro_rules! by_parameters {
    () => {
        fn evaluate(&mut self, store: &$crate::Store, batch: $crate::Batch<'_>, objective: &dyn $crate::Objective) -> $crate::Sums {
            self.fault.guard(|| Ok(self.forward_backward(store, batch, objective, false)?.0))
        }

        fn gradient(&mut self, store: &$crate::Store, batch: $crate::Batch<'_>, objective: &dyn $crate::Objective) -> $crate::Sums {
            let (sums, gradient) = self.fault.guard(|| self.forward_backward(store, batch, objective, true));
            self.parameters.take_gradient(gradient, objective.moves());
            sums
        }

        fn gradient_norm(&self) -> f32 {
            self.parameters.gradient_norm()
        }

        fn apply(&mut self, step: &$crate::OptimiserStep) {
            // a device that has failed has no gradient to follow
            if self.fault.line().is_some() {
                return;
            }
            if let Err(error) = self.parameters.apply(step) {
                self.fault.note(&error);
            }
        }

        fn groups(&self) -> Vec<$crate::Group> {
            self.parameters.groups().to_vec()
        }

        fn is_finite(&self) -> bool {
            self.parameters.is_finite()
        }

        fn parameters(&self) -> &[f32] {
            self.parameters.host()
        }

        fn set_parameters(&mut self, parameters: &[f32]) {
            assert_eq!(parameters.len(), self.parameters.len(), "parameters: expected {}, got {}", self.parameters.len(), parameters.len());
            if let Err(error) = self.parameters.set(parameters) {
                self.fault.note(&error);
            }
        }

        fn last_gradient(&self) -> &[f32] {
            self.parameters.host_gradient()
        }

        fn save(&self) -> $crate::tensors::Tensors {
            self.parameters.save()
        }

        fn load(&mut self, tensors: &$crate::tensors::Tensors) -> Result<(), $crate::tensors::TensorsError> {
            self.parameters.load(tensors)
        }

        fn fault(&self) -> Option<String> {
            self.fault.line()
        }

        fn wants_one_actor(&self) -> bool {
            true
        }

        fn save_optimiser(&self) -> $crate::tensors::Tensors {
            self.parameters.save_optimiser()
        }

        fn load_optimiser(&mut self, tensors: &$crate::tensors::Tensors) -> Result<(), $crate::tensors::TensorsError> {
            self.parameters.load_optimiser(tensors)
        }
    };
}

pub(super) use by_parameters;
