//! Rewards of one's own are added to the task's. The completions of a rollout are rewarded together, and what is wrong with a function is said in one line
//! with the prompt.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gradus::agents::{Collection, Rollout};
use gradus::envs::gym::python;
use gradus::envs::text::rewards::{Completed, Limits, OnError, PythonRewards, RewardFunctions, Rewards};
use gradus::envs::text::{FileTask, Finish};
use gradus::envs::{EnvSpec, registry};
use gradus::nets::{ActionRows, threads};
use gradus::rollouts::{Collector, Episode};
use gradus::{Config, Trainer};
use gradus_testing::tempdir;

/// Two functions: the number of characters, and, of completions with a 0, whether they were cut. Remembers the sizes of the calls.
#[derive(Default)]
struct Two {
    calls: Mutex<Vec<usize>>,
    /// Completions with this character cannot be rewarded.
    bad: Option<char>,
    names: Vec<String>,
}

impl Two {
    fn new(bad: Option<char>) -> Arc<Self> {
        Arc::new(Self { bad, names: vec!["characters".into(), "cut".into()], calls: Mutex::default() })
    }
}

impl RewardFunctions for Two {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn rewards(&self, completions: &[Completed<'_>], _: bool) -> Vec<Result<Vec<Option<f64>>, String>> {
        self.calls.lock().unwrap().push(completions.len());
        let reward = |completed: &Completed<'_>| match self.bad {
            Some(bad) if completed.completion.contains(bad) => Err(format!("has a {bad}")),
            _ => {
                let cut = f64::from(u8::from(completed.finish == Finish::Length));
                Ok(vec![Some(completed.completion.len() as f64), completed.completion.contains('0').then_some(cut)])
            }
        };
        completions.iter().map(reward).collect()
    }
}

fn world(functions: &Arc<Two>, on_error: OnError) -> EnvSpec {
    let rewards = Rewards { functions: functions.clone(), weights: vec![0.5, -2.0], task_weight: 10.0, on_error };
    registry::find("chain-sum").unwrap().with_rewards(rewards).unwrap()
}

#[test]
fn weighted_rewards_are_added_to_the_tasks() {
    let functions = Two::new(None);
    let (plain, world) = (registry::find("target-sum").unwrap(), world(&functions, OnError::Stop));
    let text = world.text.as_ref().unwrap();
    let encode = |string: &str| text.task.vocabulary().encode(string).unwrap();
    let (prompt, eos) = (encode("3+4+2="), text.task.vocabulary().eos());
    let own = registry::find("chain-sum").unwrap().text.unwrap();
    let cut = "0".repeat(text.max_new_tokens());
    for (answer, ends) in [("7;9#9", true), ("70;9#9", true), ("7;9#", true), (&cut[..], false)] {
        let completion: Vec<u32> = encode(answer).into_iter().chain(ends.then_some(eos)).collect();
        let cut = f64::from(u8::from(!ends));
        let (task, mut scores) = own.verify(&prompt, &completion).unwrap();
        let second = if answer.contains('0') { cut } else { 0.0 };
        let expected = 10.0 * task + 0.5 * answer.len() as f64 - 2.0 * second;
        let (reward, found) = text.verify(&prompt, &completion).unwrap();
        assert!((reward - expected).abs() < 1e-12, "{answer}: expected {expected}, got {reward}");
        scores.splice(scores.len() - 1..scores.len() - 1, [answer.len() as f64, second]);
        assert_eq!(found, scores, "{answer}: the functions' scores are between the task's and those of all tasks");
    }
    let names = text.score_names();
    assert!(names.ends_with(&["rewards/characters".into(), "rewards/cut".into(), "finish/length".into()]), "{names:?}");
    let wrong = |weights: Vec<f64>| {
        let rewards = Rewards { functions: functions.clone(), weights, task_weight: 1.0, on_error: OnError::Stop };
        plain.clone().with_rewards(rewards).map(|world| world.name).unwrap_err().to_string()
    };
    for (weights, got) in [(vec![1.0], "[1.0]"), (vec![1.0, f64::NAN], "[1.0, NaN]")] {
        assert_eq!(wrong(weights), format!("text: text.reward_weights: expected 2 finite weights, for characters, cut, got {got}"));
    }
}

