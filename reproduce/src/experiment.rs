//! The file of an experiment: what is reproduced, and with which settings.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use toml::{Table, Value};

use super::runs::each;
use gradus::Error;
use gradus_compare::Comparison;

/// Where a claim comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Evidence {
    /// It is a part of the publication's main sentence, which stands at this place.
    Main(String),
    /// The publication says it at this place.
    Quoted(String),
    /// It is ours.
    Ours,
    /// It is computed from the model, and is true of it whatever an agent learns.
    Construction,
}

impl TryFrom<String> for Evidence {
    type Error = String;

    /// Reads `main: PLACE`, `quoted: PLACE`, `ours` or `construction`.
    fn try_from(text: String) -> Result<Self, String> {
        match text.split_once(": ") {
            Some(("main", place)) => Ok(Evidence::Main(place.into())),
            Some(("quoted", place)) => Ok(Evidence::Quoted(place.into())),
            None if text == "ours" => Ok(Evidence::Ours),
            None if text == "construction" => Ok(Evidence::Construction),
            _ => Err(format!("expected main: PLACE, quoted: PLACE, ours or construction, got {text}")),
        }
    }
}

impl Evidence {
    /// Returns the kind in one word.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Evidence::Main(_) => "main",
            Evidence::Quoted(_) => "quoted",
            Evidence::Ours => "ours",
            Evidence::Construction => "construction",
        }
    }

    /// Returns the place in the publication; empty if it is not there.
    pub(super) fn place(&self) -> &str {
        match self {
            Evidence::Main(place) | Evidence::Quoted(place) => place,
            Evidence::Ours | Evidence::Construction => "",
        }
    }

    /// Returns the kind and the place, as a page shows them.
    pub(super) fn shown(&self) -> String {
        match self {
            Evidence::Main(place) => format!("main sentence, {place}"),
            Evidence::Quoted(place) => place.clone(),
            Evidence::Ours => "ours".into(),
            Evidence::Construction => "by construction".into(),
        }
    }
}

/// An experiment file, in TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// Title of the page and the figure.
    pub(super) title: String,
    /// Publication, with its figure or table.
    pub(super) source: String,
    /// What the publication says, in one or two sentences.
    pub(super) says: String,
    /// The main sentence of the publication, which the verdict is about.
    pub(super) main: String,
    /// For each claim, where it comes from.
    pub(super) evidence: Vec<Evidence>,
    /// What of the publication is in the figure, and how it was read.
    pub(super) published: String,
    /// What differs from the publication: worlds, sizes, budgets.
    pub(super) differs: String,
    /// The settings; for trainings, those of a comparison file.
    settings: Table,
    /// Settings for `--quick`, in the place of those above.
    #[serde(default)]
    quick: Table,
    /// Where the results of finished jobs are kept, so that an interrupted run goes on.
    #[serde(skip)]
    pub(super) unfinished: Option<PathBuf>,
}

impl Experiment {
    /// Reads the text of the file called `name`. With `is_quick`, uses the settings for `--quick`.
    pub(super) fn parse(name: &str, text: &str, is_quick: bool) -> Result<Self, Error> {
        let mut experiment: Self = toml::from_str(text).map_err(|error| wrong(name, error.message()))?;
        if is_quick {
            merge(&mut experiment.settings, std::mem::take(&mut experiment.quick));
        }
        Ok(experiment)
    }

    /// Does `work` for every job of a long experiment, as [`each`], and keeps each result under the job's name: after an interruption, the same call does only the rest.
    pub(super) fn each<T: Sync>(
        &self,
        jobs: &[T],
        name: impl Fn(&T) -> String + Sync,
        work: impl Fn(&T) -> Result<f64, Error> + Sync,
    ) -> Result<Vec<f64>, Error> {
        let Some(path) = &self.unfinished else { return each(jobs, work) };
        let io = |source| Error::Io { action: "write", path: path.clone(), source };
        // the first line is that of the settings; results of others are not used
        let settings = format!("# {}", toml::to_string(&self.settings).unwrap_or_default().replace('\n', " "));
        let written = fs::read_to_string(path).unwrap_or_default();
        // without a last line that was interrupted
        let before = &written[..written.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines = before.lines();
        let known: BTreeMap<&str, f64> = match lines.next() {
            Some(first) if first == settings => {
                if before.len() < written.len() {
                    fs::write(path, before).map_err(io)?;
                }
                lines.filter_map(|line| line.rsplit_once(',')).filter_map(|(name, result)| Some((name, result.parse().ok()?))).collect()
            }
            _ => {
                fs::write(path, format!("{settings}\n")).map_err(io)?;
                BTreeMap::new()
            }
        };
        let file = Mutex::new(OpenOptions::new().append(true).open(path).map_err(io)?);
        each(jobs, |job| {
            let name = name(job);
            if let Some(result) = known.get(name.as_str()) {
                return Ok(*result);
            }
            let result = work(job)?;
            let line = format!("{name},{result}\n");
            file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()).map_err(io)?;
            Ok(result)
        })
    }

    /// Whether both have the same settings, so that one finds what the other found.
    pub(super) fn has_settings_of(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    /// Returns the settings of an experiment that is no comparison.
    pub(super) fn settings<T: for<'a> Deserialize<'a>>(&self) -> Result<T, Error> {
        Value::Table(self.settings.clone()).try_into().map_err(|error: toml::de::Error| wrong(&self.title, error.message()))
    }

    /// Returns the settings as a comparison of agents; the section `comparison`, if there are others beside it.
    pub(super) fn comparison(&self) -> Result<Comparison, Error> {
        let table = self.settings.get("comparison").and_then(Value::as_table).unwrap_or(&self.settings);
        let text = toml::to_string(table).map_err(|error| wrong(&self.title, &error.to_string()))?;
        Comparison::from_text(&text, &self.title).map_err(|problem| wrong(&self.title, &problem))
    }
}

/// Replaces the values in `table` by those in `other`, section by section.
fn merge(table: &mut Table, other: Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (_, value) => _ = table.insert(key, value),
        }
    }
}

fn wrong(name: &str, problem: &str) -> Error {
    Error::Parse { what: format!("experiment `{name}`"), expected: "its settings".into(), got: problem.replace('\n', " ") }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A number that was cut when its line was written is computed again.
    #[test]
    fn a_cut_line_is_made_again() {
        let text = "title = \"\"\nsource = \"\"\nsays = \"\"\nmain = \"\"\nevidence = []\npublished = \"\"\ndiffers = \"\"\n[settings]\n";
        let mut experiment = Experiment::parse("a test", text, false).unwrap();
        let dir = gradus_testing::tempdir().unwrap();
        let path = dir.path().join("unfinished.csv");
        experiment.unfinished = Some(path.clone());
        let calls = AtomicUsize::new(0);
        let run = || {
            calls.store(0, Ordering::Relaxed);
            let work = |job: &f64| {
                calls.fetch_add(1, Ordering::Relaxed);
                Ok(job + 0.0234)
            };
            let results = experiment.each(&[1.0, 2.0, 3.0], |job| format!("job {job}"), work).unwrap();
            assert_eq!(results, [1.0234, 2.0234, 3.0234]);
            calls.load(Ordering::Relaxed)
        };
        assert_eq!((run(), run()), (3, 0));
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert_eq!((run(), run()), (1, 0));
    }
}
