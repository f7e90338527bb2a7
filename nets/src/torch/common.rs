//! Methods that all policies of this engine share. Each policy has fields `parameters` and `fault` and a method `forward_backward`.

/// The shared methods of [`Behaviour`](crate::Behaviour).
macro_rules! behaviour_by_parameters {
    () => {
        fn save(&self) -> gradus_base::tensors::Tensors {
            self.parameters.save()
        }

        fn load(&mut self, tensors: &gradus_base::tensors::Tensors) -> Result<(), gradus_base::tensors::TensorsError> {
            self.parameters.load(tensors)
        }

        fn fault(&self) -> Option<String> {
            self.fault.line()
        }

        fn wants_one_actor(&self) -> bool {
            true
        }

        fn save_optimiser(&self) -> gradus_base::tensors::Tensors {
            self.parameters.save_optimiser()
        }

        fn load_optimiser(&mut self, tensors: &gradus_base::tensors::Tensors) -> Result<(), gradus_base::tensors::TensorsError> {
            self.parameters.load_optimiser(tensors)
        }
    };
}

/// The shared methods of [`Policy`](crate::Policy).
macro_rules! objectives_by_parameters {
    () => {
        fn evaluate(&mut self, store: &$crate::Store, batch: $crate::Batch<'_>, objective: &dyn $crate::Objective) -> $crate::Sums {
            self.fault.guard(|| Ok(self.forward_backward(store, batch, objective, false)?.0))
        }

        fn gradient(&mut self, store: &$crate::Store, batch: $crate::Batch<'_>, objective: &dyn $crate::Objective) -> $crate::Sums {
            let (sums, gradient) = self.fault.guard(|| self.forward_backward(store, batch, objective, true));
            self.parameters.take_gradient(gradient, objective.updates());
            sums
        }
    };
}

/// Implements [`Network`](crate::Network) for a policy.
macro_rules! impl_network {
    ($policy:ty) => {
        impl $crate::Network for $policy {
            fn gradient_norm(&self) -> f32 {
                self.parameters.gradient_norm()
            }

            fn apply(&mut self, step: &$crate::OptimiserStep) {
                // there is no gradient after a fault
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
                assert_eq!(
                    parameters.len(),
                    self.parameters.len(),
                    "parameters: expected {}, got {}",
                    self.parameters.len(),
                    parameters.len()
                );
                if let Err(error) = self.parameters.set(parameters) {
                    self.fault.note(&error);
                }
            }

            fn last_gradient(&self) -> &[f32] {
                self.parameters.host_gradient()
            }
        }
    };
}

pub(super) use {behaviour_by_parameters, impl_network, objectives_by_parameters};
