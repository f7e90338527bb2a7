//! The tasks by name, each with its levels of difficulty.

use super::{Addition, TargetSum};
use crate::{EnvError, World};

/// A task and its levels.
struct Ladder {
    name: &'static str,
    about: &'static str,
    /// What the levels are, from level 1.
    levels: &'static [&'static str],
    /// The level that the name alone means.
    usual: usize,
    /// The world of a name at a level.
    make: fn(&str, usize) -> Result<World, EnvError>,
}

const LADDERS: [Ladder; 2] = [
    Ladder {
        name: "target-sum",
        about: "say digits of 0 to 4 that add up to a number",
        levels: &["up to 4 with 2 digits", "up to 7 with 3", "up to 20 with 6"],
        usual: 2,
        make: |name, level| {
            let (largest, digits) = [(4, 2), (7, 3), (20, 6)][level - 1];
            World::text(name, TargetSum::new(largest, digits))
        },
    },
    Ladder {
        name: "addition",
        about: "add two numbers, least significant digit first",
        levels: &["1 digit", "2", "3", "4"],
        usual: 2,
        make: |name, level| World::text(name, Addition::new(level as u32)),
    },
];

impl Ladder {
    fn world(&self, name: &str, level: usize) -> Result<World, EnvError> {
        let world = (self.make)(name, level)?;
        Ok(World { about: format!("{}: {}", self.about, self.levels[level - 1]), ..world })
    }
}

/// The worlds that go by the names of tasks; each lists its ladder.
pub(crate) fn worlds() -> Vec<World> {
    let world = |ladder: &Ladder| {
        let levels: Vec<String> = ladder.levels.iter().enumerate().map(|(i, what)| format!("{}-{} {what}", ladder.name, i + 1)).collect();
        let world = ladder.world(ladder.name, ladder.usual).expect("a task of ours");
        World { about: format!("{} ({})", ladder.about, levels.join(", ")), ..world }
    };
    LADDERS.iter().map(world).collect()
}

/// The level of a task called `name`, where it is the name of a level.
pub(crate) fn find(name: &str) -> Option<Result<World, EnvError>> {
    let (task, level) = name.rsplit_once('-')?;
    let ladder = LADDERS.iter().find(|ladder| ladder.name == task)?;
    let level: usize = level.parse().ok()?;
    let most = ladder.levels.len();
    Some(match level {
        level if (1..=most).contains(&level) => ladder.world(name, level),
        _ => Err(EnvError::Unknown { name: name.into(), hint: format!("levels go from `{task}-1` to `{task}-{most}`") }),
    })
}
