//! The derivatives of every objective are the slopes of its loss, which central differences measure, and they agree with `updates`. Parts of
//! losses that are not reported elsewhere have the values of a table.

use crate::common::texts::{completions, rollout, transformer};
use crate::common::{context, identity, optimiser};
use crate::watched::watched;
use gradus_agents::a2c::A2cObjective;
use gradus_agents::actor_learner::CriticObjective;
use gradus_agents::ddpg::DeterministicObjective;
use gradus_agents::dqn::{DqnObjective, TdLoss};
use gradus_agents::grpo::{GrpoObjective, SequenceObjective};
use gradus_agents::kl::KlCoefficients;
use gradus_agents::ppo::PpoObjective;
use gradus_agents::process_reward::{self, LabelledSteps, StepLabel};
use gradus_agents::qr_dqn::QrDqnObjective;
use gradus_agents::reference::{Estimator, KlPenalty};
use gradus_agents::reinforce::ReinforceObjective;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_agents::sac::SacObjective;
use gradus_agents::sft::{self, SftConfig};
use gradus_agents::surrogate::{Clip, Clipped};
use gradus_agents::{Agent, GrpoConfig, PpoConfig, Trpo, TrpoConfig};
use gradus_nets::{ActorObjective, Loss, Objective, Of, PolicyOutput, QValues, Sums, UpdatedGroups, ValueObjective};

const ESTIMATORS: [Estimator; 4] = [Estimator::K1, Estimator::K2, Estimator::K3, Estimator::Exact];

/// Step of the central differences. The losses are f32 numbers, so a smaller step would measure their rounding errors.
const STEP: f32 = 1.0 / 64.0;

/// Returns the central difference of `loss` at 0. Panics near a kink, where the slopes of the two sides differ.
fn difference(loss: &dyn Fn(f32) -> f32, what: &str) -> f32 {
    let (below, here, above) = (loss(-STEP), loss(0.0), loss(STEP));
    let (before, after) = ((here - below) / STEP, (above - here) / STEP);
    let slope = (above - below) / (2.0 * STEP);
    assert!(
        (after - before).abs() < 0.06 * slope.abs().max(1.0),
        "{what}: near a kink, the slopes are {before} and {after}: choose another point"
    );
    slope
}

fn assert_slope(got: f32, loss: &dyn Fn(f32) -> f32, what: &str) {
    let expected = difference(loss, what);
    assert!((got - expected).abs() < 1e-3 * expected.abs().max(1.0), "{what}: expected {expected}, got {got}");
}

type Place = fn(&mut PolicyOutput) -> &mut f32;

const OUTPUTS: [(&str, Place); 5] = [
    ("log_prob", |output| &mut output.log_prob),
    ("entropy", |output| &mut output.entropy),
    ("value", |output| &mut output.value),
    ("kl_old", |output| &mut output.kl_old),
    ("kl_ref", |output| &mut output.kl_ref),
];

fn moved(mut now: PolicyOutput, place: Place, by: f32) -> PolicyOutput {
    *place(&mut now) += by;
    now
}

/// Checks the five derivatives of a decision, and returns its loss.
fn checked(loss: &dyn Fn(PolicyOutput) -> Loss, now: PolicyOutput, what: &str) -> Loss {
    let here = loss(now);
    assert_eq!(here.q, 0.0, "{what}: the loss of a policy does not depend on action values");
    for (name, place) in OUTPUTS {
        let got = *place(&mut here.slopes.clone());
        assert_slope(got, &|by| loss(moved(now, place, by)).value, &format!("{what}, d/d {name} at {now:?}"));
    }
    here
}

/// Checks the derivatives of decision `i` of an objective, and returns its loss.
fn check_objective(objective: &dyn Objective, i: usize, now: PolicyOutput, what: &str) -> Loss {
    checked(&|now| objective.decision(i, now.into()).loss, now, what)
}

/// Checks that an objective updates what its losses depend on.
fn assert_moves(objective: &dyn Objective, losses: &[Loss], what: &str) {
    let of_policy =
        |loss: &Loss| [loss.slopes.log_prob, loss.slopes.entropy, loss.slopes.kl_old, loss.slopes.kl_ref].iter().any(|d| *d != 0.0);
    let expected = match (losses.iter().any(of_policy), losses.iter().any(|loss| loss.slopes.value != 0.0)) {
        (true, true) => UpdatedGroups::All,
        (true, false) => UpdatedGroups::Actor,
        (false, true) => UpdatedGroups::Critic,
        (false, false) => panic!("{what}: no derivative"),
    };
    assert_eq!(objective.updates(), expected, "{what}");
}

