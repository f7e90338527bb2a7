//! Settings that cannot take effect in a run.

use gradus_agents::AgentKind;
use gradus_envs::{EnvSpec, Space};
use gradus_nets::{Cell, Device};
use toml::Value;

use super::{Config, Network};

impl Config {
    /// Returns the settings that the agent never reads in this environment, each with the reason. A key that ends with a point is a whole section.
    pub fn foreign(&self, world: &EnvSpec) -> Vec<(String, &'static str)> {
        let Ok(built) = self.build(world) else { return Vec::new() };
        let is_discrete = !matches!(world.env().action_space(), Space::Box { .. });
        let is_table = matches!(built, AgentKind::Own(_)) && !gradus_agents::registry::is_registered(&self.agent);
        let has_gsde = matches!(&self.network, Network::Perceptron(network) if network.gsde);
        let own = |name: &str| format!("{}.{name}", self.agent);
        let plans = matches!(self.agent.as_str(), "value-iteration" | "policy-iteration" | "policy-evaluation");
        let predicts = matches!(self.agent.as_str(), "monte-carlo-prediction" | "td-lambda" | "n-step-td");
        let (alpha, explores) = ([own("alpha"), own("alpha_decay")], [own("epsilon"), own("first_epsilon"), own("epsilon_fraction")]);
        let rules: [(bool, &[&str], &str); 15] = [
            (plans, &alpha.each_ref().map(String::as_str), "values follow from the model"),
            (plans, &["wrappers.reward_scale", "wrappers.clip_reward", "wrappers.normalise_rewards"], "values follow from the model"),
            (plans, &explores.each_ref().map(String::as_str), "the steps of its episodes are not used"),
            (predicts, &explores.each_ref().map(String::as_str), "all its actions are random"),
            (self.agent == "policy-iteration", &[&own("initial")], "the first policy is the same for all equal values"),
            (
                matches!(built, AgentKind::ActionValues { .. }),
                &["optimiser.clip_per_group"],
                "action values have one network, and so one gradient",
            ),
            (
                matches!(built, AgentKind::ActorAndCritics { .. }),
                &["optimiser.clip_per_group"],
                "each step of the optimiser has the gradient of one group",
            ),
            (
                self.agent == "off-policy-monte-carlo",
                &alpha.each_ref().map(String::as_str),
                "values are means that importance ratios weight",
            ),
            (
                self.agent == "sac" && !has_gsde,
                &["network.log_std_init"],
                "the network gives the standard deviation while network.gsde is false",
            ),
            (matches!(self.agent.as_str(), "td3" | "ddpg"), &["network.log_std_init"], "the policy is deterministic"),
            (is_table, &["optimiser.", "network.", "reference.", "torch."], "the agent has a table instead of a network"),
            (matches!(built, AgentKind::ActionValues { .. }), &["optimiser.critic_learning_rate_ratio"], "action values have one network"),
            (!matches!(built, AgentKind::ActorCritic(_)), &["reference."], "the agent has no reference policy"),
            (is_discrete, &["network.log_std_init", "network.gsde", "network.gsde_sample_every"], "actions are discrete"),
            (world.text.is_none(), &["max_concurrent", "torch.gradient_checkpointing"], "the environment is no text task"),
        ];
        apply(&rules)
    }

