//! Checks that an environment satisfies the contract of [`Env`].
//!
//! ```
//! use gradus_envs::{CartPole, TimeLimit};
//!
//! let findings = gradus_checker::check(|| Box::new(TimeLimit::new(CartPole::default(), 500)));
//! assert!(findings.is_empty(), "{findings:?}");
//! ```
//!
//! A *fault* violates the contract: results would be wrong or not reproducible. A *note* reports unusual behaviour that may be intended.
//! Every message gives the expected and the observed behaviour. The checker cannot tell whether the rewards are the ones that you intended.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod episode;
mod topics;

use std::fmt;

use episode::{Broken, Player};
use gradus_base::panics;
use gradus_envs::{Actions, Env, EnvError, EnvSpec, Space, Transition, VecEnv};

/// The property that a check tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// No bound is NaN, no lower bound exceeds its upper bound, no space is empty, an f32 can hold every discrete observation and every
    /// token, actions are not texts, and two instances have equal spaces.
    Spaces,
    /// Every element of an observation is written and finite, and every observation belongs to the observation space.
    Observations,
    /// Every reward is finite, also after rounding to f32.
    Rewards,
    /// The seed determines the start of an episode.
    Seeding,
    /// The seed and the actions determine the episode, in every instance and after any previous episodes.
    Determinism,
    /// A saved episode continues bit for bit, also in another instance. A saved state with a missing word is rejected.
    Checkpoints,
    /// Every episode ends under random actions, and a time limit truncates.
    Ends,
    /// Every discrete action and every corner of a box is accepted.
    Actions,
    /// Every element of an action mask is written, and the mask marks at least one action.
    Masks,
    /// A dynamics seed (see [`Env::reseed`]) does not change the start. The dynamics seed is part of the saved state, and the next reset
    /// discards it.
    Dynamics,
    /// Pictures are finite, and rendering does not change the state.
    Pictures,
    /// A vector of environments gives the same results as single environments. Only [`check_world`] checks this.
    Lockstep,
}

impl Topic {
    /// All topics, in the order in which they are checked.
    pub const ALL: [Topic; 12] = [
        Topic::Spaces,
        Topic::Observations,
        Topic::Rewards,
        Topic::Seeding,
        Topic::Determinism,
        Topic::Checkpoints,
        Topic::Ends,
        Topic::Actions,
        Topic::Masks,
        Topic::Dynamics,
        Topic::Pictures,
        Topic::Lockstep,
    ];
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The environment violates the contract.
    Fault,
    /// The behaviour is unusual, but may be intended.
    Note,
    /// The topic was not checked, because a fault in another one would be found again.
    Skipped,
}

/// One result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The property that the check tested.
    pub topic: Topic,
    /// Fault or note.
    pub severity: Severity,
    /// The expected and the observed behaviour.
    pub message: String,
}

impl Finding {
    /// Whether the reset does not begin an episode as its seed determines it.
    fn is_of_reset(&self) -> bool {
        self.topic == Topic::Seeding && !self.message.contains(PLACE)
            || self.topic == Topic::Determinism && self.message.contains(": start: ")
    }

    /// Whether a fault in `later` would be found again because of this fault.
    fn explains(&self, later: Topic) -> bool {
        use Topic::{Actions, Checkpoints, Determinism, Dynamics, Lockstep, Masks, Observations, Rewards, Seeding};
        let explained: &[Topic] = match self.topic {
            _ if self.message.contains(PLACE) => &[Lockstep], // a panic
            Seeding => &[Observations, Rewards, Determinism, Checkpoints, Actions, Dynamics, Lockstep],
            Determinism if self.is_of_reset() => &[Observations, Rewards, Checkpoints, Actions, Dynamics, Lockstep],
            Determinism => &[Checkpoints, Dynamics, Lockstep],
            Observations | Rewards => &[Actions, Lockstep],
            Checkpoints => &[Dynamics],
            Masks => &[Lockstep],
            _ => &[],
        };
        explained.contains(&later)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.topic, self.message)
    }
}

/// The result of checking a topic: the notes, or the first fault.
type Outcome = Result<Vec<String>, String>;

