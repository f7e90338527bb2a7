//! Finds the setting that a name means: a name without its section, or the name that another toolkit uses.

use gradus_agents::registry as agents;
use gradus_base::names::nearest_key;

use crate::files::format;

/// The names of Stable-Baselines3, CleanRL and TRL, each with our names for the same thing. `AGENT` stands for the agent's section. Of several names,
/// the first that the configuration has is meant.
const FOREIGN: [(&str, &[&str]); 103] = [
    ("act_noise", &["AGENT.action_noise_std"]),
    ("action_noise", &["AGENT.action_noise"]),
    ("action_sigma", &["AGENT.action_noise_std"]),
    ("adam_epsilon", &["optimiser.epsilon"]),
    ("advantage_normalization", &["AGENT.normalise_advantages"]),
    ("alpha", &["AGENT.ent_coef"]),
    ("anneal_lr", &["optimiser.schedule"]),
    ("batch_size", &["AGENT.minibatch_size", "AGENT.minibatches", "AGENT.critic_minibatch_size"]),
    ("beta", &["reference.coefficient"]),
    ("cg_max_steps", &["AGENT.cg_iterations"]),
    ("clip_coef", &["AGENT.clip"]),
    ("clip_range", &["AGENT.clip"]),
    ("clip_range_vf", &["AGENT.clip_value"]),
    ("clip_vloss", &["AGENT.clip_value"]),
    ("cuda", &["device"]),
    ("discount", &["AGENT.gamma"]),
    ("discount_factor", &["AGENT.gamma"]),
    ("end_e", &["AGENT.exploration_final_eps"]),
    ("ent_coef", &["AGENT.entropy_coefficient"]),
    ("entropy_coef", &["AGENT.entropy_coefficient"]),
    ("env", &["environment"]),
    ("env_id", &["environment"]),
    ("episodes", &["steps"]),
    ("eps_decay", &["AGENT.exploration_fraction", "AGENT.epsilon_fraction"]),
    ("eps_end", &["AGENT.exploration_final_eps", "AGENT.epsilon"]),
    ("eps_start", &["AGENT.exploration_initial_eps", "AGENT.first_epsilon"]),
    ("epsilon_decay", &["AGENT.exploration_fraction", "AGENT.epsilon_fraction"]),
    ("epsilon_high", &["AGENT.clip_high"]),
    ("eval_freq", &["evaluate_every"]),
    ("expl_noise", &["AGENT.action_noise_std"]),
    ("exploration_noise", &["AGENT.action_noise_std"]),
    ("grad_clip", &["optimiser.max_grad_norm"]),
    ("grad_norm_clip", &["optimiser.max_grad_norm"]),
    ("gradient_steps", &["AGENT.updates_per_step"]),
    ("hidden_size", &["network.hidden"]),
    ("hidden_sizes", &["network.hidden"]),
    ("init_kl_coef", &["reference.coefficient"]),
    ("kl_coef", &["reference.coefficient"]),
    ("lam", &["AGENT.gae_lambda"]),
    ("lambda", &["AGENT.gae_lambda", "AGENT.q_lambda"]),
    ("layers", &["network.hidden", "transformer.layers"]),
    ("learning_rate", &["optimiser.learning_rate", "AGENT.alpha"]),
    ("line_search_max_iter", &["AGENT.line_search_steps"]),
    ("line_search_shrinking_factor", &["AGENT.line_search_shrink"]),
    ("loss_type", &["AGENT.aggregation", "AGENT.loss"]),
    ("lr", &["optimiser.learning_rate", "AGENT.alpha"]),
    ("lr_scheduler_type", &["optimiser.schedule"]),
    ("lstm_hidden_size", &["network.cell_width"]),
    ("max_completion_length", &["text.max_new_tokens"]),
    ("max_kl", &["AGENT.max_kl", "AGENT.target_kl"]),
    ("max_tokens", &["text.max_new_tokens"]),
    ("n_critic_updates", &["AGENT.critic_epochs"]),
    ("n_envs", &["envs"]),
    ("n_epochs", &["AGENT.epochs"]),
    ("n_eval_episodes", &["evaluate_episodes"]),
    ("n_quantiles", &["AGENT.quantiles"]),
    ("n_stack", &["wrappers.frame_stack"]),
    ("n_steps", &["AGENT.n_step", "AGENT.rollout_steps", "AGENT.episodes_per_env"]),
    ("net_arch", &["network.hidden"]),
    ("noise", &["AGENT.action_noise"]),
    ("noise_clip", &["AGENT.target_noise_clip"]),
    ("noise_std", &["AGENT.action_noise_std"]),
    ("noise_type", &["AGENT.action_noise"]),
    ("norm_adv", &["AGENT.normalise_advantages"]),
    ("norm_obs", &["wrappers.normalise_observations"]),
    ("norm_reward", &["wrappers.normalise_rewards"]),
    ("normalize", &["wrappers.normalise_observations"]),
    ("normalize_advantage", &["AGENT.normalise_advantages"]),
    ("num_envs", &["envs"]),
    ("num_generations", &["AGENT.group_size"]),
    ("num_iterations", &["AGENT.epochs"]),
    ("num_layers", &["network.hidden", "transformer.layers"]),
    ("num_minibatches", &["AGENT.minibatches", "AGENT.minibatch_size"]),
    ("num_ppo_epochs", &["AGENT.epochs"]),
    ("num_steps", &["AGENT.rollout_steps", "AGENT.episodes_per_env"]),
    ("num_timesteps", &["steps"]),
    ("ortho_init", &["network.orthogonal"]),
    ("per_device_train_batch_size", &["envs"]),
    ("pi_lr", &["optimiser.learning_rate"]),
    ("policy_frequency", &["AGENT.policy_delay"]),
    ("policy_noise", &["AGENT.target_policy_noise"]),
    ("q_lr", &["optimiser.critic_learning_rate_ratio"]),
    ("reward_funcs", &["text.rewards"]),
    ("rms_prop_eps", &["optimiser.epsilon"]),
    ("sde_sample_freq", &["network.gsde_sample_every"]),
    ("shared_lstm", &["network.shared"]),
    ("start_e", &["AGENT.exploration_initial_eps"]),
    ("start_steps", &["AGENT.learning_starts"]),
    ("step_size", &["AGENT.alpha", "optimiser.learning_rate"]),
    ("stepsize", &["AGENT.alpha", "optimiser.learning_rate"]),
    ("sub_sampling_factor", &["AGENT.fisher_stride"]),
    ("target_kl", &["AGENT.target_kl", "AGENT.max_kl"]),
    ("target_network_frequency", &["AGENT.target_update_interval"]),
    ("temperature", &["transformer.temperature"]),
    ("total_timesteps", &["steps"]),
    ("train_freq", &["AGENT.rollout_steps"]),
    ("train_frequency", &["AGENT.rollout_steps"]),
    ("update_after", &["AGENT.learning_starts"]),
    ("update_epochs", &["AGENT.epochs"]),
    ("use_sde", &["network.gsde"]),
    ("vf_coef", &["AGENT.value_coefficient"]),
    ("warmup_ratio", &["optimiser.warmup"]),
    ("warmup_steps", &["optimiser.warmup"]),
];