    /// Returns the settings that other settings switch off, each with the reason.
    fn switched_off(&self) -> Vec<(String, &'static str)> {
        let own = |name: &str| format!("{}.{name}", self.agent);
        let is_zero = |key: &str| self.number(key) == Some(0.0);
        let reference = &self.reference;
        let refers =
            reference.coefficient != 0.0 || reference.adaptive_target.is_finite() || reference.measure || reference.stop_kl.is_finite();
        let has_gsde = matches!(&self.network, Network::Perceptron(network) if network.gsde);
        let has_cell = matches!(&self.network, Network::Perceptron(network) if network.cell != Cell::None);
        let outlasts = self
            .number("network.gsde_sample_every")
            .zip(self.number(&own("rollout_steps")))
            .is_some_and(|(every, steps)| every >= steps && steps > 0.0);
        let outlasts = outlasts && self.number(&own("episodes_per_env")).is_none_or(|episodes| episodes == 0.0);
        let is = |key: &str, value: &str| self.text(&own(key)).is_some_and(|text| text == value);
        let is_not = |key: &str, value: &str| self.text(&own(key)).is_some_and(|text| text != value);
        let penalises = reference.coefficient != 0.0 || reference.adaptive_target.is_finite();
        let has_epochs = self.number(&own("epochs")).is_some_and(|epochs| epochs > 1.0);
        let decisions = self.number("ppo.rollout_steps").map(|steps| steps * self.envs as f64);
        let is_whole = decisions.zip(self.number("ppo.minibatch_size")).is_some_and(|(decisions, size)| size >= decisions);
        let is_one_step = self.agent == "ppo" && !has_epochs && is_zero("ppo.episodes_per_env") && is_whole;
        let rules: [(bool, &[&str], &str); 41] = [
            (self.agent == "ppo" && !is_zero("ppo.episodes_per_env"), &["ppo.rollout_steps"], "episodes_per_env is set"),
            (self.number(&own("clip")) == Some(f64::INFINITY), &[&own("clip_schedule")], "clip is inf"),
            (is_one_step, &["ppo.clip", "ppo.clip_schedule", "ppo.dual_clip"], "an update is one step, before which the ratio is 1"),
            (is_one_step, &["ppo.clip_value"], "an update is one step, before which the values are the old ones"),
            (is_one_step, &["ppo.normalise_over"], "an update is one step on the whole rollout"),
            (self.agent == "ppo" && !has_epochs, &["ppo.recompute_advantages"], "there is one epoch"),
            (self.number(&own("sampling_rounds")) == Some(1.0), &[&own("group_filter")], "sampling_rounds is 1"),
            (has_gsde, &[&own("log_std_bounds")], "network.gsde is true"),
            (is_zero(&own("target_policy_noise")), &[&own("target_noise_clip")], "target_policy_noise is 0"),
            (is_zero(&own("target_noise_clip")), &[&own("target_policy_noise")], "target_noise_clip is 0"),
            (self.number(&own("workers")) == Some(1.0), &[&own("spread")], "there is one worker"),
            (is_zero(&own("value_coefficient")), &[&own("clip_value"), &own("huber")], "value_coefficient is 0"),
            (
                is_zero(&own("value_coefficient")) && is_zero("optimiser.weight_decay"),
                &["optimiser.critic_learning_rate_ratio"],
                "value_coefficient is 0",
            ),
            (is("step", "trust-region"), &[&own("step_size")], "step is trust-region"),
            (is("step", "vanilla"), &[&own("cg_iterations"), &own("cg_damping"), &own("fisher_stride")], "step is vanilla"),
            (
                is_not("step", "trust-region"),
                &[&own("max_kl"), &own("line_search_steps"), &own("line_search_shrink")],
                "step is not trust-region",
            ),
            (self.agent == "reinforce" && is_not("baseline", "value"), &["reinforce.truncated"], "baseline is not value"),
            (is_zero("sarsa-lambda.lambda"), &["sarsa-lambda.replace"], "lambda is 0"),
            (is_zero("dyna-q.n"), &["dyna-q.kappa"], "n is 0"),
            (is_not("aggregation", "constant-length"), &[&own("constant_length")], "aggregation is not constant-length"),
            (
                self.agent == "reinforce" && is_not("baseline", "value"),
                &["reinforce.value_coefficient", "optimiser.critic_learning_rate_ratio"],
                "baseline is not value",
            ),
            (matches!(self.agent.as_str(), "grpo" | "dpo"), &["optimiser.critic_learning_rate_ratio"], "the agent has no critic"),
            (self.agent == "dpo", &["reference.estimator"], "DPO's loss estimates no divergence"),
            (is_not("baseline", "mean"), &[&own("baseline_step")], "baseline is not mean"),
            (self.number(&own("target_kl")) == Some(f64::INFINITY), &[&own("kl_stop")], "target_kl is inf"),
            (is("normalise_advantages", "false"), &[&own("normalise_over")], "normalise_advantages is false"),
            (
                refers && !penalises && self.agent != "dpo",
                &["reference.place", "reference.unit"],
                "there is no penalty, because reference.coefficient is 0",
            ),
            (!reference.adaptive_target.is_finite(), &["reference.horizon"], "reference.adaptive_target is inf"),
            (is("auto_ent_coef", "false"), &[&own("target_entropy")], "auto_ent_coef is false"),
            (is("action_noise", "none"), &[&own("action_noise_std")], "action_noise is none"),
            (!refers && self.agent != "dpo", &REFERENCE, "reference.coefficient is 0"),
            (!has_gsde, &["network.gsde_sample_every"], "network.gsde is false"),
            (outlasts, &["network.gsde_sample_every"], "a training draws the noise in every rollout, which has no more steps than that"),
            (!has_cell, &["network.cell_width", "network.cell_bias", "network.sequence_length"], "network.cell is none"),
            (has_cell, &["torch.micro_batch"], "sequences are not divided"),
            (!self.wrappers.normalise_rewards, &["wrappers.reward_discount"], "wrappers.normalise_rewards is false"),
            (self.device == Device::Cpu, &["torch."], "the device is cpu"),
            (self.evaluate_every == 0, &["evaluate_episodes"], "evaluate_every is 0"),
            (is_zero(&own("exploration_fraction")), &[&own("exploration_initial_eps")], "exploration_fraction is 0"),
            (is_zero(&own("epsilon_fraction")), &[&own("first_epsilon")], "epsilon_fraction is 0"),
            (is_zero(&own("priority_exponent")), &[&own("importance_exponent")], "priority_exponent is 0"),
        ];
        apply(&rules)
    }