#[test]
fn a_completion_without_rewards_stops_the_run_or_has_none() {
    let (stops, counts) = (world(&Two::new(Some('8')), OnError::Stop), world(&Two::new(Some('8')), OnError::Zero));
    let text = counts.text.as_ref().unwrap();
    let vocabulary = text.task.vocabulary();
    let completion = |string: &str| [vocabulary.encode(string).unwrap(), vec![vocabulary.eos()]].concat();
    let prompt = vocabulary.encode("3+4+2=").unwrap();
    let (good, bad) = (completion("7;9#9"), completion("8"));
    let both = [(&prompt[..], &good[..]), (&prompt[..], &bad[..])];
    let error = stops.text.as_ref().unwrap().verify_all(&both).unwrap_err().to_string();
    assert_eq!(error, "text: prompt `3+4+2=`, completion `8`: has a 8");
    let verified = text.verify_all(&both).unwrap();
    let at = text.score_names().iter().position(|name| name == "rewards/errors").unwrap();
    assert_eq!((verified[0].1[at], verified[1].1[at]), (0.0, 1.0));
    assert_eq!(verified[1].1[at - 2..at], [0.0, 0.0]);
    let own = registry::find("chain-sum").unwrap().text.unwrap();
    assert_eq!(verified[1].0, 10.0 * own.verify(&prompt, &bad).unwrap().0);
}

/// Returns three rollouts of an untrained policy, with their episodes and the sizes of the calls.
fn collect(collection: Collection, threads: usize) -> (Vec<(Rollout, Vec<Episode>)>, Vec<usize>) {
    let functions = Two::new(None);
    let world = world(&functions, OnError::Stop);
    let policy = Config::preset("grpo", "chain-sum", None).unwrap().network.policy(&world, 3).unwrap();
    threads::with(threads, || {
        let mut collector = Collector::new(&world, 6, 1, collection).unwrap();
        let rollouts = (0..3).map(|_| collector.collect(policy.as_ref()).unwrap()).collect();
        (rollouts, functions.calls.lock().unwrap().clone())
    })
}

/// The completions of a rollout are rewarded by one call. Each has the reward and the scores that it has by itself, whatever rewards its steps had before.
#[test]
fn a_rollout_is_rewarded_by_one_call() {
    for collection in [Collection::Episodes { per_env: 2, group: 3, greedy: false }, Collection::Steps(13)] {
        let (rollouts, calls) = collect(collection, 1);
        assert_eq!(collect(collection, 5), (rollouts.clone(), calls.clone()));
        let ended: Vec<usize> = rollouts.iter().map(|(_, episodes)| episodes.len()).filter(|n| *n > 0).collect();
        assert_eq!(calls, ended);
        assert!(ended.iter().sum::<usize>() > 6);
        let text = world(&Two::new(None), OnError::Stop).text.unwrap();
        for (rollout, episodes) in &rollouts {
            let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("tokens") };
            let mut by_env: Vec<&Episode> = episodes.iter().collect();
            by_env.sort_by_key(|episode| episode.env);
            let mut by_env = by_env.into_iter();
            for segment in rollout.segments.iter().filter(|segment| segment.end.successor().is_none()) {
                let (last, episode) = (segment.range.end - 1, by_env.next().unwrap());
                let whole = [rollout.store.texts().prefix(last), &actions[last..=last]].concat();
                let (prompt, completion) = whole.split_at(whole.len() - episode.length as usize);
                let (reward, scores) = text.verify(prompt, completion).unwrap();
                assert!((episode.episode_return - reward).abs() < 1e-9 && episode.scores == scores);
                if episode.length as usize == segment.range.len() {
                    let sum: f64 = rollout.rewards[segment.range.clone()].iter().map(|reward| f64::from(*reward)).sum();
                    assert!((sum - reward).abs() < 1e-5, "expected {reward}, got {sum}");
                }
            }
        }
    }
}

