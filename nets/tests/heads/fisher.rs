//! Fisher-vector products equal differences of the divergence's gradient. The Fisher information is symmetric and positive semidefinite.

use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::Data;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{Batch, Behaviour, Network, Policy};

use super::{Case, Curved, Divergence, KINDS, Kind, cases, uniform};

/// A direction in parameter space with 0 in the padding.
fn direction(policy: &mut ActorCritic, stream: &mut Stream) -> Vec<f32> {
    let start = policy.save();
    let mut tensors = start.clone();
    for tensor in tensors.values_mut() {
        let Data::F32(data) = &mut tensor.data else { panic!("parameters are f32") };
        data.iter_mut().for_each(|x| *x = uniform(stream, -1.0, 1.0));
    }
    policy.load(&tensors).unwrap();
    let direction = policy.parameters().to_vec();
    policy.load(&start).unwrap();
    direction
}

#[test]
fn fisher_vector_products_match_differences_of_the_divergences_gradient() {
    for kind in [Kind::Categorical, Kind::Masked, Kind::Several, Kind::SeveralMasked, Kind::Gaussian] {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, mut old, .. } = case;
            policy.distributions(&store, &mut old);
            let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
            let stream = &mut Stream::new(2, Purpose::Environment, 0);
            let v = direction(&mut policy, stream);
            let start = policy.parameters().to_vec();
            // leaves another gradient in the lanes
            policy.gradient(&store, batch, &Curved);
            let (gradient, norm) = (policy.last_gradient().to_vec(), policy.gradient_norm());
            let mut product = vec![f32::NAN; 5];
            policy.fisher_vector_product(&store, batch, &v, &mut product);
            assert_eq!((policy.last_gradient(), policy.gradient_norm()), (&gradient[..], norm), "{name}: the gradient is kept");

            let mut at = |step: f32| {
                let moved: Vec<f32> = start.iter().zip(&v).map(|(p, v)| p + step * v).collect();
                policy.set_parameters(&moved);
                policy.gradient(&store, batch, &Divergence);
                policy.last_gradient().to_vec()
            };
            // fourth-order central difference: (8 (g(h) - g(-h)) - (g(2h) - g(-2h))) / 12h
            let h = 0.01;
            let [far_below, below, above, far_above] = [-2.0 * h, -h, h, 2.0 * h].map(&mut at);
            let largest = product.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            let mut worst = 0.0_f32;
            for i in 0..product.len() {
                let expected = (8.0 * (above[i] - below[i]) - (far_above[i] - far_below[i])) / (12.0 * h);
                worst = worst.max((product[i] - expected).abs() / largest);
            }
            println!("{worst:.1e} {name}");
            assert!(largest > 0.0 && worst < 2e-4, "{name}: {worst:.1e}");
            assert!(policy.supports_fisher());
        }
    }
    assert!(!cases(Kind::Gsde)[0].policy.supports_fisher());
}

/// u' F v = v' F u, and v' F v is above 0. F v is 0 for the critic's parameters and for an empty batch.
#[test]
fn the_fisher_information_is_symmetric_positive_and_0_for_the_critic() {
    for kind in [Kind::Categorical, Kind::Masked, Kind::Several, Kind::SeveralMasked, Kind::Gaussian] {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, .. } = case;
            let batch = Batch::new(&indices, &weights);
            let stream = &mut Stream::new(3, Purpose::Environment, 0);
            let (u, v) = (direction(&mut policy, stream), direction(&mut policy, stream));
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let (mut of_u, mut of_v) = (Vec::new(), Vec::new());
            policy.fisher_vector_product(&store, batch, &u, &mut of_u);
            policy.fisher_vector_product(&store, batch, &v, &mut of_v);
            let (a, b, positive) = (dot(&u, &of_v), dot(&v, &of_u), dot(&v, &of_v));
            assert!((a - b).abs() < 1e-6 * positive && positive > 0.0, "{name}: {a}, {b}, {positive}");
            let critic = policy.groups().pop().unwrap();
            assert_eq!(critic.name, "critic");
            assert!(of_v[critic.range].iter().all(|x| *x == 0.0), "{name}");
            policy.fisher_vector_product(&store, Batch::new(&[], &[]), &u, &mut of_u);
            assert!(of_u.len() == of_v.len() && of_u.iter().all(|x| *x == 0.0), "{name}: an empty batch");
        }
    }
}

/// The engine holds transposed copies of this network's weights.
#[test]
fn set_parameters_has_the_effect_of_load() {
    for kind in KINDS {
        let Case { mut policy, store, indices, weights, config, .. } = cases(kind).swap_remove(3);
        assert_eq!(config.gsde, kind == Kind::Gsde);
        let mut loaded = cases(kind).swap_remove(3).policy;
        let v = direction(&mut policy, &mut Stream::new(4, Purpose::Environment, 0));
        policy.set_parameters(&v);
        loaded.load(&policy.save()).unwrap();
        policy.gradient(&store, Batch::new(&indices, &weights), &Curved);
        loaded.gradient(&store, Batch::new(&indices, &weights), &Curved);
        assert_eq!((policy.parameters(), policy.last_gradient()), (loaded.parameters(), loaded.last_gradient()), "{kind:?}");
    }
}
