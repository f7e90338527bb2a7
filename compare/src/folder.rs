//! The folder of a study: which one it belongs to, and which of its files are outdated.

use std::fs;
use std::path::Path;

use hmac_sha256::Hash;

use super::claim::Claims;
use super::figures::METRICS;
use super::policies::published;
use super::run::{Unusable, read_run};
use super::{Comparison, PROBLEMS, RESULTS, TIMING};
use gradus::Error;
use gradus::figure::Format;
use gradus::files::{Entry, entries, exists, hexadecimal, read, read_to_string, remove_leftovers};
use gradus::run::verify::Checked;
use gradus::run::verify::tensors;
use gradus::saved::{COMPARISON, CONFIG, POLICIES, SWEEP, TUNING};

/// A kind of study, by the files that it writes besides `runs` and `policies`.
pub(super) struct Kind {
    /// What messages call it.
    pub(super) what: &'static str,
    /// The file that identifies the study.
    pub(super) file: &'static str,
    /// The tables, whose hashes are in [`SUMS`].
    tables: &'static [&'static str],
    /// Names of figures without extension. If there are several of a name, the others have a number at the end, such as `response-2`.
    figures: &'static [&'static str],
}

/// Comparisons.
pub(super) const COMPARISONS: Kind = Kind {
    what: "comparison",
    file: COMPARISON,
    tables: &[RESULTS, PROBLEMS, "summary.csv", "summary.md", "summary.tex", TIMING],
    figures: &METRICS,
};

/// Sweeps.
pub(super) const SWEEPS: Kind = Kind {
    what: "sweep",
    file: SWEEP,
    tables: &[RESULTS, "points.csv", "responses.csv", "effects.csv", "summary.md", TIMING],
    figures: &["response", "choices", "effects", "heat", "coordinates"],
};

/// Tunings.
pub(super) const TUNINGS: Kind = Kind {
    what: "tuning",
    file: TUNING,
    tables: &["journal.csv", "summary.csv", "summary.md"],
    figures: &["history", "fresh", "coordinates"],
};

/// All kinds.
const KINDS: [Kind; 3] = [COMPARISONS, SWEEPS, TUNINGS];

impl Kind {
    /// Whether a study of this kind writes a file of this name.
    fn owns(&self, name: &str) -> bool {
        let is_figure = |stem: &str, ending: &str| {
            let plain = stem.rsplit_once('-').filter(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
            let plain = plain.map_or(stem, |(plain, _)| plain);
            Format::ALL.iter().any(|format| format.ending() == ending) && self.figures.contains(&plain)
        };
        let other = [self.file, SUMS, "report.html"];
        self.tables.contains(&name) || other.contains(&name) || name.rsplit_once('.').is_some_and(|(stem, ending)| is_figure(stem, ending))
    }

    /// The names of its files in the folder.
    fn outputs(&self, dir: &Path) -> Vec<String> {
        let all = entries(dir).unwrap_or_default();
        all.into_iter().map(|entry| entry.name).filter(|name| self.owns(name)).collect()
    }

    /// The file of the study and the tables.
    fn with_hash(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.file).chain(self.tables.iter().copied())
    }
}

/// The file with the SHA-256 of the tables, in the format of the command `sha256sum`.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Returns the text of [`SUMS`] for the tables in the folder.
pub(super) fn sums(kind: &Kind, dir: &Path) -> Result<String, Error> {
    let mut sums = String::new();
    for name in kind.with_hash() {
        if exists(&dir.join(name))? {
            sums += &format!("{}  {name}\n", hexadecimal(&Hash::hash(&read(&dir.join(name))?)));
        }
    }
    Ok(sums)
}

