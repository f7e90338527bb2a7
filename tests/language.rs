//! Pretrained models against readers that share no code with ours: tiny models of each family as transformers computes them (`scripts/language/families.py`). Also trains
//! them with several agents, and reads and writes their files.

use std::path::{Path, PathBuf};

use gradus::nets::cpu::Transformer;
use gradus::nets::{
    ActionRows, Batch, Behaviour, Choice, Evaluation, Network as _, Objective, Observations, Outputs, Policy as _, Store, Texts,
    TransformerConfig,
};
use gradus::{Config, Trainer};
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
    transformer_for(model, problems, lora_rank, model.shape().context)
}

/// As above, for texts of at most `context` tokens.
fn transformer_for(model: &Model, problems: &Path, lora_rank: usize, context: usize) -> Transformer {
    let name = format!("chat:{}?model={}", problems.display(), model.path().display());
    let config = Config::preset("grpo", &name, None).unwrap();
    let gradus::config::Network::Transformer(shape) = config.network else { panic!("a transformer") };
    let vocabulary = model.shape().vocabulary as u32;
    let spaces = (Space::Text { vocabulary, context }, Space::Discrete(vocabulary));
    let mut made = Transformer::new(&TransformerConfig { lora_rank, temperature: 1.0, ..shape }, &spaces.0, &spaces.1, 1).unwrap();
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
        // four roles: the policy, a critic of its own, the reference, and a reward model that is trained further
        (
            "ppo",
            &[
                "transformer.critic=separate",
                "reference.place=reward",
                "reference.coefficient=0.05",
                "reward_model.pairs=6",
                "reward_model.retrain_every=2",
            ],
        ),
        // iterative
        (
            "grpo",
            &[
                "grpo.group_size=4",
                "reference.coefficient=0.04",
                "reference.refresh_every=2",
                "reward_model.pairs=6",
                "reward_model.retrain_every=2",
            ],
        ),
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

/// A process reward model that is a language model scores the steps of a file's task, here each ended by an A.
#[test]
fn a_process_reward_model_scores_the_steps_of_a_file() {
    let folder = gradus_testing::tempdir().unwrap();
    let problems = folder.path().join("steps.jsonl");
    let lines: String = ["Ha", "Hb", "Hc", "Hd", "Ja", "Jb", "Jc", "Jd"]
        .iter()
        .map(|prompt| format!("{{\"prompt\": \"{prompt}\", \"answer\": \"^[!-P]\", \"verifier\": \"regex\"}}\n"))
        .collect();
    std::fs::write(&problems, format!("{{\"max_new_tokens\": 5, \"step\": \"A\"}}\n{lines}")).unwrap();
    let world = format!("chat:{}?model={}", problems.display(), golden("qwen2").display());
    let settings = [
        "grpo.group_size=4",
        "grpo.supervision=process",
        "reward_model.supervision=process",
        "reward_model.pairs=24",
        "reward_model.rollouts=2",
        "reward_model.retrain_every=2",
    ];
    let config = || small("grpo", &world, &settings);
    let (mut whole, mut resumed) = (Trainer::new(config()).unwrap(), Trainer::new(config()).unwrap());
    for _ in 0..3 {
        whole.iterate().unwrap();
        resumed.load(&whole.save()).unwrap();
        assert_eq!(whole.iterate().unwrap().episodes, resumed.iterate().unwrap().episodes);
        assert!(whole.save() == resumed.save());
    }
}

/// What is learned from are the tokens that were sampled, with the log-probabilities of the distribution that they were sampled from: at another temperature than 1, of a prompt that is
/// shared, with a cache, and where the text of a completion would be other tokens if it were read again ("ab" is one token).
#[test]
fn sampled_tokens_are_learned_from_as_they_were_sampled() {
    let folder = gradus_testing::tempdir().unwrap();
    let model = golden("gguf").join("tiny.gguf");
    let world = world(folder.path(), &model);
    assert_eq!(gradus_envs::registry::find(&world).unwrap().title(), "letters.jsonl, tiny.gguf");
    let mut trainer = Trainer::new(small("grpo", &world, &["grpo.group_size=4", "transformer.temperature=0.7", "envs=256"])).unwrap();
    let mut texts = Vec::new();
    for _ in 0..3 {
        let iteration = trainer.iterate().unwrap();
        let metric = |wanted: &str| iteration.metrics.iter().find(|(name, _)| name == wanted).unwrap_or_else(|| panic!("no {wanted}")).1;
        assert!(metric("sampling/sampling_logp_difference/max") < 1e-5);
        texts.push(metric("completions/mean_length"));
    }
    assert!(texts.iter().all(|length| *length > 1.0));
    // the policy writes "a" and "b" one after the other, which no reading of "ab" gives
    let model = Model::open(&model).unwrap();
    assert_eq!(model.encode("ab").unwrap(), [79]);
    let apart = [model.encode("a").unwrap(), model.encode("b").unwrap()].concat();
    assert_eq!(model.decode(&apart), "ab");
    assert_ne!(apart, [79]);
}

fn worst(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_family_has_the_log_probabilities_and_gradients_of_transformers() {
    let folder = gradus_testing::tempdir().unwrap();
    let problems = folder.path().join("one.jsonl");
    std::fs::write(&problems, "{\"prompt\": \"Hi\", \"answer\": \"a\"}\n{\"prompt\": \"Hb\", \"answer\": \"b\"}\n").unwrap();
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

/// Returns the settings of a run that starts from `init`.
fn starting_from(init: &Path, world: &str, others: &[&str]) -> Config {
    small("grpo", world, &[&["grpo.group_size=4"], others].concat()).with_setting(&format!("init={}", init.display())).unwrap()
}

fn error(result: Result<Trainer, gradus::Error>) -> String {
    let Err(error) = result else { panic!("it is accepted") };
    assert!(!error.to_string().contains('\n'), "{error}");
    error.to_string()
}

#[test]
fn adapters_of_peft_are_written_and_read() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let world = world(dir, &golden("llama"));
    let mut trained = Trainer::new(small("grpo", &world, &["grpo.group_size=4"])).unwrap();
    (0..3).for_each(|_| _ = trained.iterate().unwrap());
    let ours = trained.policy().save();
    trained.into_policy().save(dir.join("run")).unwrap();

    // peft's two files alone
    let peft = dir.join("peft");
    std::fs::create_dir(&peft).unwrap();
    for name in ["adapter_config.json", "adapter_model.safetensors"] {
        std::fs::copy(dir.join("run").join(name), peft.join(name)).unwrap();
    }
    let (tensors, _) = decode(&std::fs::read(peft.join("adapter_model.safetensors")).unwrap()).unwrap();
    assert!(tensors.contains_key("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"));
    let read = Trainer::new(starting_from(&peft, &world, &[])).unwrap().policy().save();
    for (name, tensor) in ours.iter().filter(|(name, _)| name.contains(".lora_")) {
        assert_eq!(&read[name], tensor, "{name}");
    }
    // matrices that the folder does not adapt keep adapters that change nothing
    let some: Tensors = tensors.iter().filter(|(name, _)| name.contains("q_proj")).map(|(name, t)| (name.clone(), t.clone())).collect();
    let write = |tensors: &Tensors| {
        std::fs::write(peft.join("adapter_model.safetensors"), gradus_base::tensors::encode(tensors, "")).unwrap();
    };
    write(&some);
    let read = Trainer::new(starting_from(&peft, &world, &[])).unwrap().policy().save();
    for (name, tensor) in read.iter().filter(|(name, _)| name.contains(".lora_B.")) {
        if name.contains("q_proj") {
            assert_eq!(tensor, &ours[name]);
        } else {
            assert!(numbers(&read, name).iter().all(|x| *x == 0.0), "{name}");
        }
    }

    let wrong = error(Trainer::new(starting_from(&peft, &world, &["transformer.lora_rank=8"])));
    assert!(
        wrong.ends_with("peft: expected adapters with transformer.lora_rank = 8, got 16; change it with --set transformer.lora_rank=16"),
        "{wrong}"
    );
    let other = self::world(dir, &golden("qwen3"));
    let wrong = error(Trainer::new(starting_from(&peft, &other, &[])));
    assert!(
        wrong.contains(
            "expected adapters of this model, with [64, 16] numbers in model.layers.0.self_attn.q_proj.lora_B.weight, got [32, 16]"
        ),
        "{wrong}"
    );
    let wrong = error(Trainer::new(starting_from(&dir.join("run"), &other, &[])));
    assert!(wrong.contains("expected a policy with the vocabulary of"), "{wrong}");
    let wrong = error(Trainer::new(starting_from(&dir.join("run"), &world, &["transformer.lora_alpha=128"])));
    assert!(wrong.ends_with("expected a policy with transformer.lora_alpha = 128.0, got one with 32.0"), "{wrong}");
    // the same model by another path
    let relative = self::world(dir, Path::new("tests/golden/language/llama"));
    assert_eq!(Trainer::new(starting_from(&dir.join("run"), &relative, &[])).unwrap().policy().save(), ours);
    let unknown = some.iter().map(|(name, tensor)| (name.replace("q_proj", "qkv"), tensor.clone())).collect();
    write(&unknown);
    let wrong = error(Trainer::new(starting_from(&peft, &world, &[])));
    assert!(wrong.contains("expected adapters of this model's matrices, got model.layers.0.self_attn.qkv.lora_A.weight"), "{wrong}");
    let settings = std::fs::read_to_string(peft.join("adapter_config.json")).unwrap();
    for (from, to, problem) in [
        ("\"LORA\"", "\"IA3\"", "adapter_config.json: peft_type: expected \"LORA\", got \"IA3\""),
        ("\"fan_in_fan_out\": false", "\"use_dora\": true", "adapter_config.json: use_dora: expected none, got true"),
        (
            "\"fan_in_fan_out\": false",
            "\"init_lora_weights\": \"pissa_niter_4\"",
            "adapter_config.json: init_lora_weights: expected true, false, gaussian, orthogonal or eva, got \"pissa_niter_4\"",
        ),
        (
            "\"fan_in_fan_out\": false",
            "\"init_lora_weights\": true, \"alora_invocation_tokens\": [3]",
            "adapter_config.json: alora_invocation_tokens: expected none, got [3]",
        ),
        ("\"r\": 16", "\"r\": 0", "adapter_config.json: r: expected a whole number above 0, got 0"),
    ] {
        std::fs::write(peft.join("adapter_config.json"), settings.replace(from, to)).unwrap();
        let wrong = error(Trainer::new(starting_from(&peft, &world, &[])));
        assert!(wrong.ends_with(problem), "{wrong}");
    }
}

/// A file with six types of numbers, as the package gguf and transformers read it (`scripts/language/gguf_file.py`).
#[test]
fn gguf_files_are_read() {
    let folder = gradus_testing::tempdir().unwrap();
    let path = golden("gguf").join("tiny.gguf");
    let model = Model::open(&path).unwrap();
    let (expected, _) = decode(&std::fs::read(golden("gguf").join("expected.safetensors")).unwrap()).unwrap();
    let ours = model.tensors().unwrap();
    for (name, own) in [
        ("token_embd", "model.embed_tokens"),
        ("output_norm", "model.norm"),
        ("blk.0.attn_norm", "model.layers.0.input_layernorm"),
        ("blk.0.attn_v", "model.layers.0.self_attn.v_proj"),
        ("blk.0.attn_output", "model.layers.0.self_attn.o_proj"),
        ("blk.0.ffn_norm", "model.layers.0.post_attention_layernorm"),
        ("blk.0.ffn_gate", "model.layers.0.mlp.gate_proj"),
        ("blk.0.ffn_up", "model.layers.0.mlp.up_proj"),
        ("blk.0.ffn_down", "model.layers.0.mlp.down_proj"),
    ] {
        assert_eq!(numbers(&ours, &format!("{own}.weight")), numbers(&expected, &format!("{name}.weight")), "{name}");
    }
    // Q and K are stored for rotary pairs that are neighbours; Q4_0 and Q4_1 are theirs
    let tokens: Vec<u32> = numbers(&expected, "text").iter().map(|token| *token as u32).collect();
    let mut texts = Texts::new(model.shape().context);
    (1..=tokens.len()).for_each(|length| texts.push(tokens[..length].iter().copied()));
    let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(vec![0; tokens.len()]));
    let mut rows = Vec::new();
    world(folder.path(), &path);
    transformer(&model, &folder.path().join("letters.jsonl"), 0).distributions(&store, &mut rows);
    let difference = worst(&rows, numbers(&expected, "log_probs"));
    assert!(difference < 1e-5, "log-probabilities differ by {difference}");

    assert_eq!(model.render(&[gradus_language::Message::user("ab")]).unwrap(), "<begin>ab<end>");
    assert_eq!(model.conversation(&[gradus_language::Message::user("ab")]).unwrap(), [0, 79, 1]);

    let bytes = std::fs::read(&path).unwrap();
    let broken = folder.path().join("broken.gguf");
    let problem = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).unwrap();
        Model::open(&broken).err().unwrap().problem
    };
    for length in (0..bytes.len()).step_by(997).skip(1) {
        let wrong = problem(&bytes[..length]);
        assert!(wrong.starts_with("expected a whole GGUF file, got one that ends"), "{length}: {wrong}");
    }
    let neither = "expected a folder with config.json, or a GGUF file, got neither";
    assert_eq!(problem(b""), neither);
    assert_eq!(problem(b"PK"), neither);
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        problem(&bytes)
    };
    assert_eq!(changed(4, 9), "expected a GGUF file of version 2 or 3, got version 9");
    let name = b"blk.0.attn_q.weight";
    let kind = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 4 + 16;
    assert_eq!(bytes[kind], 3);
    assert_eq!(changed(kind, 14), "tensor blk.0.attn_q.weight: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got Q6_K");
    assert_eq!(changed(kind, 99), "tensor blk.0.attn_q.weight: expected F32, F16, BF16, Q8_0, Q4_0 or Q4_1, got type 99");
    // characters without tokens are not left out
    let wrong = model.encode("a\nb").err().unwrap().problem;
    assert_eq!(wrong, "tokeniser: expected a text of characters with tokens, got '\\n', which has none");
    assert_eq!(model.conversation(&[gradus_language::Message::user("a\nb")]).err().unwrap().problem, wrong);
    let pre = bytes.windows(6).position(|window| window == b"smollm").unwrap();
    assert_eq!(changed(pre, b'x'), "tokeniser: expected the rules smollm, gpt-2, qwen2 or llama-bpe, got xmollm");
}

