//! What tasks of text ask and pay: verdicts worked out by hand, answers that are right, and how problems are divided into splits.

use std::collections::BTreeSet;
use std::sync::Arc;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::text::{Division, Finish, ProblemList, Split, Task, TextWorld, Verdict, tokens};
use gradus_envs::{Action, Step, World, checker, registry};

use Finish::{Eos, Length};

const TASKS: [&str; 9] = ["target-sum", "copy", "reverse", "sort", "addition", "chain-sum", "countdown", "program", "preference"];

fn task(name: &str) -> Arc<dyn Task> {
    registry::find(name).unwrap().text.unwrap().task
}

/// Every task at every level.
fn levels() -> impl Iterator<Item = World> {
    let level = |name: &'static str| (1..10).map_while(move |level| registry::find(&format!("{name}-{level}")).ok());
    TASKS.into_iter().flat_map(level)
}

fn verify(task: &dyn Task, prompt: &str, completion: &str, finish: Finish) -> Verdict {
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    task.verify(&encode(prompt), &encode(completion), finish).unwrap()
}

/// Rewards and whether they are exact, to 12 places.
fn table(name: &str, prompt: &str, rows: &[(&str, Finish, f64, bool)]) {
    let task = task(name);
    for (completion, finish, reward, exact) in rows {
        let verdict = verify(&*task, prompt, completion, *finish);
        assert!((verdict.reward - reward).abs() < 1e-12, "{name} `{prompt}` `{completion}`: expected {reward}, got {verdict:?}");
        assert_eq!(verdict.scores[0] == 1.0, *exact, "{name} `{prompt}` `{completion}`: {verdict:?}");
        assert_eq!(verdict.scores.len(), task.score_names().len());
    }
}

#[test]
fn target_sum_pays_by_the_distance() {
    table(
        "target-sum",
        "7 >",
        &[
            ("43", Eos, 1.0, true),
            ("403", Eos, 1.0, true),
            ("4", Eos, 4.0 / 7.0, false),
            ("444", Eos, 7.0 / 12.0, false),
            ("44", Eos, 7.0 / 8.0, false),
            ("", Eos, 0.0, false),
            ("0", Eos, 0.0, false),
            ("43", Length, 0.0, false),
            ("7", Eos, 0.0, false),
            ("43>", Eos, 0.0, false),
        ],
    );
    table("target-sum-3", "12>", &[("444", Eos, 1.0, true), ("4444", Eos, 0.75, false), ("0", Eos, 0.0, false)]);
}

#[test]
fn sequences_pay_half_for_places_and_half_for_all() {
    table(
        "reverse",
        "R a b c d >",
        &[
            ("dcba", Eos, 1.0, true),
            ("dcb", Eos, 0.375, false),
            ("dbca", Eos, 0.25, false),
            ("dcbaa", Eos, 0.4, false),
            ("abcd", Eos, 0.0, false),
            ("dcba", Length, 0.4, false),
            ("", Eos, 0.0, false),
        ],
    );
    table("copy", "Caab>", &[("aab", Eos, 1.0, true), ("aaa", Eos, 1.0 / 3.0, false), ("aab>", Eos, 0.375, false), ("C", Eos, 0.0, false)]);
    // half of the share for the letters that are there, half for the order of neighbours
    table(
        "sort",
        "S d a c a >",
        &[
            ("aacd", Eos, 1.0, true),
            ("daca", Eos, 0.25 + 0.25 * 2.0 / 4.0, false), // d, a<c; all letters
            ("aaaa", Eos, 0.25 * 0.5 + 0.25, false),       // in order, and two of the letters
            ("aac", Eos, 0.25 * 0.75 + 0.25 * 0.75, false),
            ("aacd", Length, 0.25 * 0.8 + 0.25 * 0.8, false),
            (">>>>", Eos, 0.0, false),
            ("", Eos, 0.0, false),
        ],
    );
}

#[test]
fn addition_pays_until_the_first_error() {
    table(
        "addition",
        "37+45=",
        &[
            ("28", Eos, 1.0, true),
            ("29", Eos, 0.5, false),
            ("38", Eos, 0.0, false), // the second digit is right, but comes after an error
            ("2", Eos, 0.5, false),
            ("", Eos, 0.0, false),
            ("285", Eos, 2.0 / 3.0, false),
            ("28", Length, 2.0 / 3.0, false),
            ("2+", Eos, 0.5, false),
        ],
    );
    table("addition", "99+99=", &[("891", Eos, 1.0, true), ("89", Eos, 2.0 / 3.0, false)]);
}