/// Whether Python can be run. Where it cannot, the tests of functions in Python check nothing.
fn has_python() -> bool {
    Command::new(python()).arg("--version").output().is_ok_and(|output| output.status.success())
}

const LIMITS: Limits = Limits { seconds: 20, megabytes: 0 };

fn completed(completion: &str) -> Completed<'_> {
    let answer = serde_json::json!({ "least": 2 });
    Completed { prompt: "3>".into(), completion: completion.into(), tokens: &[1, 2], answer, finish: Finish::Eos }
}

/// Returns what the functions of a file with this source return for some completions.
fn called(source: &str, limits: Limits, completions: &[&str]) -> Vec<Result<Vec<Option<f64>>, String>> {
    let dir = tempdir().unwrap();
    let file = dir.path().join("own.py");
    fs::write(&file, source).unwrap();
    let completions: Vec<Completed<'_>> = completions.iter().map(|completion| completed(completion)).collect();
    let folder = format!("{}/", dir.path().display());
    match PythonRewards::open(&format!("python:{}", file.display()), limits) {
        Ok(rewards) => {
            let all = rewards.rewards(&completions, false);
            all.into_iter().map(|one| one.map_err(|problem| problem.replace(&folder, ""))).collect()
        }
        Err(error) => vec![Err(error.to_string().replace(&folder, ""))],
    }
}

#[test]
fn functions_have_the_arguments_that_they_name() {
    if !has_python() {
        return;
    }
    let source = "
import math
def lengths(completions, **kwargs):
    assert sorted(kwargs) == ['answer', 'completion_ids', 'finish', 'prompts'], kwargs
    print('this is no answer')
    return [len(completion) for completion in completions]
async def least(completions, answer):
    return [len(completion) >= of['least'] for completion, of in zip(completions, answer)]
def others(prompts, completions, completion_ids, finish):
    assert prompts == ['3>'] * 2 and completion_ids == [[1, 2]] * 2 and finish == ['eos'] * 2
    return [None, 1.5]
def _helper(completions):
    return 'not called'
def no_reward(x):
    return 'not called'
";
    let expected = |numbers: [Option<f64>; 3]| Ok(numbers.to_vec());
    let found = called(source, LIMITS, &["a", "abc"]);
    assert_eq!(found, [expected([Some(1.0), Some(0.0), None]), expected([Some(3.0), Some(1.0), Some(1.5)])]);
}

/// A process that has ended is started again, but not with other functions.
#[test]
fn a_new_process_has_the_functions_of_the_first() {
    if !has_python() {
        return;
    }
    let (dir, source) = (tempdir().unwrap(), "import os\ndef own(completions):\n    return os._exit(3) if 'b' in completions else [1]\n");
    let file = dir.path().join("own.py");
    fs::write(&file, source).unwrap();
    let rewards = PythonRewards::open(&format!("python:{}", file.display()), LIMITS).unwrap();
    let of = |completion: &str| rewards.rewards(&[completed(completion)], false).remove(0);
    assert_eq!((of("a"), of("b").is_err(), of("a")), (Ok(vec![Some(1.0)]), true, Ok(vec![Some(1.0)])));
    assert!(of("b").is_err());
    fs::write(&file, source.replace("own", "other")).unwrap();
    assert!(of("a").unwrap_err().ends_with("own.py: expected the contents with which it was loaded, got others"));
}

