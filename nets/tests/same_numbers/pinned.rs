//! Seed 1 gives the pinned numbers.

use gradus_base::simd::Level;
use gradus_base::tensors::Data;
use gradus_envs::Space;
use gradus_nets::{Batch, Behaviour, Network, NetworkConfig, Policy, Rule};

use super::{Quadratic, policy, step, store};

/// A change of these numbers changes every published result, and must be in the changelog.
#[test]
fn seed_1_gives_the_pinned_numbers() {
    let config = NetworkConfig { hidden: vec![20, 7], ..Default::default() };
    let mut policy = policy(&config, &Space::Discrete(3), Level::best());
    let tensor = |name: &str| {
        let Data::F32(data) = policy.save()[name].data.clone() else { panic!("parameters are f32") };
        data[..2].iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
    };
    let start: Vec<Vec<u32>> =
        ["actor.0.weight", "actor.2.weight", "actor.4.weight", "critic.0.weight"].iter().map(|n| tensor(n)).collect();

    let store = store(3, &Space::Discrete(3));
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let sums = policy.gradient(&store, Batch::new(&[0, 1, 2], &[0.5, 0.25, 0.25]), &Quadratic);
        numbers.extend([(sums.loss as f32).to_bits(), policy.gradient_norm().to_bits()]);
        policy.apply(&step(Rule::Adam));
    }
    let mut values = Vec::new();
    policy.values(&store, &mut values);
    numbers.extend(values.iter().map(|x| x.to_bits()));
    assert_eq!(start, PINNED_START, "got {start:08x?}");
    assert_eq!(numbers, PINNED_NUMBERS, "got {numbers:08x?}");
}

/// Two weights of each of four layers.
const PINNED_START: [[u32; 2]; 4] =
    [[0x3eafe263, 0xbf3714b2], [0xbe267cb9, 0xbe074d46], [0x3b5e08ca, 0xbad8517b], [0xbb117717, 0xbdd36362]];

/// Loss and gradient norm of two steps, then the values of four rows.
const PINNED_NUMBERS: [u32; 8] = [0x4063ddf7, 0x40547120, 0x403e9078, 0x401f8c1e, 0xbf938183, 0xbf35cdc5, 0xbe1d8a5a, 0xbe6c3891];