/// SmolLM2 as transformers reads it (`scripts/language/reference.py`): the tokens of a prompt, log-probabilities, and greedy completions of 256 tokens, of which every token is also the
/// most probable one when the whole text is read at once. `scripts/models.sh` fetches the model.
#[test]
#[ignore = "needs the model, and six minutes"]
fn smollm2_answers_as_in_transformers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/SmolLM2-135M-Instruct.Q4_1.gguf");
    let folder = gradus_testing::tempdir().unwrap();
    let model = Model::open(&path).unwrap();
    world(folder.path(), &path);
    let mut policy = transformer_for(&model, &folder.path().join("letters.jsonl"), 0, 512);
    let golden = std::fs::read_to_string(golden("smollm2.jsonl")).unwrap();
    assert_eq!(golden.lines().count(), 20);
    for line in golden.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let list = |key: &str| line[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<f64>>();
        let prompt: Vec<u32> = list("tokens").into_iter().map(|token| token as u32).collect();
        let greedy: Vec<u32> = list("greedy").into_iter().map(|token| token as u32).collect();
        let said = line["prompt"].as_str().unwrap();
        assert_eq!(model.conversation(&[gradus_language::Message::user(said)]).unwrap(), prompt, "{said}");

        // one token after the other, with a cache
        let mut text = prompt.clone();
        let (mut actor, mut actions, mut log_prob) = (policy.actor(), ActionRows::Discrete(vec![0]), [0.0]);
        let mut of_actor = Vec::new();
        while text.len() < prompt.len() + greedy.len() {
            let mut row = vec![0.0; 513];
            gradus_envs::text::write(&text, &mut row);
            actor.act(&row, None, Choice::Greedy, &mut actions, &mut log_prob);
            let ActionRows::Discrete(chosen) = &actions else { panic!() };
            text.push(chosen[0]);
            of_actor.push(log_prob[0]);
        }
        drop(actor);
        assert_eq!(text[prompt.len()..], greedy, "{said}");

        // all at once
        let mut texts = Texts::new(512);
        (prompt.len()..text.len()).for_each(|length| texts.push(text[..length].iter().copied()));
        texts.end_text();
        let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(greedy));
        let (mut rows, mut log_probs) = (Vec::new(), Vec::new());
        policy.log_probs(&store, &mut log_probs);
        assert!(worst(&log_probs, &of_actor) < 1e-5, "{said}: {}", worst(&log_probs, &of_actor));
        let mut first = Texts::new(512);
        first.push(prompt.iter().copied());
        policy.distributions(&Store::of(Observations::Texts(first), ActionRows::Discrete(vec![0])), &mut rows);
        let ours: Vec<f32> = rows.into_iter().step_by(997).collect();
        let theirs: Vec<f32> = list("log_probs").into_iter().map(|x| x as f32).collect();
        assert!(worst(&ours, &theirs) < 1e-3, "{said}: {}", worst(&ours, &theirs));
        println!("{said}: {:.1e} from transformers", worst(&ours, &theirs));
    }
}

