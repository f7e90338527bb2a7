//! The engines `cpu` and `torch` sample and choose the same actions.

use gradus::nets::{ActionRows, Choice, TorchConfig};

use super::{assert_near, config, policies, rollout, worlds};

/// Both engines draw their random numbers from the same streams on the host, so their actions are the same unless rounding changes one.
#[test]
fn the_same_streams_draw_the_same_actions() {
    for config in worlds() {
        let [ours, mut theirs] = policies(&config, &TorchConfig::default());
        let (a, b) = (rollout(&config, ours.as_ref(), 1).remove(0), rollout(&config, theirs.as_ref(), 1).remove(0));
        match (&a.store.actions, &b.store.actions) {
            (ActionRows::Discrete(a), ActionRows::Discrete(b)) => {
                let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                assert!(same as f64 >= 0.99 * a.len() as f64, "{}: actions differ after {same} of {}", config.environment, a.len());
            }
            (ActionRows::Continuous { rows: a, .. }, ActionRows::Continuous { rows: b, .. }) => {
                assert_near("actions", &b[..64], &a[..64], 1e-4)
            }
            _ => unreachable!("one world has one kind of actions"),
        }
        // cached keys and values give the same log-probabilities as a new evaluation
        let mut again = Vec::new();
        theirs.log_probs(&b.store, &mut again);
        assert_near(&format!("{}: log_probs", config.environment), &b.log_probs, &again, 2e-5);
        assert_eq!(theirs.fault(), None);
    }
}

#[test]
fn greedy_and_truncated_choices_are_the_same() {
    let config = config("grpo", "addition", &["envs=32"]);
    let [ours, theirs] = policies(&config, &TorchConfig::default());
    let world = config.world().unwrap();
    let mut envs = world.vec_env(0..24, 3).unwrap();
    let sampling = gradus::nets::Sampling { top_k: 3, temperature: 0.7, ..Default::default() };
    let streams = || (0..24).map(|i| gradus::envs::random::Stream::new(8, gradus::envs::random::Purpose::Action, i)).collect::<Vec<_>>();
    let (mut one, mut two) = (ours.actor(), theirs.actor());
    for step in 0..12 {
        let rows = envs.observation_rows().to_vec();
        let (mut a, mut b) = (ActionRows::Discrete(Vec::new()), ActionRows::Discrete(Vec::new()));
        let (mut a_log_probs, mut b_log_probs) = (vec![0.0; 24], vec![0.0; 24]);
        let (mut left, mut right) = (streams(), streams());
        match step % 2 {
            0 => {
                one.act(&rows, None, Choice::Greedy, &mut a, &mut a_log_probs);
                two.act(&rows, None, Choice::Greedy, &mut b, &mut b_log_probs);
            }
            _ => {
                one.act(&rows, None, Choice::Truncated(&mut left, &sampling), &mut a, &mut a_log_probs);
                two.act(&rows, None, Choice::Truncated(&mut right, &sampling), &mut b, &mut b_log_probs);
            }
        }
        assert_eq!(a, b);
        assert_near("log_probs", &b_log_probs, &a_log_probs, 1e-5);
        envs.step(a.view()).unwrap();
    }
    drop((one, two));
    assert_eq!(theirs.fault(), None);
}

/// An actor with gSDE keeps the noise of every row between calls, but a call may have fewer rows than the call before it.
#[test]
fn an_actor_may_act_on_fewer_rows() {
    let config = config("ppo", "mountain-car-continuous", &["network.gsde=true"]);
    let [_, theirs] = policies(&config, &TorchConfig::default());
    let mut actor = theirs.actor();
    for rows in [8, 3, 8] {
        let mut streams: Vec<_> =
            (0..rows).map(|i| gradus::envs::random::Stream::new(1, gradus::envs::random::Purpose::Action, i as u64)).collect();
        let (mut actions, mut log_probs) = (ActionRows::Continuous { rows: Vec::new(), width: 1 }, vec![f32::NAN; rows]);
        actor.act(&vec![0.1; 2 * rows], None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
        assert!(log_probs.iter().all(|log_prob| log_prob.is_finite()), "{log_probs:?}");
    }
    drop(actor);
    assert_eq!(theirs.fault(), None);
}
