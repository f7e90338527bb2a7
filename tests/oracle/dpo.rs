//! The mean gradient of DPO is that of its loss over all pairs of completions with different rewards.

use gradus::agents::dpo::{Dpo, DpoConfig, PairLoss};
use gradus::agents::reference::ReferenceConfig;

use crate::enumeration::{Completion, Oracle};
use crate::statistics::assert_mean_is;
use crate::{BATCH, optimiser};

const BETA: f64 = 0.4;

/// Each minibatch has the mean loss of its pairs, so the expected gradient is that of one pair, given that its rewards differ. The policy is
/// the one that collects, or a later one.
#[test]
fn dpo_descends_the_loss_of_a_pair() {
    for (loss, smoothing) in [(PairLoss::Sigmoid, 0.0), (PairLoss::Sigmoid, 0.2), (PairLoss::Ipo, 0.0)] {
        for fraction in [0.0, 0.3] {
            let mut oracle = Oracle::new();
            if fraction > 0.0 {
                oracle.move_on(fraction);
            }
            let (now, reference) = (oracle.log_ratios(), oracle.against_reference());
            // log(pi / pi_ref) of a completion
            let ratio = |y: &Completion| y.range.clone().map(|i| now[i] + reference[i]).sum::<f64>();
            // the derivative of the loss with respect to the difference D of the two, from the papers
            let slope = |d: f64| match loss {
                PairLoss::Sigmoid => BETA * (1.0 / (1.0 + (-BETA * d).exp()) - (1.0 - smoothing)),
                PairLoss::Ipo => 2.0 * (d - 1.0 / (2.0 * BETA)),
            };
            let differ: f64 = {
                let of = |y: &Completion| oracle.completions.iter().filter(|z| z.reward != y.reward).map(|z| z.probability).sum::<f64>();
                oracle.completions.iter().map(|y| y.probability * of(y)).sum()
            };
            let expected = oracle.gradient_in_pairs(|y, z| {
                let derivative = match y.reward - z.reward {
                    0.0 => 0.0,
                    better if better > 0.0 => slope(ratio(y) - ratio(z)),
                    _ => -slope(ratio(z) - ratio(y)),
                };
                // the pairs (y, z) and (z, y) are the same pair
                vec![-2.0 * derivative / differ; y.tokens.len()]
            });
            let label_smoothing = smoothing as f32;
            let config = DpoConfig { group_size: 2, beta: BETA as f32, loss, label_smoothing, ..DpoConfig::default() };
            let mut agent = Dpo::new(config, Vec::new(), optimiser(), ReferenceConfig::default(), BATCH).unwrap();
            let name = format!("DPO, {loss:?}, label smoothing {smoothing}, moved by {fraction}");
            assert_mean_is(&name, &oracle.agent_gradients(&mut agent, BATCH, |_| 1.0), &expected);
        }
    }
}
