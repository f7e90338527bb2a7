//! The probability ratio of a new action is 1, and actions are sampled with their probabilities.

use gradus_base::random::{Purpose, Stream};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{ActionRows, Behaviour, Choice, Store};

use super::{WIDTH, network, outputs, small_networks, uniform};

/// Returns actions and log-probabilities of all rows, computed in groups of `group` rows.
fn act(policy: &ActorCritic, observations: &[f32], sampled: bool, group: usize) -> (Vec<u32>, Vec<f32>) {
    let rows = observations.len() / WIDTH;
    let mut streams: Vec<Stream> = (0..rows as u64).map(|row| Stream::new(9, Purpose::Action, row)).collect();
    let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
    let mut actor = policy.actor();
    for (observations, streams) in observations.chunks(group * WIDTH).zip(streams.chunks_mut(group)) {
        let (mut chosen, mut log_prob) = (ActionRows::Discrete(vec![0; 3]), vec![f32::NAN; streams.len()]);
        let choice = if sampled { Choice::Sample(streams) } else { Choice::Greedy };
        actor.act(observations, None, choice, &mut chosen, &mut log_prob);
        let ActionRows::Discrete(chosen) = chosen else { panic!("expected discrete actions") };
        actions.extend(chosen);
        log_probs.extend(log_prob);
    }
    (actions, log_probs)
}

#[test]
fn the_ratio_of_a_new_discrete_action_is_exactly_1_for_any_grouping_of_rows() {
    for (config, n_actions) in small_networks() {
        let stream = &mut Stream::new(6, Purpose::Environment, 0);
        let mut policy = network(&config, n_actions, stream);
        let observations: Vec<f32> = (0..100 * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
        for sampled in [false, true] {
            let (actions, log_probs) = act(&policy, &observations, sampled, 100);
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            for group in [1, 7, 32, 33] {
                let (same_actions, same_log_probs) = act(&policy, &observations, sampled, group);
                assert_eq!((&actions, bits(&log_probs)), (&same_actions, bits(&same_log_probs)), "groups of {group}, sampled {sampled}");
            }
            assert!(actions.iter().any(|a| *a != actions[0]), "{config:?}: the actions must differ");
            let store = Store::new(WIDTH, observations.clone(), ActionRows::Discrete(actions));
            let seen: Vec<f32> = outputs(&mut policy, &store).iter().map(|output| output.log_prob).collect();
            assert_eq!(bits(&log_probs), bits(&seen), "sampled {sampled}");
        }
    }
}

#[test]
fn greedy_takes_the_most_probable_action_and_sampling_follows_the_probabilities() {
    let (config, n_actions) = small_networks()[0].clone();
    let stream = &mut Stream::new(7, Purpose::Environment, 0);
    let mut policy = network(&config, n_actions, stream);
    let observation: Vec<f32> = (0..WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
    let all = Store::new(WIDTH, observation.repeat(n_actions), ActionRows::Discrete((0..n_actions as u32).collect()));
    let probabilities: Vec<f64> = outputs(&mut policy, &all).iter().map(|output| f64::from(output.log_prob).exp()).collect();
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{probabilities:?}");
    let (greedy, _) = act(&policy, &observation, false, 1);
    assert!(probabilities.iter().all(|p| *p <= probabilities[greedy[0] as usize]), "{greedy:?} of {probabilities:?}");

    const N: usize = 20_000;
    let (actions, _) = act(&policy, &observation.repeat(N), true, 1000);
    for (action, p) in probabilities.iter().enumerate() {
        let count = actions.iter().filter(|a| **a as usize == action).count() as f64;
        let deviation = (count - N as f64 * p) / (N as f64 * p * (1.0 - p)).sqrt();
        assert!(deviation.abs() < 4.0, "action {action}: {count} of {N} at probability {p}");
    }
}
