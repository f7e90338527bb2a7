//! Settings that are known to work, as they stand in `src/presets/`.

/// A set of settings for an agent in a world.
pub struct Preset {
    /// The agent.
    pub agent: &'static str,
    /// The world; `text` is every task of text that has no presets of its own.
    pub environment: &'static str,
    /// Its name; `default` is taken where none is asked for.
    pub name: &'static str,
    /// The settings, in TOML; the comment above them says where they come from, and `tests/presets.rs` holds it to that.
    pub text: &'static str,
}

impl Preset {
    /// The comment above the settings, in one line.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        lines.join(" ")
    }
}

macro_rules! presets {
    ($($environment:literal $agent:literal $name:literal),* $(,)?) => {
        &[$(Preset {
            agent: $agent,
            environment: $environment,
            name: $name,
            text: include_str!(concat!($environment, "-", $agent, "-", $name, ".toml")),
        }),*]
    };
}

/// All of them.
pub const PRESETS: &[Preset] = presets![
    "cartpole" "reinforce" "default",
    "cartpole" "reinforce" "none",
    "cartpole" "reinforce" "mean",
    "cartpole" "a2c" "default",
    "cartpole" "trpo" "default",
    "cartpole" "grpo" "default",
    "cartpole" "ppo" "default",
    "cartpole" "ppo" "penalty",
    "cartpole" "ppo" "cleanrl",
    "cartpole" "ppo" "zoo",
    "cartpole" "ppo" "sb3",
    "mountain-car" "reinforce" "default",
    "mountain-car" "a2c" "default",
    "mountain-car" "trpo" "default",
    "mountain-car" "ppo" "default",
    "mountain-car" "grpo" "default",
    "mountain-car-continuous" "reinforce" "default",
    "mountain-car-continuous" "a2c" "default",
    "mountain-car-continuous" "trpo" "default",
    "mountain-car-continuous" "ppo" "default",
    "mountain-car-continuous" "grpo" "default",
    "acrobot" "reinforce" "default",
    "acrobot" "a2c" "default",
    "acrobot" "trpo" "default",
    "acrobot" "ppo" "default",
    "acrobot" "grpo" "default",
    "pendulum" "reinforce" "default",
    "pendulum" "a2c" "default",
    "pendulum" "trpo" "default",
    "pendulum" "ppo" "default",
    "pendulum" "grpo" "default",
    "text" "reinforce" "default",
    "text" "ppo" "default",
    "text" "grpo" "default",
    "sort" "grpo" "default",
];