/// What is wrong is said in one line. The completion that is to blame is found, and the others have their rewards.
#[test]
fn what_is_wrong_is_said_of_the_completion_that_is_to_blame() {
    if !has_python() {
        return;
    }
    let function =
        |body: &str| format!("import math, os, time\ndef own(completions, **kwargs):\n    bad = 'b' in completions\n    {body}\n");
    let cases = [
        ("return [1 / (completion != 'b') for completion in completions]", "own.py: own: ZeroDivisionError: division by zero (line 4)"),
        ("return [math.nan if completion == 'b' else 1 for completion in completions]", "own.py: own: expected a finite reward, got nan"),
        ("return ['x' if completion == 'b' else 1 for completion in completions]", "own.py: own: expected a finite reward, got 'x'"),
        ("return [1] * (len(completions) + bad)", "own.py: own: expected 1 rewards, got 2"),
        ("return 7 if bad else [1] * len(completions)", "own.py: own: expected a list of 1 rewards, got 7"),
        ("return ['1.5' if completion == 'b' else 1 for completion in completions]", "own.py: own: expected a finite reward, got '1.5'"),
        (
            "return [1e40 if completion == 'b' else 1 for completion in completions]",
            "own.py: own: expected a reward from -3.4e38 to 3.4e38, got 1e+40",
        ),
        ("if bad: raise ValueError('\\ud800')\n    return [1] * len(completions)", "own.py: own: ValueError: ? (line 4)"),
        ("return exit() if bad else [1] * len(completions)", "own.py: own: SystemExit: None (line 4)"),
        ("return os._exit(3) if bad else [1] * len(completions)", "own.py: its Python process ended with code 3"),
    ];
    for (body, problem) in cases {
        let found = called(&function(body), LIMITS, &["a", "b", "c"]);
        assert_eq!(found, [Ok(vec![Some(1.0)]), Err(problem.into()), Ok(vec![Some(1.0)])], "{body}");
    }
    let hangs = function("time.sleep(1000 if bad else 0)\n    return [1] * len(completions)");
    let found = called(&hangs, Limits { seconds: 1, ..LIMITS }, &["a", "b", "c"]);
    let problem = "own.py: no answer within 1 s, so its process was ended (text.reward_seconds sets the limit)";
    assert_eq!(found, [Ok(vec![Some(1.0)]), Err(problem.into()), Ok(vec![Some(1.0)])]);
    let together = called(&function("return [1] if len(completions) == 1 else []"), LIMITS, &["a", "b"]);
    let problem = "own.py: own: expected 2 rewards, got 0 (2 completions at once; none of them fails by itself)";
    assert_eq!(together, [Err(problem.into()), Err(problem.into())]);
    for (source, problem) in [
        ("x = 1", "text: own.py: expected a function with a parameter `completions`, got none"),
        ("def f(x):\n  pass", "text: own.py: expected a function with a parameter `completions`, got none"),
        ("def f(:", "text: own.py: SyntaxError: invalid syntax (line 1)"),
        (
            "from os.path import join as own\nfrom html import escape\ndef f(x): pass\ndef _completions(completions): pass",
            "text: own.py: expected a function with a parameter `completions`, got none",
        ),
        ("import no_such_module", "text: own.py: ModuleNotFoundError: No module named 'no_such_module' (line 1)"),
    ] {
        assert_eq!(called(source, LIMITS, &["a"]), [Err(problem.into())]);
    }
    if cfg!(target_os = "linux") {
        let much = function("x = bytearray((1 << 30) * bad)\n    return [1] * len(completions)");
        let found = called(&much, Limits { megabytes: 500, ..LIMITS }, &["a", "b"]);
        assert_eq!(found, [Ok(vec![Some(1.0)]), Err("own.py: own: MemoryError (line 4)".into())]);
    }
}