/// A = 2, log pi = -0.5, V = 1.5, target 1, H = 0.7: the policy loss is 1, the value loss 0.125.
#[test]
fn a2cs_loss_is_that_of_a_table() {
    let objective = A2cObjective { advantages: &[9.0, 2.0], targets: &[9.0, 1.0], entropy_coefficient: 0.1, value_coefficient: 0.4 };
    let now = PolicyOutput { log_prob: -0.5, entropy: 0.7, value: 1.5, ..PolicyOutput::default() };
    let got = objective.decision(1, now.into());
    assert!((got.loss.value - (1.0 + 0.4 * 0.125 - 0.1 * 0.7)).abs() < 1e-6, "{got:?}");
    assert!(got.diagnostics[..3].iter().zip([1.0, 0.125, -0.7]).all(|(got, expected)| (got - expected).abs() < 1e-6), "{got:?}");
    let slopes = PolicyOutput { log_prob: -2.0, entropy: -0.1, value: 0.4 * 0.5, ..PolicyOutput::default() };
    assert_eq!(got.loss.slopes, slopes);
    let other = PolicyOutput { log_prob: -1.3, value: -2.0, ..now };
    let losses = [now, other].map(|now| check_objective(&objective, 1, now, "a2c"));
    assert_moves(&objective, &losses, "a2c");
}

#[test]
fn the_derivatives_of_the_kl_term_are_slopes_of_its_value() {
    for estimator in ESTIMATORS {
        let term = KlCoefficients::new(&[-1.2], 0.3, estimator);
        let at = |now: PolicyOutput| term.term(-1.2, now.into());
        for log_prob in [-2.0, -1.2, -0.4] {
            let now = PolicyOutput { log_prob, kl_ref: 0.5, ..PolicyOutput::default() };
            let loss = checked(&|now| at(now).loss, now, &format!("{estimator:?}"));
            let PolicyOutput { entropy, value, kl_old, kl_ref, .. } = loss.slopes;
            assert_eq!([entropy, value, kl_old, kl_ref], [0.0, 0.0, 0.0, if estimator == Estimator::Exact { 0.3 } else { 0.0 }]);
        }
        // pi = pi_ref: no divergence; with the exact estimator it is measured by the policy
        let equal = at(PolicyOutput { log_prob: -1.2, ..PolicyOutput::default() });
        assert_eq!((equal.loss.value, equal.divergence), (0.0, 0.0), "{estimator:?}");
    }
}

/// Log-ratios and advantages in every part of the surrogate, for a clip range of 0.2 and a dual clip of 3.
const RATIOS: [(f32, f32); 9] = [
    (0.05, 1.3),  // within the clip range
    (-0.1, -0.7), // within the clip range
    (0.6, 1.3),   // above, A > 0: the clip determines the loss
    (0.6, -0.7),  // above, A < 0: the ratio determines it
    (-0.8, 1.3),  // below, A > 0: the ratio
    (-0.8, -0.7), // below, A < 0: the clip
    (1.4, -0.7),  // a ratio of 4, A < 0: the dual clip
    (1.4, 1.3),
    (2.0, 0.0),
];

/// Values and targets in every part of PPO's value loss, for an old value of 0.2, a clip range of 0.3 and a `huber` of 0.8.
const VALUES: [(f32, f32); 6] = [
    (0.3, 0.9),   // within the clip range, a small error
    (0.4, 2.0),   // within the clip range, a large error
    (0.75, 0.9),  // beyond it: the clipped value has the larger loss
    (0.9, -0.5),  // beyond it: the value has the larger loss
    (-0.5, 0.9),  // beyond it on the other side: the value, with a large error
    (-0.5, -0.6), // the clipped value
];

const OLD_LOG_PROB: f32 = -1.3;

fn now(log_ratio: f32, value: f32) -> PolicyOutput {
    PolicyOutput { log_prob: OLD_LOG_PROB + log_ratio, entropy: 0.8, value, kl_old: 0.3, kl_ref: 0.2 }
}

