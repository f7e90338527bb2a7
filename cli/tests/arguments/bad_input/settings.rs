//! Settings that are unknown, out of range or contradict each other are refused before anything is written.

use std::fs;

use super::gradus;
use gradus_testing::command::{contents, error_of};

#[test]
fn unknown_names_and_values_out_of_range_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["pbo", "cartpole"], "unknown agent `pbo`; did you mean `ppo`?"),
        (&["ppo", "cartpol"], "unknown environment `cartpol`; did you mean `cartpole`?"),
        (&["ppo", "CartPole-v2"], "unknown environment `CartPole-v2`; did you mean `CartPole-v1`?"),
        (&["ppo", "cartpole", "--preset", "cleanrI"], "unknown preset `cleanrI`; did you mean `cleanrl`?"),
        (&["ppo", "cartpole", "--set", "ppo.clib=0.1"], "unknown setting `ppo.clib`; did you mean `ppo.clip`?"),
        (&["ppo", "cartpole", "--set", "clip_range=0.1"], "unknown setting `clip_range`; here it is called `ppo.clip`"),
        (&["cartpole", "ppo", "--set", "n_steps=8"], "unknown setting `n_steps`; here it is called `ppo.rollout_steps`"),
        (&["ppo", "cartpole", "--set", "clib=0.1"], "unknown setting `clib`; did you mean `ppo.clip`?"),
        (&["ppo", "cartpole", "--set", "quux=1"], "unknown setting `quux`; `gradus list --settings` explains all settings"),
        (&["ppo", "cartpole", "--set", "steps=1.5"], "steps: expected a whole number from 0 up, got 1.5"),
        (&["ppo", "ppo"], "environment: expected the name of an environment, such as cartpole, got the agent `ppo`"),
        (&["cartpole", "cartpole"], "agent: expected the name of an agent, such as ppo, got the environment `cartpole`"),
        (&["ppo", "cartpole", "--out", "/dev/null"], "/dev/null: expected a folder that is new or empty, got a file"),
        (&["ppo", "cartpole", "--set", "ppo.clip"], "--set: expected key=value, got `ppo.clip`"),
        (&["ppo", "cartpole", "--set", "ppo.clip=much"], "ppo.clip: expected a number, got \"much\""),
        (&["ppo", "cartpole", "--set", "ppo.epochs=1.5"], "ppo.epochs: expected a whole number from 0 up, got 1.5"),
        (&["ppo", "cartpole", "--set", "ppo.epochs=-1"], "ppo.epochs: expected a whole number from 0 up, got -1"),
        (&["ppo", "cartpole", "--set", "optimiser.rule=adma"], "optimiser.rule: expected one of adam, rmsprop, radam, got \"adma\""),
        (&["ppo", "cartpole", "--set", "agent=grpo"], "agent: expected ppo, as on the command line, got grpo"),
        (&["ppo", "cartpole", "--set", "environment=pendulum"], "environment: expected cartpole, as on the command line, got pendulum"),
        (&["dqn", "pendulum"], "dqn: expected an environment with discrete actions, got Box(1 dimensions, low [-2.0], high [2.0])"),
        (
            &["pqn", "copy"],
            "pqn: expected an environment whose observations are rows of numbers, got Text(at most 11 tokens, vocabulary 11)",
        ),
        (&["dqn", "cartpole", "--set", "dqn.buffer_size=10"], "dqn.buffer_size: expected at least 128, the size of a batch, got 10"),
        (
            &["qr-dqn", "cartpole", "--set", "qr-dqn.n_step=200000"],
            "qr-dqn.n_step: expected 1 to 100000, the decisions of each environment in the buffer, got 200000",
        ),
        (
            &["dqn", "cartpole", "--set", "dqn.exploration_final_eps=1.5"],
            "dqn.exploration_final_eps: expected a number from 0 to 1, got 1.5",
        ),
        (&["pqn", "cartpole", "--set", "pqn.exploration_fraction=-1"], "pqn.exploration_fraction: expected a number from 0 to 1, got -1"),
        (&["dqn", "cartpole", "--set", "dqn.tau=0"], "dqn.tau: expected a number above 0 and at most 1, got 0"),
        (
            &["dqn", "cartpole", "--set", "dqn.updates_per_step=nan"],
            "dqn.updates_per_step: expected a number above 0 and at most 1000000, got NaN",
        ),
        (&["qr-dqn", "cartpole", "--set", "qr-dqn.quantiles=0"], "qr-dqn.quantiles: expected 1 to 1024, got 0"),
        (
            &["a3c", "cartpole", "--set", "a3c.workers=3"],
            "a3c.workers: expected a number that divides the number of environments, 8, got 3",
        ),
        (&["a3c", "cartpole", "--set", "a3c.spread=2"], "a3c.spread: expected a number from 0 to 1, got 2"),
        (
            &["ppo", "cartpole", "--set", "network.layer_norm=true"],
            "network.layer_norm: expected false, because only networks of action values, and those of SAC, TD3 and DDPG, have it, got true",
        ),
        (
            &["ppo", "cartpole", "--set", "network.trunk=nature"],
            "network.trunk: expected none, because observations are no images, got nature",
        ),
        (
            &["ppo", "breakout", "--set", "network.trunk=16x3,16x9"],
            "network.trunk: expected windows that fit into the image, got 16x9 for 8 x 8 pixels",
        ),
        (
            &["dqn", "breakout", "--set", "network.trunk=16y3"],
            "network.trunk: expected none, nature, impala-small, arcade or a list of layers",
        ),
        (
            &["ppo", "breakout", "--set", "wrappers.normalise_observations=true"],
            "wrappers.normalise_observations: expected false, because observations are images, got true",
        ),
        (
            &["dqn", "cartpole", "--set", "network.shared=true"],
            "network.shared: expected false, because a network of action values has one head, got true",
        ),
        (
            &["dqn", "cartpole", "--set", "reference.coefficient=0.1"],
            "reference.coefficient: expected 0 (dqn has no reference policy), got 0.1",
        ),
        (
            &["a2c", "cartpole", "--set", "reference.measure=true"],
            "reference.measure: expected false (a2c has no reference policy), got true",
        ),
        (
            &["trpo", "cartpole", "--set", "reference.stop_kl=0.1"],
            "reference.stop_kl: expected inf (trpo has no reference policy), got 0.1",
        ),
        (&["ppo", "cartpole", "--set", "agent=alphazero"], "unknown agent `alphazero`; expected one of "),
        (&["ppo", "cartpole", "--set", "environment=cartpol"], "unknown environment `cartpol`; did you mean `cartpole`?"),
        (
            &["ppo", "cartpole", "--set", "evaluate_episodes=9223372036854775807"],
            "evaluate_episodes: expected 1 to 16777216, got 9223372036854775807",
        ),
        (
            &["ppo", "cartpole", "--set", "network.hidden=[65536,65536,65536]"],
            "network.hidden: expected at most 2^28 weights in the actor or the action values, network.trunk included, got 8590327808",
        ),
        (
            &["ppo", "cartpole", "--set", "envs=16777216"],
            "ppo.rollout_steps: expected at most 8, because 16777216 environments have at most 2^27 decisions in a rollout, got 32",
        ),
        (
            &["ppo", "cartpole", "--seed", "9223372036854775808"],
            "--seed: expected a whole number from 0 to 9223372036854775807, got 9223372036854775808",
        ),
        (&["ppo", "cartpole", "--stpes", "5"], "unexpected argument '--stpes' found; tip: a similar argument exists: '--steps'"),
        (&["ppo"], "the following required arguments were not provided: <ENV>"),
        (&["ppo", "cartpole", "--set", "ppo=1"], "unknown setting `ppo`"),
        (&["ppo", "cartpole", "--set", "ppo.clip=0"], "ppo.clip: expected a number above 0, or inf, got 0"),
        (&["ppo", "cartpole", "--set", "ppo.gamma=1.5"], "ppo.gamma: expected a number from 0 to 1, got 1.5"),
        (&["ppo", "cartpole", "--set", "ppo.gamma=nan"], "ppo.gamma: expected a number from 0 to 1, got NaN"),
        (&["ppo", "cartpole", "--set", "optimiser.learning_rate=-1"], "optimiser.learning_rate: expected a number above 0, got -1"),
        (&["ppo", "cartpole", "--set", "ppo.epochs=0"], "ppo.epochs: expected at least 1, got 0"),
        (&["ppo", "cartpole", "--set", "network.hidden=[64,0]"], "network.hidden: expected widths from 1 to 65536, got 0"),
        (&["ppo", "cartpole", "--set", "stop_at=475"], "stop_at: expected evaluate_every above 0, got evaluate_every = 0"),
        (
            &["ppo", "cartpole", "--preset", "cleanrl", "--set", "ppo.minibatch_size=513"],
            "ppo.minibatch_size: expected 1 to 512, the decisions of a rollout (4 environments x 128 steps), got 513",
        ),
        (&["ppo", "cartpole", "--envs", "0"], "--envs: expected a whole number from 1 up, got 0"),
        (&["ppo", "cartpole", "--envs", "-4"], "--envs: expected a whole number from 1 up, got -4"),
        (&["ppo", "cartpole", "--set", "envs=0"], "envs: expected 1 to 16777216, got 0"),
        (&["ppo", "cartpole", "--steps", "-5"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got -5"),
        (&["ppo", "cartpole", "--steps", "0"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got 0"),
        (&["ppo", "cartpole", "--steps", "1.5"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got 1.5"),
        (&["ppo", "cartpole", "--seed", "x"], "--seed: expected a whole number from 0 up, got x"),
        (&["ppo", "cartpole", "--threads", "0"], "--threads: expected a whole number from 1 up, got 0"),
        (&["ppo", "cartpole", "--checkpoint-every", "-1"], "--checkpoint-every: expected seconds from 0 up, got -1"),
        (&["ppo", "cartpole", "--config", "missing.toml"], "cannot read missing.toml: No such file or directory (os error 2)"),
        (&["--resume", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&gradus(dir.path(), &[&["train"], *arguments].concat()));
        assert!(error.starts_with(expected), "{arguments:?}:\n  expected {expected}\n  got      {error}");
        assert!(contents(dir.path()).is_empty(), "{arguments:?} left something behind");
    }
}

#[test]
fn a_configuration_file_is_named_in_its_errors() {
    let dir = gradus_testing::tempdir().unwrap();
    for (text, expected) in [
        ("steps = [", "bad.toml: settings: expected TOML, got "),
        ("stepps = 3", "bad.toml: unknown setting `stepps`; did you mean `steps`?"),
        ("[ppo]\nclip = true", "bad.toml: ppo.clip: expected a number, got true"),
    ] {
        fs::write(dir.path().join("bad.toml"), text).unwrap();
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "bad.toml"]));
        assert!(error.starts_with(expected), "expected {expected}\ngot      {error}");
    }
}

#[test]
fn settings_that_do_not_apply_to_texts_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["trpo", "target-sum"], "agent: expected another agent (a transformer has no Fisher-vector product), got trpo"),
        (
            &["grpo", "target-sum", "--set", "grpo.group_size=1"],
            "grpo.group_size: expected at least 2 (a group of one has nothing to compare), got 1",
        ),
        (
            &["ppo", "target-sum", "--set", "wrappers.normalise_observations=true"],
            "wrappers.normalise_observations: expected false, because observations are texts, got true",
        ),
        (
            &["ppo", "target-sum", "--set", "wrappers.time_aware=true"],
            "wrappers.time_aware: expected false, because observations are texts, got true",
        ),
        (
            &["ppo", "target-sum", "--set", "wrappers.frame_stack=4"],
            "wrappers.frame_stack: expected 1, because observations are texts, got 4",
        ),
        (&["ppo", "target-sum", "--set", "max_concurrent=100000000"], "max_concurrent: expected 0 to 16777216, got 100000000"),
        (
            &["grpo", "target-sum", "--set", "transformer.lora_rank=4"],
            "transformer.lora_rank: expected 0, because only a pretrained model (chat:) has what adapters are trained beside, got 4",
        ),
        (
            &["ppo", "target-sum", "--set", "transformer.width=40"],
            "transformer.width: expected a multiple of 64 (16 for each of 4 heads), up to 8192, got 40",
        ),
        (
            &["ppo", "target-sum", "--set", "text.length_penalty=-1"],
            "text: `target-sum`: length_penalty: expected a finite number of at least 0, got -1",
        ),
        (
            &["ppo", "target-sum", "--set", "text.max_new_tokens=1000000000000"],
            "text: `target-sum`: max_new_tokens: expected 1 to 65536, got 1000000000000",
        ),
        (
            &["ppo", "target-sum", "--set", "text.overlong_buffer=65534"],
            "text: `target-sum`: max_new_tokens + overlong_buffer: expected 1 to 65536, got 65538",
        ),
        (
            &["grpo", "target-sum", "--preset", "cispo", "--set", "grpo.ratio=sequence"],
            "grpo.ratio: expected token with clipped = \"weight\", got sequence",
        ),
        (
            &["reinforce", "target-sum", "--set", "reinforce.minibatches=2"],
            "reinforce.clip: expected a number above 0 with several epochs or minibatches, got inf",
        ),
        (&["grpo", "file:nowhere"], "text: cannot read nowhere: No such file or directory (os error 2)"),
        (&["ppo", "target-sum", "--set", "reward_model.folder=nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
        (
            &["ppo", "target-sum", "--set", "reward_model.retrain_every=5"],
            "reward_model.pairs: expected above 0, because reward_model.retrain_every is set, got 0",
        ),
        (&["ppo", "target-sum", "--set", "reward_model.completions=1"], "reward_model.completions: expected 2 to 1024, got 1"),
        (&["ppo", "target-sum", "--set", "reward_model.completions=1025"], "reward_model.completions: expected 2 to 1024, got 1025"),
        (
            &["ppo", "target-sum", "--set", "reward_model.pairs=8", "--set", "wrappers.clip_reward=1"],
            "wrappers: expected unchanged rewards with a reward model, got scaled, normalised or clipped rewards",
        ),
        (&["ppo", "target-sum", "--set", "init=nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["train"], *arguments].concat())), *expected, "{arguments:?}");
    }
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "target-sum", "--set", "network.gsde=true"]));
    assert!(error.starts_with("unknown setting `network.gsde`; "), "{error}");
    assert!(contents(dir.path()).is_empty(), "something was left behind");
}
