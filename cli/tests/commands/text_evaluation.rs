//! Early stopping and measurements during training use the validation split. Reports use the test split. Evaluations use the same problems
//! for all policies.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::text::{Addition, Division, Finish, Preference, Problem, Split, TargetSum, Task, Verdict, Vocabulary};
use gradus::envs::{EnvSpec, registry};
use gradus::evaluate::{Evaluation, Mode, evaluate};
use gradus::nets::{Policy, threads};
use gradus::run::sft::{WarmStart, warm_start};
use gradus::{Config, Trainer, run::reward_model};
use gradus_testing::command::{contents, error_of};

const SMALL: [&str; 4] = ["transformer.layers=1", "transformer.width=32", "transformer.heads=2", "transformer.feed_forward_width=32"];

fn config(agent: &str, task: &str, settings: &[&str]) -> Config {
    let config = Config::preset(agent, task, None).unwrap();
    SMALL.iter().chain(settings).fold(config, |config, setting| config.with_setting(setting).unwrap())
}

fn fresh(world: &EnvSpec, seed: u64) -> Box<dyn Policy> {
    config("ppo", &world.name, &[]).network.policy(world, seed).unwrap()
}

/// A task that records the splits from which it draws problems.
struct Watched<T> {
    task: T,
    splits: Arc<Mutex<Vec<Split>>>,
}

impl<T: Task> Task for Watched<T> {
    fn vocabulary(&self) -> &Vocabulary {
        self.task.vocabulary()
    }
    fn max_new_tokens(&self) -> usize {
        self.task.max_new_tokens()
    }
    fn longest_prompt(&self) -> usize {
        self.task.longest_prompt()
    }
    fn division(&self) -> Division {
        self.task.division()
    }
    fn score_names(&self) -> Vec<String> {
        self.task.score_names()
    }
    fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
        let mut splits = self.splits.lock().unwrap();
        if !splits.contains(&split) {
            splits.push(split);
        }
        self.task.problem(split, stream)
    }
    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        self.task.verify(prompt, completion, finish)
    }
}

fn watched(name: &str, task: impl Task + 'static) -> (EnvSpec, Arc<Mutex<Vec<Split>>>) {
    let splits = Arc::default();
    let world = EnvSpec::text(name, Watched { task, splits: Arc::clone(&splits) }).unwrap();
    splits.lock().unwrap().clear(); // creating the world checks the task, which draws problems
    (world, splits)
}

/// Early stopping, the stopping rule of a warm start, and measurements of a reward model during training use the validation split. Only
/// reports use the test split.
#[test]
fn only_reports_use_the_test_split() {
    let training = |agent: &str, settings: &[&str]| {
        let config = config(agent, "preference", settings);
        let (world, splits) = watched("preference", Preference::new(4));
        let mut trainer = Trainer::in_world(Config { envs: 8, steps: 200, ..config }, world).unwrap();
        trainer.finish().unwrap();
        let seen = splits.lock().unwrap().clone();
        assert_eq!(trainer.evaluation_world().text.unwrap().split, Split::Test);
        let test = evaluate(trainer.policy(), &trainer.evaluation_world(), 5, 1, Mode::Greedy).unwrap();
        assert_eq!(test.problems.unwrap().split, Some(Split::Test));
        assert!(splits.lock().unwrap().contains(&Split::Test));
        seen
    };
    assert_eq!(training("grpo", &[]), [Split::Train]);
    assert_eq!(training("grpo", &["evaluate_every=50", "stop_at=5"]), [Split::Train, Split::Validation]);
    assert_eq!(training("ppo", &["reward_model.pairs=20", "reward_model.retrain_every=1"]), [Split::Train, Split::Validation]);

    let (world, splits) = watched("addition", Addition::new(1));
    let config = config("ppo", "addition-1", &[]);
    let wanted = WarmStart { steps: 4, batch: 4, until_exact: 0.9, evaluate_every: 2, problems: 10 };
    warm_start(fresh(&world, 1).as_mut(), &world, &config, &wanted, |_| ()).unwrap();
    assert_eq!(*splits.lock().unwrap(), [Split::Train, Split::Validation]);

    let (world, splits) = watched("preference", Preference::new(4));
    let wanted = reward_model::Wanted { pairs: 30, held_out: 20, ..reward_model::Wanted::default() };
    reward_model::learn(fresh(&world, 1).as_mut(), &world, &config, &wanted).unwrap();
    assert_eq!(*splits.lock().unwrap(), [Split::Train, Split::Test]);
}

