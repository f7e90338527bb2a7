//! Tests the KL penalty. In the reward, it penalises the divergence of whole completions. In the loss, it penalises an estimate of the
//! divergence in each state.

use gradus::agents::groups::GroupStd;
use gradus::agents::reference::{Estimator, KlPlace, ReferenceConfig};
use gradus::agents::reinforce::Baseline;

use crate::enumeration::Oracle;
use crate::statistics::assert_mean_is;
use crate::{BATCH, GROUP, grpo, reinforce};

#[test]
fn the_kl_penalty_has_the_gradient_of_its_place_and_estimator() {
    let mut oracle = Oracle::new();
    let beta = 0.2;
    let (completions, d) = (oracle.completions.clone(), oracle.against_reference());
    let in_reward = oracle.gradient(|y, _| {
        let y = &completions[y];
        y.probability * (y.reward - f64::from(beta) * d[y.range.clone()].iter().sum::<f64>())
    });
    let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Reward, ..ReferenceConfig::default() };
    for (name, baseline) in [("REINFORCE", Baseline::None), ("RLOO", Baseline::LeaveOneOut)] {
        let mut agent = reinforce::agent(reinforce::config(baseline), reference.clone(), BATCH);
        let samples = oracle.agent_gradients(&mut agent, BATCH, |_| 1.0);
        assert_mean_is(&format!("{name}, k1 in the reward"), &samples, &in_reward);
    }

    let slope = |estimator: Estimator, d: f64| match estimator {
        Estimator::K1 => 1.0,
        Estimator::K3 => 1.0 - (-d).exp(),
        // the mean of d grad log pi over pi's actions is the gradient of the exact divergence
        Estimator::K2 | Estimator::Exact => d,
    };
    for estimator in [Estimator::K1, Estimator::K2, Estimator::K3, Estimator::Exact] {
        let shrink = (GROUP - 1) as f64 / GROUP as f64;
        let in_loss = oracle.gradient(|y, i| {
            let y = &completions[y];
            y.probability * (shrink * y.reward - f64::from(beta) * slope(estimator, d[i]))
        });
        let reference = ReferenceConfig { coefficient: beta, place: KlPlace::Loss, estimator, ..ReferenceConfig::default() };
        let mut agent = grpo::agent(grpo::config(GroupStd::None), reference, BATCH);
        let samples = oracle.agent_gradients(&mut agent, BATCH, |_| 1.0);
        assert_mean_is(&format!("GRPO, {estimator:?} in the loss"), &samples, &in_loss);
    }
}
