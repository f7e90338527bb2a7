//! Pretrained models against readers that share no code with ours: tiny models of each family as transformers computes them (`scripts/language/families.py`). Also trains
//! them with several agents, and reads and writes their files.

use std::path::{Path, PathBuf};

use gradus::{Config, Trainer};
use gradus::nets::cpu::Transformer;
use gradus::nets::{
    ActionRows, Batch, Behaviour, Evaluation, Network as _, Objective, Observations, Outputs, Policy as _, Store, Texts, TransformerConfig,
};
use gradus_base::tensors::{Data, Tensors, decode};
use gradus_envs::Space;
use gradus_language::Model;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/language").join(name)
}

fn numbers<'a>(tensors: &'a Tensors, name: &str) -> &'a [f32] {
    match &tensors.get(name).unwrap_or_else(|| panic!("no {name}")).data {
        Data::F32(numbers) => numbers,
        _ => panic!("{name}: other numbers"),
    }
}

/// -log p of the token.
struct Surprise;

impl Objective for Surprise {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        (-pi.log_prob).into()
    }
}

/// The transformer of the model in a folder, all of whose parameters are trained, or only adapters of this rank.
fn transformer(model: &Model, problems: &Path, lora_rank: usize) -> Transformer {
    let name = format!("chat:{}?model={}", problems.display(), model.path().display());
    let config = Config::preset("grpo", &name, None).unwrap();
    let gradus::config::Network::Transformer(shape) = config.network else { panic!("a transformer") };
    let (context, vocabulary) = (model.shape().context, model.shape().vocabulary as u32);
    let spaces = (Space::Text { vocabulary, context }, Space::Discrete(vocabulary));
    let mut made = Transformer::new(&TransformerConfig { lora_rank, ..shape }, &spaces.0, &spaces.1, 1).unwrap();
    made.load_pretrained(&model.tensors().unwrap()).unwrap();
    made
}

/// Eight problems with two right answers each, for the model in a folder.
fn world(folder: &Path, model: &Path) -> String {
    let problems = folder.join("letters.jsonl");
    let lines: String = ["Ha", "Hb", "Hc", "Hd", "Ja", "Jb", "Jc", "Jd"]
        .iter()
        .map(|prompt| format!("{{\"prompt\": \"{prompt}\", \"answer\": \"^[!-P]\", \"verifier\": \"regex\", \"example\": \"A1\"}}\n"))
        .collect();
    std::fs::write(&problems, format!("{{\"max_new_tokens\": 5}}\n{lines}")).unwrap();
    format!("chat:{}?model={}", problems.display(), model.display())
}

/// The settings of a small training.
fn small(agent: &str, world: &str, others: &[&str]) -> Config {
    let config = Config::preset(agent, world, None).unwrap();
    let with = |config: Config, setting: &&str| config.with_setting(setting).unwrap();
    ["envs=16", "steps=100000", "optimiser.learning_rate=0.01"].iter().chain(others).fold(config, with)
}

#[test]
fn every_text_agent_trains_adapters_and_resumes_to_the_same_bits() {
    let folder = gradus_testing::tempdir().unwrap();
    let world = world(folder.path(), &golden("qwen2"));
    for (agent, settings) in [
        ("grpo", &["grpo.group_size=4", "max_concurrent=5"][..]),
        ("reinforce", &["reinforce.baseline=leave-one-out", "reference.place=reward", "reference.coefficient=0.05"]),
        ("ppo", &["ppo.minibatch_size=20"]),
        ("dpo", &["dpo.group_size=4"]),
        // all parameters
        ("grpo", &["grpo.group_size=4", "transformer.lora_rank=0", "optimiser.learning_rate=0.0003"]),
        ("ppo", &["transformer.lora_rank=0", "transformer.critic=separate", "optimiser.learning_rate=0.0003"]),
    ] {
        let config = || small(agent, &world, settings);
        let mut whole = Trainer::new(config()).unwrap();
        let mut resumed = Trainer::new(config()).unwrap();
        for _ in 0..3 {
            whole.iterate().unwrap();
            resumed.load(&whole.save()).unwrap();
            let (a, b) = (whole.iterate().unwrap(), resumed.iterate().unwrap());
            assert_eq!(a.episodes, b.episodes, "{agent} {settings:?}");
            assert!(whole.save() == resumed.save(), "{agent} {settings:?}");
            resumed = Trainer::new(config()).unwrap();
        }
        let with_adapters = whole.policy().save().keys().any(|name| name.contains(".lora_B."));
        assert_eq!(with_adapters, !settings.contains(&"transformer.lora_rank=0"));
    }
}

fn worst(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_family_has_the_log_probabilities_and_gradients_of_transformers() {
    let folder = gradus_testing::tempdir().unwrap();
    let problems = folder.path().join("one.jsonl");
    std::fs::write(&problems, "{\"prompt\": \"Hi\", \"answer\": \"a\"}\n{\"prompt\": \"Ho\", \"answer\": \"b\"}\n").unwrap();
    for family in ["llama", "llama3", "qwen2", "qwen3", "gpt2"] {
        let model = Model::open(&golden(family)).unwrap();
        let (expected, _) = decode(&std::fs::read(golden(family).join("expected.safetensors")).unwrap()).unwrap();
        let tokens: Vec<u32> = numbers(&expected, "texts").iter().map(|token| *token as u32).collect();
        let (mut texts, mut actions) = (Texts::new(model.shape().context), Vec::new());
        for text in tokens.chunks_exact(24) {
            for length in 1..24 {
                texts.push(text[..length].iter().copied());
                actions.push(text[length]);
            }
            texts.end_text();
        }
        let n = actions.len();
        let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(actions));
        let mut rows = Vec::new();
        for lora_rank in [0, 4] {
            transformer(&model, &problems, lora_rank).distributions(&store, &mut rows);
            let difference = worst(&rows, numbers(&expected, "log_probs"));
            assert!(difference < 1e-5, "{family}, rank {lora_rank}: log-probabilities differ by {difference}");
        }

        let mut whole = transformer(&model, &problems, 0);
        let indices: Vec<u32> = (0..n as u32).collect();
        whole.gradient(&store, Batch::new(&indices, &vec![1.0 / n as f32; n]), &Surprise);
        // their gradient, by the names and in the layout of ours: the same reading as that of the parameters
        let scale = whole.gradient_norm();
        let ours = whole.gradient_tensors();
        let theirs = gradient_of(family, &expected);
        let mut checked = 0;
        for (name, tensor) in &ours {
            if name == "value_head.weight" {
                continue;
            }
            let Data::F32(own) = &tensor.data else { panic!("{name}") };
            let difference = worst(own, numbers(&theirs, name)) / scale;
            assert!(difference < 1e-4, "{family}: {name}: the gradient differs by {difference} of its norm");
            checked += 1;
        }
        assert_eq!(checked, theirs.len(), "{family}");
    }
}

/// Writes the gradient into a copy of the model's folder, and reads it as its parameters.
fn gradient_of(family: &str, expected: &Tensors) -> Tensors {
    let folder = gradus_testing::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(golden(family).join(name), folder.path().join(name)).unwrap();
    }
    let gradient: Tensors =
        expected.iter().filter_map(|(name, tensor)| Some((name.strip_prefix("gradient.")?.to_owned(), tensor.clone()))).collect();
    std::fs::write(folder.path().join("model.safetensors"), gradus_base::tensors::encode(&gradient, "")).unwrap();
    Model::open(folder.path()).unwrap().tensors().unwrap()
}
