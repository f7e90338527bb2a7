//! The tasks by name, each with its levels of difficulty.

use crate::text::{Addition, ChainSum, Countdown, Order, Preference, Program, Sequence, TargetSum};
use crate::{EnvError, World};

/// A task and its levels.
struct Ladder {
    name: &'static str,
    about: &'static str,
    /// How many levels there are, and what they are.
    levels: usize,
    ladder: &'static str,
    /// The level that the name alone means.
    usual: usize,
    /// The world of a name at a level.
    make: fn(&str, usize) -> Result<World, EnvError>,
}

const LADDERS: [Ladder; 9] = [
    Ladder {
        name: "target-sum",
        about: "say digits of 0 to 4 that add up to a number",
        levels: 3,
        ladder: "up to 4, 7, 20 with 2, 3, 6 digits",
        usual: 2,
        make: |name, level| {
            let (largest, digits) = [(4, 2), (7, 3), (20, 6)][level - 1];
            World::text(name, TargetSum::new(largest, digits))
        },
    },
    Ladder {
        name: "copy",
        about: "say letters again",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| World::text(name, Sequence::new(Order::Copy, 2 * level)),
    },
    Ladder {
        name: "reverse",
        about: "say letters again, the last one first",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| World::text(name, Sequence::new(Order::Reverse, 2 * level)),
    },
    Ladder {
        name: "sort",
        about: "say letters again by the alphabet",
        levels: 4,
        ladder: LENGTHS,
        usual: 2,
        make: |name, level| World::text(name, Sequence::new(Order::Sort, 2 * level)),
    },
    Ladder {
        name: "addition",
        about: "add two numbers, least significant digit first",
        levels: 4,
        ladder: "1, 2, 3, 4 digits",
        usual: 2,
        make: |name, level| World::text(name, Addition::new(level as u32)),
    },
    Ladder {
        name: "chain-sum",
        about: "add digits with their running totals",
        levels: 4,
        ladder: "2, 3, 4, 6 digits",
        usual: 2,
        make: |name, level| World::text(name, ChainSum::new([2, 3, 4, 6][level - 1])),
    },
    Ladder {
        name: "countdown",
        about: "make a number of others",
        levels: 4,
        ladder: "of 2, 3, 4 digits, of 4 numbers up to 25",
        usual: 2,
        make: |name, level| {
            let (count, largest) = [(2, 9), (3, 9), (4, 9), (4, 25)][level - 1];
            World::text(name, Countdown::new(count, largest))
        },
    },
    Ladder {
        name: "program",
        about: "write a program for a stack machine that computes what examples show",
        levels: 3,
        ladder: "x + b or ax, ax + b, ax^2 + bx + c",
        usual: 2,
        make: |name, level| World::text(name, Program::new(level as u32)),
    },
    Ladder {
        name: "preference",
        about: "please a hidden taste, of which too much is too much",
        levels: 3,
        ladder: "2, 4, 6 mentions are enough",
        usual: 2,
        make: |name, level| World::text(name, Preference::new(2 * level as u32)),
    },
];

const LENGTHS: &str = "up to 2, 4, 6, 8 letters";

impl Ladder {
    fn world(&self, name: &str, level: usize, about: String) -> World {
        let world = (self.make)(name, level).expect("a task of ours");
        World { about, ..world }
    }
}

/// The worlds that go by the names of tasks; each lists its ladder.
pub(crate) fn worlds() -> Vec<World> {
    let about = |ladder: &Ladder| format!("{} ({}-1 to -{}: {})", ladder.about, ladder.name, ladder.levels, ladder.ladder);
    LADDERS.iter().map(|ladder| ladder.world(ladder.name, ladder.usual, about(ladder))).collect()
}

/// The level of a task called `name`, where it is the name of a level.
pub(crate) fn find(name: &str) -> Option<Result<World, EnvError>> {
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
