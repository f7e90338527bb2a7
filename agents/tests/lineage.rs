//! The agents beside each other: what makes two of them equal, what each must compute, and that each learns.

use gradus_agents::grpo::GroupStd;
use gradus_agents::kl::KlCoefficients;
use gradus_agents::reference::{KlPenalty, KlPlace, ReferenceConfig};
use gradus_agents::reinforce::Baseline;
use gradus_agents::surrogate::Clip;
use gradus_agents::{
    A2c, A2cConfig, Agent, Collection, End, GroupId, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, Reinforce, ReinforceConfig, Report,
    Rollout, Segment, Trpo, TrpoConfig, UpdateContext,
};
use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::tensors::Data;
use gradus_nets::{ActionRows, Activation, Batch, Choice, LossGrad, NetworkConfig, Objective, Policy, PolicyOutput, Rule, Schedule, Store};

/// Observations are one of four, one-hot, and there are four actions.
const N: usize = 4;

fn policy(seed: u64) -> ActorCritic {
    let network = NetworkConfig { hidden: vec![16], activation: Activation::Tanh, ..NetworkConfig::default() };
    let observations = Space::Box { low: vec![0.0; N], high: vec![1.0; N] };
    ActorCritic::new(&network, &observations, &Space::Discrete(N as u32), seed).unwrap()
}

fn optimiser() -> OptimiserConfig {
    OptimiserConfig { learning_rate: 0.01, schedule: Schedule::Constant, ..OptimiserConfig::default() }
}

fn context(iteration: u64) -> UpdateContext {
    UpdateContext { seed: 1, iteration, progress: 0.0 }
}

/// One decision per segment, sampled from the policy; groups of eight share their state. The reward is 1 where the action is the state.
fn identity_rollout(policy: &mut ActorCritic, decisions: usize, iteration: u64) -> Rollout {
    let mut stream = Stream::new(1, Purpose::Environment, iteration);
    let of_group: Vec<usize> = (0..decisions.div_ceil(8)).map(|_| stream.below(N as u32) as usize).collect();
    let states: Vec<usize> = (0..decisions).map(|i| of_group[i / 8]).collect();
    let observations: Vec<f32> = states.iter().flat_map(|s| (0..N).map(move |i| if i == *s { 1.0 } else { 0.0 })).collect();
    let mut streams: Vec<Stream> = (0..decisions).map(|i| Stream::new(1, Purpose::Action, iteration * 10_000 + i as u64)).collect();
    let (mut actions, mut log_probs) = (ActionRows::empty(&Space::Discrete(N as u32)), vec![0.0; decisions]);
    policy.actor().act(&observations, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
    let ActionRows::Discrete(chosen) = &actions else { panic!("discrete") };
    let rewards = states.iter().zip(chosen).map(|(s, a)| if *s == *a as usize { 1.0 } else { 0.0 }).collect();
    let segments = (0..decisions).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(i as u32 / 8) }).collect();
    Rollout::new(Store::new(N, observations, actions), rewards, log_probs, segments)
}

fn figure(report: &Report, name: &str) -> f64 {
    report.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no {name} in {report:?}")).1
}

/// The mean reward of the last rollout after `updates` updates.
fn learn(agent: &mut dyn Agent, updates: u64) -> f32 {
    let mut policy = policy(3);
    agent.begin(&policy);
    let mut paid = 0.0;
    for iteration in 0..updates {
        let rollout = identity_rollout(&mut policy, 128, iteration);
        paid = rollout.rewards.iter().sum::<f32>() / 128.0;
        agent.update(&mut policy, &rollout, context(iteration)).unwrap();
    }
    paid
}

