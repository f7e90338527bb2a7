//! A study on many machines: a list of its runs, a part of them, and one folder from many.
//!
//! The place of a run in the list of all runs is a function of the study's file alone, so that an array job of a cluster needs nothing but numbers. A run is stored under its
//! key, so that making it twice does no harm.

use std::fs;
use std::path::{Path, PathBuf};

use super::code::Code;
use super::draft::Draft;
use super::file::Comparison;
use super::folder::{self, COMPARISONS, Kind, SWEEPS};
use super::run::{Stored, read_run};
use super::runner::{self, Finished, Lines, Making};
use super::{Execution, Sweep, jobs_of, write};
use gradus::Error;
use gradus::agents::ConfigError;
use gradus::files::{exists, read, replace};
use gradus_statistics::csv::{push_row, quoted};

/// The kinds of studies whose runs do not depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// A comparison.
    Comparison,
    /// A sweep.
    Sweep,
}

/// Some of the runs of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// Runs by their numbers in the list, from 1.
    Tasks(Vec<usize>),
    /// Every n-th run: part i of n, from 1.
    Shard {
        /// The part.
        part: usize,
        /// The number of parts.
        of: usize,
    },
}

impl Share {
    /// The places of the runs among `count`, from 0, in ascending order.
    pub fn places(&self, count: usize) -> Result<Vec<usize>, Error> {
        match self {
            Self::Tasks(numbers) => {
                let expected = format!("1 to {count}, the runs of this study");
                for number in numbers {
                    ConfigError::unless((1..=count).contains(number), "--task", &expected, number)?;
                }
                let mut places: Vec<usize> = numbers.iter().map(|number| number - 1).collect();
                places.sort_unstable();
                places.dedup();
                Ok(places)
            }
            Self::Shard { part, of } => {
                ConfigError::unless((1..=*of).contains(part), "--shard", "I/N with I from 1 to N", format!("{part}/{of}"))?;
                Ok((part - 1..count).step_by(*of).collect())
            }
        }
    }
}