/// Calls `check` with PPO's objective, all of whose settings are on, for decision 0.
fn ppo(advantage: f32, target: f32, estimator: Estimator, check: impl FnOnce(&PpoObjective<'_>)) {
    let config = PpoConfig {
        dual_clip: 3.0,
        clip_value: 0.3,
        huber: 0.8,
        entropy_coefficient: 0.03,
        value_coefficient: 0.7,
        ..PpoConfig::default()
    };
    check(&PpoObjective {
        config,
        old_log_probs: &[OLD_LOG_PROB],
        old_values: &[0.2],
        advantages: &[advantage],
        targets: &[target],
        advantage_mean: 0.1,
        advantage_std: 0.9,
        clip: 0.2,
        reference_kl: KlCoefficients::new(&[-1.6], 0.25, estimator),
        kl_coefficient: 0.4,
    });
}

#[test]
fn the_derivatives_of_ppo_are_slopes_of_its_loss() {
    for estimator in ESTIMATORS {
        let mut of_value = Vec::new();
        for (log_ratio, advantage) in RATIOS {
            for (value, target) in VALUES {
                ppo(advantage, target, estimator, |objective| {
                    let loss =
                        check_objective(objective, 0, now(log_ratio, value), &format!("ppo, {estimator:?}, A {advantage}, R {target}"));
                    let of_exact = if estimator == Estimator::Exact { 0.25 } else { 0.0 };
                    assert_eq!((loss.slopes.entropy, loss.slopes.kl_old, loss.slopes.kl_ref), (-0.03, 0.4, of_exact));
                    assert_moves(objective, &[loss, objective.decision(0, now(log_ratio, 0.3).into()).loss], "ppo");
                    of_value.push(loss.slopes.value);
                });
            }
        }
        // c_v times the error, limited to 0.8, or 0 where the loss is that of the clipped value
        let expected = [0.7 * -0.6, 0.7 * -0.8, 0.0, 0.7 * 0.8, 0.7 * -0.8, 0.0];
        assert!(of_value[..6].iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-6), "{of_value:?}");
    }
}

/// At a log-ratio of 25 the surrogate has no derivative: its ratio is limited to e^20. The penalty pulls back, as at a log-ratio of 20.
#[test]
fn far_from_the_old_policy_only_the_penalty_pulls() {
    for (log_ratio, sign) in [(25.0_f32, 1.0_f64), (-25.0, -1.0)] {
        let pulls = [1.0, sign * 20.0, 1.0 - (-sign * 20.0).exp(), 0.0];
        for (advantage, clip, dual_clip) in
            [(1.5, 0.2, 3.0), (-1.5, 0.2, f32::INFINITY), (1.5, f32::INFINITY, 3.0), (-1.5, f32::INFINITY, f32::INFINITY)]
        {
            let config = PpoConfig { dual_clip, value_coefficient: 0.0, ..PpoConfig::default() };
            let slope = |reference_kl| {
                let objective = PpoObjective {
                    config: config.clone(),
                    old_log_probs: &[OLD_LOG_PROB],
                    old_values: &[0.0],
                    advantages: &[advantage],
                    targets: &[0.0],
                    advantage_mean: 0.0,
                    advantage_std: 1.0,
                    clip,
                    reference_kl,
                    kl_coefficient: 0.0,
                };
                let loss = objective.decision(0, now(log_ratio, 0.0).into()).loss;
                assert!(loss.value.is_finite(), "{loss:?}");
                loss.slopes.log_prob
            };
            let what = format!("log-ratio {log_ratio}, A {advantage}, clip {clip}, dual clip {dual_clip}");
            assert_eq!(slope(KlCoefficients::default()), 0.0, "{what}");
            for (estimator, pull) in ESTIMATORS.into_iter().zip(pulls) {
                let got = f64::from(slope(KlCoefficients::new(&[OLD_LOG_PROB], 0.25, estimator)));
                let expected = 0.25 * pull;
                assert!((got - expected).abs() <= 1e-6 * expected.abs(), "{what}, {estimator:?}: expected {expected}, got {got}");
            }
        }
    }
}

/// The importance weight of CISPO counts as a constant, so it is held: pi_old moves along with pi.
#[test]
fn the_derivatives_of_grpo_are_slopes_of_its_loss() {
    for estimator in ESTIMATORS {
        let kl_penalty = KlPenalty { log_probs: vec![-1.6], in_loss: 0.25, estimator: Some(estimator), ..KlPenalty::default() };
        for clipped in [Clipped::Objective, Clipped::Weight] {
            let dual_clip = if clipped == Clipped::Objective { 3.0 } else { f32::INFINITY };
            let config = GrpoConfig { clipped, clip_high: 0.28, dual_clip, entropy_coefficient: 0.03, ..GrpoConfig::default() };
            for (log_ratio, advantage) in RATIOS {
                let loss = |now: PolicyOutput| {
                    let by = if clipped == Clipped::Weight { now.log_prob - (OLD_LOG_PROB + log_ratio) } else { 0.0 };
                    let (old_log_probs, advantages) = (&[OLD_LOG_PROB + by], &[advantage]);
                    let objective = GrpoObjective { config: &config, old_log_probs, advantages, kl_penalty: &kl_penalty };
                    let loss = objective.decision(0, now.into()).loss;
                    assert_moves(&objective, &[loss], "grpo");
                    loss
                };
                checked(&loss, now(log_ratio, 0.5), &format!("grpo, {estimator:?}, {clipped:?}, A {advantage}"));
            }
        }
    }
}