#[test]
fn every_agent_learns_the_identity() {
    let reinforce = |baseline, normalise_returns| {
        let config = ReinforceConfig { baseline, normalise_returns, ..ReinforceConfig::default() };
        Box::new(Reinforce::new(config, OptimiserConfig { learning_rate: 0.02, ..optimiser() }, ReferenceConfig::default(), 1).unwrap())
            as Box<dyn Agent>
    };
    let ppo = |config: PpoConfig| {
        let config = PpoConfig { rollout_steps: 128, minibatch_size: 64, ..config };
        Box::new(Ppo::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap()) as Box<dyn Agent>
    };
    let grpo = |coefficient, place| {
        let reference = ReferenceConfig { coefficient, place, ..ReferenceConfig::default() };
        Box::new(Grpo::new(GrpoConfig::default(), optimiser(), reference, 128).unwrap()) as Box<dyn Agent>
    };
    let penalty = PpoConfig { clip: f32::INFINITY, kl_coefficient: 1.0, adaptive_kl_target: 0.02, ..PpoConfig::default() };
    let quick = OptimiserConfig { learning_rate: 0.02, ..optimiser() };
    let agents: Vec<(&str, Box<dyn Agent>)> = vec![
        ("reinforce", reinforce(Baseline::None, false)),
        ("reinforce, normalised", reinforce(Baseline::None, true)),
        ("reinforce, mean", reinforce(Baseline::Mean, false)),
        ("reinforce, value", reinforce(Baseline::Value, false)),
        ("a2c", Box::new(A2c::new(A2cConfig { rollout_steps: 128, ..A2cConfig::default() }, quick, 1).unwrap())),
        ("trpo", Box::new(Trpo::new(TrpoConfig { rollout_steps: 128, max_kl: 0.05, ..TrpoConfig::default() }, optimiser(), 1).unwrap())),
        ("ppo", ppo(PpoConfig::default())),
        ("ppo, dual clip", ppo(PpoConfig { dual_clip: 3.0, ..PpoConfig::default() })),
        ("ppo, penalty", ppo(penalty)),
        ("grpo", grpo(0.0, KlPlace::Loss)),
        ("grpo, KL penalty in the loss", grpo(0.001, KlPlace::Loss)),
        ("grpo, KL penalty in the reward", grpo(0.001, KlPlace::Reward)),
    ];
    for (name, mut agent) in agents {
        let paid = learn(&mut *agent, 100);
        assert!(paid > 0.8, "{name}: the last rollout was paid {paid}");
    }
}

/// Huang et al. 2022: with one epoch of one minibatch the ratio is 1 and nothing is clipped.
#[test]
fn a2c_is_ppo_with_one_epoch_of_one_minibatch() {
    for rule in [Rule::Adam, Rule::RmsProp] {
        for normalise_advantages in [false, true] {
            let optimiser = OptimiserConfig { rule, ..optimiser() };
            let (gamma, gae_lambda, entropy_coefficient, value_coefficient) = (0.9, 0.8, 0.01, 0.7);
            let ppo = PpoConfig {
                rollout_steps: 64,
                minibatch_size: 64,
                epochs: 1,
                gamma,
                gae_lambda,
                entropy_coefficient,
                value_coefficient,
                normalise_advantages,
                ..PpoConfig::default()
            };
            let a2c = A2cConfig {
                rollout_steps: 64,
                gamma,
                gae_lambda,
                entropy_coefficient,
                value_coefficient,
                normalise_advantages,
                ..A2cConfig::default()
            };
            let run = |agent: &mut dyn Agent| {
                let mut policy = policy(5);
                for iteration in 0..10 {
                    let mut rollout = identity_rollout(&mut policy, 64, iteration);
                    // episodes of more than one step, one of them cut
                    let successor = 63;
                    rollout.segments = vec![
                        Segment { range: 0..20, end: End::Terminated, group: GroupId(0) },
                        Segment { range: 20..45, end: End::Truncated { successor }, group: GroupId(0) },
                        Segment { range: 45..64, end: End::Cut { successor }, group: GroupId(0) },
                    ];
                    agent.update(&mut policy, &rollout, context(iteration)).unwrap();
                }
                policy.parameters().to_vec()
            };
            let of_ppo = run(&mut Ppo::new(ppo, optimiser.clone(), ReferenceConfig::default(), 1).unwrap());
            let of_a2c = run(&mut A2c::new(a2c, optimiser, 1).unwrap());
            let worst = of_ppo.iter().zip(&of_a2c).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // PPO walks through the rollout in another order: sums round otherwise
            assert!(worst < 2e-5, "{rule:?}, normalised {normalise_advantages}: parameters differ by {worst}");
            assert!(of_ppo.iter().zip(policy(5).parameters()).any(|(a, b)| (a - b).abs() > 0.01), "nothing moved");
        }
    }
}

