//! The tasks by name, with their levels of difficulty.

use std::path::Path;

use crate::text::language;
use crate::text::{Addition, ChainSum, Countdown, FileTask, Order, Preference, Program, Sequence, TargetSum};
use crate::{EnvError, EnvSpec};
use gradus_base::files::expect_file;

/// A task and its levels.
struct Ladder {
    name: &'static str,
    about: &'static str,
    /// Number of levels.
    levels: usize,
    /// Description of the levels.
    ladder: &'static str,
    /// The default level, selected by the task's name alone.
    usual: usize,
    /// Makes the world of a level, from its name and number.
    make: fn(&str, usize) -> Result<EnvSpec, EnvError>,
}

const LENGTHS: &str = "up to 2, 4, 6, 8 letters";

const LADDERS: [Ladder; 9] = [
    Ladder {
        name: "target-sum",
        about: "write digits from 0 to 4 that add up to a number",
        levels: 3,
        ladder: "numbers up to 4, 7, 20 from at most 2, 3, 6 digits",
        usual: 2,
        make: |name, level| {
            let (largest, digits) = [(4, 2), (7, 3), (20, 6)][level - 1];
            EnvSpec::text(name, TargetSum::new(largest, digits))
        },
    },
    Ladder {
        name: "copy",
        about: "copy letters",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| EnvSpec::text(name, Sequence::new(Order::Copy, 2 * level)),
    },
    Ladder {
        name: "reverse",
        about: "write letters in reverse order",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| EnvSpec::text(name, Sequence::new(Order::Reverse, 2 * level)),
    },
    Ladder {
        name: "sort",
        about: "sort letters alphabetically",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| EnvSpec::text(name, Sequence::new(Order::Sort, 2 * level)),
    },
    Ladder {
        name: "addition",
        about: "add two numbers, least significant digit first",
        levels: 4,
        ladder: "1, 2, 3, 4 digits",
        usual: 2,
        make: |name, level| EnvSpec::text(name, Addition::new(level as u32)),
    },
    Ladder {
        name: "chain-sum",
        about: "add digits and write the running totals",
        levels: 4,
        ladder: "2, 3, 4, 6 digits",
        usual: 2,
        make: |name, level| EnvSpec::text(name, ChainSum::new([2, 3, 4, 6][level - 1])),
    },
    Ladder {
        name: "countdown",
        about: "combine numbers into an expression with a given value",
        levels: 4,
        ladder: "2, 3, 4 numbers up to 9; 4 numbers up to 25",
        usual: 2,
        make: |name, level| {
            let (count, largest) = [(2, 9), (3, 9), (4, 9), (4, 25)][level - 1];
            EnvSpec::text(name, Countdown::new(count, largest))
        },
    },
    Ladder {
        name: "program",
        about: "write a stack-machine program for a function given by examples",
        levels: 3,
        ladder: "x + b or ax, ax + b, ax^2 + bx + c",
        usual: 2,
        make: |name, level| EnvSpec::text(name, Program::new(level as u32)),
    },
    Ladder {
        name: "preference",
        about: "write a text with a high hidden score, which falls if the topic is mentioned too often",
        levels: 3,
        ladder: "best with 2, 4, 6 mentions of the topic",
        usual: 2,
        make: |name, level| EnvSpec::text(name, Preference::new(2 * level as u32)),
    },
];

impl Ladder {
    fn world(&self, name: &str, level: usize, about: String) -> EnvSpec {
        let world = (self.make)(name, level).expect("a valid built-in task");
        EnvSpec { about, ..world }
    }
}

/// Returns the default level of each task. The description of each world lists all levels of its task.
pub(crate) fn worlds() -> Vec<EnvSpec> {
    let about = |ladder: &Ladder| format!("{} ({}-1 to -{}: {})", ladder.about, ladder.name, ladder.levels, ladder.ladder);
    LADDERS.iter().map(|ladder| ladder.world(ladder.name, ladder.usual, about(ladder))).collect()
}

/// Returns the level called `name`, such as `addition-3`, or the task of a file, `file:PATH` or `chat:PATH?model=MODEL`; `None` if `name` has neither form.
pub(crate) fn find(name: &str) -> Option<Result<EnvSpec, EnvError>> {
    if let Some(path) = name.strip_prefix("file:") {
        if path.is_empty() {
            return Some(Err(EnvError::Text("expected file:PATH, such as file:problems.jsonl, got no path".into())));
        }
        if let Err(problem) = expect_file(Path::new(path)) {
            return Some(Err(EnvError::Text(format!("cannot read {path}: {problem}"))));
        }
        let world = FileTask::read(Path::new(path)).and_then(|task| EnvSpec::text(name, task));
        return Some(world.map(|world| EnvSpec { about: "problems from a file".into(), ..world }));
    }
    if let Some(rest) = name.strip_prefix("chat:") {
        return Some(language::find(rest));
    }
    let (task, level) = name.rsplit_once('-')?;
    let ladder = LADDERS.iter().find(|ladder| ladder.name == task)?;
    let level: usize = level.parse().ok()?;
    let most = ladder.levels;
    Some(match level {
        level if (1..=most).contains(&level) => {
            Ok(ladder.world(name, level, format!("{} (level {level} of {most}: {})", ladder.about, ladder.ladder)))
        }
        _ => Err(EnvError::Unknown { name: name.into(), hint: format!("levels go from `{task}-1` to `{task}-{most}`") }),
    })
}
