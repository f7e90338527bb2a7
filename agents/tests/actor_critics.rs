//! Compares updates of DDPG, TD3 and SAC with PyTorch, which computes gradients by automatic differentiation, and SAC with the policy that is
//! known to be the best.
//!
//! `scripts/golden/pytorch_actor_critics.py` writes the golden file and describes it.

use gradus_testing::golden;
#[path = "common/pytorch.rs"]
mod pytorch;

use golden::floats;
use gradus_agents::actor_learner::ActorLearnerConfig;
use gradus_agents::ddpg::{Ddpg, DdpgConfig};
use gradus_agents::off_policy::OffPolicyConfig;
use gradus_agents::sac::{Sac, SacConfig};
use gradus_agents::td3::{Td3, Td3Config};
use gradus_agents::{End, GroupId, OffPolicy, OffPolicyAgent, OptimiserConfig, Rollout, Sample, Segment, UpdateContext};
use gradus_base::math;
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::get_u64;
use gradus_envs::Space;
use gradus_nets::cpu::QActorCritic;
use gradus_nets::{ActionRows, Activation, Behaviour, LogStdBounds, NetworkConfig, QActor, QActorHead, Schedule, Store};
use pytorch::{assert_near, assert_parameters, tensors};
use serde_json::Value;

const SEED: u64 = 1;

/// The standard normal numbers of the first updates: what the agents draw.
fn noise() -> Vec<Vec<f32>> {
    (0..4).map(|update| Stream::new(SEED, Purpose::Noise, update)).map(|mut stream| (0..160).map(|_| stream.normal()).collect()).collect()
}

/// The golden file has our random numbers. To write it, set the variable `GRADUS_WRITE_GOLDEN`.
#[test]
fn the_noise_of_the_golden_file_is_ours() {
    let path = gradus_testing::golden::path("noise.json");
    if std::env::var_os("GRADUS_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, serde_json::to_string(&noise()).unwrap() + "\n").unwrap();
    }
    let read: Vec<Vec<f32>> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(read, noise());
}

/// Returns the batch of a case as a sample.
fn sample(segments: &[Value], width: usize, actions: usize) -> Sample {
    let (mut observations, mut successors, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rows, mut made, mut first, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, segment) in segments.iter().enumerate() {
        let (begin, own) = (rewards.len(), floats(&segment["rewards"]));
        observations.extend(floats(&segment["observations"]));
        rows.extend(floats(&segment["action"]));
        rows.extend(vec![0.0; (own.len() - 1) * actions]);
        rewards.extend(own);
        first.push(begin as u32);
        weights.push(floats(&segment["weight"])[0]);
        let successor = successors.len() / width;
        let end = match segment["end"].as_str().unwrap() {
            "terminated" => End::Terminated,
            "truncated" => End::Truncated { successor },
            _ => End::Cut { successor },
        };
        if end != End::Terminated {
            successors.extend(floats(&segment["next"]));
        }
        made.push(Segment { range: begin..rewards.len(), end, group: GroupId(i as u32) });
    }
    let n = rewards.len();
    let segments = made.iter().map(|segment| segment.moved(0, n)).collect();
    let store = Store::new(width, [observations, successors].concat(), ActionRows::Continuous { rows, width: actions });
    Sample { rollout: Rollout::new(store, rewards, vec![0.0; n], segments), slots: vec![0; first.len()], first, weights }
}

#[test]
fn updates_are_those_of_pytorch() {
    let cases = golden::cases("actor_critics.json");
    assert_eq!(cases.len(), 6);
    cases.iter().for_each(compare_updates);
}

/// Actions of three dimensions with different bounds; the numbers are those of Stable-Baselines3's own `train`.
/// `scripts/golden/sb3_updates.py` writes the golden file and describes it.
#[test]
fn updates_are_those_of_stable_baselines3() {
    let cases = golden::cases("sb3_actor_critics.json");
    assert_eq!(cases.len(), 5);
    cases.iter().for_each(compare_updates);
}

