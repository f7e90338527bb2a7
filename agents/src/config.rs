//! What an agent says of itself: its settings, how it is built from them, and its presets.

use std::fmt;

use gradus_base::Settings;
use gradus_envs::EnvSpec;
use gradus_nets::{NetworkConfig, QActorCritic, QActorHead, QHead, QNetwork};

use crate::agent::Agent;
use crate::algorithm::Algorithm;
use crate::error::ConfigError;
use crate::parts::groups::{GroupStd, Supervision};
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::ReferenceConfig;

/// The settings of an agent, from which the agent is built.
///
/// Declare the struct with [`settings!`](gradus_base::settings), which gives each field its help and its default, and derive `Clone`,
/// `Debug` and `PartialEq`. TOML must be able to hold every value, so no integer may exceed `i64::MAX`.
pub trait AgentConfig: Settings + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Name of the agent and of its section in the configuration: lowercase letters, digits and hyphens.
    const NAME: &'static str;
    /// Description, in one line.
    const ABOUT: &'static str;
    /// Presets of the agent.
    const PRESETS: &'static [Preset] = &[];

    /// Settings that are the path of a file or folder which the agent reads, or empty.
    const FILES: &'static [&'static str] = &[];

    /// Settings of which the meaning of the policy's parameters depends, although their shapes do not tell it.
    const MEANINGS: &'static [&'static str] = &[];

    /// Whether the agent learns with the actor-critic network that the configuration describes: whether [`build`](AgentConfig::build) returns
    /// [`AgentKind::ActorCritic`].
    const HAS_ACTOR_CRITIC: bool = true;

    /// Setting that is the path of a file of pairs, or empty. The pairs are then those of [`Setup::pairs`].
    const PAIRS: Option<&'static str> = None;

    /// Builds the agent. Returns an error that names the setting that is out of range.
    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError>;

    /// Returns gamma, and the lambda of the GAE advantages that `gradus sample` and `gradus inspect` show for this agent.
    fn discounts(&self) -> (f32, f32) {
        (1.0, 0.95)
    }

    /// Returns which advantages `gradus sample` shows for this agent.
    fn advantages(&self) -> Advantages {
        let (gamma, lambda) = self.discounts();
        Advantages::OfValues { gamma, lambda }
    }

    /// Returns what the updates of a training in `envs` environments compute, for `gradus bench roofline`; `None` if it is not known.
    fn work(&self, envs: usize) -> Option<Work> {
        let _ = envs;
        None
    }

    /// Returns the quantities that follow a schedule and their values after `done` of `steps` environment steps: epsilon, a clip range. When a
    /// run is resumed with another number of steps, they jump, and `gradus train` says so. `epsilon` is that of the next step, any other quantity that of the next update. The
    /// learning rate is not among them.
    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        let _ = (steps, done);
        Vec::new()
    }
}

/// The advantages of the completions of one prompt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advantages {
    /// GAE of the critic's values, with this gamma and lambda.
    OfValues {
        /// Discount factor.
        gamma: f32,
        /// Lambda of GAE.
        lambda: f32,
    },
    /// The discounted return G, without a baseline. This also stands for REINFORCE with a running mean, which a policy file does not have, and
    /// for REINFORCE with a greedy baseline, because `gradus sample` generates no greedy completion.
    OfReturns {
        /// Discount factor.
        gamma: f32,
    },
    /// G_0 minus the mean return of the other completions, as in RLOO.
    AgainstOthers {
        /// Discount factor.
        gamma: f32,
    },
    /// Those of GRPO, (R - mean R) / (std R + 1e-4) within the group, with this kind of standard deviation; [`GroupStd::None`]: R - mean R.
    /// With process supervision the rewards of steps are compared instead of returns, and the advantage of a token is the sum over the steps
    /// that end at or after it.
    OfGroup(GroupStd, Supervision),
}

/// What the updates of an agent compute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Passes over every decision with an actor-critic network.
    ActorCritic {
        /// Forward and backward passes over each decision.
        epochs: usize,
        /// Optimiser steps for each decision.
        steps: f64,
    },
    /// Updates of a network of action values with samples of a buffer.
    ActionValues {
        /// Updates for each environment step.
        updates: f64,
        /// Decisions in a sample.
        batch_size: usize,
        /// Forward passes over the next observations: 1 of the target network, and with double Q-learning 1 more.
        next: usize,
        /// Whether the network is dueling.
        dueling: bool,
    },
    /// Updates of critics and of an actor of continuous actions with samples of a buffer.
    ActorAndCritics {
        /// Updates for each environment step.
        updates: f64,
        /// Decisions in a sample.
        batch_size: usize,
        /// Number of critics.
        critics: usize,
        /// Critics that the actor's loss reads.
        criticised: usize,
        /// Updates of the actor, as a share of those of the critics.
        share: f64,
        /// Whether actions are random and have a log-probability.
        is_random: bool,
    },
}