    /// Returns one line for each setting that differs from `base` and has no effect.
    pub fn vain_settings(&self, base: &Self) -> Vec<String> {
        let Ok(world) = self.world() else { return Vec::new() };
        let before = base.settings();
        let is_set = |key: &str, value: &str| !before.iter().any(|(other, old)| other == key && old == value);
        let unread = [self.foreign(&world), self.switched_off()].concat();
        let why = |key: &str| unread.iter().find(|(own, _)| covers(own, key));
        let set = self.settings().into_iter().filter(|(key, value)| is_set(key, value));
        let vain = set.filter_map(|(key, value)| why(&key).map(|(_, why)| format!("{key} = {value} has no effect, because {why}")));
        vain.chain(self.other_discount(base)).collect()
    }

    /// Says that rewards are still scaled with the discount of `base`, if gamma was changed.
    fn other_discount(&self, base: &Self) -> Option<String> {
        let key = format!("{}.gamma", self.agent);
        let (gamma, before) = (self.number(&key)?, base.number(&key)?);
        let scale = self.wrappers.reward_discount;
        let stays = self.wrappers.normalise_rewards && gamma != before && scale == base.wrappers.reward_discount;
        (stays && scale != gamma).then(|| {
            format!(
                "{key} = {gamma}: rewards are divided by the deviation of returns with another discount, wrappers.reward_discount = {scale}"
            )
        })
    }