fn compare_updates(case: &Value) {
    let (name, settings) = (case["name"].as_str().unwrap(), &case["settings"]);
    let size = |key: &str| settings[key].as_u64().unwrap() as usize;
    let float = |key: &str| floats(&settings[key])[0];
    let is = |key: &str| settings[key].as_bool().unwrap();
    let (width, actions, critics) = (size("width"), size("actions"), size("critics"));
    let hidden = settings["hidden"].as_array().unwrap().iter().map(|width| width.as_u64().unwrap() as usize).collect();
    let activation = if settings["activation"] == "tanh" { Activation::Tanh } else { Activation::Relu };
    let perceptron = NetworkConfig { hidden, activation, gsde: is("gsde"), ..NetworkConfig::default() };
    let low = (0..actions).map(|j| -2.0 - j as f32).collect();
    let spaces = (Space::Box { low: vec![-9.0; width], high: vec![9.0; width] }, Space::Box { low, high: vec![1.0; actions] });
    let bounds = if settings["bounds"] == "clamp" { LogStdBounds::Clamp } else { LogStdBounds::Tanh };
    let actor = if settings["agent"] == "sac" { QActor::Squashed(bounds) } else { QActor::Deterministic };
    let mut network = QActorCritic::new(&perceptron, QActorHead { actor, critics }, &spaces.0, &spaces.1, 1).unwrap();
    network.load(&tensors(&case["first"]["parameters"])).unwrap();

    let off_policy = OffPolicyConfig { gamma: float("gamma"), ..OffPolicyConfig::default() };
    let learner = ActorLearnerConfig { tau: float("tau"), off_policy };
    let optimiser = OptimiserConfig {
        learning_rate: 0.01,
        schedule: Schedule::Constant,
        max_grad_norm: settings["max_grad_norm"].as_f64().map_or(f32::INFINITY, |norm| norm as f32),
        ..OptimiserConfig::default()
    };
    let agent: Box<dyn OffPolicyAgent<dyn gradus_nets::QActorCritic>> = match settings["agent"].as_str().unwrap() {
        "ddpg" => Box::new(Ddpg { config: DdpgConfig { learner: learner.clone(), ..DdpgConfig::default() } }),
        "td3" => Box::new(Td3 {
            config: Td3Config {
                n_critics: critics,
                policy_delay: size("delay") as u64,
                target_policy_noise: float("smoothing"),
                target_noise_clip: float("clip"),
                learner: learner.clone(),
                ..Td3Config::default()
            },
        }),
        _ => Box::new(Sac::new(SacConfig {
            n_critics: critics,
            ent_coef: float("alpha"),
            auto_ent_coef: is("auto"),
            target_entropy: float("target_entropy"),
            log_std_bounds: bounds,
            learner: learner.clone(),
        })),
    };
    let mut learner = learner.learner(optimiser, (1, 1000), Box::new(network));
    learner.target.load(&tensors(&case["first"]["target"])).unwrap();
    let (mut off_policy, is_sac) = (OffPolicy { agent, learner }, settings["agent"] == "sac");
    let batch = sample(case["segments"].as_array().unwrap(), width, actions);

    for update in 0..size("updates") {
        let what = |part: &str| format!("{name}, update {update}, {part}");
        // a new iteration for each update, so that its report has this update's numbers
        let context = UpdateContext { seed: SEED, iteration: update as u64, progress: 0.0 };
        let sums = off_policy.learn_from(&batch, context).unwrap().sums;
        assert_near(&[sums.loss as f32], &case["losses"][update], &what("loss"));
        let names = ["train/critic_grad_norm", "train/actor_loss", "train/actor_grad_norm", "train/log_prob", "train/ent_coef"];
        let report = off_policy.learner.report_of(context, names).unwrap();
        let expected = ["norms", "actor_losses", "actor_norms", "log_probs", "alphas"];
        for ((key, expected), (_, got)) in names.iter().zip(expected).zip(&report) {
            let expected = &case[expected][update];
            if !expected.is_null() && (is_sac || *key != "train/ent_coef") {
                assert_near(&[*got as f32], expected, &what(key));
            } else {
                assert!(got.is_nan(), "{}: expected none, got {got}", what(key));
            }
        }
    }
    assert_parameters(off_policy.learner.network.as_ref(), &case["last"]["parameters"], &format!("{name}, parameters"));
    assert_parameters(off_policy.learner.target.as_ref(), &case["last"]["target"], &format!("{name}, target"));
    if is_sac {
        let log_alpha = get_u64(&off_policy.agent.save(), "temperature").unwrap()[0];
        assert_near(&[math::exp(f64::from_bits(log_alpha) as f32)], &case["last"]["alpha"], &format!("{name}, alpha"));
    }
}

