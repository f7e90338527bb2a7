//! Checks the files of a run folder, of a folder with a policy, or a single tensor file.

use std::path::Path;

use gradus_base::tensors::{check_finite, checksum, get_u64, is_hashed};

use super::logs::{self, EPISODES, TIMING};
use super::pages::{Pages, REPLAY, read_page};
use super::{covered, gym, line_of_hash};
use crate::config::UNKNOWN_AGENT;
use crate::files::folder::METRICS;
use crate::files::{Sha256, exists, read, read_to_string};
use crate::saved::{BEST, CONFIG, EXAMPLES_FILE, POLICY, POLICY_PREFIX, STATE, check_note, read_config, read_tensors};
use crate::{Config, Error};

/// The result of checking a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file is as it was written.
    Intact,
    /// The file has no hash, because an older version or another program wrote it, or its agent is one of another program.
    Unknown,
    /// The file is damaged or missing.
    Damaged,
}

/// A checked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The result.
    pub verdict: Verdict,
    /// The file's path, and what there is to say about the file.
    pub line: String,
}

impl Checked {
    /// A file that is as it was written.
    pub fn intact(path: &Path, detail: impl AsRef<str>) -> Self {
        let colon = if detail.as_ref().is_empty() { "" } else { ": " };
        Self { verdict: Verdict::Intact, line: format!("{}{colon}{}", path.display(), detail.as_ref()) }
    }

    /// A file without a hash.
    pub fn unknown(path: &Path) -> Self {
        Self { verdict: Verdict::Unknown, line: format!("{}: no hash, written by an older version or another program", path.display()) }
    }

    /// A file that is damaged or missing; `problem` names it.
    pub fn damaged(problem: impl ToString) -> Self {
        Self { verdict: Verdict::Damaged, line: problem.to_string() }
    }
}

/// Checks the run folder `dir`, or a folder with a policy.
pub fn folder(dir: &Path) -> Result<Vec<Checked>, Error> {
    let config = read_config(dir);
    let mut all = vec![match &config {
        Ok(_) => Checked::intact(&dir.join(CONFIG), ""),
        Err(error) if error.to_string().contains(UNKNOWN_AGENT) => of_another_program(dir, error)?,
        Err(error) => Checked::damaged(error),
    }];
    let has = |name: &str| exists(&dir.join(name));
    let is_run = has(EPISODES)? || has(TIMING)? || has(REPLAY)?;
    if !has(STATE)? && (is_run || !has(POLICY)?) {
        let what = if is_run { "the checkpoint of the run" } else { "a checkpoint or a policy" };
        all.push(Checked::damaged(format!("{}: missing: expected {what}, got none", dir.join(STATE).display())));
    }
    let done = read_tensors(&dir.join(STATE)).ok().and_then(|(state, _)| get_u64(&state, "steps").ok()?.first().copied());
    if config.as_ref().is_ok_and(|config| done.is_some_and(|done| done >= config.steps)) && !has(POLICY)? {
        let advice = format!("`{} train --resume {}` writes it again", crate::program_name(), dir.display());
        all.push(Checked::damaged(format!("{}: missing: expected the policy of the finished run; {advice}", dir.join(POLICY).display())));
    }
    for (path, is_read_again, problem) in config.iter().flat_map(Config::recorded_inputs) {
        all.push(match problem {
            None => Checked::intact(&path, "as when the run was created"),
            Some(problem) if is_read_again => Checked::damaged(problem),
            // the run does not need it any more, except to be repeated
            Some(problem) => Checked { verdict: Verdict::Unknown, line: problem.to_string() },
        });
    }
    for name in [STATE, POLICY, BEST, EXAMPLES_FILE] {
        let path = dir.join(name);
        if exists(&path)? {
            all.push(tensors(&path, config.as_ref().ok()));
        }
    }
    let record = dir.join(gym::FILE);
    if exists(&record)? {
        all.push(match gym::is_whole(&read_to_string(&record)?) {
            Some(true) => Checked::intact(&record, ""),
            None => Checked::unknown(&record),
            Some(false) => Checked::damaged(format!("{}: damaged: its SHA-256 is not the one that was stored with it", record.display())),
        });
    }
    if dir.join(STATE).exists() {
        all.extend(of_logs(dir)?);
        all.extend(of_pages(dir)?);
    } else if dir.join(METRICS).exists() {
        all.extend(of_table(dir));
    }
    Ok(all)
}