/// A policy of one state whose probabilities are 1/8, 2/8, 5/8: eight episodes hold each action as often as is to be expected, so their
/// mean gradient is the exact one, sum_a p(a) r(a) d log p(a).
#[test]
fn reinforce_follows_the_exact_gradient() {
    let probabilities = [0.125_f64, 0.25, 0.625];
    let rewards = [3.0_f64, -1.0, 0.5];
    let network = NetworkConfig { hidden: vec![], ..NetworkConfig::default() };
    let space = Space::Box { low: vec![0.0], high: vec![1.0] };
    let mut policy = ActorCritic::new(&network, &space, &Space::Discrete(3), 1).unwrap();
    let mut tensors = policy.save();
    for (name, numbers) in [("actor.0.weight", vec![0.0; 3]), ("actor.0.bias", probabilities.map(|p| p.ln() as f32).to_vec())] {
        let Data::F32(data) = &mut tensors.get_mut(name).unwrap().data else { panic!("f32") };
        data.copy_from_slice(&numbers);
    }
    policy.load(&tensors).unwrap();

    let actions: Vec<u32> = [0, 1, 1, 2, 2, 2, 2, 2].into();
    let rollout = Rollout {
        rewards: actions.iter().map(|a| rewards[*a as usize] as f32).collect(),
        log_probs: actions.iter().map(|a| probabilities[*a as usize].ln() as f32).collect(),
        segments: (0..8).map(|i| Segment { range: i..i + 1, end: End::Terminated, group: GroupId(0) }).collect(),
        store: Store::new(1, vec![1.0; 8], ActionRows::Discrete(actions)),
        step_ends: Vec::new(),
        greedy_rewards: Vec::new(),
    };
    let value: f64 = probabilities.iter().zip(rewards).map(|(p, r)| p * r).sum();
    // d J / d z_j = p_j (r_j - J), whatever the baseline
    let exact = [0, 1, 2].map(|j| -probabilities[j] * (rewards[j] - value));
    for baseline in [Baseline::None, Baseline::Mean, Baseline::Value] {
        let config = ReinforceConfig { baseline, ..ReinforceConfig::default() };
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        let mut agent = Reinforce::new(config, still, ReferenceConfig::default(), 1).unwrap();
        for update in 0..2 {
            agent.update(&mut policy, &rollout, context(update)).unwrap();
            let gradient = policy.gradient_tensors();
            let Data::F32(got) = &gradient["actor.0.bias"].data else { panic!("f32") };
            for (got, exact) in got.iter().zip(exact) {
                assert!((f64::from(*got) - exact).abs() < 2e-6, "{baseline:?}, update {update}: {got} is not {exact}");
            }
        }
    }
}

/// A return of 10 everywhere: what the running mean is when it is first used, and what it becomes.
#[test]
fn the_running_mean_follows_the_returns() {
    let config = ReinforceConfig { baseline: Baseline::Mean, baseline_step: 0.5, gamma: 1.0, ..ReinforceConfig::default() };
    let mut agent = Reinforce::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap();
    let mut policy = policy(1);
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    let mut baselines = Vec::new();
    for reward in [10.0, 20.0, 20.0, 20.0] {
        rollout.rewards.fill(reward);
        baselines.push(figure(&agent.update(&mut policy, &rollout, context(0)).unwrap(), "train/baseline"));
    }
    assert_eq!(baselines, [0.0, 10.0, 15.0, 17.5]);
    let state = agent.save();
    let mut other = Reinforce::new(
        ReinforceConfig { baseline: Baseline::Mean, ..ReinforceConfig::default() },
        optimiser(),
        ReferenceConfig::default(),
        1,
    )
    .unwrap();
    other.load(&policy, &state).unwrap();
    assert_eq!(other.save(), state);
}

