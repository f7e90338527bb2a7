//! The final policies of a comparison's runs: a file for each, and a sheet with moments of their episodes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gradus::envs::text::Split;
use gradus_base::random::episode_seed;

use super::Comparison;
use super::figures::{Named, title};
use super::run::{Job, Outcome};
use super::summary::short;
use gradus::Error;
use gradus::draw::Frame;
use gradus::evaluate::play::play;
use gradus::figure::{Chart, Episode, Episodes, Figure, Panel};
use gradus::files::{exists, read, read_to_string, remove_leftovers, replace};
use gradus::saved::{POLICIES, load_behaviour};

/// The file with the names of the policies. Of the other files in the folder none is removed.
const NAMES: &str = "names.txt";
/// Moments of an episode on the sheet.
const MOMENTS: usize = 6;

/// Makes the folder `policies`, with a file for each run that has a policy, and returns the number of runs that have none.
pub(super) fn publish(dir: &Path, runs: &Path, all: &[Job]) -> Result<usize, Error> {
    let folder = dir.join(POLICIES);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
    let list = folder.join(NAMES);
    let earlier = if exists(&list)? { read_to_string(&list)? } else { String::new() };
    let (mut names, mut missing, mut files) = (BTreeSet::new(), 0, Vec::new());
    for job in all {
        let (name, from) = (name(job, &names), job.policy(runs));
        let to = folder.join(&name);
        if exists(&from)? {
            files.push((to, from));
        } else if !(earlier.lines().any(|own| own == name) && exists(&to)?) {
            // what was published stays, even if the run has lost it
            missing += 1;
            continue;
        }
        names.insert(name);
    }
    // the list first: a killed process leaves no file that it does not name
    let both: BTreeSet<&str> = earlier.lines().chain(names.iter().map(String::as_str)).collect();
    remove_leftovers(&folder, |name| name == NAMES || both.contains(name));
    let write = |names: &mut dyn Iterator<Item = &str>| {
        let text: String = names.map(|name| format!("{name}\n")).collect();
        replace(&list, text.as_bytes()).map_err(Error::io("write", &list))
    };
    write(&mut both.iter().copied())?;
    for (to, from) in files {
        let _ = fs::remove_file(&to);
        // a second name for the same file needs no space, but not every file system has it
        if fs::hard_link(&from, &to).is_err() {
            replace(&to, &read(&from)?).map_err(Error::io("write", &to))?;
        }
    }
    let is_file = |name: &&str| name.ends_with(".safetensors") && !name.contains(['/', '\\']);
    for name in earlier.lines().filter(is_file).filter(|name| !names.contains(*name)) {
        let path = folder.join(name);
        if exists(&path)? {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    write(&mut names.iter().map(String::as_str))?;
    Ok(missing)
}

/// Returns the names of the policies that the comparison in the folder `dir` has published.
pub(super) fn published(dir: &Path) -> Result<Vec<String>, Error> {
    let list = dir.join(POLICIES).join(NAMES);
    let text = if exists(&list)? { read_to_string(&list)? } else { String::new() };
    Ok(text.lines().filter(|name| !name.contains(['/', '\\'])).map(String::from).collect())
}

/// Returns the name of the run's file, which none of `taken` has: agent, environment and seed.
fn name(job: &Job, taken: &BTreeSet<String>) -> String {
    let plain = |text: &str| {
        let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let name = words.join("-").to_lowercase();
        // a file's name has at most 255 bytes
        let end = (0..=name.len().min(100)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        name[..end].to_owned()
    };
    let stem = format!("{}-{}-{}", plain(job.agent), plain(&job.environment()), job.config.seed);
    let numbered = (2..).map(|number| format!("{stem}-{number}.safetensors"));
    std::iter::once(format!("{stem}.safetensors")).chain(numbered).find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Returns the sheet: for every environment and agent an episode of the run with the median last return. Returns `None` if there are no
/// policies.
pub(super) fn sheet(comparison: &Comparison, runs: &Path, all: &[Job], outcomes: &[Outcome]) -> Option<Named> {
    let last = |outcome: &Outcome| outcome.evaluated.last().map_or(f64::NAN, |at| at.mean);
    let mut panels = Vec::new();
    for environment in &comparison.environments {
        let mut rows = Vec::new();
        for agent in &comparison.agents {
            let of = |job: &Job| job.agent == agent.name && job.environment() == *environment;
            let mut those: Vec<(&Job, f64)> =
                all.iter().zip(outcomes).filter(|(job, _)| of(job)).map(|(job, run)| (job, last(run))).collect();
            those.retain(|(job, _)| job.policy(runs).exists());
            those.sort_by(|a, b| a.1.total_cmp(&b.1));
            rows.extend(those.get(those.len().saturating_sub(1) / 2).map(|(job, _)| episode(job, runs)));
        }
        if !rows.is_empty() {
            panels.push(Panel { title: title(environment), chart: Chart::Episodes(Episodes { rows }) });
        }
    }
    let note = format!("the most probable actions in one episode; of {} runs, the one with the median last return", comparison.seeds.len());
    let note = if comparison.seeds.len() > 1 { note } else { "the most probable actions in one episode".into() };
    let caption = "Moments of one episode per agent, at equal distances from its start to its end. One episode is not an estimate: the figures above are."
        .to_owned();
    let figure = Figure { title: "Episodes of the final policies".into(), note, columns: 1, panels };
    (!figure.panels.is_empty()).then_some(Named { name: "episodes".into(), caption, figure })
}

/// Plays the episode that `gradus play` shows.
fn episode(job: &Job, runs: &Path) -> Episode {
    let played = load_behaviour(job.policy(runs)).and_then(|(_, world, policy)| {
        let seed = episode_seed(1, u64::from(u32::MAX), 0);
        Ok(play(policy.as_ref(), &world.on_split(Split::Test), seed)?)
    });
    let label = job.agent.to_owned();
    match played {
        Ok(played) => {
            let result = format!("return {}", short(played.episode_return));
            let text = played.texts.last().map_or_else(String::new, |text| text.split_whitespace().collect::<Vec<_>>().join(" "));
            Episode { label, result, frames: moments(played.frames), text }
        }
        Err(error) => Episode { label, result: "no episode".into(), text: error.to_string(), ..Episode::default() },
    }
}

/// Returns frames at equal distances, with the first and the last.
fn moments(frames: Vec<Frame>) -> Vec<Frame> {
    let (count, last) = (frames.len().min(MOMENTS), frames.len().saturating_sub(1));
    (0..count).map(|number| frames[number * last / count.saturating_sub(1).max(1)].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::Config;

    #[test]
    fn names_are_plain_and_differ() {
        let config = Config::preset("ppo", "cartpole", None).unwrap();
        let job = Job { agent: "PPO (clip ε)", config, folder: Path::new(""), evaluations: 1, episodes: 1, origin: Vec::new() };
        let first = name(&job, &BTreeSet::new());
        assert_eq!(first, "ppo-clip-ε-cartpole-1.safetensors");
        assert_eq!(name(&job, &BTreeSet::from([first])), "ppo-clip-ε-cartpole-1-2.safetensors");
        let long = "ε".repeat(300);
        assert_eq!(name(&Job { agent: &long, ..job }, &BTreeSet::new()), format!("{}-cartpole-1.safetensors", "ε".repeat(50)));
    }

    #[test]
    fn moments_are_at_equal_distances() {
        let scene = gradus::envs::Scene { x: [0.0, 1.0], y: [0.0, 1.0], shapes: Vec::new() };
        let steps = |count: usize| {
            let frames = (0..count).map(|step| Frame { scene: scene.clone(), step, return_so_far: 0.0 });
            moments(frames.collect()).iter().map(|frame| frame.step).collect::<Vec<_>>()
        };
        assert_eq!(steps(501), [0, 100, 200, 300, 400, 500]);
        assert_eq!((steps(3), steps(1), steps(0)), (vec![0, 1, 2], vec![0], vec![]));
    }
}