impl Study {
    fn kind(self) -> &'static Kind {
        match self {
            Self::Comparison => &COMPARISONS,
            Self::Sweep => &SWEEPS,
        }
    }

    fn draft(self, file: &Path) -> Result<Draft, Error> {
        match self {
            Self::Comparison => Draft::read(file),
            Self::Sweep => Sweep::draft(file),
        }
    }

    /// Reads a study as a comparison of all its agents or points.
    fn whole(self, file: &Path) -> Result<Comparison, Error> {
        match self {
            Self::Comparison => Comparison::read(file),
            Self::Sweep => Ok(Sweep::read(file)?.comparison),
        }
    }

    /// The number of runs of the study in `file`. Builds every agent once, to find invalid settings before many machines do.
    pub fn runs(self, file: &Path) -> Result<usize, Error> {
        let whole = self.whole(file)?;
        Ok(whole.agents.iter().map(|agent| agent.configs.len()).sum::<usize>() * whole.seeds.len())
    }

    /// The list of all runs as a table, with what the folder `dir` has of each.
    pub fn list(self, file: &Path, dir: &Path, code: Code) -> Result<String, Error> {
        let whole = self.whole(file)?;
        let mut text = String::from("task,agent,env,seed,key,state\n");
        for (place, job) in jobs_of(&whole, code)?.iter().enumerate() {
            let state = match job.stored(&dir.join("runs")) {
                Stored::Kept(_) => "made".into(),
                Stored::Outdated(why) => format!("outdated: {why}"),
                Stored::Nothing => "missing".into(),
            };
            let row = [
                (place + 1).to_string(),
                quoted(job.agent),
                quoted(&job.environment()),
                job.config.seed.to_string(),
                job.key(),
                quoted(&state),
            ];
            push_row(&mut text, &row);
        }
        Ok(text)
    }

    /// Makes some of the runs of the study in `file`, in its folder `dir`, and writes no other outputs.
    pub fn make(self, file: &Path, dir: &Path, share: &Share, execution: Execution, say: impl Fn(&str) + Sync) -> Result<(), Error> {
        let named = |problem: String| Error::folder(file, problem);
        let draft = self.draft(file)?;
        let places = share.places(draft.runs().map_err(named)?)?;
        if places.is_empty() {
            say("no runs in this part");
            return Ok(());
        }
        let (comparison, places) = draft.part(&places).map_err(named)?;
        folder::check(self.kind(), dir, &comparison)?;
        let runs = dir.join("runs");
        fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
        let own = dir.join(self.kind().file);
        if !exists(&own)? {
            write(&own, &folder::named(&comparison))?;
        }
        let all = jobs_of(&comparison, execution.code)?;
        let mut wanted = places.into_iter().peekable();
        let jobs: Vec<_> =
            all.into_iter().enumerate().filter(|(place, _)| wanted.next_if_eq(place).is_some()).map(|(_, job)| job).collect();
        let making = Making { workers: execution.jobs, stop: execution.stop, lines: Lines::Each };
        let Finished { failure, .. } = runner::make(&jobs, &runs, making, &say)?;
        failure.map_or(Ok(()), |failure| Err(Error::folder(&runs, failure)))
    }

    /// Copies the runs of the study in `file` from the folders `from` into its folder `dir`. It is an error if a run is nowhere, if two folders have different results of a
    /// run, or if other code made it.
    pub fn merge(self, file: &Path, dir: &Path, from: &[PathBuf], code: Code) -> Result<usize, Error> {
        let whole = self.whole(file)?;
        folder::check(self.kind(), dir, &whole)?;
        let runs = dir.join("runs");
        let sources: Vec<PathBuf> = from.iter().map(|folder| folder.join("runs")).collect();
        if let Some((folder, _)) = from.iter().zip(&sources).find(|(_, runs)| !runs.is_dir()) {
            return Err(Error::folder(folder, "expected a folder with runs of this study, got one without `runs`"));
        }
        let (jobs, mut missing, mut copies) = (jobs_of(&whole, code)?, Vec::new(), Vec::new());
        for job in &jobs {
            let mut found = matches!(job.stored(&runs), Stored::Kept(_)).then(|| runs.clone());
            for source in &sources {
                match job.stored(source) {
                    Stored::Nothing => continue,
                    Stored::Outdated(why) => {
                        let path = source.join(format!("{}.csv", job.key()));
                        return Err(Error::folder(
                            &path,
                            format!("expected the result of this version and of these files, got another: {why}"),
                        ));
                    }
                    Stored::Kept(_) => {}
                }
                match &found {
                    None => {
                        copies.push((source, job.key()));
                        found = Some(source.clone());
                    }
                    Some(other) => {
                        let text = |folder: &Path| read_run(&folder.join(format!("{}.csv", job.key()))).ok().flatten();
                        if text(other) != text(source) {
                            let path = source.join(format!("{}.csv", job.key()));
                            let problem =
                                format!("expected the same result of {} as in {}, got another", runner::name(job), other.display());
                            return Err(Error::folder(&path, problem));
                        }
                    }
                }
            }
            if found.is_none() {
                missing.push(runner::name(job));
            }
        }
        if let Some(first) = missing.first() {
            let problem = format!("expected all {} runs, got {} without {}", jobs.len(), jobs.len() - missing.len(), first);
            return Err(Error::folder(dir, problem + if missing.len() > 1 { " and others" } else { "" }));
        }
        // nothing is written before everything is there
        fs::create_dir_all(&runs).map_err(Error::io("create", &runs))?;
        for (source, key) in &copies {
            // the table marks the run as finished and is the last
            for ending in ["timing", "problems", "safetensors", "csv"] {
                let (from, to) = (source.join(format!("{key}.{ending}")), runs.join(format!("{key}.{ending}")));
                if exists(&from)? {
                    replace(&to, &read(&from)?).map_err(Error::io("write", &to))?;
                }
            }
        }
        Ok(copies.len())
    }
}
