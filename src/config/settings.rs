//! The help texts of the settings.

use gradus_agents::registry;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_agents::{OptimiserConfig, ReferenceConfig};
use gradus_base::Settings;
use gradus_base::range::Range;
use gradus_nets::{NetworkConfig, TorchConfig, TransformerConfig};

use crate::config::{Config, Network, RewardConfig, TextConfig, WrapperConfig};

/// Names and help texts of fields, and what those accept that do not accept every number.
type Help = (&'static [(&'static str, &'static str)], &'static [(&'static str, Range)]);

/// The help of a struct of settings.
const fn help<S: Settings>() -> Help {
    (S::HELP, S::RANGES)
}

/// Returns the key, the value in `config` and the help text of every setting that has a value. The text ends with the numbers that are accepted.
pub fn explain(config: &Config) -> Vec<(String, String, String)> {
    let name = config.algorithm.name();
    let of_agent = registry::find(name).map_or((&[][..], &[][..]), |entry| (entry.help, entry.ranges));
    let of_network = match config.network {
        Network::Perceptron(_) => help::<NetworkConfig>(),
        Network::Transformer(_) => help::<TransformerConfig>(),
    };
    let sections: [(&str, Help); 10] = [
        ("", help::<Config>()),
        (name, of_agent),
        ("optimiser", help::<OptimiserConfig>()),
        ("torch", help::<TorchConfig>()),
        ("reference", help::<ReferenceConfig>()),
        (config.network.name(), of_network),
        ("wrappers", help::<WrapperConfig>()),
        ("text", help::<TextConfig>()),
        ("reward_model", help::<RewardConfig>()),
        ("reward_model", help::<RewardModelConfig>()),
    ];
    let values = config.settings();
    let mut explained = Vec::new();
    for (section, (help, ranges)) in sections {
        for (field, about) in help {
            let key = if section.is_empty() { (*field).to_string() } else { format!("{section}.{field}") };
            // fields that are sections have no value
            if let Some((_, value)) = values.iter().find(|(name, _)| *name == key) {
                let range = ranges.iter().find(|(name, _)| name == field);
                let accepted = range.map_or_else(String::new, |(_, range)| format!(" Range: {range}."));
                explained.push((key, value.clone(), format!("{}{accepted}", about.trim())));
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
