//! What agents, the reference, fine-tuning and reward models do to a small transformer.

mod common;

use common::{CONTEXT, Completion, VOCABULARY, completions, context, figure, optimiser, rollout, transformer};
use gradus_agents::estimators::{compare, side_by_side};
use gradus_agents::grpo::Ratio;
use gradus_agents::ppo::NormaliseOver;
use gradus_agents::reference::{Estimator, KlPlace, KlUnit, Reference};
use gradus_agents::reinforce::Baseline;
use gradus_agents::reward_model::{self, Preferences, Ranked, Ranking, RewardModelConfig};
use gradus_agents::sft::{SftConfig, demonstrations, fine_tune};
use gradus_agents::{
    Agent, Aggregation, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig, Rollout,
};
use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::text;
use gradus_nets::cpu::{ActorCritic, Transformer};
use gradus_nets::{ActionRows, Batch, Behaviour, Choice, LossGrad, Network, NetworkConfig, Objective, Observations, Policy, PolicyOutput};

/// Completions of four tokens at most, drawn from the policy: 0 ends, and the prompt's number, once per token, pays a quarter.
fn sampled(policy: &mut Transformer, iteration: u64, groups: u32, size: u32) -> Rollout {
    let mut drawn: Vec<Completion> = Vec::new();
    for episode in 0..groups * size {
        let group = episode / size;
        let (mut tokens, mut rewards) = (Vec::new(), Vec::new());
        let mut streams = [Stream::new(iteration, Purpose::Action, u64::from(episode))];
        while tokens.len() < 4 && tokens.last() != Some(&0) {
            let mut row = vec![0.0; CONTEXT + 1];
            text::write(&[&[4, group % 4][..], &tokens[..]].concat(), &mut row);
            let (mut actions, mut log_probs) = (ActionRows::Discrete(vec![]), [0.0]);
            policy.actor().act(&row, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
            let ActionRows::Discrete(chosen) = actions else { panic!("discrete") };
            tokens.push(chosen[0]);
            rewards.push(if chosen[0] == 1 + group % 3 { 0.25 } else { 0.0 });
        }
        drawn.push((group % 4, tokens, rewards));
    }
    rollout(policy, &drawn)
}

/// What is paid for a token in the last of so many updates.
fn learn(agent: &mut dyn Agent, updates: u64, seed: u64) -> f32 {
    let mut policy = transformer(seed);
    agent.begin(&policy);
    let mut paid = 0.0;
    for iteration in 0..updates {
        let mut rollout = sampled(&mut policy, iteration, 3, 8);
        rollout.greedy_rewards = vec![vec![0.5]; 3];
        rollout.step_ends = vec![true; rollout.len()];
        paid = rollout.rewards.iter().sum::<f32>() / 24.0;
        agent.update(&mut policy, &rollout, context(iteration)).unwrap();
    }
    paid
}

/// The mean over six policies: one alone is left with half of what it can be paid now and then, whatever the agent.
#[test]
fn every_agent_learns_to_say_its_token() {
    let none = ReferenceConfig::default;
    let optimiser = || OptimiserConfig { learning_rate: 0.005, ..optimiser() };
    let grpo = |config: GrpoConfig| {
        Box::new(Grpo::new(GrpoConfig { entropy_coefficient: 0.02, ..config }, optimiser(), none(), 24).unwrap()) as Box<dyn Agent>
    };
    let reinforce = |baseline| {
        let config = ReinforceConfig {
            baseline,
            entropy_coefficient: 0.02,
            group_size: 8,
            gamma: 1.0,
            aggregation: Aggregation::SequenceSum,
            ..ReinforceConfig::default()
        };
        Box::new(Reinforce::new(config, optimiser(), none(), 24).unwrap()) as Box<dyn Agent>
    };
    let ppo = PpoConfig {
        episodes_per_env: 1,
        minibatch_size: 32,
        gamma: 1.0,
        entropy_coefficient: 0.02,
        normalise_over: NormaliseOver::Rollout,
        huber: 1.0,
        ..PpoConfig::default()
    };
    let kl_penalty = ReferenceConfig { coefficient: 0.01, place: KlPlace::Reward, ..ReferenceConfig::default() };
    let agents = || -> Vec<(&str, Box<dyn Agent>)> {
        vec![
            ("ppo", Box::new(Ppo::new(ppo.clone(), optimiser(), none(), 24).unwrap())),
            ("ppo, KL penalty", Box::new(Ppo::new(ppo.clone(), optimiser(), kl_penalty.clone(), 24).unwrap())),
            ("grpo", grpo(GrpoConfig::default())),
            ("grpo, process", grpo(GrpoConfig { supervision: gradus_agents::grpo::Supervision::Process, ..GrpoConfig::default() })),
            ("gspo", grpo(GrpoConfig { ratio: Ratio::Sequence, aggregation: Aggregation::SequenceMean, ..GrpoConfig::default() })),
            ("reinforce, greedy", reinforce(Baseline::Greedy)),
            ("reinforce, leave-one-out", reinforce(Baseline::LeaveOneOut)),
            ("reinforce, value", reinforce(Baseline::Value)),
        ]
    };
    let (mut first, mut last) = ([0.0; 8], [0.0; 8]);
    for seed in 0..6 {
        for (i, (_, mut agent)) in agents().into_iter().enumerate() {
            first[i] += learn(&mut *agent, 1, seed) / 6.0;
            last[i] += learn(&mut *agent, 80, seed) / 6.0;
        }
    }
    for ((name, _), (first, last)) in agents().iter().zip(first.into_iter().zip(last)) {
        assert!(first < 0.4 && last > 0.7, "{name}: from {first} to {last}");
    }
}

/// The exact mean of KL(pi || pi_ref) over the tokens of a rollout.
fn divergence(policy: &mut Transformer, reference: &mut Transformer, rollout: &Rollout) -> f64 {
    struct Look;
    impl Objective for Look {
        fn decision(&self, _: usize, now: PolicyOutput) -> LossGrad {
            LossGrad { loss: now.kl_ref, ..LossGrad::default() }
        }
    }
    let mut said = Vec::new();
    reference.distributions(&rollout.store, &mut said);
    let indices: Vec<u32> = (0..rollout.len() as u32).collect();
    let weights = vec![1.0 / rollout.len() as f32; rollout.len()];
    policy.evaluate(&rollout.store, Batch { reference: Some(&said), ..Batch::new(&indices, &weights) }, &Look).loss
}

#[test]
fn the_leash_holds_every_agent_by_every_estimator() {
    for (place, estimator) in [
        (KlPlace::Loss, Estimator::K2),
        (KlPlace::Loss, Estimator::K3),
        (KlPlace::Loss, Estimator::Exact),
        (KlPlace::Reward, Estimator::K3),
    ] {
        for name in ["ppo", "grpo", "reinforce"] {
            let run = |coefficient| {
                let reference = ReferenceConfig { coefficient, place, estimator, measure: true, ..ReferenceConfig::default() };
                let mut agent: Box<dyn Agent> = match name {
                    "ppo" => {
                        let config = PpoConfig { episodes_per_env: 1, minibatch_size: 32, gamma: 1.0, ..PpoConfig::default() };
                        Box::new(Ppo::new(config, optimiser(), reference, 24).unwrap())
                    }
                    "grpo" => Box::new(Grpo::new(GrpoConfig::default(), optimiser(), reference, 24).unwrap()),
                    _ => {
                        let config = ReinforceConfig { baseline: Baseline::None, normalise_returns: true, ..ReinforceConfig::default() };
                        Box::new(Reinforce::new(config, optimiser(), reference, 24).unwrap())
                    }
                };
                let (mut policy, mut start) = (transformer(3), transformer(3));
                agent.begin(&policy);
                let mut measured = Vec::new();
                for iteration in 0..30 {
                    let rollout = sampled(&mut policy, iteration, 3, 8);
                    measured.push(figure(&agent.update(&mut policy, &rollout, context(iteration)).unwrap(), "train/kl_reference"));
                }
                // k3 has a heavy tail where the policy is far away: a single figure says little
                let last = &mut measured[25..];
                last.sort_by(f64::total_cmp);
                let measured = last[2];
                let rollout = sampled(&mut policy, 99, 3, 8);
                (divergence(&mut policy, &mut start, &rollout), measured)
            };
            let ((free, of_free), (held, _)) = (run(0.0), run(3.0));
            assert!(free > 2.0 * held && held >= 0.0, "{name}, {place:?}, {estimator:?}: {free} against {held}");
            assert!(of_free > 0.3 * free && of_free < 3.0 * free, "{name}, {place:?}, {estimator:?}: {of_free} was measured, {free} is");
        }
    }
}

/// The divergence of a whole episode is larger than that of a token: one target lies between, and beta moves to either side.
#[test]
fn the_unit_of_the_divergence_counts() {
    let mut policy = transformer(2);
    let paid = rollout(&mut policy, &completions());
    let other = {
        let mut reference = Reference::new(ReferenceConfig { measure: true, ..ReferenceConfig::default() }).unwrap();
        reference.begin(&transformer(1));
        reference.penalty(&paid).measured(&paid)
    };
    assert!((other.0 / other.1 - 6.0 / 16.0).abs() < 1e-9, "{other:?}");
    let target = (0.6 * other.1) as f32;
    let beta = |unit| {
        let config = ReferenceConfig { coefficient: 1.0, adaptive_target: target, unit, horizon: 60.0, ..ReferenceConfig::default() };
        let mut reference = Reference::new(config).unwrap();
        reference.begin(&transformer(1));
        let kl_penalty = reference.penalty(&paid);
        reference.finish(&policy, &paid, &kl_penalty);
        reference.coefficient()
    };
    let (of_token, of_sequence) = (beta(KlUnit::Token), beta(KlUnit::Sequence));
    let expected = |kl: f64| 1.0 + 0.1 * (kl / f64::from(target) - 1.0).clamp(-0.2, 0.2);
    assert!((f64::from(of_token) - expected(other.0)).abs() < 1e-6, "{of_token}");
    assert!((f64::from(of_sequence) - expected(other.1)).abs() < 1e-6, "{of_sequence}");
    assert!(of_token < 1.0 && of_sequence > 1.0, "{of_token}, {of_sequence}, {other:?}");
}

/// beta and the reference move as they are told, and both are in the checkpoint.
#[test]
fn the_reference_adapts_is_refreshed_and_is_remembered() {
    let config = ReferenceConfig {
        coefficient: 0.5,
        adaptive_target: 0.1,
        unit: KlUnit::Sequence,
        horizon: 60.0,
        refresh_every: 3,
        ..ReferenceConfig::default()
    };
    let (mut policy, start) = (transformer(1), transformer(1));
    let mut reference = Reference::new(config.clone()).unwrap();
    assert!(reference.save().is_empty(), "nothing to remember before it begins");
    reference.begin(&policy);
    // another policy collected this rollout
    let rollout_of_other = rollout(&mut transformer(2), &completions());
    let kl_penalty = reference.penalty(&rollout_of_other);
    let (_, by_episode) = kl_penalty.measured(&rollout_of_other);
    reference.finish(&policy, &rollout_of_other, &kl_penalty);
    let factor = 1.0 + (by_episode / 0.1 - 1.0).clamp(-0.2, 0.2) * 6.0 / 60.0;
    assert!((f64::from(reference.coefficient()) - 0.5 * factor).abs() < 1e-6, "{} after {by_episode}", reference.coefficient());
    assert_eq!(kl_penalty.log_probs, {
        let mut log_probs = Vec::new();
        transformer(1).log_probs(&rollout_of_other.store, &mut log_probs);
        log_probs
    });

    // the policy moves on; the reference stays until its third update
    policy.set_parameters(&start.parameters().iter().map(|p| p * 1.1).collect::<Vec<f32>>());
    let mut resumed = Reference::new(config).unwrap();
    resumed.load(&policy, &reference.save()).unwrap();
    for of in [&mut reference, &mut resumed] {
        let second = of.penalty(&rollout_of_other);
        assert_eq!(second.log_probs, kl_penalty.log_probs, "the first policy");
        of.finish(&policy, &rollout_of_other, &second);
        let third = of.penalty(&rollout_of_other);
        assert_eq!(third.log_probs, kl_penalty.log_probs);
        of.finish(&policy, &rollout_of_other, &third);
        assert_ne!(of.penalty(&rollout_of_other).log_probs, kl_penalty.log_probs, "refreshed");
    }
    assert_eq!(reference.save(), resumed.save());
    let mut spoilt = reference.save();
    spoilt.remove("reference_coefficient");
    assert!(resumed.load(&policy, &spoilt).is_err());
    assert_eq!(resumed.save(), reference.save(), "an error changes nothing");
}

/// The stop at the reference takes no step where the policy is too far away already, and takes them all where it is near.
#[test]
fn too_far_from_the_reference_there_is_no_step() {
    for name in ["ppo", "grpo", "reinforce"] {
        for (stop_kl, moves) in [(1e-9, false), (1e9, true)] {
            let reference = ReferenceConfig { stop_kl, ..ReferenceConfig::default() };
            let mut agent: Box<dyn Agent> = match name {
                "ppo" => {
                    let config = PpoConfig { episodes_per_env: 1, ..PpoConfig::default() };
                    Box::new(Ppo::new(config, optimiser(), reference, 6).unwrap())
                }
                "grpo" => Box::new(Grpo::new(GrpoConfig { group_size: 3, ..GrpoConfig::default() }, optimiser(), reference, 6).unwrap()),
                _ => Box::new(Reinforce::new(ReinforceConfig::default(), optimiser(), reference, 6).unwrap()),
            };
            agent.begin(&transformer(1));
            let mut policy = transformer(2);
            let rollout = rollout(&mut policy, &completions());
            agent.update(&mut policy, &rollout, context(0)).unwrap();
            assert_eq!(policy.parameters() != transformer(2).parameters(), moves, "{name}, {stop_kl}");
        }
    }
}

/// With nothing else to learn, PPO's targets on a last token are its score minus beta times the divergence.
#[test]
fn ppo_charges_the_divergence_token_by_token() {
    let loss = |coefficient, place| {
        let reference = ReferenceConfig { coefficient, place, measure: true, ..ReferenceConfig::default() };
        let config = PpoConfig {
            episodes_per_env: 1,
            minibatch_size: 99,
            epochs: 1,
            gamma: 1.0,
            gae_lambda: 1.0,
            normalise_advantages: false,
            value_coefficient: 0.0,
            ..PpoConfig::default()
        };
        let mut agent = Ppo::new(config, optimiser(), reference, 6).unwrap();
        agent.begin(&transformer(2));
        let mut policy = transformer(1);
        let rollout = rollout(&mut policy, &completions());
        let mut values = Vec::new();
        policy.values(&rollout.store, &mut values);
        let mut of_other = Vec::new();
        transformer(2).log_probs(&rollout.store, &mut of_other);
        // at ratio 1 and lambda 1 the loss is minus the mean of the returns to go less the values
        let paid = |t: usize| f64::from(rollout.rewards[t]) - f64::from(coefficient) * f64::from(rollout.log_probs[t] - of_other[t]);
        let advantage = |t: usize| {
            let segment = rollout.segments.iter().find(|segment| segment.range.contains(&t)).unwrap();
            (t..segment.range.end).map(paid).sum::<f64>() - f64::from(values[t])
        };
        let expected = -(0..rollout.len()).map(advantage).sum::<f64>() / rollout.len() as f64;
        (figure(&agent.update(&mut policy, &rollout, context(0)).unwrap(), "train/policy_gradient_loss"), expected)
    };
    let (got, expected) = loss(2.0, KlPlace::Reward);
    assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
    let ((plain, _), (in_loss, _)) = (loss(0.0, KlPlace::Reward), loss(2.0, KlPlace::Loss));
    assert_eq!(plain, in_loss, "charged in the loss, the reward is as it came");
    assert!((plain - got).abs() > 1e-3);
}

#[test]
fn demonstrations_are_learnt() {
    let wanted = vec![(0, vec![3, 1, 0], vec![0.0; 3]), (1, vec![2, 0], vec![0.0; 2]), (2, vec![1, 1, 1, 0], vec![0.0; 4])];
    for (minibatch_size, aggregation) in [(3, Aggregation::TokenMean), (99, Aggregation::SequenceSum)] {
        let mut policy = transformer(1);
        let shown = rollout(&mut policy, &wanted);
        let shown = demonstrations(shown.store.clone(), shown.segments.iter().map(|segment| segment.range.clone()).collect());
        let config = SftConfig { epochs: 60, minibatch_size, aggregation };
        let first = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config.clone() }, &optimiser(), context(0)).unwrap();
        fine_tune(&mut policy, &shown, &config, &optimiser(), context(1)).unwrap();
        let last = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config }, &optimiser(), context(2)).unwrap();
        assert!(figure(&first, "sft/loss") > 1.0 && figure(&last, "sft/loss") < 0.1, "{first:?}, {last:?}");
        assert!((figure(&last, "sft/likely") - 1.0).abs() < 1e-6);
    }
    let error = SftConfig { minibatch_size: 0, ..SftConfig::default() }.check().unwrap_err();
    assert_eq!(error.to_string(), "sft.minibatch_size: expected at least 1, got 0");
}

