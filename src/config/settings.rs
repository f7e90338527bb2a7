//! The help texts of the settings.

use gradus_agents::registry;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_agents::{OptimiserConfig, ReferenceConfig};
use gradus_base::Settings;
use gradus_nets::{NetworkConfig, TorchConfig, TransformerConfig};

use crate::config::{Config, Network, RewardConfig, TextConfig, WrapperConfig};

/// Names and help texts of fields.
type Help = &'static [(&'static str, &'static str)];

/// Returns the key, the value in `config` and the help text of every setting that has a value.
pub fn explain(config: &Config) -> Vec<(String, String, String)> {
    let name = config.algorithm.name();
    let of_agent = registry::find(name).map_or(&[][..], |entry| entry.help);
    let of_network = match config.network {
        Network::Perceptron(_) => NetworkConfig::HELP,
        Network::Transformer(_) => TransformerConfig::HELP,
    };
    let sections: [(&str, Help); 10] = [
        ("", Config::HELP),
        (name, of_agent),
        ("optimiser", OptimiserConfig::HELP),
        ("torch", TorchConfig::HELP),
        ("reference", ReferenceConfig::HELP),
        (config.network.name(), of_network),
        ("wrappers", WrapperConfig::HELP),
        ("text", TextConfig::HELP),
        ("reward_model", RewardConfig::HELP),
        ("reward_model", RewardModelConfig::HELP),
    ];
    let values = config.settings();
    let mut explained = Vec::new();
    for (section, help) in sections {
        for (field, about) in help {
            let key = if section.is_empty() { (*field).to_string() } else { format!("{section}.{field}") };
            // fields that are sections have no value
            if let Some((_, value)) = values.iter().find(|(name, _)| *name == key) {
                explained.push((key, value.clone(), about.trim().to_string()));
            }
        }
    }
    explained
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_explained() {
        let on = |world| registry::all().into_iter().map(move |entry| Config::preset(entry.name, world, None).unwrap());
        for config in on("cartpole").chain(on("addition")) {
            let explained = explain(&config);
            for (key, value) in config.settings() {
                let found = explained.iter().find(|(name, ..)| *name == key);
                assert!(found.is_some_and(|(_, shown, about)| *shown == value && about.ends_with('.')), "{key}");
            }
        }
    }
}