/// Without a critic a truncated episode is worth what it was paid; with one the rest is expected.
#[test]
fn a_truncated_return_goes_on_where_a_critic_knows_how() {
    let mut policy = policy(1);
    let mut values = Vec::new();
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    rollout.rewards.fill(0.0);
    rollout.segments = vec![Segment { range: 0..8, end: End::Truncated { successor: 7 }, group: GroupId(0) }];
    policy.values(&rollout.store, &mut values);
    let mut value_loss = |baseline, truncated| {
        let config = ReinforceConfig { baseline, truncated, gamma: 1.0, ..ReinforceConfig::default() };
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        figure(
            &Reinforce::new(config, still, ReferenceConfig::default(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap(),
            "train/value_loss",
        )
    };
    let expected = |g: f32| values.iter().map(|v| f64::from(0.5 * (v - g) * (v - g))).sum::<f64>() / 8.0;
    use gradus_agents::Truncated::{Bootstraps, Ends};
    assert!((value_loss(Baseline::Value, Bootstraps) - expected(values[7])).abs() < 1e-7);
    assert!((value_loss(Baseline::Value, Ends) - expected(0.0)).abs() < 1e-7);
    assert!(value_loss(Baseline::None, Bootstraps).is_nan());
}

/// Judges nothing but the divergence and how much the surrogate promises.
struct Look<'a>(&'a [f32], &'a [f32]);

impl Objective for Look<'_> {
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        let mut decision = LossGrad { loss: (now.log_prob - self.0[i]).exp() * self.1[i], ..LossGrad::default() };
        decision.diagnostics[0] = now.kl_old;
        decision
    }
}