/// The gradient of demonstrations is the mean of those of - log pi, token by token; prompts have none. Any policy will do.
#[test]
fn behaviour_cloning_needs_no_text() {
    let space = Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] };
    let mut policy =
        ActorCritic::new(&NetworkConfig { hidden: vec![8], ..NetworkConfig::default() }, &space, &Space::Discrete(3), 1).unwrap();
    let mut stream = Stream::new(1, Purpose::Environment, 0);
    let observations: Vec<f32> = (0..120).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    let actions = observations.chunks(2).map(|o| if o[0] > 0.3 { 0 } else { 1 + u32::from(o[1] > 0.0) }).collect();
    let store = gradus_nets::Store::new(2, observations, ActionRows::Discrete(actions));
    let shown = demonstrations(store, (0..6).map(|i| 10 * i..10 * (i + 1)).collect());
    let config = SftConfig { epochs: 200, minibatch_size: 20, ..SftConfig::default() };
    fine_tune(&mut policy, &shown, &config, &optimiser(), context(0)).unwrap();
    let last = fine_tune(&mut policy, &shown, &SftConfig { epochs: 1, ..config }, &optimiser(), context(1)).unwrap();
    assert!(figure(&last, "sft/likely") > 0.9, "{last:?}");
}

/// Texts whose hidden score is how often they say 3, less how often they say 1.
fn preferences(seed: u64, n: u32, of: usize) -> Preferences {
    let mut stream = Stream::new(seed, Purpose::Environment, 0);
    let (mut texts, mut rankings) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let first = texts.len() as u32;
        let mut scored: Vec<(i32, Vec<u32>)> = (0..of)
            .map(|_| {
                let completion: Vec<u32> = (0..4).map(|_| stream.below(VOCABULARY)).collect();
                let score = completion.iter().map(|t| i32::from(*t == 3) - i32::from(*t == 1)).sum();
                (score, [vec![4, 0], completion].concat())
            })
            .collect();
        scored.sort_by_key(|(score, _)| -score);
        if scored.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            continue; // nobody could say which is better
        }
        rankings.push(Ranking { rows: (first..first + of as u32).collect(), margin: 0.0 });
        texts.extend(scored.into_iter().map(|(_, text)| text));
    }
    Preferences::of_texts(CONTEXT, texts.iter().map(Vec::as_slice), rankings)
}