#[test]
fn chain_sum_pays_totals_and_the_sum() {
    table(
        "chain-sum",
        "3+4+2=",
        &[
            ("7;9#9", Eos, 3.0, true),
            ("7;9#8", Eos, 2.0, false),
            ("7;8#9", Eos, 2.0, false),
            ("9;7#9", Eos, 1.0, false), // right totals in wrong places
            ("7#9", Eos, 2.0, false),
            ("#9", Eos, 1.0, false),
            ("9", Eos, 0.0, false),
            ("7;9;9#9", Eos, 3.0, false), // a step too many is worth nothing, and not exact
            ("7;9", Eos, 1.0, false),     // nothing ends the second total
            ("7;9", Length, 1.0, false),
            ("7;9#9", Length, 2.0, false),
            ("7;9#9;", Eos, 2.0, false),
            ("07;9#9", Eos, 2.0, false),
            ("", Eos, 0.0, false),
        ],
    );
    assert_eq!(verify(&*task("chain-sum"), "3+4+2=", "7;8#9", Eos).scores, [0.0, 0.5, 1.0]);
}

/// What a step pays, token for token.
#[test]
fn chain_sum_pays_a_step_where_it_ends() {
    let task = task("chain-sum");
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    let steps =
        |text: &str| -> Vec<Option<f64>> { (1..=text.len()).map(|n| task.step_reward(&encode("3+4+2="), &encode(&text[..n]))).collect() };
    assert_eq!(steps("7;9#9"), [None, Some(1.0), None, Some(1.0), None]);
    assert_eq!(steps("7;8;9#"), [None, Some(1.0), None, Some(0.0), None, Some(0.0)]);
    assert_eq!(steps("9;#9#;"), [None, Some(0.0), Some(0.0), None, None, None]);
}

#[test]
fn countdown_pays_by_degrees() {
    table(
        "countdown",
        "3 5 7 -> 26",
        &[
            ("3*7+5", Eos, 1.0, true),
            ("5+(7*3)", Eos, 1.0, true),
            ("3*5+7", Eos, 0.2, false),
            ("3*7", Eos, 0.1, false),
            ("3*7+5+5", Eos, 0.1, false),
            ("26", Eos, 0.1, false),
            ("3*7+", Eos, 0.0, false),
            ("3*-7", Eos, 0.0, false),
            ("(3*7+5", Eos, 0.0, false),
            ("3*7)+5", Eos, 0.0, false),
            ("3*7+05", Eos, 0.0, false),
            ("3 * 7", Eos, 0.0, false),
            ("3*7+5", Length, 0.0, false),
            ("", Eos, 0.0, false),
            ("5/(7-7)", Eos, 0.1, false),
        ],
    );
    table("countdown", "7 2 4 -> 14", &[("7/2*4", Eos, 1.0, true), ("7-2-4", Eos, 0.2, false), ("4/(7-2)", Eos, 0.2, false)]);
    table("countdown", "3 3 1 -> 1", &[("1/(3-3)", Eos, 0.2, false), ("3/3*1", Eos, 1.0, true), ("3/3/1", Eos, 1.0, true)]);
    table("countdown-4", "25 5 2 1 -> 10", &[("25/5*2*1", Eos, 1.0, true), ("2+5+5*2*1", Eos, 0.1, false)]);
}

/// f(x) = 2x + 1 at 0 to 4: 1 3 5 7 9, of which three are shown.
#[test]
fn program_pays_unit_tests() {
    table(
        "program",
        "0:1,1:3,2:5>",
        &[
            ("x2*1+", Eos, 1.0, true),
            ("1xd++", Eos, 1.0, true),
            ("1", Eos, 0.2, false),
            ("x3*", Eos, 0.2, false),   // right at 1
            ("xd*1+", Eos, 0.4, false), // 1 2 5 10 17
            ("x2*1+", Length, 0.0, false),
            ("x2*1", Eos, 0.2, false), // 1 at 0
            ("x+", Eos, 0.0, false),   // too little on the stack
            ("1[", Eos, 0.0, false),   // no program
            ("", Eos, 0.0, false),
            ("1[]", Eos, 0.0, false),  // loops for ever
            ("x[]1", Eos, 0.2, false), // loops but for 0
            (",", Eos, 0.0, false),
        ],
    );
    // x^2 + 1: the values that are not shown are 10 and 17
    table("program-3", "0:1,1:2,2:5>", &[("xd*1+", Eos, 1.0, true), ("x1+", Eos, 0.4, false)]);
}

