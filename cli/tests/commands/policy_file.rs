//! The tensors of `policy.safetensors` have the names, types and shapes that `docs/policy-file.md` documents. The saved statistics match
//! the observations.

use std::fs;
use std::path::Path;
use std::process::Command;

use gradus::envs::registry;
use gradus::evaluate::record::Recordings;
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::tensors::{self, Data, Tensor, Tensors};
use gradus::saved::load_policy;
use gradus::{Config, Run, Show, Trainer, evaluate::trace};

/// Reads the name, type, shape and bytes of every tensor of a safetensors file by hand. The file has eight bytes with the header's length,
/// the header as a JSON object, and the numbers.
fn tensors_of(path: &Path) -> Vec<(String, String, Vec<u64>, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let (length, rest) = bytes.split_at(8);
    let (header, numbers) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(header).unwrap();
    let tensor = |(name, about): (&String, &serde_json::Value)| {
        let row = |key: &str| about[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<u64>>();
        let offsets = row("data_offsets");
        let bytes = numbers[offsets[0] as usize..offsets[1] as usize].to_vec();
        (name.clone(), about["dtype"].as_str().unwrap().to_owned(), row("shape"), bytes)
    };
    let mut found: Vec<_> = header.iter().filter(|(name, _)| *name != "__metadata__").map(tensor).collect();
    found.sort();
    found
}

fn config(agent: &str, world: &str, settings: &[&str]) -> Config {
    let config = Config::preset(agent, world, None).unwrap();
    settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap())
}

#[test]
fn names_types_and_shapes_match_the_documentation() {
    let folder = gradus_testing::tempdir().unwrap();
    let expected = |layers: [(&str, &[u64]); 2], head: u64, others: &[(&str, &str, &[u64])]| {
        let mut expected: Vec<(String, String, Vec<u64>)> = Vec::new();
        for (name, widths) in layers {
            let outputs = [&widths[1..], &[if name == "actor" { head } else { 1 }]].concat();
            for (i, (inputs, outputs)) in widths.iter().zip(outputs).enumerate() {
                expected.push((format!("{name}.{}.weight", 2 * i), "F32".into(), vec![outputs, *inputs]));
                expected.push((format!("{name}.{}.bias", 2 * i), "F32".into(), vec![outputs]));
            }
        }
        expected.extend(others.iter().map(|(name, dtype, shape)| (name.to_string(), dtype.to_string(), shape.to_vec())));
        expected.sort();
        expected
    };
    let statistics: [(&str, &str, &[u64]); 5] = [
        ("observations.clip", "F64", &[]),
        ("observations.count", "F64", &[]),
        ("observations.epsilon", "F64", &[]),
        ("observations.mean", "F64", &[3]),
        ("observations.variance", "F64", &[3]),
    ];
    let gaussian = [&statistics[..], &[("actor.log_std", "F32", &[1])]].concat();
    let gsde = [&statistics[..], &[("actor.log_std", "F32", &[64, 1])]].concat();
    let table = [
        ("ppo", "cartpole", &[][..], expected([("actor", &[4, 32, 32]), ("critic", &[4, 32, 32])], 2, &[])),
        ("ppo", "pendulum", &[], expected([("actor", &[3, 64, 64]), ("critic", &[3, 64, 64])], 1, &gaussian)),
        ("a2c", "pendulum", &[], expected([("actor", &[3, 64, 64]), ("critic", &[3, 64, 64])], 1, &gsde)),
    ];
    for (i, (agent, world, settings, expected)) in table.into_iter().enumerate() {
        let dir = folder.path().join(i.to_string());
        Run::create(Config { steps: 1_000, ..config(agent, world, settings) }, &dir).unwrap().train(Show::Nothing).unwrap();
        let found = tensors_of(&dir.join("policy.safetensors"));
        let found: Vec<_> = found.into_iter().map(|(name, dtype, shape, _)| (name, dtype, shape)).collect();
        assert_eq!(found, expected, "{agent} on {world}");
    }
}