/// One ratio for a text: its derivative is spread over the decisions.
#[test]
fn the_derivatives_of_a_sequence_are_slopes_of_its_loss() {
    let config = GrpoConfig { clip_high: 0.28, dual_clip: 3.0, entropy_coefficient: 0.03, ..GrpoConfig::default() };
    let (indices, weights, old_log_probs) = ([0, 1, 2, 3], [0.2, 0.3, 0.0, 0.5], [-1.0, -0.9, f32::NAN, -1.8]);
    for estimator in ESTIMATORS {
        let kl_penalty =
            KlPenalty { log_probs: vec![-1.2, -0.7, -0.1, -2.0], in_loss: 0.25, estimator: Some(estimator), ..KlPenalty::default() };
        for (log_ratio, advantage) in RATIOS {
            let advantages = &[advantage; 4];
            let token = GrpoObjective { config: &config, old_log_probs: &old_log_probs, advantages, kl_penalty: &kl_penalty };
            let objective = SequenceObjective(&token);
            let start: [PolicyOutput; 4] = std::array::from_fn(|t| {
                let spread = [0.1, -0.05, f32::NAN, -0.05][t];
                PolicyOutput { log_prob: old_log_probs[t] + log_ratio + spread, ..now(0.0, 0.5) }
            });
            let evaluate = |mut outputs: [PolicyOutput; 4]| {
                let mut sums = Sums::default();
                objective.slice(&indices, &weights, &mut outputs, &mut sums);
                (sums.loss as f32, outputs)
            };
            let (_, slopes) = evaluate(start);
            for t in [0, 1, 3] {
                for (name, place) in OUTPUTS {
                    let loss = |by: f32| {
                        let mut outputs = start;
                        outputs[t] = moved(outputs[t], place, by);
                        evaluate(outputs).0
                    };
                    assert_slope(
                        *place(&mut slopes[t].clone()),
                        &loss,
                        &format!("{estimator:?}, {log_ratio}, A {advantage}, token {t}, {name}"),
                    );
                }
            }
            assert_eq!(slopes[2], PolicyOutput::default(), "a decision of weight 0");
            assert_moves(&objective, &slopes.map(|slopes| Loss { slopes, ..Loss::default() }), "sequence");
        }
    }
}

#[test]
fn the_derivatives_of_reinforce_are_slopes_of_its_loss() {
    for (estimator, value_coefficient) in ESTIMATORS.into_iter().flat_map(|estimator| [(estimator, None), (estimator, Some(0.7))]) {
        let kl_penalty = KlPenalty { log_probs: vec![-1.6], in_loss: 0.25, estimator: Some(estimator), ..KlPenalty::default() };
        for has_clip in [false, true] {
            for (log_ratio, advantage) in RATIOS {
                let objective = ReinforceObjective {
                    clip: has_clip.then_some((&[OLD_LOG_PROB], Clip { low: 0.2, high: 0.2 })),
                    advantages: &[advantage],
                    returns: &[2.0],
                    kl_penalty: &kl_penalty,
                    entropy_coefficient: 0.03,
                    value_coefficient,
                };
                let what = format!("reinforce, {estimator:?}, clip {has_clip}, critic {value_coefficient:?}, A {advantage}");
                let losses = [0.5, 3.5].map(|value| check_objective(&objective, 0, now(log_ratio, value), &what));
                assert_moves(&objective, &losses, &what);
            }
        }
    }
}