/// Four mentions are enough: topic + variety + closing.
#[test]
fn preference_turns() {
    table(
        "preference",
        "a b >",
        &[
            ("abcabd!", Eos, 1.0, true),
            ("a", Eos, 0.15, false),
            ("abab", Eos, 0.6, false),
            ("ababa", Eos, 0.45, false),
            ("aaaaaaaaaaaa", Eos, -0.6, false),
            ("cde", Eos, 0.2, false),
            ("!", Eos, 0.2, false),
            ("!!!", Eos, 0.0, false),
            ("!!!!!", Eos, -0.2, false),
            ("", Eos, 0.0, false),
            ("abcabd!", Length, 1.0, true),
        ],
    );
    assert_eq!(verify(&*task("preference"), "ab>", "aacc!!", Eos).scores, [0.0, 0.3, 0.1, 0.1]);
}

/// Played token by token, the answer of every problem is worth the most there is, and ends the episode.
#[test]
fn our_own_answers_are_worth_most() {
    for world in levels() {
        let text = world.text.clone().unwrap();
        let most = match world.name.as_str() {
            "chain-sum-1" => 2.0,
            "chain-sum-2" => 3.0,
            "chain-sum-3" => 4.0,
            "chain-sum-4" => 6.0,
            _ => 1.0,
        };
        for split in Split::ALL {
            let world = world.clone().on_split(split);
            let (mut env, names) = (world.env(), text.score_names());
            let mut row = vec![0.0; env.observation_space().width()];
            for seed in 0..300 {
                let place = format!("{} {split:?} {seed}", world.name);
                let problem = text.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0));
                env.reset(seed, &mut row);
                assert_eq!(tokens(&row).collect::<Vec<_>>(), problem.prompt, "{place}");
                let steps: Vec<Step> = problem.answer.iter().map(|token| env.step(Action::Discrete(*token), &mut row)).collect();
                assert_eq!(steps.iter().map(|step| step.reward).sum::<f64>(), most, "{place}");
                assert_eq!(steps.iter().position(|step| step.done()), Some(steps.len() - 1), "{place}");
                let mut scores = vec![f64::NAN; names.len()];
                env.scores(&mut scores);
                assert_eq!((names[0].as_str(), scores[0], scores[scores.len() - 1]), ("exact", 1.0, 0.0), "{place}");
            }
        }
    }
}

/// The prompts of some thousand problems.
fn prompts(task: &dyn Task, split: Split, seeds: u64) -> BTreeSet<String> {
    let prompt = |seed| task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt;
    (0..seeds).map(|seed| task.vocabulary().decode(&prompt(seed))).collect()
}