/// Checks the tables and the stored runs of the study in the folder.
pub(crate) fn verify(dir: &Path) -> Result<Vec<Checked>, Error> {
    let (sums, runs) = (dir.join(SUMS), dir.join("runs"));
    let has_sums = exists(&sums)?;
    let kind = KINDS.iter().find(|kind| dir.join(kind.file).exists());
    let is_known = |name: &str| KINDS.iter().any(|kind| kind.with_hash().any(|own| own == name));
    if kind.is_none() && !has_sums {
        let kinds: Vec<String> = KINDS.iter().map(|kind| format!("a {} (with {})", kind.what, kind.file)).collect();
        let expected = format!("a run folder (with {CONFIG}) or {}", kinds.join(" or "));
        let got = if runs.is_dir() { "a study that has not ended" } else { "none of them" };
        return Err(Error::folder(dir, format!("expected {expected}, got {got}")));
    }
    let known = if has_sums { read_to_string(&sums)? } else { String::new() };
    let mut all = Vec::new();
    for line in known.lines() {
        let (hash, name) = line.split_once("  ").unwrap_or_default();
        let path = dir.join(name);
        all.push(match is_known(name).then(|| read(&path)) {
            None => Checked::damaged(format!("{}: damaged: expected a hash and the name of a table, got `{line}`", sums.display())),
            Some(Ok(bytes)) if hexadecimal(&Hash::hash(&bytes)) == hash => Checked::intact(&path, ""),
            Some(Ok(_)) => Checked::damaged(format!("{}: damaged: its SHA-256 is not the one in {SUMS}", path.display())),
            Some(Err(error)) => Checked::damaged(error),
        });
    }
    let has_hash = |name: &str| known.lines().any(|line| line.ends_with(&format!("  {name}")));
    let tables = kind.unwrap_or(&COMPARISONS).with_hash();
    let unknown = tables.filter(|name| !has_hash(name)).map(|name| dir.join(name)).filter(|path| path.exists());
    all.extend(unknown.map(|path| Checked::unknown(&path)));
    for name in published(dir)? {
        let path = dir.join(POLICIES).join(name);
        all.push(if exists(&path)? { tensors(&path, None) } else { Checked::damaged(format!("{}: missing", path.display())) });
    }
    let stored = if exists(&runs)? { entries(&runs).map_err(Error::io("read", &runs))? } else { Vec::new() };
    for Entry { path, .. } in stored {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => all.push(of_run(&path)),
            Some("state" | "safetensors") => all.push(tensors(&path, None)),
            _ => {}
        }
    }
    Ok(all)
}

/// Checks a stored run.
fn of_run(path: &Path) -> Checked {
    match read_run(path) {
        Ok(_) => Checked::intact(path, ""),
        Err(Unusable::Unhashed) => Checked::unknown(path),
        Err(Unusable::Damaged) => {
            Checked::damaged(format!("{}: damaged: `{} compare` makes this run again", path.display(), gradus::program_name()))
        }
    }
}

/// Returns the text for the file of the study: the text of its file, with its name added if the text has none.
pub(super) fn named(comparison: &Comparison) -> String {
    let has_name = toml::from_str::<toml::Table>(&comparison.text).is_ok_and(|table| table.contains_key("name"));
    if has_name { comparison.text.clone() } else { format!("name = {}\n{}", toml::Value::from(comparison.name.as_str()), comparison.text) }
}

/// Checks that a study may be written into the folder `dir`. It may if the folder is missing. Otherwise the folder must not have a
/// `config.toml` of a training run, and it must belong to the same study or have no file that would be overwritten.
pub(super) fn check(kind: &Kind, dir: &Path, comparison: &Comparison) -> Result<(), Error> {
    let expected =
        |got: String| Err(Error::folder(dir, format!("expected a new folder or the folder of \"{}\", got {got}", comparison.name)));
    if dir.exists() && !dir.is_dir() {
        return expected("a file".into());
    }
    if dir.join("config.toml").exists() {
        return expected("a run folder (with config.toml)".into());
    }
    if let Some(other) = KINDS.iter().find(|other| other.file != kind.file && dir.join(other.file).exists()) {
        return expected(format!("the folder of a {} (with {})", other.what, other.file));
    }
    let path = dir.join(kind.file);
    if !exists(&path)? {
        return match kind.outputs(dir).first() {
            Some(name) => expected(format!("a folder with {name} and no {}", kind.file)),
            None => Ok(()),
        };
    }
    let text = read_to_string(&path)?;
    if text == comparison.text {
        return Ok(());
    }
    let Ok(table) = toml::from_str::<toml::Table>(&text) else {
        let expected = format!("expected the file of a {}, got invalid TOML; remove it or choose another folder", kind.what);
        return Err(Error::folder(&path, expected));
    };
    let unnamed = format!("a {} without a name", kind.what);
    let name = table.get("name").and_then(|name| name.as_str()).unwrap_or(&unnamed);
    if name != comparison.name {
        return expected(format!("the folder of \"{name}\""));
    }
    // as the files name them, because paths are relative to the file
    let environments = |table: &toml::Table| {
        let listed = table.get("environments").and_then(|environments| environments.as_array()).cloned().unwrap_or_default();
        let name = |name: &str| gradus::envs::registry::find(name).map_or(name.into(), |world| world.name);
        listed.iter().filter_map(|listed| listed.as_str().map(name)).collect::<Vec<String>>()
    };
    let (old, new) = (environments(&table), environments(&comparison.text.parse().unwrap_or_default()));
    match old.iter().any(|name| new.contains(name)) {
        true => Ok(()),
        false => expected(format!("the folder of another {} of that name on {}", kind.what, old.join(", "))),
    }
}

