//! What each setting means: the documentation of the configuration's fields, read from where they are declared.

use gradus_agents::{a2c, grpo, ppo, reinforce, trpo};

use crate::Config;
use crate::config::{Algorithm, Network, REWARD_SOURCE, TEXT_SOURCE};

/// The fields of `name` in a source text, each with its documentation in one line.
fn documented(source: &str, name: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let mut about = String::new();
    let body = source.lines().skip_while(|line| *line != format!("pub struct {name} {{")).skip(1);
    for line in body.take_while(|line| *line != "}").map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            about = format!("{about} {}", text.trim()).trim().to_string();
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(':')) {
            fields.push((field.to_string(), std::mem::take(&mut about)));
        }
    }
    fields
}

/// Every setting with a value: its key, its value in `config`, and what it means.
pub fn explain(config: &Config) -> Vec<(String, String, String)> {
    let own = documented(include_str!("mod.rs"), "Config");
    let network = match config.network {
        Network::Perceptron(_) => documented(gradus_nets::NETWORK_SOURCE, "NetworkConfig"),
        Network::Transformer(_) => documented(gradus_nets::TRANSFORMER_SOURCE, "TransformerConfig"),
    };
    let text = documented(TEXT_SOURCE, "TextConfig");
    let reward_model = documented(REWARD_SOURCE, "RewardConfig");
    let its_training = documented(gradus_agents::reward_model::SOURCE, "RewardModelConfig");
    let (name, algorithm) = match &config.algorithm {
        Algorithm::Reinforce(_) => ("reinforce", documented(reinforce::SOURCE, "ReinforceConfig")),
        Algorithm::A2c(_) => ("a2c", documented(a2c::SOURCE, "A2cConfig")),
        Algorithm::Trpo(_) => ("trpo", documented(trpo::SOURCE, "TrpoConfig")),
        Algorithm::Ppo(_) => ("ppo", documented(ppo::SOURCE, "PpoConfig")),
        Algorithm::Grpo(_) => ("grpo", documented(grpo::SOURCE, "GrpoConfig")),
    };
    let optimiser = documented(gradus_agents::optimiser::SOURCE, "OptimiserConfig");
    let torch = documented(gradus_nets::DEVICE_SOURCE, "TorchConfig");
    let reference = documented(gradus_agents::reference::SOURCE, "ReferenceConfig");
    let wrappers = documented(include_str!("wrappers.rs"), "WrapperConfig");
    let nested = |prefix: &str, fields: Vec<(String, String)>| -> Vec<(String, String)> {
        fields.into_iter().map(|(field, about)| (format!("{prefix}.{field}"), about)).collect()
    };
    let documented = [
        own,
        nested(name, algorithm),
        nested("optimiser", optimiser),
        nested("torch", torch),
        nested("reference", reference),
        nested(config.network.name(), network),
        nested("wrappers", wrappers),
        nested("text", text),
        nested("reward_model", reward_model),
        nested("reward_model", its_training),
    ]
    .concat();
    let values = config.settings();
    let value = |key: &str| values.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    documented
        .into_iter()
        .filter_map(|(key, about)| Some((value(&key)?, key, about)))
        .map(|(value, key, about)| (key, value, about))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_explained() {
        let on = |world| crate::config::AGENTS.map(|(agent, _)| Config::preset(agent, world, None).unwrap());
        for config in on("cartpole").into_iter().chain(on("addition")) {
            let explained = explain(&config);
            for (key, value) in config.settings() {
                let found = explained.iter().find(|(name, ..)| *name == key);
                assert!(found.is_some_and(|(_, shown, about)| *shown == value && about.ends_with('.')), "{key}");
            }
        }
    }
}
