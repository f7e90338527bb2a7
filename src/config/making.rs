//! What a configuration describes: an environment, an agent, a policy.

use gradus_agents::dpo::Pair;
use gradus_agents::{Agent, AgentKind, Algorithm, Collection, ConfigError, OnPolicy, Setup, registry as agents};
use gradus_base::Settings;
use gradus_envs::gym::{self, AtariEpisodes};
use gradus_envs::{EnvSpec, Space, registry};
use gradus_nets::{ActionScale, Cell, Device, Policy, Precision};

use super::{Atari, Config, EarlierSteps, Network, RewardConfig, WrapperConfig, inputs, is_text, language};
use crate::Error;

impl Config {
    /// Returns the configured environment without wrappers.
    pub fn plain_world(&self) -> Result<EnvSpec, Error> {
        let world = registry::find(&self.environment)?;
        self.text.as_ref().map_or(Ok(world.clone()), |text| Ok(text.apply(world)?))
    }

    /// Returns the configured environment with its wrappers, except for normalisation and reward clipping, which the collector does.
    pub fn world(&self) -> Result<EnvSpec, Error> {
        self.wrap(registry::find(&self.environment)?)
    }

    /// Applies the configured wrappers to `world`, or on text tasks the settings of `[text]`.
    pub(crate) fn wrap(&self, mut world: EnvSpec) -> Result<EnvSpec, Error> {
        self.check_inputs(|key| key == inputs::ENVIRONMENT)?;
        let WrapperConfig { atari, frame_stack, time_aware, normalise_observations, .. } = self.wrappers;
        let episodes = match atari {
            Atari::Off => None,
            Atari::Games => Some(AtariEpisodes::Games),
            Atari::Lives => Some(AtariEpisodes::Lives),
        };
        if let Some(episodes) = episodes {
            let expected = format!("off, because {} is no Atari game of Gymnasium without wrappers, obs_type and frameskip", world.title());
            ConfigError::unless(gym::is_atari(&world.name), "wrappers.atari", &expected, format!("{atari:?}").to_lowercase())?;
            world = gym::atari(&world.name, episodes)?;
        }
        if is_text(&world) {
            let (expected, got) = ("[transformer], because observations are texts", format!("[{}]", self.network.name()));
            ConfigError::unless(matches!(self.network, Network::Transformer(_)), "section", expected, got)?;
            let reason = "because observations are texts";
            ConfigError::unless(frame_stack == 1, "wrappers.frame_stack", &format!("1, {reason}"), frame_stack)?;
            for (key, is_on) in [("wrappers.time_aware", time_aware), ("wrappers.normalise_observations", normalise_observations)] {
                ConfigError::unless(!is_on, key, &format!("false, {reason}"), is_on)?;
            }
            let Some(text) = &self.text else { return Ok(world) };
            text.check_ranges("text").map_err(ConfigError::from)?;
            return Ok(text.apply(world)?);
        }
        self.wrappers.check_ranges("wrappers").map_err(ConfigError::from)?;
        match world.env().observation_space() {
            Space::Discrete(_) => world = world.one_hot(),
            Space::Image(_) => {
                for (key, is_on) in [("wrappers.time_aware", time_aware), ("wrappers.normalise_observations", normalise_observations)] {
                    ConfigError::unless(!is_on, key, "false, because observations are images", is_on)?;
                }
            }
            _ => {}
        }
        if time_aware {
            let expected = "false, because this environment has no time limit";
            let limit =
                world.max_episode_steps.ok_or_else(|| ConfigError::unless(false, "wrappers.time_aware", expected, true).unwrap_err())?;
            world = world.time_aware(limit);
        }
        if frame_stack > 1 {
            world = world.stacked(frame_stack);
        }
        Ok(world)
    }

    /// Checks the numbers that TOML, whose whole numbers have a sign, may not be able to write.
    pub(super) fn check_wholes(&self) -> Result<(), ConfigError> {
        let numbers = [("seed", self.seed), ("steps", self.steps), ("evaluate_every", self.evaluate_every)];
        let unless =
            |(key, number): (&str, u64)| ConfigError::unless(i64::try_from(number).is_ok(), key, "at most 9223372036854775807", number);
        numbers.into_iter().try_for_each(unless)
    }