/// A function may change its lists, keep what belongs to the loop of asynchronous ones, and start processes that import the file; the file may be any module.
#[test]
fn functions_are_those_of_an_ordinary_module() {
    if !has_python() {
        return;
    }
    let source = "
from __future__ import annotations
import asyncio, concurrent.futures, dataclasses, multiprocessing, pickle
@dataclasses.dataclass
class Length:
    n: int
def of(text):
    return Length(len(text))
turns = asyncio.Semaphore(1)
async def waited(text):
    async with turns:
        await asyncio.sleep(0)
        return len(text)
def emptied(completions):
    found = []
    while completions:
        found.append(len(completions.pop(0)))
    return found
def after(completions):
    return [pickle.loads(pickle.dumps(of(text))).n for text in completions]
async def together(completions):
    return await asyncio.gather(*[waited(text) for text in completions])
def pooled(completions):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context('spawn')) as pool:
        return [length.n for length in pool.map(of, completions)]
def filtered(completions):
    completions[:] = [text for text in completions if text != 'abc']
    return [1 for _ in completions] + [2]
";
    for _ in 0..2 {
        let found = called(source, LIMITS, &["a", "abc"]);
        assert_eq!(found, [1.0, 3.0].map(|n| Ok([vec![Some(n); 4], vec![Some(if n == 1.0 { 1.0 } else { 2.0 })]].concat())));
    }
}

/// If the file has changed when its process is started again, the run ends, although errors count as 0.
#[test]
fn a_changed_file_ends_the_run() {
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    let file = dir.path().join("own.py");
    let source = "import os\ndef own(completions):\n    return os._exit(3) if 'b' in completions else [1] * len(completions)\n";
    fs::write(&file, source).unwrap();
    let functions = PythonRewards::open(&format!("python:{}", file.display()), LIMITS).unwrap();
    let rewards = Rewards { functions, weights: vec![1.0], task_weight: 1.0, on_error: OnError::Zero };
    let of = |text: &str| rewards.of(&[completed(text)]).remove(0);
    assert_eq!((of("a"), of("b"), of("a")), (Ok((1.0, vec![1.0, 0.0])), Ok((0.0, vec![0.0, 1.0])), Ok((1.0, vec![1.0, 0.0]))));
    of("b").unwrap();
    fs::write(&file, format!("{source}# changed\n")).unwrap();
    assert!(of("a").unwrap_err().ends_with("own.py: expected the contents with which it was loaded, got others"));
}

/// Processes that a function forks neither answer, nor outlive a call that was ended.
#[cfg(unix)]
#[test]
fn forked_processes_do_not_answer_and_end() {
    if !has_python() {
        return;
    }
    let source = "import os\ndef own(completions):\n    os.fork()\n    os.fork()\n    return [len(completions)] * len(completions)\n";
    let dir = tempdir().unwrap();
    let file = dir.path().join("own.py");
    fs::write(&file, source).unwrap();
    let forks = PythonRewards::open(&format!("python:{}", file.display()), LIMITS).unwrap();
    for n in [5, 3, 4] {
        assert_eq!(forks.rewards(&vec![completed("a"); n], false), vec![Ok(vec![Some(n as f64)]); n]);
    }
    let alive = dir.path().join("alive");
    let source = format!(
        "import os, time\ndef own(completions):\n    if os.fork() == 0:\n        while True:\n            open({alive:?}, 'w').write('x')\n            time.sleep(0.05)\n    time.sleep(1000)\n"
    );
    assert!(called(&source, Limits { seconds: 1, ..LIMITS }, &["a"])[0].is_err());
    let began = Instant::now();
    let is_gone = || {
        _ = fs::remove_file(&alive);
        std::thread::sleep(Duration::from_millis(500));
        !alive.exists()
    };
    while !is_gone() {
        assert!(began.elapsed() < Duration::from_secs(20), "the forked process goes on");
    }
}