/// A whole model that is written has the same shape, tokens, template and parameters when it is read.
#[test]
fn whole_models_are_written_and_read() {
    for family in ["llama", "llama3", "qwen2", "qwen3", "gpt2"] {
        let folder = gradus_testing::tempdir().unwrap();
        let (dir, model) = (folder.path(), Model::open(&golden(family)).unwrap());
        let mut changed = model.tensors().unwrap();
        for tensor in changed.values_mut() {
            let Data::F32(numbers) = &mut tensor.data else { panic!() };
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x += i as f32);
        }
        model.write(dir, &changed, 0.7).unwrap();
        let generation = std::fs::read_to_string(dir.join("generation_config.json")).unwrap();
        assert!(generation.contains("\"temperature\": 0.7\n") || generation.contains("\"temperature\": 0.7,"), "{generation}");
        let read = Model::open(dir).unwrap();
        assert_eq!(read.shape(), model.shape(), "{family}");
        assert!(read.tensors().unwrap() == changed, "{family}");
        let text = [gradus_language::Message::user("Abc1")];
        assert_eq!(read.conversation(&text).unwrap(), model.conversation(&text).unwrap());
        assert_eq!(read.ends(), model.ends());
    }
}

/// Adapters of another model are not taken for this one's: a policy knows the contents of its model.
#[test]
fn a_policy_knows_its_model() {
    let folder = gradus_testing::tempdir().unwrap();
    let (model, run) = (folder.path().join("model"), folder.path().join("run"));
    std::fs::create_dir(&model).unwrap();
    for file in std::fs::read_dir(golden("llama")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), model.join(file.file_name())).unwrap();
    }
    let config = Config { steps: 60, ..small("grpo", &world(folder.path(), &model), &["grpo.group_size=4"]) };
    gradus::Run::create(config, &run).unwrap().train(gradus::Show::Nothing).unwrap();
    gradus::Policy::load(&run).unwrap();
    let mut bytes = std::fs::read(model.join("model.safetensors")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(model.join("model.safetensors"), bytes).unwrap();
    let wrong = gradus::Policy::load(&run).map(|_| ()).unwrap_err().to_string();
    assert!(wrong.contains("model: expected the contents with which the run was created"), "{wrong}");
}