/// Returns the formats in which figures are drawn: the usual ones, and those of the figures that are already in the folder.
pub(super) fn formats(kind: &Kind, dir: &Path) -> Vec<Format> {
    let there = kind.outputs(dir);
    let is_there = |format: &Format| there.iter().any(|name| name.ends_with(&format!(".{}", format.ending())));
    Format::ALL.into_iter().filter(|format| Format::USUAL.contains(format) || is_there(format)).collect()
}

/// Removes the outputs of an earlier version of the study, except its file and the runs.
pub(super) fn remove_outputs(kind: &Kind, dir: &Path) -> Result<(), Error> {
    for path in kind.outputs(dir).iter().filter(|name| *name != kind.file).map(|name| dir.join(name)) {
        fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(())
}

/// Removes the temporary files that killed processes left behind.
pub(super) fn remove_unfinished(kind: &Kind, dir: &Path, runs: &Path) {
    Claims::new(runs).remove_left();
    remove_leftovers(dir, |name| kind.owns(name));
    let endings = ["csv", "timing", "problems", "state", "safetensors"];
    remove_leftovers(runs, |name| name.split_once('.').is_some_and(|(_, ending)| endings.contains(&ending)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "environments = [\"cartpole\"]\nseeds = 1\nsteps = 100\n[[agents]]\nagent = \"ppo\"\n";

    fn comparison(dir: &Path, stem: &str, text: &str) -> Comparison {
        let path = dir.join(format!("{stem}.toml"));
        fs::write(&path, text).unwrap();
        Comparison::read(&path).unwrap()
    }

    #[test]
    fn a_folder_belongs_to_one_study() {
        let (files, dir) = (gradus_testing::tempdir().unwrap(), gradus_testing::tempdir().unwrap());
        let (dir, mine) = (dir.path(), comparison(files.path(), "mine", FILE));
        let problem = |comparison: &Comparison| check(&COMPARISONS, dir, comparison).unwrap_err().to_string();
        assert!(check(&COMPARISONS, &dir.join("new"), &mine).is_ok() && check(&COMPARISONS, dir, &mine).is_ok());
        fs::write(dir.join("README.md"), "notes").unwrap();
        assert!(check(&COMPARISONS, dir, &mine).is_ok(), "other files may exist");
        fs::write(dir.join("timing.csv"), "").unwrap();
        assert!(
            problem(&mine)
                .ends_with("expected a new folder or the folder of \"mine\", got a folder with timing.csv and no comparison.toml")
        );
        // a comparison without a name is named after its file
        fs::write(dir.join(COMPARISON), named(&mine)).unwrap();
        assert!(check(&COMPARISONS, dir, &mine).is_ok());
        assert!(
            check(&COMPARISONS, dir, &comparison(files.path(), "mine", &FILE.replace("seeds = 1", "seeds = 2"))).is_ok(),
            "a changed version of the same study"
        );
        assert!(problem(&comparison(files.path(), "other", FILE)).ends_with("the folder of \"other\", got the folder of \"mine\""));
        let elsewhere = comparison(files.path(), "mine", &FILE.replace("cartpole", "acrobot"));
        assert!(problem(&elsewhere).ends_with("got the folder of another comparison of that name on cartpole"));
        fs::write(dir.join(COMPARISON), "name = ").unwrap();
        assert!(problem(&mine).contains("comparison.toml: expected the file of a comparison, got invalid TOML"));
        fs::write(dir.join("config.toml"), "").unwrap();
        assert!(problem(&mine).ends_with("got a run folder (with config.toml)"));
        assert!(check(&COMPARISONS, &dir.join("README.md"), &mine).unwrap_err().to_string().ends_with("got a file"));
    }

    #[test]
    fn outputs_of_an_earlier_state_are_removed() {
        let dir = gradus_testing::tempdir().unwrap();
        for name in ["results.csv", "aggregate_scores.png", "report.html", "README.md", "returns.csv", "study.toml"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        remove_outputs(&COMPARISONS, dir.path()).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["README.md", "returns.csv", "study.toml"]);
        // if a file cannot be removed, this is an error, and the folder still belongs to its study
        let (files, dir) = (gradus_testing::tempdir().unwrap(), dir.path());
        let mine = comparison(files.path(), "mine", FILE);
        fs::write(dir.join(COMPARISON), named(&mine)).unwrap();
        fs::create_dir(dir.join("timing.csv")).unwrap();
        assert!(remove_outputs(&COMPARISONS, dir).is_err() && check(&COMPARISONS, dir, &mine).is_ok());
    }
}
