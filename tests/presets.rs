//! A preset that names a source has that source's numbers, except for the differences that its first lines declare.
//!
//! The tables below were typed from the sources that they name. Our value coefficient multiplies half of the squared error. In
//! Stable-Baselines3 and rl-zoo it multiplies the whole squared error, so the tables have twice the value of these sources. Only settings
//! are compared, not losses. TRPO's critic loss, for example, is half of sb3-contrib's. That difference only matters because of Adam's
//! epsilon.

use std::collections::BTreeMap;

use gradus::Config;
use gradus::agents::{Preset, registry};

/// Settings and their values in a source.
type Rows = &'static [(&'static str, &'static str)];

/// stable_baselines3 2.9.2: `common/policies.py` (`ActorCriticPolicy`), `common/on_policy_algorithm.py` and, for settings that rl-zoo uses,
/// `common/vec_env/vec_normalize.py`. Features that Stable-Baselines3 does not have are off.
const SB3: Rows = &[
    ("envs", "1"),
    ("network.hidden", "[64, 64]"),
    ("network.activation", "tanh"),
    ("network.shared", "false"),
    ("network.orthogonal", "true"),
    ("network.layer_norm", "false"),
    ("network.log_std_init", "0"),
    ("network.gsde", "false"),
    ("network.gsde_sample_every", "0"), // sde_sample_freq = -1: once per rollout
    ("optimiser.epsilon", "1e-5"),
    ("optimiser.critic_learning_rate_ratio", "1"),
    ("optimiser.schedule", "constant"),
    ("optimiser.weight_decay", "0"),
    ("optimiser.max_grad_norm", "0.5"),
    ("optimiser.clip_per_group", "false"), // clip_grad_norm_ of all parameters
    ("reference.coefficient", "0"),
    ("wrappers.normalise_observations", "false"),
    ("wrappers.normalise_rewards", "false"),
    ("wrappers.reward_discount", "0.99"),
    ("wrappers.reward_scale", "1"),
    ("wrappers.clip_reward", "inf"),
    ("wrappers.frame_stack", "1"),
    ("wrappers.time_aware", "false"),
];

/// stable_baselines3 2.9.2, `a2c/a2c.py`.
const SB3_A2C: Rows = &[
    ("optimiser.rule", "rmsprop"),
    ("optimiser.learning_rate", "7e-4"),
    ("a2c.rollout_steps", "5"),
    ("a2c.gamma", "0.99"),
    ("a2c.gae_lambda", "1"),
    ("a2c.truncated", "bootstraps"),
    ("a2c.normalise_advantages", "false"),
    ("a2c.entropy_coefficient", "0"),
    ("a2c.value_coefficient", "1"), // vf_coef = 0.5
];

/// stable_baselines3 2.9.2, `ppo/ppo.py`.
const SB3_PPO: Rows = &[
    ("optimiser.rule", "adam"),
    ("optimiser.learning_rate", "3e-4"),
    ("ppo.rollout_steps", "2048"),
    ("ppo.episodes_per_env", "0"),
    ("ppo.epochs", "10"),
    ("ppo.minibatch_size", "64"),
    ("ppo.gamma", "0.99"),
    ("ppo.gae_lambda", "0.95"),
    ("ppo.truncated", "bootstraps"),
    ("ppo.clip", "0.2"),
    ("ppo.clip_schedule", "constant"),
    ("ppo.dual_clip", "inf"),
    ("ppo.kl_coefficient", "0"),
    ("ppo.adaptive_kl_target", "inf"),
    ("ppo.clip_value", "inf"), // clip_range_vf = None
    ("ppo.huber", "inf"),
    ("ppo.entropy_coefficient", "0"),
    ("ppo.value_coefficient", "1"), // vf_coef = 0.5
    ("ppo.normalise_advantages", "true"),
    ("ppo.normalise_over", "minibatch"),
    ("ppo.whiten_rewards", "false"),
    ("ppo.recompute_advantages", "false"),
    ("ppo.target_kl", "inf"), // None
    ("ppo.kl_stop", "minibatch"),
];

/// stable_baselines3 2.9.2, `dqn/dqn.py`, `dqn/policies.py` and `common/off_policy_algorithm.py`, where they differ from the on-policy tables.
const SB3_DQN: Rows = &[
    ("network.activation", "relu"),
    ("network.orthogonal", "false"), // torch.nn.Linear's
    ("optimiser.rule", "adam"),
    ("optimiser.epsilon", "1e-8"), // torch.optim.Adam's
    ("optimiser.learning_rate", "1e-4"),
    ("optimiser.max_grad_norm", "10"),
    ("dqn.loss", "huber"),
    ("dqn.double", "false"),
    ("dqn.dueling", "false"),
    ("dqn.rollout_steps", "4"),       // train_freq
    ("dqn.updates_per_step", "0.25"), // gradient_steps = 1
    ("dqn.learning_starts", "100"),
    ("dqn.buffer_size", "1_000_000"),
    ("dqn.batch_size", "32"),
    ("dqn.gamma", "0.99"),
    ("dqn.n_step", "1"),
    ("dqn.target_update_interval", "10_000"),
    ("dqn.tau", "1"),
    ("dqn.exploration_fraction", "0.1"),
    ("dqn.exploration_initial_eps", "1"),
    ("dqn.exploration_final_eps", "0.05"),
    ("dqn.priority_exponent", "0"), // uniform
    ("dqn.importance_exponent", "0.4"),
];