#[test]
fn a_reward_model_learns_a_hidden_scorer() {
    for (of, ranked) in [(2, Ranked::Pairs), (3, Ranked::Pairs), (3, Ranked::PlackettLuce)] {
        let (shown, held_out) = (preferences(1, 300, of), preferences(2, 200, 2));
        assert!(shown.rankings.len() > 60 && held_out.rankings.len() > 60);
        let mut model = transformer(1);
        let before = reward_model::evaluate(&mut model, &held_out);
        assert!(before.accuracy() < 0.8 || before.margin().abs() < 0.2, "{before:?}");
        let config = RewardModelConfig { epochs: 15, minibatch_size: 16, ranked, centring: 0.01, ..RewardModelConfig::default() };
        let report = reward_model::train(&mut model, &shown, &config, &optimiser(), context(0)).unwrap();
        let after = reward_model::evaluate(&mut model, &held_out);
        assert!(after.accuracy() > 0.95 && after.margin() > 1.0, "{of}, {ranked:?}: {after:?}, {report:?}");
        // saved and loaded as any policy
        let mut other = transformer(9);
        other.load(&model.save()).unwrap();
        assert_eq!(reward_model::evaluate(&mut other, &held_out), after);
    }
}

/// The gradient that training follows against central differences of the loss that it reports.
#[test]
fn the_gradient_of_preferences_is_that_of_their_loss() {
    let space = Space::Box { low: vec![-1.0], high: vec![1.0] };
    let network = NetworkConfig { hidden: vec![3], ..NetworkConfig::default() };
    let mut model = ActorCritic::new(&network, &space, &Space::Discrete(2), 5).unwrap();
    let parameters = model.parameters().to_vec();
    let observations = Observations::Rows { rows: vec![-0.8, 0.1, 0.5, 0.9, -0.2], width: 1 };
    let rankings = vec![
        Ranking { rows: vec![0, 3], margin: 0.3 },
        Ranking { rows: vec![2, 3, 1], margin: 0.1 },
        Ranking { rows: vec![4, 0], margin: 0.0 },
    ];
    let preferences = Preferences::new(observations, rankings);
    for ranked in [Ranked::Pairs, Ranked::PlackettLuce] {
        let config = RewardModelConfig { epochs: 1, minibatch_size: 3, ranked, centring: 0.2, ..RewardModelConfig::default() };
        // a rate so small that the parameters stay where they are
        let still = OptimiserConfig { learning_rate: 1e-30, ..optimiser() };
        let mut judge = |parameters: &[f32]| {
            model.set_parameters(parameters);
            let report = reward_model::train(&mut model, &preferences, &config, &still, context(0)).unwrap();
            (figure(&report, "reward_model/loss"), model.last_gradient().to_vec())
        };
        let (_, gradient) = judge(&parameters);
        let mut seen = 0;
        // not the padding, nor what belongs to the actor
        for i in (0..parameters.len()).filter(|i| gradient[*i] != 0.0) {
            seen += 1;
            let mut at = |by: f32| {
                let mut moved = parameters.clone();
                moved[i] += by;
                judge(&moved).0
            };
            let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((slope - f64::from(gradient[i])).abs() < 2e-4, "{ranked:?}, {i}: {} instead of {slope}", gradient[i]);
        }
        assert!(seen >= 10, "{seen} parameters have a gradient");
    }
}

