//! Munchausen-DQN's targets are those of the paper's formula, computed here in f64 with probabilities and logarithms.

use gradus_agents::munchausen_dqn::{MunchausenDqn, MunchausenDqnConfig, SoftmaxPolicy};
use gradus_agents::{
    End, GroupId, OffPolicy, OffPolicyConfig, OptimiserConfig, QLearnerConfig, Rollout, Sample, Segment, TdLoss, UpdateContext,
};
use gradus_envs::Space;
use gradus_nets::cpu::QNetwork;
use gradus_nets::{ActionRows, NetworkConfig, QHead, Store};

const ACTIONS: usize = 3;
const GAMMA: f64 = 0.9;

/// Returns softmax(q / tau) and tau times its logarithm over the allowed actions, in f64.
fn softmax(q: &[f32], allowed: &[bool], tau: f64) -> (Vec<f64>, Vec<f64>) {
    let weight = |(q, is_allowed): (&f32, &bool)| if *is_allowed { (f64::from(*q) / tau).exp() } else { 0.0 };
    let weights: Vec<f64> = q.iter().zip(allowed).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    let pi: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let tau_log = pi.iter().map(|p| tau * p.ln()).collect();
    (pi, tau_log)
}

/// Returns sum_a pi(a) (q(a) - tau log pi(a)) over the allowed actions.
fn soft_value(q: &[f32], allowed: &[bool], tau: f64) -> f64 {
    let (pi, tau_log) = softmax(q, allowed, tau);
    (0..q.len()).filter(|a| allowed[*a]).map(|a| pi[a] * (f64::from(q[a]) - tau_log[a])).sum()
}

#[test]
fn the_softmax_policy_is_that_of_f64_and_overflows_for_no_value() {
    for (q, allowed, tau) in [([0.3, -0.2, 0.1], [true; 3], 0.5), ([0.3, 0.9, 0.1], [true, false, true], 0.03)] {
        let pi = SoftmaxPolicy::new(&q, Some(&allowed), tau);
        let (_, expected) = softmax(&q, &allowed, f64::from(tau));
        for a in (0..3).filter(|a| allowed[*a]) {
            assert!((f64::from(pi.tau_log_prob(a)) - expected[a]).abs() < 1e-6, "{q:?}, action {a}");
        }
        assert!((f64::from(pi.value()) - soft_value(&q, &allowed, f64::from(tau))).abs() < 1e-6, "{q:?}");
    }
    let far = SoftmaxPolicy::new(&[500.0, -500.0], None, 0.01);
    assert_eq!((far.value(), far.tau_log_prob(0), far.tau_log_prob(1)), (500.0, 0.0, -1000.0));
}

/// Three drawn decisions: one that terminates, one of two rewards that is cut, and one that is truncated. With masks, the second action is not
/// allowed after the last one.
#[test]
fn an_update_has_the_loss_of_the_papers_targets() {
    for (alpha, tau, least, is_masked) in
        [(0.9, 0.3, -1.0, false), (0.9, 0.03, -0.05, false), (0.5, 1.0, f64::NEG_INFINITY, true), (0.0, 0.2, -1.0, false)]
    {
        let spaces = (Space::Box { low: vec![-9.0; 2], high: vec![9.0; 2] }, Space::Discrete(ACTIONS as u32));
        let network = |seed| QNetwork::new(&NetworkConfig::default(), QHead::default(), &spaces.0, &spaces.1, seed).unwrap();
        // decisions 0 to 3, then the observations after the cut and the truncation
        let observations: Vec<f32> = (0..12).map(|i| (i * 7 % 5) as f32 / 3.0 - 0.6).collect();
        let (rewards, taken) = ([1.0, -0.5, 0.25, 2.0], [0_u32, 2, 1, 2]);
        let segments = vec![
            Segment { range: 0..1, end: End::Terminated, group: GroupId(0) },
            Segment { range: 1..3, end: End::Cut { successor: 4 }, group: GroupId(1) },
            Segment { range: 3..4, end: End::Truncated { successor: 5 }, group: GroupId(2) },
        ];
        let mut store = Store::new(2, observations, ActionRows::Discrete(taken.to_vec()));
        let (mut masks, mut next) = (vec![true; 4 * ACTIONS], vec![true; 2 * ACTIONS]);
        if is_masked {
            (masks[0], masks[3 * ACTIONS + 1], next[ACTIONS + 1]) = (true, false, false);
            (store.masks, store.next_masks) = (Some(masks.clone()), Some(next.clone()));
        }
        let rollout = Rollout::new(store, rewards.to_vec(), vec![0.0; 4], segments);
        let sample = Sample { rollout, first: vec![0, 1, 3], weights: vec![1.0; 3], slots: vec![0; 3] };

        let off_policy = OffPolicyConfig { gamma: GAMMA as f32, ..OffPolicyConfig::default() };
        let config = MunchausenDqnConfig {
            alpha: alpha as f32,
            temperature: tau as f32,
            log_policy_min: least as f32,
            loss: TdLoss::Squared,
            learner: QLearnerConfig { off_policy, ..QLearnerConfig::default() },
            ..MunchausenDqnConfig::default()
        };
        let mut learner = config.learner.learner(OptimiserConfig::default(), (1, 1000), Box::new(network(1)));
        learner.target = Box::new(network(2));
        let (mut q, mut of_target) = (Vec::new(), Vec::new());
        learner.network.q_values(&sample.rollout.store, 0..4, &mut q);
        learner.target.q_values(&sample.rollout.store, 0..6, &mut of_target);
        let row = |of: &[f32], i: usize| of[i * ACTIONS..(i + 1) * ACTIONS].to_vec();

        // y = r + alpha [tau log pi(a|s)] + gamma v', from the last reward to the first
        let clipped = |t: usize| {
            let (_, tau_log) = softmax(&row(&of_target, t), &masks[t * ACTIONS..(t + 1) * ACTIONS], tau);
            tau_log[taken[t] as usize].clamp(least, 0.0)
        };
        let bonus = |t: usize| alpha * clipped(t);
        let value = |i: usize| soft_value(&row(&of_target, 4 + i), &next[i * ACTIONS..(i + 1) * ACTIONS], tau);
        let step = |t: usize, v: f64| f64::from(rewards[t]) + bonus(t) + GAMMA * v;
        let targets = [(0, step(0, 0.0)), (1, step(1, step(2, value(0)))), (3, step(3, value(1)))];
        let errors = targets.map(|(t, y)| f64::from(row(&q, t)[taken[t] as usize]) - y);
        let expected = errors.iter().map(|e| e * e).sum::<f64>() / 3.0;

        let mut agent = OffPolicy { agent: Box::new(MunchausenDqn { config }), learner };
        let evaluated = agent.learn_from(&sample, UpdateContext { seed: 1, iteration: 0, progress: 0.0 }).unwrap();
        assert!((evaluated.sums.loss - expected).abs() < 1e-5 * expected.max(1.0), "alpha {alpha}: {expected}, {}", evaluated.sums.loss);
        for (error, got) in errors.iter().zip(&evaluated.errors) {
            assert!((error.abs() - f64::from(*got)).abs() < 1e-5, "alpha {alpha}: {errors:?}, {:?}", evaluated.errors);
        }
        let report = agent.learner.report_of(UpdateContext { seed: 1, iteration: 0, progress: 0.0 }, ["train/tau_log_policy"]).unwrap();
        let mean = (0..4).map(clipped).sum::<f64>() / 4.0;
        assert!((report[0].1 - mean).abs() < 1e-5, "alpha {alpha}: {mean}, {}", report[0].1);
    }
}