/// Checks the settings of an agent that this program does not have: whether they are those in the tensor files.
fn of_another_program(dir: &Path, error: &Error) -> Result<Checked, Error> {
    let settings = read_to_string(&dir.join(CONFIG))?;
    for name in [STATE, POLICY] {
        let path = dir.join(name);
        if exists(&path)? {
            let Ok((_, note)) = read_tensors(&path) else { continue };
            let is_same = note.is_empty() || note.starts_with(settings.trim_end());
            let changed = || Checked::damaged(format!("{}: damaged: other settings than in {name}", dir.join(CONFIG).display()));
            return Ok(if is_same { Checked { verdict: Verdict::Unknown, line: error.to_string() } } else { changed() });
        }
    }
    Ok(Checked { verdict: Verdict::Unknown, line: error.to_string() })
}

/// Checks a tensor file. If it was made with other settings than `config`, one of the two files is damaged.
pub fn tensors(path: &Path, config: Option<&Config>) -> Checked {
    let check = || {
        let (tensors, note) = read_tensors(path)?;
        config.map_or(Ok(()), |config| check_note(path, &note, config))?;
        let is_state = tensors.contains_key("steps");
        let parameters = tensors.iter().filter(|(name, _)| !is_state || name.starts_with(POLICY_PREFIX));
        check_finite(parameters).map_err(|source| Error::Tensors { path: path.into(), source })?;
        let steps = get_u64(&tensors, "steps").ok().and_then(|steps| steps.first());
        let detail = match steps {
            Some(steps) => format!("step {steps}"),
            None => format!("tensors {}", checksum(&tensors)),
        };
        Ok::<_, Error>(if is_hashed(&read(path)?) { Checked::intact(path, detail) } else { Checked::unknown(path) })
    };
    check().unwrap_or_else(Checked::damaged)
}

/// Checks the logs of a run, as far as its checkpoint is intact.
fn of_logs(dir: &Path) -> Result<Vec<Checked>, Error> {
    let Ok((state, _)) = read_tensors(&dir.join(STATE)) else { return Ok(Vec::new()) };
    let path = dir.join(STATE);
    let (covered, _) = covered(&state).map_err(|source| Error::Tensors { path, source })?;
    let mut all = Vec::new();
    for (path, covered, hash) in logs::check(dir, covered)? {
        let after = path.metadata().map_or(0, |data| data.len().saturating_sub(covered.length));
        all.push(match hash {
            Err(error) => Checked::damaged(error),
            Ok(_) if covered.length == 0 => continue,
            Ok(_) if covered.hash.is_none() => Checked::unknown(&path),
            Ok(_) if after > 0 => Checked::intact(&path, format!("and {after} bytes after the checkpoint")),
            Ok(_) => Checked::intact(&path, ""),
        });
    }
    Ok(all)
}

/// Checks the pages of a run's replay buffer, as far as its checkpoint is intact.
fn of_pages(dir: &Path) -> Result<Vec<Checked>, Error> {
    let Ok((state, _)) = read_tensors(&dir.join(STATE)) else { return Ok(Vec::new()) };
    let path = dir.join(STATE);
    let pages = Pages::listed(&state).map_err(|source| Error::Tensors { path, source })?;
    let check = |path: &Path, hash: &Sha256| read_page(path, hash).map_or_else(Checked::damaged, |_| Checked::intact(path, ""));
    Ok(pages.files(dir).map(|(_, path, hash)| check(&path, hash)).collect())
}

/// Checks the table of a folder with a policy; `None` if the policy is damaged.
fn of_table(dir: &Path) -> Option<Checked> {
    let path = dir.join(METRICS);
    let (_, note) = read_tensors(&dir.join(POLICY)).ok()?;
    let check = || {
        let text = read_to_string(&path)?;
        let line = note.lines().find(|line| line.starts_with(&format!("# {METRICS} ")));
        Ok::<_, Error>(match line {
            None => Checked::unknown(&path),
            Some(line) if line == line_of_hash(&text).trim_end() => Checked::intact(&path, ""),
            Some(_) => Checked::damaged(format!("{}: damaged: its SHA-256 is not the one in {POLICY}", path.display())),
        })
    };
    Some(check().unwrap_or_else(Checked::damaged))
}