    /// Returns one line for each setting that has no effect in a run of this length.
    pub fn vain_in_this_run(&self) -> Vec<String> {
        let own = |name: &str| format!("{}.{name}", self.agent);
        let (number, steps) = (|name: &str| self.number(&own(name)), self.steps as f64);
        let mut lines = Vec::new();
        if let Some(starts) = self.starts_after_the_end() {
            lines.push(format!(
                "{}: no update is made within {} steps, because it asks for {starts} before the first one",
                own("learning_starts"),
                self.steps
            ));
        }
        let falls_until = number("exploration_fraction").zip(number("learning_starts")).filter(|(fraction, _)| *fraction > 0.0);
        if let Some((fraction, starts)) = falls_until.filter(|(fraction, starts)| fraction * steps <= *starts && *starts < steps) {
            let (fall, begin) = (own("exploration_fraction"), own("learning_starts"));
            lines.push(format!(
                "{fall}: epsilon has fallen after {} steps, but the first {starts} steps are random ({begin})",
                fraction * steps
            ));
        }
        if let Some(interval) = number("target_update_interval").filter(|interval| *interval >= steps) {
            let (own, moved) = (own("target_update_interval"), if number("tau").is_none_or(|tau| tau == 1.0) { "copied" } else { "moved" });
            lines.push(format!(
                "{own}: the target network is never {moved}, because {interval} is not less than the {steps} steps of the run"
            ));
        }
        // whole rollouts count, from that in which learning starts to the last one
        let rollout = number("rollout_steps").unwrap_or(1.0).max(1.0) * self.envs as f64;
        let counted = |starts: f64| rollout * ((steps / rollout).ceil() - (starts / rollout).floor());
        let updates = number("updates_per_step").zip(number("learning_starts")).map(|(each, starts)| (each * counted(starts)).floor());
        if let Some(updates) = updates.filter(|_| self.starts_after_the_end().is_none()) {
            if updates < 1.0 {
                let own = own("updates_per_step");
                lines.push(format!("{own}: no update is made within {steps} steps, because none is due after the first steps"));
            } else if let Some(delay) = number("policy_delay").filter(|delay| *delay > updates) {
                let own = own("policy_delay");
                lines.push(format!("{own}: the actor never learns, because {delay} is more than the {updates} updates of the run"));
            }
        }
        if self.evaluate_every > self.steps {
            lines.push(format!(
                "evaluate_every: no evaluation is made, because {} is more than the {} steps of the run",
                self.evaluate_every, self.steps
            ));
        }
        let world = self.plain_world().ok();
        if self.evaluate_every > 0 && predicts(&self.agent) && world.as_ref().is_some_and(|world| world.model().is_none()) {
            lines.push("evaluate_every: evaluations always take the first action, because the agent learns no action values and the environment has no transition table".into());
        }
        let limit = world.and_then(|world| world.max_episode_steps);
        for name in ["n_step", "n"] {
            if let Some((n, limit)) = number(name).zip(limit).filter(|(n, limit)| *n > f64::from(*limit) && !is_planning(&self.agent)) {
                lines
                    .push(format!("{}: targets of {n} rewards are whole returns, because an episode has at most {limit} steps", own(name)));
            }
        }
        lines
    }

    /// Returns the step at which updates begin, if the run ends before.
    pub fn starts_after_the_end(&self) -> Option<u64> {
        let starts = self.number(&format!("{}.learning_starts", self.agent))?;
        (starts >= self.steps as f64).then_some(starts as u64)
    }

    /// Returns a text or a truth value as it is written.
    fn text(&self, key: &str) -> Option<String> {
        let (section, name) = key.split_once('.')?;
        match self.to_table().get(section)?.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Boolean(value) => Some(value.to_string()),
            _ => None,
        }
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let (section, name) = key.split_once('.')?;
        match self.to_table().get(section)?.get(name)? {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }
}