/// stable_baselines3 2.9.2, `ddpg/ddpg.py`, `td3/td3.py` and `td3/policies.py`; the noise is an argument.
const SB3_DDPG: Rows = &[
    ("network.activation", "relu"),
    ("network.orthogonal", "false"), // torch.nn.Linear's
    ("network.hidden", "[400, 300]"),
    ("optimiser.rule", "adam"),
    ("optimiser.epsilon", "1e-8"), // torch.optim.Adam's
    ("optimiser.learning_rate", "1e-3"),
    ("optimiser.max_grad_norm", "inf"), // none
    ("ddpg.tau", "0.005"),
    ("ddpg.rollout_steps", "1"),    // train_freq
    ("ddpg.updates_per_step", "1"), // gradient_steps
    ("ddpg.learning_starts", "100"),
    ("ddpg.buffer_size", "1_000_000"),
    ("ddpg.batch_size", "256"),
    ("ddpg.gamma", "0.99"),
    ("ddpg.n_step", "1"),
    ("ddpg.priority_exponent", "0"), // uniform
    ("ddpg.importance_exponent", "0.4"),
];

/// The same files, for TD3.
const SB3_TD3: Rows = &[
    ("network.activation", "relu"),
    ("network.orthogonal", "false"), // torch.nn.Linear's
    ("network.hidden", "[400, 300]"),
    ("optimiser.rule", "adam"),
    ("optimiser.epsilon", "1e-8"), // torch.optim.Adam's
    ("optimiser.learning_rate", "1e-3"),
    ("optimiser.max_grad_norm", "inf"), // none
    ("td3.tau", "0.005"),
    ("td3.rollout_steps", "1"),    // train_freq
    ("td3.updates_per_step", "1"), // gradient_steps
    ("td3.learning_starts", "100"),
    ("td3.buffer_size", "1_000_000"),
    ("td3.batch_size", "256"),
    ("td3.gamma", "0.99"),
    ("td3.n_step", "1"),
    ("td3.priority_exponent", "0"), // uniform
    ("td3.importance_exponent", "0.4"),
    ("td3.n_critics", "2"),
    ("td3.policy_delay", "2"),
    ("td3.target_policy_noise", "0.2"),
    ("td3.target_noise_clip", "0.5"),
];

/// stable_baselines3 2.9.2, `sac/sac.py` and `sac/policies.py`.
const SB3_SAC: Rows = &[
    ("network.activation", "relu"),
    ("network.orthogonal", "false"), // torch.nn.Linear's
    ("network.hidden", "[256, 256]"),
    ("optimiser.rule", "adam"),
    ("optimiser.epsilon", "1e-8"), // torch.optim.Adam's
    ("optimiser.learning_rate", "3e-4"),
    ("optimiser.max_grad_norm", "inf"), // none
    ("sac.tau", "0.005"),
    ("sac.rollout_steps", "1"),    // train_freq
    ("sac.updates_per_step", "1"), // gradient_steps
    ("sac.learning_starts", "100"),
    ("sac.buffer_size", "1_000_000"),
    ("sac.batch_size", "256"),
    ("sac.gamma", "0.99"),
    ("sac.n_step", "1"),
    ("sac.priority_exponent", "0"), // uniform
    ("sac.importance_exponent", "0.4"),
    ("sac.n_critics", "2"),
    ("sac.ent_coef", "1"), // "auto" begins with 1
    ("sac.auto_ent_coef", "true"),
    ("sac.target_entropy", "-1"), // for each dimension
    ("sac.log_std_bounds", "clamp"),
];

/// cleanrl 1.0, `ddpg_continuous_action.py` and `td3_continuous_action.py`, where they differ from Stable-Baselines3.
const CLEANRL_DDPG: Rows = &[
    ("steps", "1_000_000"),
    ("network.hidden", "[256, 256]"),
    ("optimiser.learning_rate", "3e-4"),
    ("ddpg.learning_starts", "25e3"),
    ("ddpg.action_noise", "normal"),
    ("ddpg.action_noise_std", "0.1"),
];
const CLEANRL_TD3: Rows = &[
    ("steps", "1_000_000"),
    ("network.hidden", "[256, 256]"),
    ("optimiser.learning_rate", "3e-4"),
    ("td3.learning_starts", "25e3"),
    ("td3.action_noise", "normal"),
    ("td3.action_noise_std", "0.1"),
];

/// cleanrl 1.0, `sac_continuous_action.py`, where it differs from Stable-Baselines3.
const CLEANRL_SAC: Rows = &[
    ("steps", "1_000_000"),
    ("optimiser.critic_learning_rate_ratio", "3.3333333"), // q_lr = 1e-3, policy_lr = 3e-4
    ("sac.learning_starts", "5e3"),
    ("sac.target_entropy", "-1.6931472"), // -1 for actions that are scaled by 2
    ("sac.log_std_bounds", "tanh"),
];