    /// Checks the ranges of the settings that all agents share.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges("")?;
        self.wrappers.check_ranges("wrappers")?;
        let mut before = 0;
        for EarlierSteps { steps, until } in &self.earlier_steps {
            ConfigError::unless(*steps > 0, "earlier_steps.steps", "at least 1", steps)?;
            let expected = format!("{before} to {}, between the change before and steps", self.steps);
            ConfigError::unless((before..=self.steps).contains(until), "earlier_steps.until", &expected, until)?;
            before = *until;
        }
        self.check_wholes()?;
        let owner = self.algorithm.name();
        ConfigError::unless(
            self.agent == owner,
            "agent",
            &format!("{owner}, whose settings these are; Config::preset has those of another one"),
            &self.agent,
        )?;
        ConfigError::unless(!self.stop_at.is_nan(), "stop_at", "a mean return, or inf", self.stop_at)?;
        let can_stop = self.stop_at == f64::INFINITY || self.evaluate_every > 0;
        ConfigError::unless(can_stop, "stop_at", "evaluate_every above 0", "evaluate_every = 0")?;
        self.reward_model.as_ref().map_or(Ok(()), RewardConfig::check)?;
        let is_ours = self.device == Device::Cpu && self.torch.precision != Precision::F32;
        let precision = format!("{:?}", self.torch.precision).to_lowercase();
        ConfigError::unless(!is_ours, "torch.precision", "f32 on cpu, because other precisions need libtorch", precision)
    }

    /// Returns warnings of settings that are allowed but hardly meant.
    pub fn warnings(&self) -> Vec<String> {
        let rates = [("optimiser.learning_rate", self.optimiser.learning_rate)];
        let rates = rates.into_iter().filter(|(_, rate)| *rate > 1.0);
        rates
            .map(|(key, rate)| format!("{key}: {rate:e} is far above the usual 1e-5 to 1e-1, so the training will hardly succeed"))
            .chain(self.vain_in_this_run())
            .collect()
    }

    /// Builds the agent for `world`, to which the wrappers are already applied. Returns an error if a setting is invalid.
    pub fn build(&self, world: &EnvSpec) -> Result<AgentKind, Error> {
        self.build_with(world, &[])
    }

    /// As [`build`](Config::build), for an agent that learns from these pairs.
    fn build_with(&self, world: &EnvSpec, pairs: &[Pair]) -> Result<AgentKind, Error> {
        self.check()?;
        let is_scaled = !self.wrappers.normalise_rewards && self.wrappers.clip_reward == f32::INFINITY;
        let setup = Setup {
            pairs,
            world,
            envs: self.envs,
            seed: self.seed,
            steps: self.steps,
            optimiser: &self.optimiser,
            reference: &self.reference,
            perceptron: if let Network::Perceptron(config) = &self.network { Some(config) } else { None },
            scores_whole_texts: self.reward_model.as_ref().is_some_and(RewardConfig::scores_whole_texts),
            reward_scale: is_scaled.then_some(f64::from(self.wrappers.reward_scale)),
            normalises_observations: self.wrappers.normalise_observations,
        };
        self.optimiser.check()?;
        let built = self.algorithm.build(&setup)?;
        let is_said = matches!(built, AgentKind::ActorCritic(_)) == self.has_actor_critic();
        ConfigError::unless(is_said, "agent", "AgentConfig::HAS_ACTOR_CRITIC to match the built agent", &self.agent)?;
        let (seen, done) = (world.env().observation_space(), world.env().action_space());
        let is_continuous = matches!(built, AgentKind::ActorAndCritics { .. });
        if is_continuous || matches!(built, AgentKind::ActionValues { .. }) {
            let is_text = matches!(seen, Space::Text { .. });
            ConfigError::unless(!is_text, &self.agent, "an environment whose observations are rows of numbers", seen)?;
            if is_continuous {
                let is_bounded = ActionScale::of(&done).is_some();
                ConfigError::unless(is_bounded, &self.agent, "an environment with continuous actions within finite bounds", done)?;
            } else {
                ConfigError::unless(matches!(done, Space::Discrete(_)), &self.agent, "an environment with discrete actions", done)?;
            }
        }
        self.check_memory(&built)?;
        Ok(built)
    }

    /// Returns an error if the network has a recurrent cell and the agent cannot learn with it.
    fn check_memory(&self, built: &AgentKind) -> Result<(), ConfigError> {
        let Network::Perceptron(network) = &self.network else { return Ok(()) };
        if network.cell == Cell::None {
            return Ok(());
        }
        let learns_from_single = match built {
            AgentKind::ActionValues { replay, .. } => replay.is_some(),
            AgentKind::ActorAndCritics { .. } => true,
            AgentKind::ActorCritic(_) | AgentKind::Own(_) => false,
        };
        let expected = format!("none, because {} learns from single decisions of a replay buffer", self.agent);
        ConfigError::unless(!learns_from_single, "network.cell", &expected, network.cell)?;
        let own = format!("{}.rollout_steps", self.agent);
        let is_whole = matches!(built, AgentKind::ActorCritic(agent) if matches!(agent.collection(), Collection::Episodes { .. }));
        // it would continue with the memory of the policy that acted
        let begins_anew = is_whole && network.sequence_length == 0;
        let expected = "none with a reference policy, unless rollouts are whole episodes and network.sequence_length is 0";
        ConfigError::unless(begins_anew || !self.reference.is_needed(), "network.cell", expected, network.cell)?;
        match self.number(&own).filter(|_| !is_whole) {
            Some(steps) if (network.sequence_length as f64) > steps => {
                let expected = format!("0 to {steps}, the steps of a rollout ({own})");
                ConfigError::unless(false, "network.sequence_length", &expected, network.sequence_length)
            }
            _ => Ok(()),
        }
    }

    /// Whether the agent learns with the configured actor-critic network.
    pub(crate) fn has_actor_critic(&self) -> bool {
        agents::find(self.algorithm.name()).map_or(true, |entry| entry.has_actor_critic)
    }

    /// Builds the update rule of an agent that trains an actor-critic network. Returns an error for other agents and invalid settings.
    pub fn agent(&self, world: &EnvSpec) -> Result<Box<dyn Agent>, Error> {
        match self.build(world)? {
            AgentKind::ActorCritic(agent) => Ok(agent),
            AgentKind::ActionValues { .. } | AgentKind::ActorAndCritics { .. } | AgentKind::Own(_) => {
                let expected = "an agent that trains an actor-critic network";
                Err(ConfigError::unless(false, "agent", expected, &self.agent).unwrap_err().into())
            }
        }
    }

    /// Builds the configured network with random initial parameters from the seed, or with those of a pretrained model in whose language `world` is.
    pub fn policy(&self, world: &EnvSpec) -> Result<Box<dyn Policy>, Error> {
        let mut policy = self.network.policy_on(world, self.seed, self.device, &self.torch)?;
        let is_pretrained = language::load_pretrained(world, policy.as_mut())?;
        if let Network::Transformer(network) = &self.network {
            let expected = "0, because only a pretrained model (chat:) has what adapters are trained beside";
            ConfigError::unless(is_pretrained || network.lora_rank == 0, "transformer.lora_rank", expected, network.lora_rank)?;
        }
        Ok(policy)
    }

    /// Builds the agent together with its policy, which `wrap` may put into another one. Returns `None` for an agent without an actor-critic network.
    pub(crate) fn algorithm_around(
        &self,
        world: &EnvSpec,
        wrap: &dyn Fn(Box<dyn Policy>) -> Box<dyn Policy>,
    ) -> Result<Option<Box<dyn Algorithm>>, Error> {
        Ok(match self.build(world)? {
            AgentKind::ActorCritic(agent) => Some(Box::new(OnPolicy { agent, policy: wrap(self.policy(world)?) })),
            _ => None,
        })
    }

    /// Builds the agent together with its policy. Returns an error if a setting is invalid.
    pub fn algorithm(&self, world: &EnvSpec) -> Result<Box<dyn Algorithm>, Error> {
        self.algorithm_with(world, &[])
    }

    /// As [`algorithm`](Config::algorithm), for an agent that learns from these pairs.
    pub fn algorithm_with(&self, world: &EnvSpec, pairs: &[Pair]) -> Result<Box<dyn Algorithm>, Error> {
        Ok(match self.build_with(world, pairs)? {
            AgentKind::ActorCritic(agent) => Box::new(OnPolicy { agent, policy: self.policy(world)? }),
            AgentKind::ActionValues { head, make, .. } => {
                make(self.network.q_network(head, world, (self.seed, self.device), &self.torch)?)
            }
            AgentKind::ActorAndCritics { head, make, .. } => {
                make(self.network.q_actor_critic(head, world, (self.seed, self.device), &self.torch)?)
            }
            AgentKind::Own(algorithm) => algorithm,
        })
    }
}