/// The step stays in the trust region, improves the surrogate, and uses the region: nearly all of it where curvature tells the truth.
#[test]
fn trpo_steps_to_the_edge_of_its_region() {
    for max_kl in [1e-4, 1e-3, 1e-2] {
        let mut policy = policy(2);
        let rollout = identity_rollout(&mut policy, 256, 0);
        let mut old = Vec::new();
        policy.distributions(&rollout.store, &mut old);
        // the damping shortens the step: hardly any here
        let config = TrpoConfig { rollout_steps: 256, max_kl, cg_damping: 1e-6, normalise_advantages: false, ..TrpoConfig::default() };
        let report = Trpo::new(config, optimiser(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();

        let indices: Vec<u32> = (0..256).collect();
        let weights = vec![1.0 / 256.0; 256];
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let sums = policy.evaluate(&rollout.store, batch, &Look(&rollout.log_probs, &rollout.rewards));
        let kl = sums.diagnostics[0];
        assert!((kl - figure(&report, "train/kl_divergence_loss")).abs() < 1e-7);
        assert!(kl <= f64::from(max_kl) && kl > 0.5 * f64::from(max_kl), "max_kl {max_kl}: went {kl}");
        let mean_reward = f64::from(rollout.rewards.iter().sum::<f32>()) / 256.0;
        assert!(sums.loss > mean_reward, "the surrogate fell from {mean_reward} to {}", sums.loss);
        assert_eq!(figure(&report, "train/is_line_search_success"), 1.0);
    }
}

/// Advantages that are all zero leave the actor where it is, and so does a region that no step of the line search reaches.
#[test]
fn trpo_stays_where_nothing_is_to_be_gained() {
    let mut policy = policy(2);
    let actor = policy.groups()[0].range.clone();
    assert_eq!(policy.groups()[0].name, "actor");
    let mut rollout = identity_rollout(&mut policy, 64, 0);
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    rollout.rewards = values[..64].to_vec();
    let before = policy.parameters()[actor.clone()].to_vec();
    let config = TrpoConfig { rollout_steps: 64, ..TrpoConfig::default() };
    let report = Trpo::new(config, optimiser(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert_eq!(policy.parameters()[actor].to_vec(), before);
    assert_eq!(figure(&report, "train/is_line_search_success"), 0.0);
}

/// The parameters of a group, and how many steps its clock has counted.
fn group(policy: &ActorCritic, name: &str) -> (Vec<u32>, f64) {
    let range = policy.groups().into_iter().find(|group| group.name == name).unwrap().range;
    let Data::U64(clock) = &policy.save_optimiser()[&format!("powers.{name}")].data else { panic!("a clock is bits of f64") };
    (policy.parameters()[range].iter().map(|x| x.to_bits()).collect(), (f64::from_bits(clock[0]).ln() / 0.9_f64.ln()).round())
}

/// The trust region is all that moves TRPO's actor: weight decay shrinks the critic, in every minibatch, and no parameter of the actor.
#[test]
fn weight_decay_moves_trpos_critic_alone() {
    let updated = |weight_decay| {
        let mut policy = policy(2);
        let rollout = identity_rollout(&mut policy, 256, 0);
        let config = TrpoConfig { rollout_steps: 256, critic_epochs: 3, critic_minibatch_size: 64, ..TrpoConfig::default() };
        let optimiser = OptimiserConfig { weight_decay, ..optimiser() };
        let before = group(&policy, "actor");
        let report = Trpo::new(config, optimiser, 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
        assert_eq!(figure(&report, "train/is_line_search_success"), 1.0);
        let after = [group(&policy, "actor"), group(&policy, "critic")];
        assert!(after[0].0 != before.0, "the actor has stepped");
        assert_eq!([after[0].1, after[1].1], [0.0, 12.0], "steps of Adam: 3 epochs of 4 minibatches, the critic's alone");
        after
    };
    let [plain, decayed] = [0.0, 0.1].map(updated);
    assert!(plain[0] == decayed[0], "weight decay has moved the actor outside the trust region");
    assert!(plain[1] != decayed[1], "and has not moved the critic");
}

/// An agent without a critic neither decays the critic's parameters nor counts steps for them.
#[test]
fn an_agent_without_a_critic_leaves_the_critics_parameters_alone() {
    let optimiser = || OptimiserConfig { weight_decay: 0.1, ..optimiser() };
    let reinforce = |baseline| {
        let config = ReinforceConfig { baseline, ..ReinforceConfig::default() };
        Box::new(Reinforce::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap()) as Box<dyn Agent>
    };
    let grpo = Grpo::new(GrpoConfig { group_size: 64, ..GrpoConfig::default() }, optimiser(), ReferenceConfig::default(), 64).unwrap();
    let agents = [(Box::new(grpo) as Box<dyn Agent>, 0.0), (reinforce(Baseline::None), 0.0), (reinforce(Baseline::Value), 1.0)];
    for (mut agent, steps) in agents {
        let mut policy = policy(1);
        agent.begin(&policy);
        let rollout = identity_rollout(&mut policy, 64, 0);
        let before = group(&policy, "critic");
        agent.update(&mut policy, &rollout, context(0)).unwrap();
        let after = group(&policy, "critic");
        assert_eq!((after.0 != before.0, after.1), (steps > 0.0, steps));
        assert!(group(&policy, "actor").1 >= 1.0);
    }
}

/// GRPO's advantage belongs to the whole episode, and groups are told apart by their id alone.
#[test]
fn groups_are_compared_within_themselves() {
    let mut policy = policy(1);
    let mut rollout = identity_rollout(&mut policy, 8, 0);
    // two groups of two episodes, interleaved: returns 1 and 3, and 10 and 10
    let segment = |range, group| Segment { range, end: End::Terminated, group: GroupId(group) };
    rollout.segments = vec![segment(0..2, 0), segment(2..3, 1), segment(3..6, 0), segment(6..8, 1)];
    rollout.rewards = vec![0.5, 0.5, 10.0, 1.0, 1.0, 1.0, 5.0, 5.0];
    let config = GrpoConfig { group_size: 2, epochs: 1, minibatches: 1, group_std: GroupStd::None, ..GrpoConfig::default() };
    let mut agent = Grpo::new(config, optimiser(), ReferenceConfig::default(), 4).unwrap();
    agent.begin(&policy);
    assert_eq!(agent.collection(), Collection::Episodes { per_env: 1, group: 2, greedy: false });
    let report = agent.update(&mut policy, &rollout, context(0)).unwrap();
    assert_eq!(figure(&report, "train/frac_zero_std"), 0.5);
    // at ratio 1 the loss is minus the mean advantage: (2 x -1 + 3 x 1) / 8
    assert!((figure(&report, "train/policy_gradient_loss") + 0.125).abs() < 1e-6, "{report:?}");
}

/// The KL penalty: at the reference k3 is 0, and away from it the policy is pulled back.
#[test]
fn a_leash_pulls_back_to_the_reference() {
    for place in [KlPlace::Loss, KlPlace::Reward] {
        let run = |coefficient| {
            let mut policy = policy(1);
            let reference = ReferenceConfig { coefficient, place, ..ReferenceConfig::default() };
            let mut agent = Grpo::new(GrpoConfig::default(), optimiser(), reference, 64).unwrap();
            agent.begin(&policy);
            let start = policy.snapshot();
            for iteration in 0..60 {
                let rollout = identity_rollout(&mut policy, 64, iteration);
                agent.update(&mut policy, &rollout, context(iteration)).unwrap();
            }
            // the divergence from the start, exactly
            let rollout = identity_rollout(&mut policy, 64, 99);
            let mut old = Vec::new();
            let mut start = start;
            start.distributions(&rollout.store, &mut old);
            let indices: Vec<u32> = (0..64).collect();
            let weights = [1.0 / 64.0; 64];
            let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
            policy.evaluate(&rollout.store, batch, &Look(&rollout.log_probs, &rollout.rewards)).diagnostics[0]
        };
        let [free, held, tight] = [0.0, 0.3, 3.0].map(run);
        assert!(free > 1.5 * held && held > 1.5 * tight, "{place:?}: {free}, {held}, {tight}");
    }
}

#[test]
fn beta_adapts_and_is_remembered() {
    let config = PpoConfig { rollout_steps: 64, minibatch_size: 64, clip: f32::INFINITY, ..PpoConfig::default() };
    // one tiny divergence after the other
    let still = OptimiserConfig { learning_rate: 1e-6, ..optimiser() };
    let config = PpoConfig { kl_coefficient: 1.0, adaptive_kl_target: 0.01, ..config };
    let mut agent = Ppo::new(config.clone(), still.clone(), ReferenceConfig::default(), 1).unwrap();
    let mut policy = policy(1);
    let rollout = identity_rollout(&mut policy, 64, 0);
    let betas: Vec<f64> =
        (0..3).map(|i| figure(&agent.update(&mut policy, &rollout, context(i)).unwrap(), "train/kl_coefficient")).collect();
    assert_eq!(betas, [1.0, 0.5, 0.25]);
    let mut other = Ppo::new(config, still, ReferenceConfig::default(), 1).unwrap();
    other.load(&policy, &agent.save()).unwrap();
    assert_eq!(figure(&other.update(&mut policy, &rollout, context(3)).unwrap(), "train/kl_coefficient"), 0.125);
}

/// A large coefficient keeps the policy near where it was; without one it runs.
#[test]
fn the_penalty_holds_the_policy() {
    let divergence = |kl_coefficient: f32| {
        let config =
            PpoConfig { rollout_steps: 64, minibatch_size: 64, epochs: 20, clip: f32::INFINITY, kl_coefficient, ..PpoConfig::default() };
        let mut policy = policy(1);
        let rollout = identity_rollout(&mut policy, 64, 0);
        figure(
            &Ppo::new(config, optimiser(), ReferenceConfig::default(), 1).unwrap().update(&mut policy, &rollout, context(0)).unwrap(),
            "train/kl_divergence",
        )
    };
    let (weak, strong) = (divergence(0.01), divergence(10.0));
    assert!(strong < 0.3 * weak && strong > 0.0, "{strong} against {weak}");
}

/// Ye et al. 2020, equation 5: for A < 0 the loss does not grow beyond c |A|.
#[test]
fn dual_clip_table() {
    let objective = |dual| gradus_agents::ppo::PpoObjective {
        old_log_probs: &[0.0, 0.0],
        old_values: &[0.0, 0.0],
        advantages: &[-2.0, 2.0],
        targets: &[0.0, 0.0],
        advantage_mean: 0.0,
        advantage_std: 1.0,
        clip: Clip { low: 0.2, high: 0.2, dual },
        kl_penalty: KlCoefficients::default(),
        kl_coefficient: 0.0,
        clip_value: f32::INFINITY,
        huber: f32::INFINITY,
        entropy_coefficient: 0.0,
        value_coefficient: 0.0,
    };
    // index, ratio, c, loss, derivative with respect to log pi
    for (i, ratio, c, loss, derivative) in [
        (0, 2.0, 3.0, 4.0, 4.0),
        (0, 2.9, 3.0, 5.8, 5.8),
        (0, 5.0, 3.0, 6.0, 0.0),
        (0, 5.0, f32::INFINITY, 10.0, 10.0),
        (0, 0.5, 3.0, 1.6, 0.0),
        (1, 5.0, 3.0, -2.4, 0.0),
        (1, 0.5, 3.0, -1.0, -1.0),
    ] {
        let decision = objective(c).decision(i, PolicyOutput { log_prob: f32::ln(ratio), ..PolicyOutput::default() });
        let got = (decision.loss, decision.derivative.log_prob);
        assert!((got.0 - loss).abs() < 1e-5 && (got.1 - derivative).abs() < 1e-5, "A {i}, ratio {ratio}, c {c}: {got:?}");
    }
}

/// k3 and its derivative, by hand: pi_ref / pi = 2 and 1/2.
#[test]
fn k3_table() {
    let ln2 = std::f32::consts::LN_2;
    let objective = gradus_agents::grpo::GrpoObjective {
        old_log_probs: &[-1.0, -1.0],
        advantages: &[0.0, 0.0],
        clip: GrpoConfig::default().clip(),
        kl_penalty: &KlPenalty { log_probs: vec![-1.0 + ln2, -1.0 - ln2], in_loss: 0.5, ..KlPenalty::default() },
        entropy_coefficient: 0.0,
    };
    for (i, k3, derivative) in [(0, 2.0 - ln2 - 1.0, -1.0), (1, 0.5 + ln2 - 1.0, 0.5)] {
        let decision = objective.decision(i, PolicyOutput { log_prob: -1.0, ..PolicyOutput::default() });
        assert!((decision.loss - 0.5 * k3).abs() < 1e-6 && (decision.derivative.log_prob - 0.5 * derivative).abs() < 1e-6, "{i}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let message = |result: Result<(), gradus_agents::ConfigError>| result.unwrap_err().to_string();
    let grpo = |config: GrpoConfig, envs| message(config.check(envs));
    assert_eq!(
        grpo(GrpoConfig { group_size: 1, ..GrpoConfig::default() }, 8),
        "grpo.group_size: expected at least 2, for a group of one has nothing to compare, got 1"
    );
    assert_eq!(
        grpo(GrpoConfig { group_size: 3, ..GrpoConfig::default() }, 8),
        "grpo.group_size: expected a divisor of the number of environments, 8, got 3"
    );
    assert_eq!(message(TrpoConfig { max_kl: 0.0, ..TrpoConfig::default() }.check(1)), "trpo.max_kl: expected a number above 0, got 0");
    assert_eq!(
        message(TrpoConfig { line_search_shrink: 1.0, ..TrpoConfig::default() }.check(1)),
        "trpo.line_search_shrink: expected a number between 0 and 1, got 1"
    );
    assert_eq!(
        message(ReinforceConfig { baseline_step: 0.0, ..ReinforceConfig::default() }.check(1)),
        "reinforce.baseline_step: expected a number above 0 and up to 1, got 0"
    );
    assert_eq!(
        message(ReinforceConfig { episodes_per_env: 1 << 30, ..ReinforceConfig::default() }.check(8)),
        "reinforce.episodes_per_env: expected a rollout of at most 2^27 decisions, got 1073741824"
    );
    assert_eq!(
        message(PpoConfig { adaptive_kl_target: 0.01, ..PpoConfig::default() }.check(8)),
        "ppo.kl_coefficient: expected 1e-6 to 1e6, from where adaptive_kl_target doubles and halves it, got 0"
    );
    assert_eq!(message(A2cConfig { rollout_steps: 0, ..A2cConfig::default() }.check(1)), "a2c.rollout_steps: expected at least 1, got 0");
    assert_eq!(
        message(PpoConfig { dual_clip: 1.0, ..PpoConfig::default() }.check(8)),
        "ppo.dual_clip: expected a number above 1, or inf, got 1"
    );
}