/// Problems without a verifier: examples are learned, and groups cannot be filtered by right answers. A conversation ends with what the model answers.
#[test]
fn problems_without_a_verifier_and_conversations() {
    let folder = gradus_testing::tempdir().unwrap();
    let (model, problems) = (golden("llama"), folder.path().join("p.jsonl"));
    let world = format!("chat:{}?model={}", problems.display(), model.display());
    let write = |line: &str| std::fs::write(&problems, format!("{{\"max_new_tokens\": 5, \"verifier\": \"none\"}}\n{line}\n")).unwrap();
    write("{\"prompt\": \"Ha\", \"example\": \"A1\"}");
    assert!(gradus_envs::registry::find(&world).is_ok());
    let settings = ["grpo.group_size=4", "grpo.sampling_rounds=2", "grpo.group_filter=correct"];
    let wrong = error(Trainer::new(small("grpo", &world, &settings)));
    assert_eq!(wrong, "grpo.group_filter: expected spread (no problem has a verifier that says which answers are correct), got correct");
    let wrong = error(Trainer::new(small("grpo", &world, &["grpo.group_size=4"])));
    assert_eq!(wrong, "text.rewards: expected reward functions, because no problem has a verifier, got none");
    // presets of small transformers are not for pretrained ones
    let wrong = Config::preset("grpo", &world, Some("dapo")).unwrap_err().to_string();
    assert!(wrong.starts_with("unknown preset `dapo`"), "{wrong}");
    let taught = gradus::run::sft::defaults(Config::preset("ppo", &world, None).unwrap());
    let gradus::config::Network::Transformer(network) = &taught.network else { panic!("a transformer") };
    assert_eq!((network.temperature, taught.optimiser.learning_rate), (1.0, 2e-4));
    write("{\"messages\": [{\"role\": \"user\", \"content\": \"Ha\"}, {\"role\": \"assistant\", \"content\": \"A1\"}]}");
    let wrong = gradus_envs::registry::find(&world).err().unwrap().to_string();
    assert!(wrong.contains("messages: expected a last message that the model answers, got the assistant's `A1`"), "{wrong}");
}