/// The examples of Stable-Baselines3's documentation: Pendulum, with Gaussian noise where an agent needs noise.
const SB3_EXAMPLE: Rows = &[
    ("steps", "10_000"),
    ("ddpg.action_noise", "normal"),
    ("ddpg.action_noise_std", "0.1"),
    ("td3.action_noise", "normal"),
    ("td3.action_noise_std", "0.1"),
];

/// sb3_contrib 2.9.2, `qrdqn/qrdqn.py` and `qrdqn/policies.py`.
const CONTRIB_QR_DQN: Rows = &[
    ("network.activation", "relu"),
    ("network.orthogonal", "false"), // torch.nn.Linear's
    ("optimiser.rule", "adam"),
    ("optimiser.learning_rate", "5e-5"),
    ("optimiser.max_grad_norm", "inf"), // None
    ("qr-dqn.quantiles", "200"),
    ("qr-dqn.double", "false"),
    ("qr-dqn.dueling", "false"),
    ("qr-dqn.rollout_steps", "4"),
    ("qr-dqn.updates_per_step", "0.25"),
    ("qr-dqn.learning_starts", "100"),
    ("qr-dqn.buffer_size", "1_000_000"),
    ("qr-dqn.batch_size", "32"),
    ("qr-dqn.gamma", "0.99"),
    ("qr-dqn.n_step", "1"),
    ("qr-dqn.target_update_interval", "10_000"),
    ("qr-dqn.tau", "1"),
    ("qr-dqn.exploration_fraction", "0.005"),
    ("qr-dqn.exploration_initial_eps", "1"),
    ("qr-dqn.exploration_final_eps", "0.01"),
    ("qr-dqn.priority_exponent", "0"),
    ("qr-dqn.importance_exponent", "0.4"),
];

/// CleanRL, `cleanrl/dqn.py`.
const CLEANRL_DQN: Rows = &[
    ("steps", "500000"),
    ("network.hidden", "[120, 84]"),
    ("optimiser.learning_rate", "2.5e-4"),
    ("optimiser.max_grad_norm", "inf"), // does not clip gradients
    ("dqn.loss", "squared"),
    ("dqn.rollout_steps", "10"),     // train_frequency
    ("dqn.updates_per_step", "0.1"), // one update
    ("dqn.learning_starts", "10000"),
    ("dqn.buffer_size", "10000"),
    ("dqn.batch_size", "128"),
    ("dqn.target_update_interval", "500"),
    ("dqn.exploration_fraction", "0.5"),
];

/// CleanRL, `cleanrl/pqn.py`, at commit fe8d8a03.
const CLEANRL_PQN: Rows = &[
    ("steps", "500000"),
    ("envs", "4"),
    ("network.hidden", "[120, 84]"),
    ("network.activation", "relu"),
    ("network.orthogonal", "true"),
    ("network.layer_norm", "true"),
    ("optimiser.rule", "radam"),
    ("optimiser.epsilon", "1e-8"), // torch.optim.RAdam's
    ("optimiser.learning_rate", "2.5e-4"),
    ("optimiser.schedule", "linear"),
    ("optimiser.max_grad_norm", "10"),
    ("pqn.rollout_steps", "128"),
    ("pqn.epochs", "4"),
    ("pqn.minibatches", "4"),
    ("pqn.gamma", "0.99"),
    ("pqn.q_lambda", "0.65"),
    ("pqn.exploration_fraction", "0.5"),
    ("pqn.exploration_initial_eps", "1"),
    ("pqn.exploration_final_eps", "0.05"),
];

/// sb3_contrib 2.9.2, `trpo/trpo.py`.
const CONTRIB_TRPO: Rows = &[
    ("optimiser.rule", "adam"),
    ("optimiser.learning_rate", "1e-3"),
    ("optimiser.max_grad_norm", "inf"), // `train` does not clip gradients
    ("trpo.rollout_steps", "2048"),
    ("trpo.gamma", "0.99"),
    ("trpo.gae_lambda", "0.95"),
    ("trpo.truncated", "bootstraps"),
    ("trpo.normalise_advantages", "true"),
    ("trpo.step", "trust-region"),
    ("trpo.step_size", "0.1"), // unused with a trust region
    ("trpo.max_kl", "0.01"),
    ("trpo.cg_iterations", "15"),
    ("trpo.cg_damping", "0.1"),
    ("trpo.fisher_stride", "1"), // sub_sampling_factor
    ("trpo.line_search_steps", "10"),
    ("trpo.line_search_shrink", "0.8"),
    ("trpo.critic_epochs", "10"),
    ("trpo.critic_minibatch_size", "128"),
];

/// CleanRL, `cleanrl/ppo.py`: the settings that differ from Stable-Baselines3's. CleanRL treats truncated episodes as terminated.
const CLEANRL_PPO: Rows = &[
    ("steps", "500000"),
    ("envs", "4"),
    ("optimiser.learning_rate", "2.5e-4"),
    ("optimiser.schedule", "linear"),
    ("ppo.rollout_steps", "128"),
    ("ppo.epochs", "4"),
    ("ppo.minibatch_size", "128"), // 4 environments x 128 steps in 4 minibatches
    ("ppo.truncated", "ends"),
    ("ppo.clip_value", "0.2"),
    ("ppo.entropy_coefficient", "0.01"),
    ("ppo.value_coefficient", "0.5"), // multiplies half of the squared error, like our coefficient
    ("ppo.kl_stop", "epoch"),
];