/// What a foreign name means in another unit or kind: its name, ours, and the difference.
const OTHERWISE: [(&str, &str, &str); 11] = [
    ("batch_size", "minibatches", "a number of minibatches"),
    ("clip_vloss", "clip_value", "a range, such as 0.2; inf for none"),
    ("eps_decay", "epsilon_fraction", "the share of the steps over which epsilon falls"),
    ("eps_decay", "exploration_fraction", "the share of the steps over which epsilon falls"),
    ("epsilon_decay", "epsilon_fraction", "the share of the steps over which epsilon falls"),
    ("epsilon_decay", "exploration_fraction", "the share of the steps over which epsilon falls"),
    ("episodes", "steps", "a run has a number of environment steps"),
    ("gradient_steps", "updates_per_step", "for each environment step: gradient_steps / (train_freq x envs)"),
    ("num_minibatches", "minibatch_size", "the size of one: envs x rollout_steps / num_minibatches"),
    ("q_lr", "critic_learning_rate_ratio", "a multiple of the learning rate"),
    ("vf_coef", "value_coefficient", "it multiplies half the squared error, so that it is twice Stable-Baselines3's"),
];

/// Short names that mean different things in papers and in settings, each with the settings that may be meant.
const UNCLEAR: [(&str, &[&str]); 3] = [
    ("eps", &["AGENT.epsilon", "AGENT.clip", "AGENT.exploration_final_eps", "optimiser.epsilon"]),
    ("epsilon", &["AGENT.clip", "AGENT.exploration_final_eps", "optimiser.epsilon"]),
    ("horizon", &["AGENT.rollout_steps", "reference.horizon"]),
];

