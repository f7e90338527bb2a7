//! The presets of text methods differ from the default preset in the features that define the method, and in nothing else.

use std::collections::BTreeMap;

use gradus::envs::registry;
use gradus::{Config, Trainer};

/// An agent, the name of a preset, and every setting in which it differs from the agent's preset `default`.
type Variant = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const VARIANTS: &[Variant] = &[
    // Liu et al., arXiv 2503.20783, section 3.2
    ("grpo", "dr-grpo", &[("grpo.group_std", "none"), ("grpo.aggregation", "constant-length")]),
    // Yu et al., arXiv 2503.14476, equations 8 to 13; 10 rounds as in its code (verl's max_num_gen_batches)
    (
        "grpo",
        "dapo",
        &[("grpo.clip_high", "0.28"), ("grpo.sampling_rounds", "10"), ("grpo.group_filter", "correct"), ("text.overlong_buffer", "4")],
    ),
    // Zheng et al., arXiv 2507.18071, equations 5 to 7 and section 5.1
    (
        "grpo",
        "gspo",
        &[("grpo.ratio", "sequence"), ("grpo.aggregation", "sequence-mean"), ("grpo.clip", "0.0003"), ("grpo.clip_high", "0.0004")],
    ),
    // MiniMax, arXiv 2506.13585, equations 4 and 5
    ("grpo", "cispo", &[("grpo.clipped", "weight"), ("grpo.clip", "1.0"), ("grpo.clip_high", "4.0")]),
    // Ahmadian et al., arXiv 2402.14740, equations 6 and 7
    (
        "reinforce",
        "rloo",
        &[("envs", "128"), ("reinforce.aggregation", "sequence-sum"), ("reference.place", "reward"), ("reference.coefficient", "0.05")],
    ),
    // Hu, arXiv 2501.03262, section 3
    (
        "reinforce",
        "reinforce-plus-plus",
        &[
            ("envs", "128"),
            ("reinforce.baseline", "none"),
            ("reinforce.group_size", "1"),
            ("reinforce.normalise_returns", "true"),
            ("reinforce.epochs", "2"),
            ("reinforce.minibatches", "2"),
            ("reinforce.clip", "0.2"),
            ("reference.place", "reward"),
            ("reference.coefficient", "0.01"),
        ],
    ),
];

fn settings(agent: &str, task: &str, preset: &str) -> BTreeMap<String, String> {
    Config::preset(agent, task, Some(preset)).unwrap().settings().into_iter().collect()
}

#[test]
fn a_variant_differs_from_the_default_in_its_features_only() {
    for (agent, preset, features) in VARIANTS {
        let (ours, default) = (settings(agent, "addition", preset), settings(agent, "addition", "default"));
        let different: BTreeMap<&str, &str> =
            ours.iter().filter(|(key, value)| default[*key] != **value).map(|(key, value)| (&**key, value.trim_matches('"'))).collect();
        assert_eq!(different, features.iter().copied().collect(), "{agent} {preset}");
    }
    // features that the default has too
    let default = settings("grpo", "addition", "default");
    assert_eq!([&default["grpo.clip"], &default["grpo.aggregation"], &default["reference.coefficient"]], ["0.2", "\"token-mean\"", "0.0"]);
}

/// The constant of Dr. GRPO is the length of the task's longest completion.
#[test]
fn the_constant_length_is_that_of_the_longest_completion() {
    for (task, length) in [("addition", 4), ("addition-3", 5)] {
        let trained = |length: usize| {
            let config = Config::preset("grpo", task, Some("dr-grpo")).unwrap();
            let config = config.with_setting(&format!("grpo.constant_length={length}")).unwrap();
            let mut trainer = Trainer::new(Config { envs: 64, ..config }).unwrap();
            trainer.iterate().unwrap();
            trainer.export()
        };
        assert!(trained(0) == trained(length), "{task}");
        assert!(trained(0) != trained(length + 1), "{task}");
    }
}

/// Every variant can be built for every text task.
#[test]
fn variants_fit_every_task() {
    let tasks = registry::all().into_iter().filter(|world| world.text.is_some());
    for world in tasks {
        for (agent, preset, _) in VARIANTS {
            let config =
                Config::preset(agent, &world.name, Some(preset)).unwrap_or_else(|error| panic!("{agent} {preset} {}: {error}", world.name));
            config.build(&config.world().unwrap()).unwrap_or_else(|error| panic!("{agent} {preset} {}: {error}", world.name));
        }
    }
}