/// Returns the keys of the rules that hold, each with the reason.
fn apply(rules: &[(bool, &[&str], &'static str)]) -> Vec<(String, &'static str)> {
    let holding = rules.iter().filter(|(holds, ..)| *holds);
    holding.flat_map(|(_, keys, why)| keys.iter().map(|key| ((*key).to_owned(), *why))).collect()
}

/// Whether `own` is the setting `key`, or a section that has it.
pub fn covers(own: &str, key: &str) -> bool {
    own == key || own.ends_with('.') && key.starts_with(own)
}

/// What needs a coefficient of the reference policy.
const REFERENCE: [&str; 5] = ["reference.place", "reference.estimator", "reference.unit", "reference.horizon", "reference.refresh_every"];

/// Whether the agent learns values of random actions, and no policy.
pub fn predicts(agent: &str) -> bool {
    matches!(agent, "td-lambda" | "n-step-td" | "monte-carlo-prediction" | "policy-evaluation")
}

/// Whether `n` is a number of planning updates.
fn is_planning(agent: &str) -> bool {
    matches!(agent, "dyna-q" | "prioritised-sweeping")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(agent: &str, world: &str, settings: &[&str]) -> (Config, Config) {
        let base = Config::preset(agent, world, None).unwrap();
        (settings.iter().fold(base.clone(), |config, setting| config.with_setting(setting).unwrap()), base)
    }

    #[test]
    fn settings_without_an_effect_are_named_with_the_reason() {
        for (agent, world, setting, why) in [
            (
                "q-learning",
                "taxi",
                "network.hidden=[3]",
                "network.hidden = [3] has no effect, because the agent has a table instead of a network",
            ),
            ("dqn", "cartpole", "optimiser.critic_learning_rate_ratio=2", "has no effect, because action values have one network"),
            ("ppo", "cartpole", "network.log_std_init=1", "has no effect, because actions are discrete"),
            ("ppo", "pendulum", "network.gsde_sample_every=4", "has no effect, because network.gsde is false"),
            ("ppo", "cartpole", "wrappers.reward_discount=0.5", "has no effect, because wrappers.normalise_rewards is false"),
            ("ppo", "cartpole", "torch.micro_batch=7", "has no effect, because the device is cpu"),
            ("ppo", "cartpole", "max_concurrent=7", "has no effect, because the environment is no text task"),
            ("ppo", "cartpole", "evaluate_episodes=7", "has no effect, because evaluate_every is 0"),
            ("ppo", "target-sum", "reference.place=reward", "has no effect, because reference.coefficient is 0"),
            ("q-learning", "taxi", "first_epsilon=0.5", "has no effect, because epsilon_fraction is 0"),
            ("dqn", "cartpole", "importance_exponent=0.5", "has no effect, because priority_exponent is 0"),
            ("trpo", "cartpole", "step_size=50", "trpo.step_size = 50.0 has no effect, because step is trust-region"),
            ("grpo", "copy", "constant_length=77", "grpo.constant_length = 77 has no effect, because aggregation is not constant-length"),
            ("grpo", "copy", "optimiser.critic_learning_rate_ratio=9", "has no effect, because the agent has no critic"),
            ("reinforce", "cartpole", "baseline_step=0.9", "has no effect, because baseline is not mean"),
            ("ppo", "cartpole", "kl_stop=minibatch", "has no effect, because target_kl is inf"),
            ("grpo", "copy", "reference.horizon=77", "has no effect, because reference.adaptive_target is inf"),
            ("dpo", "preference", "reference.estimator=k2", "has no effect, because DPO's loss estimates no divergence"),
            (
                "sac",
                "pendulum",
                "network.log_std_init=-3",
                "has no effect, because the network gives the standard deviation while network.gsde is false",
            ),
            ("td3", "pendulum", "network.log_std_init=-3", "has no effect, because the policy is deterministic"),
            ("value-iteration", "frozen-lake", "alpha=0.5", "has no effect, because values follow from the model"),
            ("policy-iteration", "frozen-lake", "epsilon=0.5", "has no effect, because the steps of its episodes are not used"),
            ("policy-iteration", "frozen-lake", "initial=5", "has no effect, because the first policy is the same for all equal values"),
            ("value-iteration", "frozen-lake", "wrappers.reward_scale=2", "has no effect, because values follow from the model"),
            ("td-lambda", "random-walk", "epsilon=0.5", "has no effect, because all its actions are random"),
            (
                "dqn",
                "cartpole",
                "optimiser.clip_per_group=true",
                "has no effect, because action values have one network, and so one gradient",
            ),
            ("off-policy-monte-carlo", "frozen-lake", "alpha=0.5", "has no effect, because values are means that importance ratios weight"),
            (
                "ppo",
                "mountain-car",
                "gamma=0.9",
                "rewards are divided by the deviation of returns with another discount, wrappers.reward_discount = 0.99",
            ),
        ] {
            let (config, base) = set(agent, world, &[setting]);
            let lines = config.vain_settings(&base);
            assert!(lines.len() == 1 && lines[0].ends_with(why), "{agent} {setting}: {lines:?}");
        }
        for (agent, world, setting) in [
            ("ppo", "pendulum", "network.log_std_init=1"),
            ("ppo", "cartpole", "network.hidden=[3]"),
            ("q-learning", "taxi", "alpha=0.5"),
            ("sac", "pendulum", "optimiser.critic_learning_rate_ratio=2"),
        ] {
            let (config, base) = set(agent, world, &[setting]);
            assert_eq!(config.vain_settings(&base), Vec::<String>::new(), "{agent} {setting}");
        }
    }

    #[test]
    fn settings_that_others_switch_off_are_named() {
        for (agent, settings, why) in [
            (
                "sac",
                ["auto_ent_coef=false", "target_entropy=-0.5"],
                "sac.target_entropy = -0.5 has no effect, because auto_ent_coef is false",
            ),
            ("trpo", ["trpo.step=vanilla", "cg_iterations=3"], "trpo.cg_iterations = 3 has no effect, because step is vanilla"),
            (
                "trpo",
                ["trpo.step=natural", "line_search_steps=3"],
                "trpo.line_search_steps = 3 has no effect, because step is not trust-region",
            ),
            (
                "ppo",
                ["normalise_advantages=false", "normalise_over=rollout"],
                "ppo.normalise_over = \"rollout\" has no effect, because normalise_advantages is false",
            ),
            (
                "td3",
                ["action_noise=none", "action_noise_std=0.5"],
                "td3.action_noise_std = 0.5 has no effect, because action_noise is none",
            ),
            (
                "reinforce",
                ["baseline=mean", "truncated=ends"],
                "reinforce.truncated = \"ends\" has no effect, because baseline is not value",
            ),
        ] {
            let (config, base) = set(agent, "pendulum", &settings);
            assert_eq!(config.vain_settings(&base), [why]);
        }
        let one_step = ["envs=4", "rollout_steps=32", "minibatch_size=128", "epochs=1", "ppo.clip=0.3"];
        let (config, base) = set("ppo", "cartpole", &one_step);
        assert_eq!(
            config.vain_settings(&base),
            ["ppo.clip = 0.3 has no effect, because an update is one step, before which the ratio is 1"]
        );
        for (agent, settings) in [("sarsa-lambda", ["lambda=0", "replace=false"]), ("dyna-q", ["n=0", "kappa=0.1"])] {
            let (config, base) = set(agent, "cliff-walking", &settings);
            assert_eq!(config.vain_settings(&base).len(), 1, "{agent}");
        }
        let (config, base) = set("ppo", "mountain-car", &["gamma=0.9", "wrappers.reward_discount=0.9"]);
        assert_eq!(config.vain_settings(&base), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_fit_into_a_run_is_named() {
        for (agent, world, settings, expected) in [
            (
                "td3",
                "pendulum",
                &["steps=3000"][..],
                "td3.learning_starts: no update is made within 3000 steps, because it asks for 10000 before the first one",
            ),
            (
                "ppo",
                "cartpole",
                &["evaluate_every=200000"],
                "evaluate_every: no evaluation is made, because 200000 is more than the 100000 steps of the run",
            ),
            (
                "dqn",
                "cartpole",
                &["n_step=600"],
                "dqn.n_step: targets of 600 rewards are whole returns, because an episode has at most 500 steps",
            ),
            (
                "dqn",
                "cartpole",
                &["steps=20000", "learning_starts=15000", "exploration_fraction=0.5"],
                "dqn.exploration_fraction: epsilon has fallen after 10000 steps, but the first 15000 steps are random (dqn.learning_starts)",
            ),
        ] {
            let (config, _) = set(agent, world, settings);
            assert_eq!(config.vain_in_this_run(), [expected]);
        }
        let (config, _) = set("dqn", "cartpole", &["target_update_interval=1000000"]);
        assert!(
            config.vain_in_this_run()[0].starts_with("dqn.target_update_interval: the target network is never copied, because 1000000 is")
        );
        // no preset warns of itself
        for preset in gradus_agents::registry::presets() {
            let world = match preset.environment {
                "any" => "frozen-lake",
                "text" => "addition",
                own => own,
            };
            let Ok(config) = Config::preset(preset.agent, world, Some(preset.name)) else { continue };
            assert_eq!(config.vain_in_this_run(), Vec::<String>::new(), "{} on {world}: {}", preset.agent, preset.name);
        }
    }
}