/// What is wrong with a model's files is said in one line.
#[test]
fn models_that_cannot_be_used_are_refused() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("model");
    let fresh = || {
        _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        for name in ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"] {
            std::fs::copy(golden("llama").join(name), dir.join(name)).unwrap();
        }
    };
    let problem =
        || match Model::open(&dir).and_then(|model| model.conversation(&[gradus_language::Message::user("Hi")]).and(model.tensors())) {
            Ok(_) => panic!("it is accepted"),
            Err(error) => {
                assert!(!error.to_string().contains('\n'), "{error}");
                error.problem
            }
        };
    let replace = |name: &str, from: &str, to: &str| {
        let path = dir.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{name}: {text}");
        std::fs::write(path, text.replace(from, to)).unwrap();
    };
    fresh();
    let index = r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    std::fs::write(dir.join("model.safetensors.index.json"), index).unwrap();
    std::fs::rename(dir.join("model.safetensors"), dir.join("model-1.safetensors")).unwrap();
    assert_eq!(problem(), "model.safetensors.index.json: expected 2 files in the folder, got none called model-2.safetensors");
    fresh();
    let bytes = std::fs::read(dir.join("model.safetensors")).unwrap();
    std::fs::write(dir.join("model.safetensors"), &bytes[..bytes.len() / 2]).unwrap();
    assert!(problem().starts_with("model.safetensors: "), "{}", problem());
    for (name, from, to, expected) in [
        (
            "config.json",
            "\"model_type\": \"llama\"",
            "\"model_type\": \"mamba\"",
            "family: expected llama, qwen2, qwen3 or gpt2, got mamba",
        ),
        ("config.json", "\"vocab_size\": 80", "\"vocab_size\": 70", "tokeniser: expected at most the 70 tokens of the model, got 80"),
        ("config.json", "\"vocab_size\": 80", "\"vocab_size\": 80, \"layer_types\": [\"sliding_attention\"]", "config.json: layer_types: "),
        ("config.json", "\"vocab_size\": 80", "\"vocab_size\": 4294967376", "config.json: expected `vocab_size`, a number from 1 to"),
        ("config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"", "config.json: hidden_act: expected silu, got \"relu\""),
        ("tokenizer.json", "\"BPE\"", "\"XYZ\"", "tokeniser: "),
        ("tokenizer_config.json", "{% endfor %}", "", "chat template (line 1): "),
        (
            "tokenizer_config.json",
            "{% endfor %}",
            "{% endfor %}{{ raise_exception('no system') }}",
            "chat template (line 1): invalid operation: no system",
        ),
        ("tokenizer_config.json", "{% for", "{{ 1 / 0 }}{% for", "chat template (line 1): "),
    ] {
        fresh();
        replace(name, from, to);
        assert!(problem().starts_with(expected), "{}", problem());
    }
    for missing in ["config.json", "tokenizer.json", "model.safetensors"] {
        fresh();
        std::fs::remove_file(dir.join(missing)).unwrap();
        assert!(problem().starts_with(&format!("cannot read {missing}: ")), "{}", problem());
    }
    // blocks that mark an assistant's words, for training in transformers
    fresh();
    let plain = Model::open(&dir).unwrap().conversation(&[gradus_language::Message::user("Abc1")]).unwrap();
    replace("tokenizer_config.json", "{% endfor %}", "{%- generation -%} {%- endgeneration %}{% endfor %}");
    assert_eq!(Model::open(&dir).unwrap().conversation(&[gradus_language::Message::user("Abc1")]).unwrap(), plain);
    // no template: said when a conversation is needed
    fresh();
    std::fs::remove_file(dir.join("tokenizer_config.json")).unwrap();
    assert_eq!(problem(), "expected a model with a chat template, got none");

    // of two tokens that end an answer, neither is part of it
    fresh();
    std::fs::write(dir.join("generation_config.json"), "{\"eos_token_id\": [1, 7]}").unwrap();
    let two = gradus_envs::registry::find(&world(folder.path(), &dir)).unwrap().text.unwrap();
    let prompt = two.task.prompt_of("Ha").unwrap();
    let a = two.task.vocabulary().encode("A").unwrap();
    assert_eq!(two.task.vocabulary().language().unwrap().ends(), [1, 7]);
    // an error that names the prompt is one line, too
    let unknown = two.verify(&two.task.prompt_of("HaHa").unwrap(), &[a[0], 1]).unwrap_err().to_string();
    assert!(unknown.ends_with("expected a prompt of the file, got another one") && !unknown.contains('\n'), "{unknown}");
    for end in [1, 7] {
        assert_eq!(two.task.vocabulary().decode(&[a[0], end]), "A");
        assert_eq!(two.verify(&prompt, &[a[0], end]).unwrap().0, 1.0, "{end}");
    }
    assert_eq!(two.verify(&prompt, &[a[0], a[0]]).unwrap().0, 0.0, "cut");

    // tensors that the shape does not have are noticed when they are loaded into the network
    fresh();
    replace("config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 64");
    let wrong = error(Trainer::new(small("grpo", &world(folder.path(), &dir), &["grpo.group_size=4"])));
    assert!(wrong.contains("model.layers.0.mlp.gate_proj.weight") && wrong.contains("[64, 32]"), "{wrong}");
    // a prompt that does not fit
    fresh();
    let problems = folder.path().join("long.jsonl");
    std::fs::write(&problems, format!("{{\"max_new_tokens\": 5}}\n{{\"prompt\": \"{}\", \"answer\": \"A\"}}\n", "Ha".repeat(40))).unwrap();
    let name = format!("chat:{}?model={}", problems.display(), dir.display());
    let wrong = Config::preset("grpo", &name, None).and_then(Trainer::new).err().unwrap().to_string();
    assert!(wrong.contains("64") && wrong.contains("80"), "{wrong}");
}