/// An evaluation during training is the mean over the first problems of the validation split.
#[test]
fn evaluations_during_training_use_the_validation_split() {
    let mut trainer =
        Trainer::new(Config { envs: 8, ..config("grpo", "preference", &["evaluate_every=1", "evaluate_episodes=5"]) }).unwrap();
    let iteration = trainer.iterate().unwrap();
    let shown = iteration.metrics.iter().find(|(name, _)| name == "eval/mean_reward").unwrap().1;
    let of = |split| evaluate(trainer.policy(), &trainer.world().on_split(split), 5, 99, Mode::Greedy).unwrap().mean;
    assert_eq!(shown, of(Split::Validation));
    assert_ne!(shown, of(Split::Test));
}

/// Returns the prompts of the test split of chain sums, by brute force.
fn chain_sums() -> BTreeSet<String> {
    let vocabulary = registry::find("chain-sum").unwrap().text.unwrap().task.vocabulary().clone();
    let all = (0..1000).map(|n| format!("{}+{}+{}=", n / 100, n / 10 % 10, n % 10));
    all.filter(|prompt| Split::Test.has(&vocabulary.encode(prompt).unwrap())).collect()
}

/// For all policies, seeds and numbers of threads, an evaluation uses the same problems, each once. A smaller evaluation uses the first
/// problems of a larger evaluation.
#[test]
fn evaluations_have_the_same_problems_for_all_policies() {
    let world = registry::find("chain-sum").unwrap().on_split(Split::Test);
    let (policy, other) = (fresh(&world, 1), fresh(&world, 2));
    let of = |policy: &dyn Policy, n, seed, mode| evaluate(policy, &world, n, seed, mode).unwrap();
    let whole = of(policy.as_ref(), 1000, 1, Mode::Greedy);
    let problems = whole.problems.clone().unwrap();
    assert_eq!((problems.split, problems.distinct, problems.wanted, problems.is_whole), (Some(Split::Test), 145, 1000, true));
    assert_eq!((whole.returns.len(), chain_sums().len()), (145, 145));
    let same = of(policy.as_ref(), 1000, 7, Mode::Greedy);
    assert_eq!((&same.returns, &same.lengths), (&whole.returns, &whole.lengths), "the seed changes a greedy evaluation");
    for n in [1, 20, 144] {
        let some = of(policy.as_ref(), n, 3, Mode::Greedy);
        assert_eq!((&some.returns[..], some.problems.unwrap().is_whole), (&whole.returns[..n], false));
    }
    for mode in [Mode::Greedy, Mode::Sampled] {
        let with = |count| threads::with(count, || of(other.as_ref(), 60, 1, mode));
        assert_eq!((&with(1), &with(1)), (&with(2), &with(5)));
    }
    let [one, two] = [1, 2].map(|seed| of(other.as_ref(), 60, seed, Mode::Sampled));
    assert!(one.problems == two.problems && one.lengths != two.lengths, "the seed does not change a sampled evaluation");
    let training = evaluate(policy.as_ref(), &registry::find("chain-sum").unwrap(), 5, 1, Mode::Greedy).unwrap();
    assert_eq!(training.problems.unwrap().to_string(), "5 problems (a fixed sample of the train split of chain-sum)");
}

/// Returns are in the order of the list of problems: a problem that is evaluated alone has the same return.
#[test]
fn returns_are_in_the_order_of_the_list() {
    let world = registry::find("preference").unwrap().on_split(Split::Test);
    let policy = fresh(&world, 3);
    let all = evaluate(policy.as_ref(), &world, 50, 1, Mode::Greedy).unwrap();
    let text = world.text.clone().unwrap();
    let list = text.listed(50);
    assert_eq!((list.seeds.len(), all.returns.len()), (8, 8));
    for (seed, reward) in list.seeds.iter().zip(&all.returns) {
        let prompt = text.task.problem(Split::Test, &mut Stream::new(*seed, Purpose::Environment, 0)).prompt;
        let alone = evaluate(policy.as_ref(), &world.clone().with_prompt(&prompt).unwrap(), 9, 1, Mode::Greedy).unwrap();
        assert_eq!((alone.returns.len(), alone.returns[0]), (1, *reward));
    }
    let distinct: BTreeSet<u64> = all.returns.iter().map(|x| x.to_bits()).collect();
    assert!(distinct.len() > 1, "all returns are the same: nothing was tested");
}