/// Every observation that was acted on counts once. The initial statistics, mean 0 and variance 1, count as 0.0001 observations.
#[test]
fn saved_statistics_match_the_observations() {
    let folder = gradus_testing::tempdir().unwrap();
    let [file, policy] = ["observations.jsonl", "policy.safetensors"].map(|name| folder.path().join(name));
    let recordings = Recordings::create(&file).unwrap();
    let world = recordings.of(registry::find("pendulum").unwrap());
    let settings = ["wrappers.normalise_observations=true", "ppo.rollout_steps=75", "steps=1200", "envs=4"];
    let mut trainer = Trainer::in_world(config("ppo", "pendulum", &settings), world).unwrap();
    trainer.finish().unwrap();
    fs::write(&policy, tensors::encode(&trainer.export(), "")).unwrap(); // as a run writes it
    let state = trainer.save();
    drop(trainer);
    recordings.finish().unwrap();

    let episodes = trace::read(&file).unwrap();
    // the observation after an episode's last step was not acted on
    let rows: Vec<&Vec<f32>> = episodes.iter().flat_map(|episode| &episode.observations[..episode.actions.len()]).collect();
    assert_eq!(rows.len(), 1200);
    let (n, prior) = (rows.len() as f64, 1e-4);
    let mean = |i: usize| rows.iter().map(|row| f64::from(row[i])).sum::<f64>() / (n + prior);
    let means: Vec<f64> = (0..3).map(mean).collect();
    let variance = |i: usize| {
        let squares: f64 = rows.iter().map(|row| (f64::from(row[i]) - means[i]).powi(2)).sum();
        (squares + prior * (1.0 + means[i].powi(2))) / (n + prior)
    };
    let expected = [
        ("observations.clip", vec![10.0]),
        ("observations.count", vec![n + prior]),
        ("observations.epsilon", vec![1e-8]),
        ("observations.mean", means.clone()),
        ("observations.variance", (0..3).map(variance).collect()),
    ];
    let found = tensors_of(&policy);
    for (name, expected) in expected {
        let (_, _, _, bytes) = found.iter().find(|(found, ..)| found == name).unwrap();
        let numbers: Vec<f64> = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        assert_eq!(numbers.len(), expected.len(), "{name}");
        for (got, expected) in numbers.iter().zip(&expected) {
            assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{name}: expected {expected}, got {got}");
        }
    }
    // the checkpoint has the same statistics under the same names
    let (exported, _) = tensors::decode(&fs::read(&policy).unwrap()).unwrap();
    assert!(exported.iter().filter(|(name, _)| name.starts_with("observations.")).all(|(name, tensor)| state[name] == *tensor));
}

/// Rewrites a file as earlier versions wrote it: one tensor contains the count, means and variances as the bits of f64 numbers.
fn make_old(path: &Path) {
    let (mut tensors, note) = tensors::decode(&fs::read(path).unwrap()).unwrap();
    let mut take = |name: &str| match tensors.remove(&format!("observations.{name}")).unwrap().data {
        Data::F64(numbers) => numbers,
        other => panic!("{name}: {other:?}"),
    };
    let numbers = [take("count"), take("mean"), take("variance")].concat();
    assert_eq!([take("epsilon"), take("clip")], [[1e-8], [10.0]]);
    tensors.insert("observation_statistics".into(), Tensor::u64(numbers.into_iter().map(f64::to_bits).collect()));
    fs::write(path, tensors::encode(&tensors, &note)).unwrap();
}

fn change(path: &Path, change: impl FnOnce(&mut Tensors)) {
    let (mut tensors, note) = tensors::decode(&fs::read(path).unwrap()).unwrap();
    change(&mut tensors);
    fs::write(path, tensors::encode(&tensors, &note)).unwrap();
}

#[test]
fn files_of_earlier_versions_are_read() {
    let folder = gradus_testing::tempdir().unwrap();
    let [new, old, init] = ["new", "old", "init"].map(|name| folder.path().join(name));
    let train = |dir: &Path, steps: u64| {
        Run::create(Config { steps, ..config("ppo", "pendulum", &[]) }, dir).unwrap().train(Show::Nothing).unwrap();
    };
    train(&new, 4_096);
    train(&old, 4_096);
    let policy = |dir: &Path| dir.join("policy.safetensors");
    let returns = |dir: &Path| {
        let (_, world, policy) = load_policy(dir).unwrap();
        evaluate(policy.as_ref(), &world, 3, 1, Mode::Greedy).unwrap().returns
    };
    make_old(&policy(&old));
    assert_eq!(returns(&old), returns(&new));
    // an old file can be used as `init`
    let started = |from: &Path| {
        let config = config("ppo", "pendulum", &[&format!("init={}", from.display())]);
        let trainer = Trainer::new(Config { steps: 2_048, ..config }).unwrap();
        trainer.save().into_iter().filter(|(name, _)| name.starts_with("observations.")).collect::<Tensors>()
    };
    assert_eq!(started(&policy(&old)), started(&policy(&new)));
    assert_eq!(started(&policy(&old)).len(), 5);
    // an old checkpoint can be resumed, and the run then writes the new names
    make_old(&old.join("state.safetensors"));
    fs::remove_file(policy(&old)).unwrap();
    assert_eq!(returns(&old), returns(&new));
    Run::resume(&old).unwrap().train(Show::Nothing).unwrap();
    assert_eq!(tensors_of(&policy(&old)), tensors_of(&policy(&new)));
    // constants that other software has changed are refused
    train(&init, 2_048);
    change(&policy(&init), |tensors| {
        tensors.insert("observations.clip".into(), Tensor::f64(&[], vec![5.0]));
    });
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).arg("eval").arg(&init).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.ends_with("tensor `observations.clip`: expected 10, got 5\n"), "{error}");
}