/// Makes an algorithm that learns with the given network of action values.
pub type MakeOfValues = Box<dyn FnOnce(Box<dyn QNetwork>) -> Box<dyn Algorithm>>;

/// Makes an algorithm that learns with the given actor and critics.
pub type MakeOfActorCritics = Box<dyn FnOnce(Box<dyn QActorCritic>) -> Box<dyn Algorithm>>;

/// The result of building an agent.
pub enum AgentKind {
    /// An update rule for the actor-critic network described by the configuration.
    ActorCritic(Box<dyn Agent>),
    /// An algorithm that learns with a network of action values. The engine builds the network, and `make` the algorithm.
    ActionValues {
        /// The network's outputs.
        head: QHead,
        /// For an algorithm with a replay buffer, the decisions that it can keep, and whether they have priorities.
        replay: Option<(usize, bool)>,
        /// Makes the algorithm.
        make: MakeOfValues,
    },
    /// An algorithm that learns with an actor of continuous actions and critics Q(s, a). The engine builds the network, and `make` the
    /// algorithm.
    ActorAndCritics {
        /// The network's parts.
        head: QActorHead,
        /// For an algorithm with a replay buffer, the decisions that it can keep, and whether they have priorities.
        replay: Option<(usize, bool)>,
        /// Makes the algorithm.
        make: MakeOfActorCritics,
    },
    /// An algorithm with a custom behaviour.
    Own(Box<dyn Algorithm>),
}

impl<A: Agent + 'static> From<A> for AgentKind {
    fn from(agent: A) -> Self {
        AgentKind::ActorCritic(Box::new(agent))
    }
}

/// The parts of the configuration that an agent may depend on.
pub struct Setup<'a> {
    /// The environment as the agent sees it, wrappers included.
    pub world: &'a EnvSpec,
    /// Number of environments in lockstep.
    pub envs: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Environment steps of the training.
    pub steps: u64,
    /// Settings of the optimiser.
    pub optimiser: &'a OptimiserConfig,
    /// Settings of the frozen reference policy.
    pub reference: &'a ReferenceConfig,
    /// The multilayer perceptrons of actor and critic; `None` if the network is a transformer.
    pub perceptron: Option<&'a NetworkConfig>,
    /// Whether rewards come from a reward model that scores whole texts.
    pub scores_whole_texts: bool,
    /// The factor between the environment's rewards and those that the agent learns from; `None` if there is no constant one, because rewards are clipped or normalised.
    pub reward_scale: Option<f64>,
    /// Whether observations are normalised before the agent sees them.
    pub normalises_observations: bool,
    /// The pairs of completions in the file that the agent's setting names; empty if it names none.
    pub pairs: &'a [Pair],
}

/// Settings of an agent for one environment.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name of the agent.
    pub agent: &'static str,
    /// Name of the environment, or a name for all environments that have no preset of this name: `text` for the text tasks, `chat` for
    /// those of a pretrained model, `continuous` for environments of Gymnasium with continuous actions, `atari` for its Atari games, `any` for the others.
    pub environment: &'static str,
    /// Name of the preset. `default` is used if the user names no preset.
    pub name: &'static str,
    /// The settings, in TOML; the comment at the top gives their source.
    pub text: &'static str,
}

impl Preset {
    /// Returns the comment at the top of the settings, as one line.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        lines.join(" ")
    }
}

/// The presets of an agent of this crate, from the files `presets/ENVIRONMENT-AGENT-NAME.toml`. Arguments: the agent, then
/// each environment with its preset names.
macro_rules! preset_files {
    ($agent:tt: $($environment:literal $($name:literal)+);+ $(;)?) => {
        &[$($($crate::config::preset_files!(@one $agent $environment $name)),+),+]
    };
    (@one $agent:literal $environment:literal $name:literal) => {
        $crate::config::Preset {
            agent: $agent,
            environment: $environment,
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/presets/", $environment, "-", $agent, "-", $name, ".toml")),
        }
    };
}
pub(crate) use preset_files;

/// A preference between two completions of a prompt, EOS included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The prompt.
    pub prompt: Vec<u32>,
    /// The preferred completion.
    pub chosen: Vec<u32>,
    /// The other completion.
    pub rejected: Vec<u32>,
}
