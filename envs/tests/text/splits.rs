//! The splits of problems are complete, disjoint and as documented.

use std::collections::BTreeSet;

use gradus_base::random::{Purpose, Stream};
use gradus_checker as checker;
use gradus_envs::text::{Division, ProblemList, Split, Task, TextWorld};
use gradus_envs::{EnvSpec, registry};

use super::{levels, task};

/// Returns the prompts of the problems with seeds 0 to `seeds` - 1.
fn prompts(task: &dyn Task, split: Split, seeds: u64) -> BTreeSet<String> {
    let prompt = |seed| task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt;
    (0..seeds).map(|seed| task.vocabulary().decode(&prompt(seed))).collect()
}

/// Returns every prompt that a task can have, by enumeration over the task's alphabet.
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
    prompts.dedup(); // duplicates: x + 0 and 1 x, for example, are the same function
    prompts
}

fn text_world(name: &str, split: Split) -> TextWorld {
    registry::find(name).unwrap().on_split(split).text.unwrap()
}

/// Returns the prompts of the episodes with the seeds in `list`, as environments draw them.
fn asked(text: &TextWorld, list: &ProblemList) -> Vec<String> {
    let prompt = |seed: &u64| text.task.problem(text.split, &mut Stream::new(*seed, Purpose::Environment, 0)).prompt;
    list.seeds.iter().map(|seed| text.task.vocabulary().decode(&prompt(seed))).collect()
}

/// The lists of the three splits are disjoint and together contain all prompts. About one prompt in eight is in the validation split, and
/// about one in eight in the test split.
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
                assert!((share - 0.125).abs() < 0.025, "{name}: share of the prompts: expected about 0.125, got {share}");
            }
        }
    }
    // the prompts of a split by their hash, without drawing problems
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

/// The prompts of a list are distinct. A shorter list is a prefix of a longer one, whichever is requested first. `is_whole` is true if the
/// list has all prompts of the split.
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

/// Tasks with too few problems declare that they have no splits. All of their problems are training problems.
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
    // apart from the levels of target sum, only the first level of the task program is one set
    let text = text_world("program-1", Split::Test);
    let list = text.listed(100);
    let expected: BTreeSet<String> = every_prompt("program-1").into_iter().collect();
    assert_eq!((asked(&text, &list).into_iter().collect::<BTreeSet<_>>(), list.is_whole, text.split), (expected, true, Split::Train));
    let is_one_set = |world: &EnvSpec| world.name.starts_with("target-sum") || world.name == "program-1";
    assert!(levels().all(|world| (task(&world.name).division() == Division::Splits) != is_one_set(&world)));
}

/// Two problems are in the same split if they differ only in the order of the numbers to add, of a topic's letters, or of a countdown's
/// numbers.
#[test]
fn reordered_problems_are_in_the_same_split() {
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

/// The test split and the validation split have eight prompts each. The documentation of the task gives the rule.
#[test]
fn the_topics_of_preference_are_split_as_documented() {
    let of = |split| prompts(&*task("preference"), split, 2000).into_iter().collect::<Vec<_>>();
    assert_eq!(of(Split::Test), ["ad>", "bc>", "cb>", "da>", "eh>", "fg>", "gf>", "he>"]);
    assert_eq!(of(Split::Validation), ["af>", "be>", "cd>", "dc>", "eb>", "fa>", "gh>", "hg>"]);
    assert_eq!(of(Split::Train).len(), 40);
}

#[test]
fn all_levels_pass_the_checker() {
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

/// A task tells the split of a prompt that it drew. Tasks with one set of problems have no split.
#[test]
fn a_prompt_belongs_to_the_split_that_it_was_drawn_from() {
    for world in registry::all() {
        let Some(text) = &world.text else { continue };
        for split in Split::ALL {
            for seed in 0..60 {
                let prompt = text.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0)).prompt;
                let expected = (text.task.division() == Division::Splits).then_some(split);
                let shown = text.task.vocabulary().decode(&prompt);
                assert_eq!(text.task.split_of(&prompt), expected, "{}: {shown}", world.name);
            }
        }
    }
    for level in [2, 3] {
        let addition = task(&format!("addition-{level}"));
        assert_eq!(addition.split_of(&addition.vocabulary().encode("3+").unwrap()), None, "no prompt");
    }
}
