//! Parameters: derived copies, snapshots, padding, groups and initial values.

use gradus_base::simd::Level;
use gradus_base::tensors::{Data, Tensors};
use gradus_nets::{Batch, Behaviour, Network, NetworkConfig, OptimiserStep, Policy, Rule};

use super::{Quadratic, bits, policy, shapes, step, store};

/// Data that an engine derives from its parameters, such as transposed weights, must be updated with them.
#[test]
fn after_a_step_the_gradient_uses_the_new_parameters() {
    for (config, actions) in &shapes() {
        let store = store(40, actions);
        let (indices, weights): (Vec<u32>, Vec<f32>) = ((0..40).collect(), vec![0.025; 40]);
        let batch = Batch::new(&indices, &weights);
        let (mut stepped, mut loaded) = (policy(config, actions, Level::best()), policy(config, actions, Level::best()));
        stepped.gradient(&store, batch, &Quadratic);
        stepped.apply(&step(Rule::Adam));
        loaded.load(&stepped.save()).unwrap();
        stepped.gradient(&store, batch, &Quadratic);
        loaded.gradient(&store, batch, &Quadratic);
        assert_eq!(bits(stepped.last_gradient()), bits(loaded.last_gradient()), "{config:?}");
    }
}

#[test]
fn a_snapshot_does_not_change_with_the_original() {
    let (config, actions) = &shapes()[3];
    let mut original = policy(config, actions, Level::best());
    let store = store(50, actions);
    let (indices, weights): (Vec<u32>, Vec<f32>) = ((0..50).collect(), vec![0.02; 50]);
    let batch = Batch::new(&indices, &weights);
    let train = |policy: &mut dyn Policy| {
        policy.gradient(&store, batch, &Quadratic);
        policy.apply(&step(Rule::Adam));
        bits(policy.parameters())
    };
    train(&mut original);
    let mut snapshot = original.snapshot();
    let before = bits(snapshot.parameters());
    let after = train(&mut original);
    assert_ne!(before, after);
    assert_eq!(bits(snapshot.parameters()), before);
    assert_eq!(train(snapshot.as_mut()), after, "a snapshot trains like the original");
}

#[test]
fn padding_stays_zero() {
    for (config, actions) in &shapes() {
        for rule in [Rule::Adam, Rule::RmsProp] {
            let mut policy = policy(config, actions, Level::best());
            let start = policy.save();
            // the padding is those numbers that do not become 1
            let mut ones: Tensors = start.clone();
            for tensor in ones.values_mut() {
                let Data::F32(data) = &mut tensor.data else { panic!("parameters are f32") };
                data.fill(1.0);
            }
            policy.load(&ones).unwrap();
            let padding: Vec<usize> = (0..policy.parameters().len()).filter(|i| policy.parameters()[*i] == 0.0).collect();
            let named: usize = start.values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
            assert_eq!(padding.len() + named, policy.parameters().len(), "every parameter is named or padding");
            policy.load(&start).unwrap();

            let store = store(70, actions);
            let indices: Vec<u32> = (0..70).collect();
            for _ in 0..5 {
                policy.gradient(&store, Batch::new(&indices, &[0.1; 70]), &Quadratic);
                assert!(padding.iter().all(|i| policy.last_gradient()[*i] == 0.0), "{config:?}: padding has a gradient");
                if policy.supports_fisher() {
                    let (vector, mut product) = (policy.last_gradient().to_vec(), Vec::new());
                    policy.fisher_vector_product(&store, Batch::new(&indices, &[0.1; 70]), &vector, &mut product);
                    assert!(padding.iter().all(|i| product[*i] == 0.0), "{config:?}: padding has a Fisher-vector product");
                }
                policy.apply(&step(rule));
                assert!(padding.iter().all(|i| policy.parameters()[*i] == 0.0), "{config:?}: padding has changed");
            }
        }
    }
}

#[test]
fn groups_cover_the_parameters_and_have_their_own_learning_rates() {
    for (config, actions) in &shapes() {
        let mut policy = policy(config, actions, Level::best());
        let groups = policy.groups();
        let trunk = config.shared && !config.hidden.is_empty();
        let names: Vec<&str> = groups.iter().map(|group| group.name).collect();
        assert_eq!(names, if trunk { vec!["trunk", "actor", "critic"] } else { vec!["actor", "critic"] }, "{config:?}");
        let end = groups.iter().fold(0, |end, group| {
            assert_eq!(group.range.start, end, "{config:?}: groups are consecutive");
            group.range.end
        });
        assert_eq!(end, policy.parameters().len(), "{config:?}");

        for moving in ["critic", "the others"] {
            let before = bits(policy.parameters());
            policy.gradient(&store(40, actions), Batch::new(&[3, 17], &[0.5, 0.5]), &Quadratic);
            let (learning_rate, critic_learning_rate) = if moving == "critic" { (0.0, 0.01) } else { (0.01, 0.0) };
            policy.apply(&OptimiserStep { learning_rate, critic_learning_rate, ..step(Rule::Adam) });
            let after = bits(policy.parameters());
            for group in &groups {
                let stays = before[group.range.clone()] == after[group.range.clone()];
                assert_eq!(
                    stays,
                    (group.name == "critic") != (moving == "critic"),
                    "{config:?}: {} when only {moving} may move",
                    group.name
                );
            }
        }
    }
}

/// The gains are those of the "37 details" study (Huang et al., 2022). A matrix's rows, or its columns if there are fewer, have the gain as
/// length.
#[test]
fn initial_weights_have_gain_sqrt_2_in_hidden_layers_and_less_in_the_heads() {
    for (config, actions) in &shapes() {
        let config = &NetworkConfig { log_std_init: -0.5, ..config.clone() };
        for (name, tensor) in policy(config, actions, Level::best()).save() {
            let Data::F32(data) = &tensor.data else { panic!("parameters are f32") };
            if name == "actor.log_std" {
                assert!(data.iter().all(|x| *x == -0.5), "{config:?}: {name}");
            } else if let [outputs, inputs] = tensor.shape[..] {
                let head = if config.shared { 0 } else { 2 * config.hidden.len() };
                let gain = match name.split('.').collect::<Vec<_>>()[..] {
                    ["actor", layer, _] if layer == head.to_string() => 0.01,
                    ["critic", layer, _] if layer == head.to_string() => 1.0,
                    _ => 2.0_f64.sqrt(),
                };
                let squares: f64 = data.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
                let expected = gain * gain * outputs.min(inputs) as f64;
                assert!((squares / expected - 1.0).abs() < 1e-5, "{config:?}: {name} has squares {squares} instead of {expected}");
            } else {
                assert!(data.iter().all(|x| *x == 0.0), "{config:?}: {name}");
            }
        }
    }
}