/// The settings that `normalize: true` in rl-zoo's files stands for. If the file also gives a gamma, `wrappers.reward_discount` has that
/// value.
const NORMALISED: Rows = &[("wrappers.normalise_observations", "true"), ("wrappers.normalise_rewards", "true")];

/// A preset that names a source, and the tables of that source. Later tables override earlier tables.
struct Claim {
    /// Environment, agent and name, as in the file's name.
    preset: &'static str,
    tables: &'static [Rows],
}

/// The claims that are checked. The last table of each claim is from rl_zoo3 2.9.2, `hyperparams/AGENT.yml`, under the environment's
/// Gymnasium name, unless a comment or the table's name gives another source.
const CLAIMS: &[Claim] = &[
    Claim { preset: "cartpole-a2c-default", tables: &[SB3, SB3_A2C, &[("steps", "5e5"), ("envs", "8"), ("a2c.entropy_coefficient", "0")]] },
    Claim { preset: "cartpole-ppo-cleanrl", tables: &[SB3, SB3_PPO, CLEANRL_PPO] },
    Claim { preset: "cartpole-ppo-penalty", tables: &[SB3, SB3_PPO, CLEANRL_PPO] },
    // the README of Stable-Baselines3 trains for this number of steps
    Claim { preset: "cartpole-ppo-sb3", tables: &[SB3, SB3_PPO, &[("steps", "10_000")]] },
    Claim {
        preset: "cartpole-ppo-zoo",
        tables: &[
            SB3,
            SB3_PPO,
            &[
                ("steps", "1e5"),
                ("envs", "8"),
                ("ppo.rollout_steps", "32"),
                ("ppo.minibatch_size", "256"),
                ("ppo.gae_lambda", "0.8"),
                ("ppo.gamma", "0.98"),
                ("ppo.epochs", "20"),
                ("ppo.entropy_coefficient", "0"),
                ("optimiser.learning_rate", "0.001"), // lin_0.001
                ("optimiser.schedule", "linear"),
                ("ppo.clip", "0.2"), // lin_0.2
                ("ppo.clip_schedule", "linear"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-a2c-default",
        tables: &[SB3, SB3_A2C, NORMALISED, &[("steps", "1e6"), ("envs", "16"), ("a2c.entropy_coefficient", "0")]],
    },
    Claim {
        preset: "mountain-car-ppo-default",
        tables: &[
            SB3,
            SB3_PPO,
            NORMALISED,
            &[
                ("steps", "1e6"),
                ("envs", "16"),
                ("ppo.rollout_steps", "16"),
                ("ppo.gae_lambda", "0.98"),
                ("ppo.gamma", "0.99"),
                ("ppo.epochs", "4"),
                ("ppo.entropy_coefficient", "0"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-trpo-default",
        tables: &[
            SB3,
            CONTRIB_TRPO,
            NORMALISED,
            &[("steps", "1e5"), ("envs", "2"), ("trpo.rollout_steps", "1024"), ("trpo.critic_epochs", "20")],
        ],
    },
    Claim {
        preset: "mountain-car-continuous-a2c-default",
        tables: &[
            SB3,
            SB3_A2C,
            NORMALISED,
            &[
                ("steps", "1e5"),
                ("envs", "4"),
                ("a2c.rollout_steps", "100"),
                ("a2c.entropy_coefficient", "0"),
                ("network.gsde", "true"),
                ("network.gsde_sample_every", "16"),
                ("network.log_std_init", "0"),
                ("network.orthogonal", "false"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-continuous-trpo-default",
        tables: &[
            SB3,
            CONTRIB_TRPO,
            NORMALISED,
            &[("steps", "50_000"), ("envs", "2"), ("network.gsde", "true"), ("network.gsde_sample_every", "4")],
        ],
    },
    Claim {
        preset: "acrobot-a2c-default",
        tables: &[SB3, SB3_A2C, NORMALISED, &[("steps", "5e5"), ("envs", "16"), ("a2c.entropy_coefficient", "0")]],
    },
    Claim {
        preset: "acrobot-ppo-default",
        tables: &[
            SB3,
            SB3_PPO,
            NORMALISED,
            &[
                ("steps", "1e6"),
                ("envs", "16"),
                ("ppo.rollout_steps", "256"),
                ("ppo.gae_lambda", "0.94"),
                ("ppo.gamma", "0.99"),
                ("ppo.epochs", "4"),
                ("ppo.entropy_coefficient", "0"),
            ],
        ],
    },
    Claim {
        preset: "acrobot-trpo-default",
        tables: &[SB3, CONTRIB_TRPO, NORMALISED, &[("steps", "1e5"), ("envs", "2"), ("trpo.rollout_steps", "1024")]],
    },
    Claim {
        preset: "pendulum-a2c-default",
        tables: &[
            SB3,
            SB3_A2C,
            NORMALISED,
            &[
                ("steps", "1e6"),
                ("envs", "8"),
                ("a2c.entropy_coefficient", "0"),
                ("optimiser.max_grad_norm", "0.5"),
                ("a2c.rollout_steps", "8"),
                ("a2c.gae_lambda", "0.9"),
                ("a2c.value_coefficient", "0.8"), // vf_coef: 0.4
                ("a2c.gamma", "0.9"),
                ("wrappers.reward_discount", "0.9"), // gamma
                ("optimiser.rule", "rmsprop"),
                ("a2c.normalise_advantages", "false"),
                ("optimiser.learning_rate", "7e-4"), // lin_7e-4
                ("optimiser.schedule", "linear"),
                ("network.gsde", "true"),
                ("network.log_std_init", "-2"),
                ("network.orthogonal", "false"),
            ],
        ],
    },
    Claim {
        preset: "pendulum-ppo-default",
        tables: &[
            SB3,
            SB3_PPO,
            &[
                ("steps", "1e5"),
                ("envs", "4"),
                ("ppo.rollout_steps", "1024"),
                ("ppo.gae_lambda", "0.95"),
                ("ppo.gamma", "0.9"),
                ("ppo.epochs", "10"),
                ("ppo.entropy_coefficient", "0"),
                ("optimiser.learning_rate", "1e-3"),
                ("ppo.clip", "0.2"),
                ("network.gsde", "true"),
                ("network.gsde_sample_every", "4"),
            ],
        ],
    },
    Claim {
        preset: "cartpole-dqn-zoo",
        tables: &[
            SB3,
            SB3_DQN,
            &[
                ("steps", "5e4"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "2.3e-3"),
                ("dqn.learning_starts", "1000"),
                ("dqn.rollout_steps", "256"),
                ("dqn.updates_per_step", "0.5"),
                ("dqn.buffer_size", "100000"),
                ("dqn.batch_size", "64"),
                ("dqn.gamma", "0.99"),
                ("dqn.target_update_interval", "10"),
                ("dqn.exploration_fraction", "0.16"),
                ("dqn.exploration_final_eps", "0.04"),
            ],
        ],
    },
    Claim {
        preset: "cartpole-qr-dqn-default",
        tables: &[
            SB3,
            CONTRIB_QR_DQN,
            &[
                ("steps", "5e4"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "2.3e-3"),
                ("optimiser.epsilon", "1.5625e-4"), // 0.01 / batch_size, in qrdqn.py
                ("qr-dqn.quantiles", "10"),
                ("qr-dqn.learning_starts", "1000"),
                ("qr-dqn.rollout_steps", "256"),
                ("qr-dqn.updates_per_step", "0.5"),
                ("qr-dqn.buffer_size", "100000"),
                ("qr-dqn.batch_size", "64"),
                ("qr-dqn.gamma", "0.99"),
                ("qr-dqn.target_update_interval", "10"),
                ("qr-dqn.exploration_fraction", "0.16"),
                ("qr-dqn.exploration_final_eps", "0.04"),
            ],
        ],
    },
    Claim { preset: "cartpole-dqn-default", tables: &[SB3, SB3_DQN, CLEANRL_DQN] },
    Claim { preset: "cartpole-dqn-cleanrl", tables: &[SB3, SB3_DQN, CLEANRL_DQN] },
    Claim { preset: "cartpole-pqn-cleanrl", tables: &[SB3, CLEANRL_PQN] },
    Claim {
        preset: "acrobot-dqn-default",
        tables: &[
            SB3,
            SB3_DQN,
            &[
                ("steps", "1e5"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "6.3e-4"),
                ("dqn.learning_starts", "0"),
                ("dqn.rollout_steps", "4"),
                ("dqn.updates_per_step", "1"),
                ("dqn.buffer_size", "50000"),
                ("dqn.batch_size", "128"),
                ("dqn.gamma", "0.99"),
                ("dqn.target_update_interval", "250"),
                ("dqn.exploration_fraction", "0.12"),
                ("dqn.exploration_final_eps", "0.1"),
            ],
        ],
    },
    Claim {
        preset: "acrobot-qr-dqn-default",
        tables: &[
            SB3,
            CONTRIB_QR_DQN,
            &[
                ("steps", "1e5"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "6.3e-4"),
                ("optimiser.epsilon", "7.8125e-5"), // 0.01 / batch_size, in qrdqn.py
                ("qr-dqn.quantiles", "25"),
                ("qr-dqn.learning_starts", "0"),
                ("qr-dqn.rollout_steps", "4"),
                ("qr-dqn.updates_per_step", "1"),
                ("qr-dqn.buffer_size", "50000"),
                ("qr-dqn.batch_size", "128"),
                ("qr-dqn.gamma", "0.99"),
                ("qr-dqn.target_update_interval", "250"),
                ("qr-dqn.exploration_fraction", "0.12"),
                ("qr-dqn.exploration_final_eps", "0.1"),
            ],
        ],
    },
    Claim { preset: "acrobot-dqn-cleanrl", tables: &[SB3, SB3_DQN, CLEANRL_DQN] },
    Claim { preset: "acrobot-pqn-cleanrl", tables: &[SB3, CLEANRL_PQN] },
    Claim {
        preset: "mountain-car-dqn-default",
        tables: &[
            SB3,
            SB3_DQN,
            &[
                ("steps", "1.2e5"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "4e-3"),
                ("dqn.learning_starts", "1000"),
                ("dqn.rollout_steps", "16"),
                ("dqn.updates_per_step", "0.5"),
                ("dqn.buffer_size", "10000"),
                ("dqn.batch_size", "128"),
                ("dqn.gamma", "0.98"),
                ("dqn.target_update_interval", "600"),
                ("dqn.exploration_fraction", "0.2"),
                ("dqn.exploration_final_eps", "0.07"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-qr-dqn-default",
        tables: &[
            SB3,
            CONTRIB_QR_DQN,
            &[
                ("steps", "1.2e5"),
                ("network.hidden", "[256, 256]"),
                ("optimiser.learning_rate", "4e-3"),
                ("optimiser.epsilon", "7.8125e-5"), // 0.01 / batch_size, in qrdqn.py
                ("qr-dqn.quantiles", "25"),
                ("qr-dqn.learning_starts", "1000"),
                ("qr-dqn.rollout_steps", "16"),
                ("qr-dqn.updates_per_step", "0.5"),
                ("qr-dqn.buffer_size", "10000"),
                ("qr-dqn.batch_size", "128"),
                ("qr-dqn.gamma", "0.98"),
                ("qr-dqn.target_update_interval", "600"),
                ("qr-dqn.exploration_fraction", "0.2"),
                ("qr-dqn.exploration_final_eps", "0.07"),
            ],
        ],
    },
    Claim { preset: "mountain-car-dqn-cleanrl", tables: &[SB3, SB3_DQN, CLEANRL_DQN] },
    Claim { preset: "mountain-car-pqn-cleanrl", tables: &[SB3, CLEANRL_PQN] },
    // Stable-Baselines3 has no default number of steps
    Claim {
        preset: "pendulum-ddpg-default",
        tables: &[
            SB3,
            SB3_DDPG,
            &[
                ("steps", "2e4"),
                ("ddpg.gamma", "0.98"),
                ("ddpg.buffer_size", "200000"),
                ("ddpg.learning_starts", "10000"),
                ("ddpg.action_noise", "normal"),
                ("ddpg.action_noise_std", "0.1"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-continuous-ddpg-default",
        tables: &[SB3, SB3_DDPG, &[("steps", "3e5"), ("ddpg.action_noise", "ornstein-uhlenbeck"), ("ddpg.action_noise_std", "0.5")]],
    },
    Claim {
        preset: "pendulum-td3-default",
        tables: &[
            SB3,
            SB3_TD3,
            &[
                ("steps", "2e4"),
                ("td3.gamma", "0.98"),
                ("td3.buffer_size", "200000"),
                ("td3.learning_starts", "10000"),
                ("td3.action_noise", "normal"),
                ("td3.action_noise_std", "0.1"),
            ],
        ],
    },
    Claim {
        preset: "mountain-car-continuous-td3-default",
        tables: &[SB3, SB3_TD3, &[("steps", "3e5"), ("td3.action_noise", "ornstein-uhlenbeck"), ("td3.action_noise_std", "0.5")]],
    },
    Claim { preset: "pendulum-sac-default", tables: &[SB3, SB3_SAC, &[("steps", "2e4"), ("optimiser.learning_rate", "1e-3")]] },
    Claim {
        preset: "mountain-car-continuous-sac-default",
        tables: &[
            SB3,
            SB3_SAC,
            &[
                ("steps", "5e4"),
                ("network.hidden", "[64, 64]"),
                ("network.gsde", "true"),
                ("network.log_std_init", "-3.67"),
                ("sac.buffer_size", "50000"),
                ("sac.batch_size", "512"),
                ("sac.ent_coef", "0.1"),
                ("sac.auto_ent_coef", "false"),
                ("sac.rollout_steps", "32"),
                ("sac.gamma", "0.9999"),
                ("sac.tau", "0.01"),
                ("sac.learning_starts", "0"),
            ],
        ],
    },
    Claim { preset: "pendulum-ddpg-sb3", tables: &[SB3, SB3_DDPG, SB3_EXAMPLE] },
    Claim { preset: "pendulum-td3-sb3", tables: &[SB3, SB3_TD3, SB3_EXAMPLE] },
    Claim { preset: "pendulum-sac-sb3", tables: &[SB3, SB3_SAC, SB3_EXAMPLE] },
    Claim { preset: "pendulum-ddpg-cleanrl", tables: &[SB3, SB3_DDPG, CLEANRL_DDPG] },
    Claim { preset: "pendulum-td3-cleanrl", tables: &[SB3, SB3_TD3, CLEANRL_TD3] },
    Claim { preset: "pendulum-sac-cleanrl", tables: &[SB3, SB3_SAC, CLEANRL_SAC] },
    Claim { preset: "cartpole-dqn-sb3", tables: &[SB3, SB3_DQN, &[("steps", "100_000")]] },
];

/// Settings that have no effect if another setting has the given value. A setting is not compared if it has no effect in the preset or in
/// the source.
const WITHOUT_EFFECT: &[(&str, &str, &str)] = &[
    ("ppo.kl_stop", "ppo.target_kl", "inf"),
    ("network.gsde_sample_every", "network.gsde", "false"),
    ("dqn.importance_exponent", "dqn.priority_exponent", "0"),
    ("qr-dqn.importance_exponent", "qr-dqn.priority_exponent", "0"),
    ("wrappers.reward_discount", "wrappers.normalise_rewards", "false"),
];

fn file_name(preset: &Preset) -> String {
    format!("{}-{}-{}", preset.environment, preset.agent, preset.name)
}

/// Returns whether a line names a source that this file has tables of.
fn names_a_source(line: &str) -> bool {
    ["rl-zoo", "rl_zoo", "cleanrl", "stable-baselines", "stable_baselines", "sb3"].iter().any(|name| line.to_lowercase().contains(name))
}

/// Returns whether two settings are equal, as numbers if both are numbers.
fn same(a: &str, b: &str) -> bool {
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok();
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.trim_matches('"') == b.trim_matches('"'),
    }
}

/// Parses the list of `KEY = OURS (there THEIRS)` after `Differences: ` in the comment above a preset's settings, up to the full stop.
fn declared(preset: &Preset) -> BTreeMap<String, (String, String)> {
    let about = preset.about();
    let Some((_, text)) = about.split_once("Differences: ") else {
        assert!(about.contains("No differences."), "{}: expected `Differences: ...` or `No differences.`", file_name(preset));
        return BTreeMap::new();
    };
    let (list, _) = text.split_once(").").unwrap_or_else(|| panic!("{}: expected `).` at the end of the differences", file_name(preset)));
    let difference = |entry: &str| {
        let parts = entry.split_once(" = ").and_then(|(key, values)| Some((key, values.split_once(" (there ")?)));
        let (key, (ours, theirs)) =
            parts.unwrap_or_else(|| panic!("{}: expected `KEY = OURS (there THEIRS)`, got {entry}", file_name(preset)));
        (key.to_owned(), (ours.to_owned(), theirs.to_owned()))
    };
    list.split("), ").map(difference).collect()
}

/// Returns the errors in a preset's claim, one line each.
fn wrong(preset: &Preset, claim: &Claim, settings: &BTreeMap<String, String>) -> Vec<String> {
    let mut theirs = BTreeMap::new();
    claim.tables.iter().copied().flatten().for_each(|(key, value)| drop(theirs.insert(key.to_string(), value.to_string())));
    let (mut declared, mut wrong) = (declared(preset), Vec::new());
    for (key, ours) in settings {
        if WITHOUT_EFFECT.iter().any(|(of, by, value)| of == key && [settings, &theirs].iter().any(|all| same(&all[*by], value))) {
            continue;
        }
        let Some(there) = theirs.get(key) else {
            wrong.push(format!("{key}: expected a row in the tables of the source, got none"));
            continue;
        };
        match declared.remove(key) {
            None if !same(ours, there) => wrong.push(format!("{key} = {ours} (there {there}): not declared")),
            Some(_) if same(ours, there) => wrong.push(format!("{key} = {ours}: declared as a difference, but the source has it too")),
            Some((other, other_there)) if !(same(&other, ours) && same(&other_there, there)) => {
                wrong.push(format!("{key} = {ours} (there {there}): declared as {other} (there {other_there})"));
            }
            _ => {}
        }
    }
    wrong.extend(declared.into_keys().map(|key| format!("{key}: declared as a difference, but is not compared")));
    wrong
}

/// Returns the settings of a preset that are compared with its source.
fn settings(preset: &Preset) -> BTreeMap<String, String> {
    let config = Config::preset(preset.agent, preset.environment, Some(preset.name)).unwrap();
    let sections = ["network.", "optimiser.", "wrappers.", &format!("{}.", preset.agent)];
    let counts =
        |key: &str| ["steps", "envs", "reference.coefficient"].contains(&key) || sections.iter().any(|section| key.starts_with(section));
    config.settings().into_iter().filter(|(key, _)| counts(key)).collect()
}

fn find(name: &str) -> Preset {
    registry::presets().into_iter().find(|preset| file_name(preset) == name).unwrap_or_else(|| panic!("there is no preset {name}"))
}

#[test]
fn a_preset_that_names_a_source_has_its_numbers_or_declares_the_difference() {
    let mut all = Vec::new();
    for claim in CLAIMS {
        let preset = &find(claim.preset);
        assert!(names_a_source(preset.text.lines().next().unwrap()), "{}: the first line names no source", claim.preset);
        all.extend(wrong(preset, claim, &settings(preset)).into_iter().map(|line| format!("{}: {line}", claim.preset)));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_preset_whose_first_line_names_a_source_has_a_table() {
    for preset in registry::presets().iter().filter(|preset| names_a_source(preset.text.lines().next().unwrap_or_default())) {
        let is_there = CLAIMS.iter().any(|claim| claim.preset == file_name(preset));
        assert!(is_there, "{}: its first line names a source, but `CLAIMS` in tests/presets.rs has no entry for it", file_name(preset));
    }
}

/// CartPole has presets of its own, PQN on MountainCar has none called `default`, FrozenLake and the texts have none.
#[test]
fn presets_for_any_environment_fill_the_gaps_on_everything_but_texts() {
    let rate =
        |agent: &str, environment: &str| Config::preset(agent, environment, None).map(|config| config.optimiser.learning_rate).unwrap();
    assert_eq!(["cartpole", "frozen-lake", "copy"].map(|environment| rate("dqn", environment)), [5e-4, 1e-3, 2.5e-4]);
    assert_eq!(["cartpole", "mountain-car", "copy"].map(|environment| rate("pqn", environment)), [1e-4, 1e-3, 2.5e-4]);
    let cleanrl = Config::preset("pqn", "mountain-car", Some("cleanrl")).unwrap();
    assert_eq!(cleanrl.optimiser.learning_rate, 2.5e-4);
    let error = Config::preset("dqn", "frozen-lake", Some("cleanrl")).unwrap_err().to_string();
    assert_eq!(error, "unknown preset `cleanrl`; expected one of: default");
    let error = Config::preset("dqn", "acrobot", Some("no-such")).unwrap_err().to_string();
    assert_eq!(error, "unknown preset `no-such`; expected one of: default, cleanrl");
}

/// Tests the check itself, on a preset without differences and on one with a difference.
#[test]
fn undeclared_and_wrong_differences_are_found() {
    let claim = |name: &str| CLAIMS.iter().find(|claim| claim.preset == name).unwrap();
    let (zoo, trpo) = (&find("cartpole-ppo-zoo"), &find("acrobot-trpo-default"));
    let with = |preset: &Preset, key: &str, value: &str| {
        let mut changed = settings(preset);
        changed.insert(key.into(), value.into());
        changed
    };
    let message = wrong(zoo, claim("cartpole-ppo-zoo"), &with(zoo, "ppo.gamma", "0.97"));
    assert_eq!(message, ["ppo.gamma = 0.97 (there 0.98): not declared"]);
    let message = wrong(trpo, claim("acrobot-trpo-default"), &with(trpo, "steps", "100000"));
    assert_eq!(message, ["steps = 100000: declared as a difference, but the source has it too"]);
    let message = wrong(trpo, claim("acrobot-trpo-default"), &with(trpo, "steps", "200000"));
    assert_eq!(message, ["steps = 200000 (there 1e5): declared as 300_000 (there 100_000)"]);
    let message = wrong(zoo, claim("cartpole-ppo-zoo"), &with(zoo, "ppo.another", "1"));
    assert_eq!(message, ["ppo.another: expected a row in the tables of the source, got none"]);
    let text = zoo.text.replace("No differences.", "Differences: ppo.gama = 1 (there 2).");
    let message = wrong(&Preset { text: text.leak(), ..*zoo }, claim("cartpole-ppo-zoo"), &settings(zoo));
    assert_eq!(message, ["ppo.gama: declared as a difference, but is not compared"]);
}

/// The tables of docs/coming-from-sb3.md have the defaults of an environment without presets of its own: the first value of a cell is that of the table's first agent.
#[test]
fn the_defaults_beside_stable_baselines3_are_the_ones_here() {
    let page = std::fs::read_to_string(gradus_testing::root().join("docs/coming-from-sb3.md")).unwrap();
    let (mut agent, mut checked) = (String::new(), BTreeMap::<String, usize>::new());
    let next = page.lines().skip(1).chain([""]);
    for (line, next) in page.lines().zip(next).filter(|(line, _)| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [first, there, settings, here] = cells[..] else { continue };
        if next.starts_with("| ---") {
            let named = first.split([',', ' ']).next().unwrap_or_default().to_lowercase();
            agent = if there == "default in SB3" { named } else { String::new() };
            continue;
        }
        let Ok(entry) = registry::find(&agent) else { continue };
        let world = if ["sac", "td3", "ddpg"].contains(&entry.name) { "pendulum" } else { "frozen-lake" };
        // an agent without a preset for any environment has the defaults of its settings
        let config = Config::preset(entry.name, world, Some("any")).or_else(|_| Config::preset(entry.name, "frozen-lake", None)).unwrap();
        let known: BTreeMap<String, String> = config.settings().into_iter().collect();
        let key = settings.trim_matches('`').split('`').next().unwrap_or_default();
        let Some(own) = known.get(key) else { continue };
        let said = here.replace(['*', '`', '"', '\u{a0}'], "").replace('\u{2212}', "-").replace("[256, 256]", "[256,256]");
        let said = said.split([';', ':']).next().unwrap_or_default().trim_end_matches('.');
        // `1 000 000`; then what follows is a word
        let digits = said.replace(' ', "");
        let said = if digits.parse::<f64>().is_ok() { digits } else { said.split([',', ' ']).next().unwrap_or_default().to_owned() };
        let own = own.replace(['"', ' '], "");
        let equal = match (said.parse::<f64>(), own.parse::<f64>()) {
            (Ok(said), Ok(own)) => said == own || (said - own).abs() <= 1e-6 * own.abs(),
            _ => said == own || here.replace(' ', "").contains(&own),
        };
        assert!(equal, "{agent}: {key} is {own}, and the page says {here}");
        *checked.entry(agent.clone()).or_default() += 1;
    }
    assert!(
        ["ppo", "a2c", "trpo", "dqn", "sac", "td3"].iter().all(|agent| checked.get(*agent).is_some_and(|rows| *rows >= 4)),
        "{checked:?}"
    );
}
