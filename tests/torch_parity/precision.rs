//! bf16 is close to f32, TF32 can be switched, and unsupported precisions are refused.

use gradus::Config;
use gradus::nets::tensors::Data;
use gradus::nets::{Batch, Device, Policy, Precision, TorchConfig, UpdatedGroups};

use super::{Everything, answers, assert_near, config, distance, policies, rollout};

/// bf16 has 8 bits of precision: outputs and gradients are close to those of f32.
#[test]
fn bf16_is_close_to_f32() {
    // adapters have nothing in bf16 but the model beside them and the products
    for (settings, gradient_checkpointing) in [(&["envs=64"][..], false), (&["envs=64", "transformer.lora_rank=8"], true)] {
        bf16_is_near(&config("grpo", "addition", settings), gradient_checkpointing);
    }
}

fn bf16_is_near(config: &Config, gradient_checkpointing: bool) {
    let torch = TorchConfig { precision: Precision::Bf16, gradient_checkpointing, ..TorchConfig::default() };
    let [mut ours, mut theirs] = policies(config, &torch);
    let store = rollout(config, ours.as_ref(), 1).remove(0).store;
    let (a, b) = (answers(ours.as_mut(), &store), answers(theirs.as_mut(), &store));
    assert_near("log_probs", &b[1], &a[1], 0.03);
    assert_ne!(a[1], b[1]);
    let n = store.actions.len();
    let (indices, weights): (Vec<u32>, Vec<f32>) = (0..n as u32).map(|i| (i, 1.0 / n as f32)).unzip();
    for policy in [&mut ours, &mut theirs] {
        policy.gradient(&store, Batch::new(&indices, &weights), &Everything(UpdatedGroups::All));
    }
    // the engines order parameters differently, so gradients are compared by name
    let by_name = |policy: &dyn Policy| {
        let mut copy = policy.snapshot();
        copy.set_parameters(policy.last_gradient());
        copy.save()
    };
    let apart = distance(&by_name(theirs.as_ref()), &by_name(ours.as_ref()));
    assert!(apart > 1e-6 && apart < 0.05, "gradients are {apart} apart");
    // cached keys and values in bf16 give nearly the same log-probabilities as a new evaluation in bf16
    let drawn = rollout(config, theirs.as_ref(), 1).remove(0);
    let mut again = Vec::new();
    theirs.log_probs(&drawn.store, &mut again);
    assert_near("sampled in bf16", &drawn.log_probs, &again, 0.03);
    assert!(theirs.save().values().all(|tensor| matches!(&tensor.data, Data::F32(_))));
    assert_eq!(theirs.fault(), None);
}

/// TF32 has an effect only on CUDA, but libtorch has the switch everywhere.
#[test]
#[cfg(target_os = "linux")]
fn tf32_can_be_switched() {
    assert_eq!((gradus::nets::torch::allow_tf32(true), gradus::nets::torch::allow_tf32(false)), (Ok(()), Ok(())));
    let world = config("ppo", "cartpole", &[]).world().unwrap();
    let tf32 = TorchConfig { precision: Precision::Tf32, ..TorchConfig::default() };
    let problem = gradus::config::Network::default().policy_on(&world, 1, Device::TorchCpu, &tf32).err().unwrap().to_string();
    assert_eq!(problem, "torch.precision: expected f32 or bf16 on torch-cpu, got tf32, which needs CUDA");
}

#[test]
fn unsupported_precisions_are_refused() {
    let bf16 = TorchConfig { precision: Precision::Bf16, ..TorchConfig::default() };
    let world = config("ppo", "cartpole", &[]).world().unwrap();
    let problem = gradus::config::Network::default().policy_on(&world, 1, Device::TorchCpu, &bf16).err().unwrap().to_string();
    assert_eq!(problem, "torch.precision: expected f32 or tf32 for a multilayer perceptron, got bf16");
    let problem = config("grpo", "addition", &["torch.precision=bf16"])
        .agent(&gradus::envs::registry::find("addition").unwrap())
        .err()
        .unwrap()
        .to_string();
    assert_eq!(problem, "torch.precision: expected f32 on cpu, because other precisions need libtorch, got bf16");
}