/// Every prompt that a task can ask, by brute force: nothing of the task's own but its alphabet.
fn every_prompt(name: &str) -> Vec<String> {
    let digits = || (0..10).map(|digit| digit.to_string());
    let lists = |mark: &str, longest: usize| {
        let longer = |lists: &Vec<String>| lists.iter().flat_map(|list| "abcdefgh".chars().map(move |c| format!("{list}{c}"))).collect();
        let by_length = std::iter::successors(Some(vec![String::new()]), |lists| Some(longer(lists))).skip(2).take(longest - 1);
        by_length.flatten().map(|list| format!("{mark}{list}>")).collect()
    };
    let chains = |terms: usize| {
        let longer = |sums: &Vec<String>| sums.iter().flat_map(|sum| digits().map(move |d| format!("{sum}+{d}"))).collect();
        let sums = std::iter::successors(Some(digits().collect()), |sums: &Vec<String>| Some(longer(sums))).nth(terms - 1);
        sums.unwrap().into_iter().map(|sum| format!("{sum}=")).collect()
    };
    let sums = |low: u32, high: u32| (low..high).flat_map(|a| (low..high).map(move |b| format!("{a}+{b}="))).collect();
    let program = |[c, b, a]: [u32; 3]| format!("0:{c},1:{},2:{}>", a + b + c, 4 * a + 2 * b + c);
    let all = || 0..10;
    let mut prompts: Vec<String> = match name {
        "copy-1" => lists("C", 2),
        "reverse-2" => lists("R", 4),
        "addition-1" => sums(0, 10),
        "addition-2" => sums(10, 100),
        "chain-sum-1" => chains(2),
        "chain-sum-2" => chains(3),
        "program-1" => all().flat_map(|a| [program([a, 1, 0]), program([0, a, 0])]).collect(),
        "program-2" => all().flat_map(|a| all().map(move |b| program([b, a, 0]))).collect(),
        "program-3" => all().flat_map(|a| all().flat_map(move |b| all().map(move |c| program([c, b, a])))).collect(),
        "preference-2" => {
            let letters = || "abcdefgh".chars();
            letters().flat_map(|a| letters().filter(move |b| *b != a).map(move |b| format!("{a}{b}>"))).collect()
        }
        other => panic!("{other}"),
    };
    prompts.sort_unstable();
    prompts.dedup(); // x + 0 is 1 x
    prompts
}

fn text_world(name: &str, split: Split) -> TextWorld {
    registry::find(name).unwrap().on_split(split).text.unwrap()
}

/// The prompts of the episodes with these seeds, as environments ask them.
fn asked(text: &TextWorld, list: &ProblemList) -> Vec<String> {
    let prompt = |seed: &u64| text.task.problem(text.split, &mut Stream::new(*seed, Purpose::Environment, 0)).prompt;
    list.seeds.iter().map(|seed| text.task.vocabulary().decode(&prompt(seed))).collect()
}

/// The three lists are disjoint, are all prompts together, and one prompt in eight is in each of those that are not learned from.
#[test]
fn the_splits_are_complete_and_disjoint() {
    for name in ["copy-1", "reverse-2", "addition-1", "addition-2", "chain-sum-1", "chain-sum-2", "program-2", "program-3", "preference-2"]
    {
        let every = every_prompt(name);
        let lists = Split::ALL.map(|split| {
            let text = text_world(name, split);
            let list = text.listed(1 << 20);
            assert!(list.is_whole && !list.seeds.is_empty(), "{name} {split:?}");
            asked(&text, &list)
        });
        let mut together = lists.concat();
        together.sort_unstable();
        assert!(together == every, "{name}: expected {} different prompts, got {}", every.len(), together.len());
        if every.len() >= 1000 {
            for list in &lists[1..] {
                let share = list.len() as f64 / every.len() as f64;
                assert!((share - 0.125).abs() < 0.025, "{name}: {share}");
            }
        }
    }
    // by the hash, independently of what is drawn
    let hashed = |split: Split| {
        let vocabulary = task("chain-sum").vocabulary().clone();
        every_prompt("chain-sum-2").into_iter().filter(|prompt| split.has(&vocabulary.encode(prompt).unwrap())).collect::<BTreeSet<_>>()
    };
    for split in Split::ALL {
        let text = text_world("chain-sum", split);
        assert_eq!(asked(&text, &text.listed(1000)).into_iter().collect::<BTreeSet<_>>(), hashed(split));
    }
    assert_eq!(hashed(Split::Test).len(), 145);
}

/// No two are the same; a shorter list is the beginning of a longer one, whatever was asked for first; and whether it is all is said.
#[test]
fn lists_are_fixed_samples_without_replacement() {
    for name in ["addition", "chain-sum", "countdown", "copy-4", "program-2", "preference"] {
        for split in [Split::Validation, Split::Test] {
            let [once, again] = [text_world(name, split), text_world(name, split)];
            let long = once.listed(200);
            let short = again.listed(70);
            assert_eq!(short.seeds, long.seeds[..short.seeds.len()], "{name}");
            assert_eq!(once.listed(70), short, "{name}");
            assert_eq!(again.listed(200), long, "{name}");
            assert_eq!(asked(&once, &long).into_iter().collect::<BTreeSet<_>>().len(), long.seeds.len(), "{name}");
            assert_eq!(long.is_whole, long.seeds.len() < 200, "{name}");
            let size = long.seeds.len();
            if long.is_whole {
                assert!(!once.listed(size - 1).is_whole && once.listed(size).is_whole && again.listed(size) == long, "{name}");
            }
        }
    }
    let prompted = registry::find("addition").unwrap().with_prompt(&task("addition").vocabulary().encode("37+45=").unwrap()).unwrap();
    let list = prompted.text.unwrap().listed(5);
    assert_eq!((list.seeds.len(), list.is_whole), (1, true));
}

