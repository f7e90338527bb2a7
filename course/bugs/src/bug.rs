//! The planted bugs.

use std::sync::LazyLock;

use serde::Deserialize;

/// A planted bug: what is wrong with an agent, and how it shows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bug {
    /// Its number.
    #[serde(skip)]
    pub number: u32,
    /// A few words that do not give it away.
    pub title: String,
    /// The agent's file, without its ending.
    pub agent: String,
    /// Environment in which it shows.
    pub world: String,
    /// Further settings of the trainings behind the figure, KEY=VALUE.
    #[serde(default)]
    pub settings: Vec<String>,
    /// The metric that the figure shows instead of the return.
    pub metric: Option<String>,
    /// What one sees, without the cause.
    pub symptom: String,
    /// The command that shows more; `{}` stands for the name of the agent.
    pub tool: String,
    /// Hints, each of which says more than the one before.
    pub hints: [String; 3],
    /// Where it was found in public code, and what was wrong there.
    pub source: String,
    /// The text of the agent's file that is right.
    pub right: String,
    /// The text in its place that is wrong.
    pub bug: String,
    /// Another text in its place that is right.
    pub also_right: String,
    /// Other texts in its place that are wrong, too.
    pub wrong: Vec<String>,
}

macro_rules! bugs {
    ($($number:literal)+) => {
        &[$(($number, include_str!(concat!("../bugs/", $number, ".toml")))),+]
    };
}

const FILES: &[(u32, &str)] = bugs!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24);

/// The files of the right agents.
const AGENTS: &[(&str, &str)] = &[
    ("actor_critic", include_str!("agents/actor_critic.rs")),
    ("dqn", include_str!("agents/dqn.rs")),
    ("grpo", include_str!("agents/grpo.rs")),
    ("ppo", include_str!("agents/ppo.rs")),
    ("q_learning", include_str!("agents/q_learning.rs")),
    ("reinforce", include_str!("agents/reinforce.rs")),
    ("sac", include_str!("agents/sac.rs")),
];

/// All bugs.
static ALL: LazyLock<Vec<Bug>> = LazyLock::new(|| {
    let read = |(number, text): &(u32, &str)| {
        let bug: Bug = toml::from_str(text).unwrap_or_else(|error| panic!("bug {number}: {error}"));
        Bug { number: *number, ..bug }
    };
    FILES.iter().map(read).collect()
});

impl Bug {
    /// Returns all bugs, in order.
    pub fn all() -> &'static [Self] {
        &ALL
    }

    /// Returns the bug of this number.
    pub fn find(number: u32) -> Option<&'static Self> {
        ALL.iter().find(|bug| bug.number == number)
    }

    /// Returns the file of the agent without the bug.
    pub fn agent_file(&self) -> &'static str {
        AGENTS.iter().find(|(name, _)| *name == self.agent).map_or("", |(_, text)| text)
    }

    /// Returns the name under which the right agent is registered.
    pub fn right_name(&self) -> String {
        format!("course-{}", self.agent.replace('_', "-"))
    }

    /// Returns the name of the agent with the bug.
    pub fn name(&self) -> String {
        format!("bug-{}", self.number)
    }

    /// Returns the name of the algorithm.
    pub fn agent_name(&self) -> &'static str {
        match self.agent.as_str() {
            "actor_critic" => "actor-critic",
            "dqn" => "DQN",
            "grpo" => "GRPO",
            "ppo" => "PPO",
            "q_learning" => "Q-learning",
            "reinforce" => "REINFORCE",
            _ => "SAC",
        }
    }

    /// Returns the file of an agent that is called `name` and has `text` in the place of the right one.
    pub fn file_with(&self, name: &str, text: &str) -> String {
        self.agent_file().replacen(self.right.trim_matches('\n'), text.trim_matches('\n'), 1).replace(&self.right_name(), name)
    }

    /// Returns the file that a student gets.
    pub fn file(&self) -> String {
        let note = "//!\n//! A bug is planted in this file. Everything else is right.\n";
        let text = self.file_with(&self.name(), &self.bug);
        let end = text.find("\n\n").map_or(0, |at| at + 1);
        format!("{}{note}{}", &text[..end], &text[end..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_in_its_file_once() {
        for bug in Bug::all() {
            let right = bug.right.trim_matches('\n');
            assert_eq!(bug.agent_file().matches(right).count(), 1, "bug {}: {right}", bug.number);
            let texts: Vec<&str> = [&bug.bug, &bug.right, &bug.also_right].into_iter().chain(&bug.wrong).map(|text| text.trim()).collect();
            let distinct: std::collections::BTreeSet<&str> = texts.iter().copied().collect();
            assert_eq!(distinct.len(), texts.len(), "bug {}: two texts are the same", bug.number);
            assert!(bug.wrong.len() >= 3, "bug {}: expected three wrong fixes or more", bug.number);
            assert!(bug.file().contains(&format!("\"{}\"", bug.name())) && !bug.file().contains(&bug.right_name()), "bug {}", bug.number);
        }
    }
}