#[test]
fn old_preferences_are_replayed() {
    let (old, new) = (preferences(1, 60, 2), preferences(2, 60, 2));
    let mut stream = Stream::new(1, Purpose::Shuffle, 0);
    let both = new.with_replay(&old, 0.1, &mut stream);
    let added = (0.1 * new.rankings.len() as f64).round() as usize;
    assert_eq!(both.rankings.len(), new.rankings.len() + added);
    assert_eq!(both.rankings[..new.rankings.len()], new.rankings[..]);
    let text = |of: &Preferences, row: u32| of.store.texts().prefix(row as usize).to_vec();
    for ranking in &both.rankings[new.rankings.len()..] {
        let said: Vec<Vec<u32>> = ranking.rows.iter().map(|row| text(&both, *row)).collect();
        let is_old = old.rankings.iter().any(|known| known.rows.iter().map(|row| text(&old, *row)).collect::<Vec<_>>() == said);
        assert!(is_old, "{said:?}");
    }
    assert_eq!(new.with_replay(&old, 0.0, &mut stream), new);
    assert_eq!(new.with_replay(&old, 1e6, &mut stream).rankings.len(), new.rankings.len() + old.rankings.len(), "all there are");
    let mut joined = old.clone();
    joined.extend(&new);
    assert_eq!(joined.rankings.len(), old.rankings.len() + new.rankings.len());
    let last = (&joined.rankings[joined.rankings.len() - 1], &new.rankings[new.rankings.len() - 1]);
    assert_eq!(text(&joined, last.0.rows[0]), text(&new, last.1.rows[0]));
}