/// Tasks with too few problems say so: they have no splits, and all of their problems are learned from.
#[test]
fn tasks_with_too_few_problems_are_one_set() {
    for (name, problems) in [("target-sum-1", 4), ("target-sum", 7), ("target-sum-2", 7), ("target-sum-3", 20)] {
        let expected: BTreeSet<String> = (1..=problems).map(|n| format!("{n}>")).collect();
        assert_eq!(task(name).division(), Division::OneSet { problems });
        for split in Split::ALL {
            let text = text_world(name, split);
            assert_eq!(text.split, Split::Train);
            assert_eq!(prompts(&*text.task, split, 1000), expected);
            let list = text.listed(1000);
            assert!(list.is_whole && list.seeds.len() == problems);
            assert_eq!(asked(&text, &list).into_iter().collect::<BTreeSet<_>>(), expected);
            assert!(!text.listed(problems - 1).is_whole);
        }
    }
    // so does the first level of programs, and no other task
    let text = text_world("program-1", Split::Test);
    let list = text.listed(100);
    let expected: BTreeSet<String> = every_prompt("program-1").into_iter().collect();
    assert_eq!((asked(&text, &list).into_iter().collect::<BTreeSet<_>>(), list.is_whole, text.split), (expected, true, Split::Train));
    let is_one_set = |world: &World| world.name.starts_with("target-sum") || world.name == "program-1";
    assert!(levels().all(|world| (task(&world.name).division() == Division::Splits) != is_one_set(&world)));
}

/// Which problems are alike: two numbers to add, letters of a topic, numbers of a countdown, in whatever order.
#[test]
fn no_problem_is_in_another_split_the_other_way_round() {
    let key = |prompt: String| {
        let (numbers, target) = prompt.split_once(" -> ").unwrap_or((&prompt, ""));
        let mut parts: Vec<&str> =
            if numbers.ends_with('>') { numbers.split("").collect() } else { numbers.split(['+', '=', ' ']).collect() };
        parts.sort_unstable();
        (parts.join(" "), target.to_string())
    };
    assert_eq!(key("12+3=".into()), key("3+12=".into()));
    for name in ["addition-1", "addition-2", "countdown-1", "countdown-2", "preference-1"] {
        let task = task(name);
        let [train, validation, test] = Split::ALL.map(|split| prompts(&*task, split, 5000).into_iter().map(key).collect::<BTreeSet<_>>());
        assert!(train.is_disjoint(&validation) && train.is_disjoint(&test) && validation.is_disjoint(&test), "{name}");
    }
}

/// The eight prompts each that the documentation names.
#[test]
fn the_topics_of_preference_are_divided_as_documented() {
    let of = |split| prompts(&*task("preference"), split, 2000).into_iter().collect::<Vec<_>>();
    assert_eq!(of(Split::Test), ["ad>", "bc>", "cb>", "da>", "eh>", "fg>", "gf>", "he>"]);
    assert_eq!(of(Split::Validation), ["af>", "be>", "cd>", "dc>", "eb>", "fa>", "gh>", "hg>"]);
    assert_eq!(of(Split::Train).len(), 40);
}

#[test]
fn levels_are_worlds_that_pass() {
    assert_eq!(levels().count(), 33);
    for world in levels() {
        for world in Split::ALL.map(|split| world.clone().on_split(split)) {
            let faults: Vec<String> = checker::check_world(&world)
                .iter()
                .filter(|finding| finding.severity == checker::Severity::Fault)
                .map(ToString::to_string)
                .collect();
            assert!(faults.is_empty(), "{}: {faults:#?}", world.name);
        }
    }
}