/// Returns the keys of `known` that the short name `name` may mean, if it is unclear; otherwise none.
fn unclear(name: &str, agent: &str, known: &[&str]) -> Vec<String> {
    let meant = UNCLEAR.iter().filter(|(short, _)| *short == name).flat_map(|(_, keys)| *keys);
    meant.map(|key| key.replace("AGENT", agent)).filter(|key| known.contains(&key.as_str())).collect()
}

/// Returns the key of `known` that `name` names without its section, such as `ppo.clip` for `clip`: the agent's, or else the only one.
pub(super) fn without_section<'a>(name: &str, agent: &str, known: &[&'a str]) -> Option<&'a str> {
    if unclear(name, agent, known).len() > 1 {
        return None;
    }
    let own = format!("{agent}.{name}");
    match ends_with(name, known)[..] {
        [only] => Some(only),
        ref several => several.iter().copied().find(|key| *key == own),
    }
}

/// Returns the keys of `known` whose last part is `name`.
fn ends_with<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    known.iter().copied().filter(|key| key.rsplit_once('.').is_some_and(|(_, last)| last == name)).collect()
}

/// Returns the second half of the error message for the unknown setting `name` of `agent`.
pub(super) fn hint(name: &str, agent: &str, known: &[&str]) -> String {
    if let Some(new) = format::renamed(name) {
        return format!("it is called `{new}` now");
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_other_spelling = |key: &str| last.len() > 1 && key == last.replace("normalize", "normalise").replace("optimizer", "optimiser");
    let unclear = unclear(name, agent, known);
    if unclear.len() > 1 {
        return format!("did you mean `{}`?", unclear.join("` or `"));
    }
    if ["threads", "out", "quiet", "watch", "resume", "preset", "config"].contains(&last) {
        return format!("it is an option: --{last}");
    }
    let ends = ends_with(last, known);
    if !ends.is_empty() {
        let all: Vec<String> = ends.iter().map(|key| format!("`{key}`")).collect();
        return format!("did you mean {}?", all.join(" or "));
    }
    let foreign = FOREIGN.iter().find(|(theirs, _)| *theirs == last).and_then(|(_, ours)| {
        let ours = ours.iter().map(|key| key.replace("AGENT", agent));
        ours.into_iter().find(|key| known.contains(&key.as_str()))
    });
    if let Some(ours) = foreign {
        let is_other = |(theirs, name, _): &&(&str, &str, &str)| *theirs == last && ours.ends_with(name);
        let note = OTHERWISE.iter().find(is_other).map_or_else(String::new, |(_, _, note)| format!(": {note}"));
        return format!("here it is called `{ours}`{note}");
    }
    // a word of a name, such as `noise` of `action_noise_std`
    let has_word = |key: &&&str| key.rsplit('.').next().is_some_and(|end| end.contains('_') && end.split('_').any(|word| word == last));
    let with_word: Vec<String> = known.iter().filter(has_word).map(|key| format!("`{key}`")).collect();
    if (1..=3).contains(&with_word.len()) {
        return format!("did you mean {}?", with_word.join(" or "));
    }
    if let Some(key) = known.iter().find(|key| is_other_spelling(key.rsplit('.').next().unwrap_or(key))) {
        return format!("did you mean `{key}`?");
    }
    let is_other_agent = |section: &str| section != agent && agents::find(section).is_ok_and(|entry| entry.name == section);
    if let Some((section, _)) = name.split_once('.').filter(|(section, _)| is_other_agent(section)) {
        return format!("it would be one of the agent {section}, and this is {agent}");
    }
    match nearest_key(name, known.iter().copied(), '.') {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`{} list --settings` explains all settings", crate::program_name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn every_foreign_name_means_a_setting_of_an_agent() {
        assert!(FOREIGN.is_sorted());
        let on = |world: &'static str| {
            let agents = gradus_agents::registry::all();
            agents.into_iter().map(move |entry| (entry.name, Config::preset(entry.name, world, None).unwrap().settings()))
        };
        let all: Vec<(&str, Vec<(String, String)>)> = on("cartpole").chain(on("addition")).collect();
        for (theirs, ours) in FOREIGN {
            for key in ours {
                let has = |(agent, settings): &(&str, Vec<(String, String)>)| {
                    settings.iter().any(|(name, _)| *name == key.replace("AGENT", agent))
                };
                assert!(all.iter().any(has), "{theirs}: no agent has the setting {key}");
            }
        }
    }

    #[test]
    fn hints_are_short_and_name_the_setting() {
        let config = Config::preset("ppo", "cartpole", None).unwrap();
        let settings = config.settings();
        let known: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        for (name, expected) in [
            ("clip_range", "here it is called `ppo.clip`"),
            ("ppo.ent_coef", "here it is called `ppo.entropy_coefficient`"),
            ("n_steps", "here it is called `ppo.rollout_steps`"),
            ("n_envs", "here it is called `envs`"),
            ("lr", "here it is called `optimiser.learning_rate`"),
            ("normalize_advantages", "did you mean `ppo.normalise_advantages`?"),
            ("clib", "did you mean `ppo.clip`?"),
            ("a2c.gamma", "did you mean `ppo.gamma`?"),
            ("ppo.clib", "did you mean `ppo.clip`?"),
            ("slots", "it is called `max_concurrent` now"),
            ("epsilon", "did you mean `ppo.clip` or `optimiser.epsilon`?"),
            ("threads", "it is an option: --threads"),
            ("layers", "here it is called `network.hidden`"),
            ("policy", "`gradus list --settings` explains all settings"),
            ("ppo.nonsense", "`gradus list --settings` explains all settings"),
            ("dqn.buffer_size", "it would be one of the agent dqn, and this is ppo"),
            ("quux", "`gradus list --settings` explains all settings"),
        ] {
            assert_eq!(hint(name, "ppo", &known), expected, "{name}");
        }
        assert_eq!(without_section("clip", "ppo", &known), Some("ppo.clip"));
        assert_eq!(without_section("epsilon", "ppo", &known), None, "the clip range or Adam's constant");
        assert_eq!(without_section("steps", "ppo", &known), None, "it is a key itself");
        assert_eq!(
            without_section("epochs", "ppo", &["reward_model.epochs", "ppo.epochs"]),
            Some("ppo.epochs"),
            "the agent's own comes first"
        );
        assert_eq!(
            hint("learning_rate", "x", &["a.learning_rate", "b.learning_rate"]),
            "did you mean `a.learning_rate` or `b.learning_rate`?"
        );
    }
}