/// A bandit with one state, whose rewards are alpha times the logarithm of a squashed Gaussian's density. The policy that maximises reward
/// plus alpha times entropy is softmax(Q / alpha), so it is this squashed Gaussian.
#[test]
fn sac_on_a_bandit_learns_softmax_of_q() {
    let (alpha, mean, std) = (0.2_f64, 0.3_f64, 0.6_f64);
    let density = |u: f64| -0.5 * ((u - mean) / std).powi(2) - std.ln() - 0.5 * std::f64::consts::TAU.ln() + 2.0 * u.cosh().ln();
    let spaces = (Space::Box { low: vec![-1.0], high: vec![1.0] }, Space::Box { low: vec![-1.0], high: vec![1.0] });
    let perceptron = NetworkConfig { hidden: vec![64, 64], activation: Activation::Tanh, orthogonal: false, ..NetworkConfig::default() };
    let head = QActorHead { actor: QActor::Squashed(LogStdBounds::Clamp), critics: 2 };
    let network = QActorCritic::new(&perceptron, head, &spaces.0, &spaces.1, 1).unwrap();
    let optimiser = OptimiserConfig { learning_rate: 3e-3, max_grad_norm: f32::INFINITY, ..OptimiserConfig::default() };
    let sac = Sac::new(SacConfig { ent_coef: alpha as f32, auto_ent_coef: false, ..SacConfig::default() });
    let learner = ActorLearnerConfig::default().learner(optimiser, (1, 1000), Box::new(network));
    let mut sac = OffPolicy { agent: Box::new(sac), learner };
    let mut stream = Stream::new(3, Purpose::Environment, 0);
    let (updates, rows) = (5000, 256);
    for update in 0..updates {
        let actions: Vec<f32> = (0..rows).map(|_| (1.5 * stream.normal()).tanh().clamp(-0.999, 0.999)).collect();
        let rewards = actions.iter().map(|a| (alpha * density(f64::from(*a).atanh())) as f32).collect();
        let segments = (0..rows).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(i as u32) }).collect();
        let store = Store::new(1, vec![0.5; rows], ActionRows::Continuous { rows: actions, width: 1 });
        let rollout = Rollout::new(store, rewards, vec![0.0; rows], segments);
        let batch = Sample { rollout, first: (0..rows as u32).collect(), weights: vec![1.0; rows], slots: vec![0; rows] };
        let progress = f64::from(update) / f64::from(updates);
        sac.learn_from(&batch, UpdateContext { seed: 2, iteration: 0, progress }).unwrap();
    }
    // from actions and log-probabilities: a = tanh u and log pi(a) determine mean and standard deviation
    let store = Store::new(1, vec![0.5; 4000], ActionRows::Continuous { rows: vec![0.0; 4000], width: 1 });
    let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
    sac.learner.network.actions(&store, 0..4000, Some(&mut stream), &mut actions, &mut log_probs);
    // KL(pi || softmax(Q / alpha)), which is 0 only for the best policy
    let own = log_probs
        .iter()
        .zip(&actions)
        .map(|(log_prob, a)| f64::from(*log_prob) - density(f64::from(*a).clamp(-0.999_999, 0.999_999).atanh()));
    let divergence = own.sum::<f64>() / 4000.0;
    let us: Vec<f64> = actions.iter().map(|a| f64::from(*a).atanh()).collect();
    let got_mean = us.iter().sum::<f64>() / 4000.0;
    let got_std = (us.iter().map(|u| (u - got_mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
    assert!(divergence.abs() < 0.01, "KL {divergence}; mean {got_mean} (best {mean}), standard deviation {got_std} (best {std})");
    assert!((got_mean - mean).abs() < 0.05 && (got_std - std).abs() < 0.05, "mean {got_mean}, standard deviation {got_std}");
}