/// Three iterations on libtorch's CPU end where those of the engine cpu end, also with layers that are computed again.
#[cfg(feature = "tch")]
#[test]
fn pretrained_models_train_on_libtorch_as_on_the_cpu() {
    let folder = gradus_testing::tempdir().unwrap();
    let world = world(folder.path(), &golden("qwen2"));
    for (agent, settings) in [
        ("grpo", &["grpo.group_size=4", "torch.gradient_checkpointing=true"][..]),
        // with few environments no reward is not 0, and PPO normalises the rounding errors of the divergence
        ("ppo", &["envs=128", "transformer.critic=separate", "reference.place=reward", "reference.coefficient=0.05"]),
        ("grpo", &["grpo.group_size=4", "transformer.lora_rank=0", "optimiser.learning_rate=0.0003"]),
    ] {
        let with = |device: &str| {
            let mut trainer = Trainer::new(small(agent, &world, settings).with_setting(&format!("device={device}")).unwrap()).unwrap();
            let before = trainer.policy().save();
            let episodes: Vec<_> = (0..3).map(|_| trainer.iterate().unwrap().episodes).collect();
            (before, episodes, trainer.policy().save(), trainer.policy().merged().unwrap())
        };
        let (ours, theirs) = (with("cpu"), with("torch-cpu"));
        assert_eq!(ours.1, theirs.1, "{agent} {settings:?}");
        let far = |a: &Tensors, b: &Tensors| {
            let each = |name: &String| numbers(a, name).iter().zip(numbers(b, name)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            a.keys().map(each).fold(0.0, f32::max)
        };
        let (moved, apart) = (far(&ours.0, &ours.2), far(&ours.2, &theirs.2));
        println!("{agent} {settings:?}: moved {moved:e}, apart {apart:e}, merged {:e}", far(&ours.3, &theirs.3));
        assert!(apart < 1e-2 * moved && far(&ours.3, &theirs.3) < 1e-2 * moved, "{agent} {settings:?}: {moved} {apart}");
    }
}