#[test]
fn a_task_without_splits_is_evaluated_on_its_training_problems() {
    let (world, _) = watched("own", TargetSum::new(7, 3));
    let policy = config("ppo", "target-sum", &[]).network.policy(&world, 1).unwrap();
    let of = |n| -> Evaluation { evaluate(policy.as_ref(), &world.clone().on_split(Split::Test), n, 1, Mode::Greedy).unwrap() };
    let all = of(100).problems.unwrap();
    assert_eq!((all.split, all.distinct, all.is_whole), (None, 7, true));
    assert_eq!(all.to_string(), "all 7 problems, also used in training");
    assert_eq!(of(3).problems.unwrap().to_string(), "3 problems of own, also used in training");
}

fn gradus(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

/// Trains a policy on a task's answers for three steps and saves it in the folder `out`. Returns what the command prints.
fn start(dir: &Path, task: &str, seed: &str, out: &str) -> String {
    let small: Vec<&str> = SMALL.iter().flat_map(|setting| ["--set", setting]).collect();
    let command = ["sft", task, "--steps", "3", "--batch", "8", "--seed", seed, "--out", out];
    gradus(dir, &[&command[..], &small].concat())
}

/// The expected mean paired difference is computed from the returns in the JSON output.
#[test]
fn eval_names_the_problems_and_compares_runs_on_them() {
    let dir = gradus_testing::tempdir().unwrap();
    let dir = dir.path();
    let said = start(dir, "preference", "1", "a");
    assert!(said.contains("step 3: loss ") && said.contains(", validation exact 0.0 %"), "{said}");
    let last = said.lines().last().unwrap();
    assert_eq!(last, "exact: 0.0 % of 8 problems (the whole test split of preference, fewer than 200)");
    start(dir, "preference", "2", "b");
    start(dir, "target-sum", "1", "c");
    assert!(start(dir, "copy", "1", "d").ends_with("of 200 problems (a fixed sample of the test split of copy)\n"));

    let before = contents(dir);
    let said = gradus(dir, &["eval", "c"]);
    assert!(said.starts_with("evaluation: mean ") && said.contains(" over all 7 problems, also used in training, std "), "{said}");
    assert!(said.lines().last().unwrap().starts_with("exact: ") && !said.contains("held-out"), "{said}");
    let said = gradus(dir, &["eval", "a", "--episodes", "8"]);
    assert!(said.contains(" over 8 problems (the whole test split of preference), std "), "{said}");

    let said = gradus(dir, &["eval", "a", "b", "c", "d"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "expected a line for each run and a line for the only pair with the same problems: {said}");
    assert!(lines[0].starts_with("a: mean ") && lines[3].starts_with("d: mean "), "{said}");
    let json: serde_json::Value = serde_json::from_str(&gradus(dir, &["eval", "a", "b", "c", "d", "--json"])).unwrap();
    let returns = |i: usize| -> Vec<f64> {
        json["evaluations"][i]["evaluation"]["returns"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let mean = returns(0).iter().zip(returns(1)).map(|(a, b)| a - b).sum::<f64>() / 8.0;
    let [difference] = &json["differences"].as_array().unwrap()[..] else { panic!("{json}") };
    assert!((difference["mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!(lines[4].starts_with(&format!("a - b: {mean:+.3}, 95 % interval ")), "{said}");
    assert!(lines[4].ends_with(", paired over the same 8 problems"), "{said}");
    let problems = &json["evaluations"][0]["evaluation"]["problems"];
    assert_eq!(problems.to_string(), r#"{"distinct":8,"is_whole":true,"split":"test","task":"preference","wanted":100}"#);
    assert_eq!(json["evaluations"][2]["evaluation"]["problems"]["split"], serde_json::Value::Null);

    assert!(contents(dir) == before, "an evaluation has written files");

    // runs with different rewards for the same problems are not compared
    let config = fs::read_to_string(dir.join("b/config.toml")).unwrap();
    let changed = config.replace("length_penalty = 0.0", "length_penalty = 0.5");
    assert_ne!(config, changed);
    fs::write(dir.join("b/config.toml"), &changed).unwrap();
    let path = dir.join("b/policy.safetensors");
    let (tensors, _) = gradus::nets::tensors::decode(&fs::read(&path).unwrap()).unwrap();
    fs::write(&path, gradus::nets::tensors::encode(&tensors, &changed)).unwrap();
    assert_eq!(gradus(dir, &["eval", "a", "b"]).lines().count(), 2);
    assert_eq!(error_of(&run(dir, &["eval", "a", "nowhere"])), "nowhere: expected a run folder, got none: config.toml is missing");
}