/// Checks the derivatives with respect to action values, and returns the loss.
fn check_values(q: &[f32], loss: &dyn Fn(QValues<'_>) -> Loss, what: &str) -> Loss {
    let at = |q: &[f32]| {
        let mut direction = vec![f32::NAN; q.len()];
        let loss = loss(QValues::new(q, &mut direction));
        (loss, direction)
    };
    let (here, direction) = at(q);
    for k in 0..q.len() {
        let by = |by: f32| {
            let mut q = q.to_vec();
            q[k] += by;
            at(&q).0.value
        };
        assert_slope(here.q * direction[k], &by, &format!("{what}, d/d q_{k} at {q:?}"));
    }
    here
}

fn check_value_objective(objective: &dyn ValueObjective, i: usize, q: &[f32], what: &str) {
    let loss = check_values(q, &|q| objective.decision(i, q).loss, what);
    assert_eq!(loss.slopes, PolicyOutput::default(), "{what}: the loss depends only on action values");
}

#[test]
fn the_derivatives_of_losses_of_action_values_are_their_slopes() {
    for loss in [TdLoss::Squared, TdLoss::Huber] {
        let objective = DqnObjective { targets: &[f32::NAN, 0.4], loss };
        for q in [-3.0, -0.2, 0.4, 0.9, 2.5] {
            check_value_objective(&objective, 1, &[q], &format!("dqn, {loss:?}"));
        }
        let error = objective.decision(1, QValues::new(&[-3.0], &mut [0.0])).error;
        assert!((error - 3.4).abs() < 1e-6, "the priority is the absolute error, got {error}");
    }
    // targets on both sides of each quantile, near it and far from it
    let objective = QrDqnObjective { targets: &[f32::NAN, f32::NAN, f32::NAN, -1.5, 0.6, 2.2] };
    for quantiles in [[-1.0, 0.5, 2.0], [3.5, -2.8, 0.3], [0.1, 0.2, 5.0]] {
        check_value_objective(&objective, 1, &quantiles, "qr-dqn");
    }
    for factor in [0.5, 1.0] {
        let objective = CriticObjective { targets: &[f32::NAN, 0.4], factor };
        for q in [&[1.0][..], &[1.0, -0.5], &[0.1, 0.4, 2.5]] {
            check_value_objective(&objective, 1, q, &format!("critics, factor {factor}"));
        }
    }
}

#[test]
fn the_derivatives_of_losses_of_actors_are_their_slopes() {
    let check = |objective: &dyn ActorObjective, log_prob: f32, q: &[f32], what: &str| {
        let loss = check_values(q, &|q| objective.decision(0, Of::variable(log_prob), q).loss, what);
        let by = |by: f32| objective.decision(0, Of::variable(log_prob + by), QValues::new(q, &mut vec![0.0; q.len()])).loss.value;
        assert_slope(loss.slopes.log_prob, &by, what);
        assert_eq!(loss.slopes, PolicyOutput { log_prob: loss.slopes.log_prob, ..PolicyOutput::default() }, "{what}");
        loss
    };
    for (log_prob, q) in [(-1.2, &[1.0, 0.4, 2.0][..]), (0.3, &[-0.7, 0.4]), (0.0, &[0.9])] {
        let loss = check(&SacObjective { alpha: 0.2 }, log_prob, q, "sac");
        assert_eq!(loss.slopes.log_prob, 0.2);
        assert_eq!(SacObjective { alpha: 0.2 }.critics(3), 3, "the smallest of all critics");
    }
    assert_eq!(DeterministicObjective.critics(3), 1, "the first critic only");
    let loss = check(&DeterministicObjective, 0.0, &[0.7], "ddpg");
    assert_eq!((loss.value, loss.slopes.log_prob), (-0.7, 0.0));
}

/// The objectives of TRPO's two parts, of fine-tuning and of process reward models, which are not public, as the engine gets them.
#[test]
fn other_objectives_move_what_their_losses_depend_on() {
    let mut trpo = watched(identity::policy(1));
    let rollout_of_numbers = identity::identity_rollout(&mut identity::policy(1), 64, 0);
    let config = TrpoConfig { rollout_steps: 64, ..TrpoConfig::default() };
    Trpo::new(config, optimiser(), 1).unwrap().update(&mut trpo, &rollout_of_numbers, context(0)).unwrap();
    assert_eq!(trpo.listener.0, [UpdatedGroups::Actor, UpdatedGroups::Critic]);

    let demonstrations = rollout(&mut transformer(1), &completions());
    let mut tuned = watched(transformer(1));
    sft::fine_tune(&mut tuned, &demonstrations, &SftConfig::default(), &optimiser(), context(0)).unwrap();
    assert_eq!(tuned.listener.0, [UpdatedGroups::Actor]);

    let steps = [StepLabel { tokens: 2, label: 1.0 }, StepLabel { tokens: 4, label: 0.25 }];
    let labelled = LabelledSteps::new(8, [(&[4, 0, 1, 2][..], &steps[..])]);
    let mut scored = watched(transformer(1));
    process_reward::train(&mut scored, &labelled, &RewardModelConfig::default(), &optimiser(), context(0)).unwrap();
    assert_eq!(scored.listener.0, [UpdatedGroups::Critic]);
}