/// Of the same rollout: RLOO is G / (G - 1) times Dr. GRPO, and GRPO of one group points where Dr. GRPO does.
#[test]
fn estimators_side_by_side() {
    let mut policy = transformer(1);
    let mut rollout = rollout(&mut policy, &completions());
    rollout.greedy_rewards = vec![vec![0.5]; 2];
    rollout.step_ends = rollout.segments.iter().flat_map(|s| s.range.clone().map(|i| i + 1 == s.range.end)).collect();
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    let estimates = side_by_side(&rollout, Some(&values), 1.0, 0.95);
    let names: Vec<&str> = estimates.iter().map(|estimate| estimate.name).collect();
    assert_eq!(names, ["reinforce", "reinforce++", "remax", "rloo", "grpo", "grpo, batch std", "dr. grpo", "grpo, process", "gae"]);
    let of = |name: &str| estimates.iter().position(|estimate| estimate.name == name).unwrap();
    for (a, b) in estimates[of("rloo")].advantages.iter().zip(&estimates[of("dr. grpo")].advantages) {
        assert!((a - 1.5 * b).abs() < 1e-6, "{a} and {b}");
    }
    // one reward per episode at its end: process supervision is outcome supervision, where steps are whole episodes
    let before = policy.parameters().to_vec();
    let comparison = compare(&mut policy, &rollout, &estimates, Aggregation::SequenceSum, context(0)).unwrap();
    assert_eq!(policy.parameters(), before);
    assert!((comparison.cosines[of("rloo")][of("dr. grpo")] - 1.0).abs() < 1e-6);
    assert!((comparison.norms[of("rloo")] / comparison.norms[of("dr. grpo")] - 1.5).abs() < 1e-5);
    for (i, row) in comparison.cosines.iter().enumerate() {
        assert!((row[i] - 1.0).abs() < 1e-6 && row.iter().zip(0..).all(|(c, j)| *c == comparison.cosines[j][i] && c.abs() < 1.0 + 1e-6));
    }
    // grpo's own gradient, as its update sees it at ratio 1
    let config = GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, aggregation: Aggregation::SequenceSum, ..GrpoConfig::default() };
    let report = Grpo::new(config, optimiser(), ReferenceConfig::default(), 6).unwrap().update(&mut policy, &rollout, context(0)).unwrap();
    assert!((figure(&report, "train/grad_norm") - comparison.norms[of("grpo")]).abs() < 1e-5, "{report:?}, {comparison:?}");
    // what is not there is left out
    rollout.greedy_rewards.clear();
    rollout.step_ends.clear();
    assert_eq!(side_by_side(&rollout, None, 1.0, 0.95).len(), 6);
}
