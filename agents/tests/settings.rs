//! Errors of settings that are out of range or do not fit a rollout.

mod common;

use common::texts::{completions, rollout, transformer};
use common::{context, decisions, optimiser};
use gradus_agents::groups::Supervision;
use gradus_agents::reinforce::Baseline;
use gradus_agents::surrogate::Clipped;
use gradus_agents::{
    A2cConfig, Agent, Aggregation, Grpo, GrpoConfig, OptimiserConfig, Ppo, PpoConfig, ReferenceConfig, Reinforce, ReinforceConfig, Rollout,
    TrpoConfig,
};

#[test]
fn errors_name_the_setting_its_expected_range_and_its_value() {
    const POSITIVE: &str = "a number above 0";
    const LIMIT: &str = "a number above 0, or inf";
    const NOT_NEGATIVE: &str = "a number from 0 up";
    const FRACTION: &str = "a number from 0 to 1";
    /// Name of the setting, function that sets it, expected range, and bad values.
    type Row = (&'static str, fn(&mut PpoConfig, f32), &'static str, &'static [f32]);
    let table: [Row; 7] = [
        ("gamma", |c, x| c.gamma = x, FRACTION, &[-0.1, 1.1, f32::NAN]),
        ("gae_lambda", |c, x| c.gae_lambda = x, FRACTION, &[-0.1, 1.1, f32::NAN]),
        ("clip", |c, x| c.clip = x, LIMIT, &[0.0, -0.2, f32::NAN]),
        ("clip_value", |c, x| c.clip_value = x, LIMIT, &[0.0, -0.2, f32::NAN]),
        ("entropy_coefficient", |c, x| c.entropy_coefficient = x, NOT_NEGATIVE, &[-0.01, f32::INFINITY, f32::NAN]),
        ("value_coefficient", |c, x| c.value_coefficient = x, NOT_NEGATIVE, &[-0.5, f32::INFINITY, f32::NAN]),
        ("target_kl", |c, x| c.target_kl = x, LIMIT, &[0.0, -0.01, f32::NAN]),
    ];
    let message = |spoil: &dyn Fn(&mut PpoConfig), envs| {
        let mut config = PpoConfig::default();
        spoil(&mut config);
        Ppo::new(config, optimiser(), ReferenceConfig::default(), envs).err().map(|error| error.to_string())
    };
    /// The same columns for the settings of the optimiser.
    type OptimiserRow = (&'static str, fn(&mut OptimiserConfig, f32), &'static str, &'static [f32]);
    let optimiser_table: [OptimiserRow; 4] = [
        ("epsilon", |c, x| c.epsilon = x, POSITIVE, &[0.0, -1e-5, f32::INFINITY, f32::NAN]),
        ("learning_rate", |c, x| c.learning_rate = x, POSITIVE, &[0.0, -1e-3, f32::INFINITY, f32::NAN]),
        ("critic_learning_rate_ratio", |c, x| c.critic_learning_rate_ratio = x, POSITIVE, &[0.0, -1.0, f32::INFINITY, f32::NAN]),
        ("max_grad_norm", |c, x| c.max_grad_norm = x, LIMIT, &[0.0, -0.5, f32::NAN]),
    ];
    for (key, spoil, expected, bad) in optimiser_table {
        for x in bad {
            let mut spoilt = optimiser();
            spoil(&mut spoilt, *x);
            let error = Ppo::new(config(), spoilt, ReferenceConfig::default(), 1).err().map(|error| error.to_string());
            assert_eq!(error, Some(format!("optimiser.{key}: expected {expected}, got {x}")));
        }
    }
    for (key, spoil, expected, bad) in table {
        for x in bad {
            let text = format!("ppo.{key}: expected {expected}, got {x}");
            assert_eq!(message(&|config| spoil(config, *x), 4), Some(text));
        }
    }
    let sizes = |rollout_steps, epochs, minibatch_size| {
        move |config: &mut PpoConfig| *config = PpoConfig { rollout_steps, epochs, minibatch_size, ..config.clone() }
    };
    for (spoil, text) in [
        (sizes(0, 4, 128), "ppo.rollout_steps: expected at least 1, got 0".to_string()),
        (sizes(128, 0, 128), "ppo.epochs: expected at least 1, got 0".into()),
        (sizes(128, 4, 0), "ppo.minibatch_size: expected at least 1, got 0".into()),
        (
            sizes(128, 4, 513),
            "ppo.minibatch_size: expected 1 to 512, the decisions of a rollout (4 environments x 128 steps), got 513".into(),
        ),
        (
            sizes(1 << 30, 4, 128),
            "ppo.rollout_steps: expected at most 33554432, because 4 environments have at most 2^27 decisions in a rollout, got 1073741824"
                .into(),
        ),
        // four times this number overflows usize
        (
            sizes(usize::MAX, 4, 128),
            format!(
                "ppo.rollout_steps: expected at most 33554432, because 4 environments have at most 2^27 decisions in a rollout, got {}",
                usize::MAX
            ),
        ),
    ] {
        assert_eq!(message(&spoil, 4), Some(text));
    }
    assert_eq!(message(&sizes(128, 4, 512), 4), None);
}

fn config() -> PpoConfig {
    PpoConfig { rollout_steps: 64, minibatch_size: 32, ..PpoConfig::default() }
}

#[test]
fn settings_of_every_agent_are_checked() {
    let message = |result: Result<(), gradus_agents::ConfigError>| result.unwrap_err().to_string();
    let grpo = |config: GrpoConfig, envs| message(config.check(envs));
    assert_eq!(
        grpo(GrpoConfig { group_size: 1, ..GrpoConfig::default() }, 8),
        "grpo.group_size: expected at least 2 (a group of one has nothing to compare), got 1"
    );
    assert_eq!(
        grpo(GrpoConfig { group_size: 3, ..GrpoConfig::default() }, 8),
        "grpo.group_size: expected a divisor of 8, the number of environments, got 3"
    );
    assert_eq!(message(TrpoConfig { max_kl: 0.0, ..TrpoConfig::default() }.check(1)), "trpo.max_kl: expected a number above 0, got 0");
    assert_eq!(
        message(TrpoConfig { line_search_shrink: 1.0, ..TrpoConfig::default() }.check(1)),
        "trpo.line_search_shrink: expected a number above 0 and below 1, got 1"
    );
    assert_eq!(
        message(ReinforceConfig { baseline_step: 0.0, ..ReinforceConfig::default() }.check(1)),
        "reinforce.baseline_step: expected a number above 0 and at most 1, got 0"
    );
    assert_eq!(
        message(ReinforceConfig { episodes_per_env: 1 << 30, ..ReinforceConfig::default() }.check(8)),
        "reinforce.episodes_per_env: expected at most 16777216, because 8 environments have at most 2^27 decisions in a rollout, got 1073741824"
    );
    assert_eq!(
        message(PpoConfig { adaptive_kl_target: 0.01, ..PpoConfig::default() }.check(8)),
        "ppo.kl_coefficient: expected 1e-6 to 1e6 with adaptive_kl_target, got 0"
    );
    assert_eq!(
        message(A2cConfig { rollout_steps: 0, ..A2cConfig::default() }.check("a2c", 1)),
        "a2c.rollout_steps: expected at least 1, got 0"
    );
    assert_eq!(
        message(PpoConfig { dual_clip: 1.0, ..PpoConfig::default() }.check(8)),
        "ppo.dual_clip: expected a number above 1, or inf, got 1"
    );
}

#[test]
fn settings_that_do_not_fit_the_rollout_are_errors() {
    let mut policy = transformer(1);
    let texts = rollout(&mut policy, &completions());
    let numbers = decisions(&[1.0; 6], &[(0..2, 0), (2..4, 0), (4..6, 0)]);
    let message = |config: GrpoConfig, rollout: &Rollout| {
        grpo(config, ReferenceConfig::default()).update(&mut transformer(1), rollout, context(0)).unwrap_err().to_string()
    };
    assert_eq!(
        message(GrpoConfig { supervision: Supervision::Process, ..GrpoConfig::default() }, &texts),
        "grpo.supervision: expected outcome (this environment does not mark where steps end), got process"
    );
    assert_eq!(
        message(GrpoConfig { ratio: gradus_agents::grpo::Ratio::Sequence, ..GrpoConfig::default() }, &numbers),
        "grpo.ratio: expected token (observations are not texts), got sequence"
    );
    let greedy = ReinforceConfig { baseline: Baseline::Greedy, ..ReinforceConfig::default() };
    let error =
        Reinforce::new(greedy, optimiser(), ReferenceConfig::default(), 1).unwrap().update(&mut policy, &texts, context(0)).unwrap_err();
    assert_eq!(error.to_string(), "reinforce.baseline: expected a rollout with a greedy episode of every group, got 0");
    let alone = ReinforceConfig { baseline: Baseline::LeaveOneOut, ..ReinforceConfig::default() }.check(4).unwrap_err().to_string();
    assert_eq!(alone, "reinforce.group_size: expected at least 2 with leave-one-out, got 1");
    let constant = GrpoConfig { aggregation: Aggregation::ConstantLength, ..GrpoConfig::default() };
    let no_length = Grpo::new(constant, optimiser(), ReferenceConfig::default(), 8).err().unwrap().to_string();
    assert_eq!(no_length, "grpo.constant_length: expected at least 1, because the aggregation is constant-length, got 0");
    let cispo = |config| GrpoConfig { clipped: Clipped::Weight, ..config }.check(8).unwrap_err().to_string();
    let sequence = cispo(GrpoConfig { ratio: gradus_agents::grpo::Ratio::Sequence, ..GrpoConfig::default() });
    assert_eq!(sequence, "grpo.ratio: expected token with clipped = \"weight\", got sequence");
    let dual = cispo(GrpoConfig { dual_clip: 3.0, ..GrpoConfig::default() });
    assert_eq!(dual, "grpo.dual_clip: expected inf with clipped = \"weight\", got 3");
    let stale = ReinforceConfig { epochs: 2, ..ReinforceConfig::default() }.check(4).unwrap_err().to_string();
    assert_eq!(stale, "reinforce.clip: expected a number above 0 with several epochs or minibatches, got inf");
    let unmoved = ReferenceConfig { adaptive_target: 6.0, ..ReferenceConfig::default() }.check().unwrap_err().to_string();
    assert_eq!(unmoved, "reference.coefficient: expected a number above 0 with adaptive_target, got 0");
}

fn grpo(config: GrpoConfig, reference: ReferenceConfig) -> Grpo {
    Grpo::new(GrpoConfig { group_size: 3, epochs: 1, minibatches: 1, ..config }, optimiser(), reference, 6).unwrap()
}