#[test]
fn problems_without_a_right_answer_are_left_to_functions() {
    let lines = "{\"max_new_tokens\": 4, \"verifier\": \"none\", \"symbols\": \"ab\"}
        {\"prompt\": \"a\"}
        {\"prompt\": \"b\", \"answer\": {\"least\": 2}}
        {\"prompt\": \"ab\", \"answer\": \"b\", \"verifier\": \"equality\"}";
    let world = EnvSpec::text("own", FileTask::parse(lines.as_bytes()).unwrap()).unwrap();
    let text = world.text.unwrap();
    let encode = |string: &str| text.task.vocabulary().encode(string).unwrap();
    let completion = [encode("b"), vec![text.task.vocabulary().eos()]].concat();
    let rewards = ["a", "b", "ab"].map(|prompt| text.verify(&encode(prompt), &completion).unwrap().0);
    assert_eq!(rewards, [0.0, 0.0, 1.0]);
    let (prompt, answer) = text.task.question(&encode("b")).unwrap();
    assert_eq!((prompt, answer["least"].as_u64()), ("b", Some(2)));
    let error = |lines: &str| FileTask::parse(lines.as_bytes()).map(|_| ()).unwrap_err().to_string();
    let expected = "text: line 1: verifier: expected equality, number, regex, expression, program or none, got `x`";
    assert_eq!(error("{\"prompt\": \"a\", \"answer\": \"b\", \"verifier\": \"x\"}"), expected);
    assert_eq!(error("{\"prompt\": \"a\"}"), "text: line 1: expected an answer, got none");
    assert_eq!(error("{\"verifier\": 7}\n{\"prompt\": \"a\"}"), "text: line 1: verifier: expected a text, got 7");
}

/// A run knows its functions by their contents. Functions that the settings do not name have no weights.
#[test]
fn a_run_knows_its_functions() {
    let preset = || Config::preset("grpo", "target-sum", None).unwrap();
    for (setting, problem) in [
        ("text.reward_weights=[1.0]", "text: text.reward_weights: expected the default without text.rewards, got another value"),
        ("text.task_weight=2.0", "text: text.task_weight: expected the default without text.rewards, got another value"),
        ("text.reward_seconds=0", "text.reward_seconds: expected 1 to 1000000, got 0"),
        ("text.rewards=own.py", "text: text.rewards: expected python:FILE or python:FILE:FUNCTION,FUNCTION, got `own.py`"),
        ("text.rewards=python:no-such.py", "text: cannot read no-such.py: No such file or directory (os error 2)"),
    ] {
        let error = preset().with_setting(setting).unwrap().world().map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, problem);
    }
    if !has_python() {
        return;
    }
    let dir = tempdir().unwrap();
    let file = dir.path().join("own.py");
    let source = "def odd(completions):\n    return [sum(c in '13' for c in x) for x in completions]\ndef zero(completions):\n    return [0] * len(completions)\n";
    fs::write(&file, source).unwrap();
    let config = |names: &str, weights: &str| {
        let config = preset().with_setting(&format!("text.rewards=python:{}{names}", file.display())).unwrap();
        config.with_setting(&format!("text.reward_weights={weights}")).unwrap().with_setting("steps=900").unwrap()
    };
    let mut trainer = Trainer::new(config(":odd", "[2.5]")).unwrap();
    let metrics = trainer.iterate().unwrap().metrics;
    let of = |name: &str| metrics.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("{name}")).1;
    assert!(of("scores/rewards/odd") > 0.0 && of("reward/mean") > 2.0 * of("scores/rewards/odd"));
    assert_eq!(trainer.config().inputs.keys().collect::<Vec<_>>(), ["text.rewards"]);
    let world = config("", "[]").world().unwrap();
    assert!(world.text.unwrap().score_names().contains(&"rewards/zero".into()));
    for (names, weights, problem) in [
        (":odd,odd", "[]", "expected each function once, got odd twice"),
        (":even", "[]", "expected a function even, got odd, zero"),
        ("", "[1.0]", "text.reward_weights: expected 2 finite weights, for odd, zero, got [1.0]"),
    ] {
        let error = config(names, weights).world().map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with(problem) && !error.contains('\n'), "{error}");
    }
    let settled = trainer.config().clone();
    fs::write(&file, format!("{source}# changed\n")).unwrap();
    assert!(settled.lost_inputs()[0].contains("expected the contents with which the run was created"));
}