/// The check of one topic.
type Check = fn(&Player<'_>) -> Outcome;

/// Checks the environment that `make` makes. Each call of `make` must return a new instance. Returns the faults and notes.
///
/// A panic of the environment is a finding. The panic hook also prints it, unless [`keep_quiet`](panics::keep_quiet) was called.
pub fn check(make: impl Fn() -> Box<dyn Env>) -> Vec<Finding> {
    check_without(make, &[])
}

/// As [`check`], without some topics.
fn check_without(make: impl Fn() -> Box<dyn Env>, left_out: &[Topic]) -> Vec<Finding> {
    let mut findings = examine(Topic::Spaces, || topics::spaces(&make), String::new);
    if !findings.is_empty() {
        return findings; // the other checks need valid spaces
    }
    let player = Player::new(&make);
    let topics: [(Topic, Check); 10] = [
        (Topic::Observations, topics::observations),
        (Topic::Rewards, topics::rewards),
        (Topic::Seeding, topics::seeding),
        (Topic::Determinism, topics::determinism),
        (Topic::Checkpoints, topics::checkpoints),
        (Topic::Ends, topics::ends),
        (Topic::Actions, topics::actions),
        (Topic::Masks, topics::masks),
        (Topic::Dynamics, topics::dynamics_seed),
        (Topic::Pictures, topics::pictures),
    ];
    for (topic, check) in topics.into_iter().filter(|(topic, _)| !left_out.contains(topic)) {
        findings.extend(examine(topic, || check(&player), || format!("{PLACE}{})", player.last_played())));
    }
    with_causes(findings)
}

/// What separates the message of a panic or an error from its place in an episode.
const PLACE: &str = " (last played: ";

/// Replaces each fault that follows from another one: one mistake is one fault.
fn with_causes(mut findings: Vec<Finding>) -> Vec<Finding> {
    let all = findings.clone();
    for (i, finding) in findings.iter_mut().enumerate().filter(|(_, finding)| finding.severity == Severity::Fault) {
        let others = || all.iter().enumerate().filter(|(other, cause)| *other != i && cause.severity == Severity::Fault);
        // each process of Python has a file of its own for what it prints
        let panic = |finding: &Finding| {
            finding.message.split_once(PLACE).map(|(panic, _)| panic.split("; what Python printed").next().unwrap_or(panic).to_owned())
        };
        let is_same_panic = |(other, cause): &(usize, &Finding)| *other < i && panic(cause).is_some() && panic(cause) == panic(finding);
        // a fault of the reset explains more than others
        let causes = others().filter(|(_, cause)| cause.explains(finding.topic));
        let cause = causes.max_by_key(|(_, cause)| cause.is_of_reset()).or_else(|| others().find(is_same_panic));
        if let Some((_, cause)) = cause {
            finding.severity = Severity::Skipped;
            finding.message = format!("not checked, because of the fault in {}", cause.topic);
        }
    }
    findings
}

/// Checks the environment of a world as [`check`] does. Also checks that vectors of this environment give the same results as single
/// environments.
pub fn check_world(world: &EnvSpec) -> Vec<Finding> {
    let of_states = [Topic::Checkpoints, Topic::Dynamics];
    let mut findings = check_without(|| world.env(), if world.can_be_saved() { &[] } else { &of_states });
    if !world.can_be_saved() {
        for topic in of_states {
            let message = "not checked, because its state cannot be saved".into();
            findings.push(Finding { topic, severity: Severity::Skipped, message });
        }
    }
    if findings.iter().all(|finding| finding.topic != Topic::Spaces) {
        findings.extend(examine(Topic::Lockstep, || lockstep(world), String::new));
    }
    with_causes(findings)
}

/// Returns the findings of `check`. A panic is a fault, whose message ends with the text of `place`.
fn examine(topic: Topic, check: impl FnOnce() -> Outcome, place: impl FnOnce() -> String) -> Vec<Finding> {
    let outcome = panics::catch(check).unwrap_or_else(|panic| match panic.into_error::<EnvError>() {
        Ok(error) => Err(format!("expected no error, got {error}")),
        Err(panic) => match panic.into_error::<Broken>() {
            Ok(Broken(fault)) => Err(format!("expected no error, got \"{fault}\"{}", place())),
            Err(panic) => Err(format!("expected no panic, got \"{}\"{}", panic.message(), place())),
        },
    });
    let found = |severity| move |message| Finding { topic, severity, message };
    match outcome {
        Ok(notes) => notes.into_iter().map(found(Severity::Note)).collect(),
        Err(fault) => vec![found(Severity::Fault)(fault)],
    }
}

fn lockstep(world: &EnvSpec) -> Outcome {
    const ENVS: usize = 5;
    let wrong = |error: EnvError| format!("expected a step, got an error: {error}");
    let mut many = world.vec_env(0..ENVS, 1).map_err(wrong)?;
    let mut alone = world.clone().scalar().vec_env(0..ENVS, 1).map_err(wrong)?;
    let spaces = |envs: &VecEnv| (envs.observation_space(), envs.action_space());
    if spaces(&many) != spaces(&alone) {
        return Err(format!("expected the spaces of one environment, {:?}, got {:?}", spaces(&alone), spaces(&many)));
    }
    let make = || world.env();
    let player = Player::new(&make);
    let width = player.observations.width();
    let mut stream = Player::stream(0);
    for t in 0..1000 {
        for env in 0..ENVS {
            let rows = [&alone, &many].map(|envs| &envs.observation_rows()[env * width..(env + 1) * width]);
            if let Some(difference) = episode::differing(rows[0], rows[1]) {
                return Err(format!("environment {env} of {ENVS}, step {t}: {difference}"));
            }
        }
        let chosen: Vec<_> = (0..ENVS).map(|_| player.sample(&mut stream)).collect();
        let numbers: Vec<u32> = chosen.iter().map(|action| action.number).collect();
        let rows: Vec<f32> = chosen.iter().flat_map(|action| action.row.clone()).collect();
        let actions = match &player.actions {
            Space::Discrete(_) | Space::MultiDiscrete(_) => Actions::Discrete(&numbers),
            space => Actions::Continuous { rows: &rows, width: space.width() },
        };
        let (expected, got) = (alone.step(actions).map_err(wrong)?, many.step(actions).map_err(wrong)?);
        for env in 0..ENVS {
            let shown = |step: &Transition| format!("reward {:?} and {:?}", step.rewards[env], step.endings[env]);
            if shown(expected) != shown(got) {
                return Err(format!("environment {env} of {ENVS}, step {}: expected {}, got {}", t + 1, shown(expected), shown(got)));
            }
        }
    }
    Ok(Vec::new())
}

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
