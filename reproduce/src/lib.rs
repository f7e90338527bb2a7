//! Published figures, redrawn by one command.
//!
//! A reproduction is an experiment file (`NAME.toml`: source, what is claimed, settings) and a function that runs it and returns `Findings`: figures with the
//! published numbers laid over ours, tables, and the publication's claims, each with an interval that decides whether it holds here.

mod a2c;
mod bsuite;
mod details;
mod draw;
mod experiment;
mod findings;
mod gae;
mod length_bias;
mod objectives;
mod overestimation;
mod overoptimisation;
mod page;
pub mod pages;
mod pqn;
mod runs;
mod sac;
mod seeds;
mod study;
mod textbook;
mod trust_region;

use std::fs;
use std::path::{Path, PathBuf};

use experiment::Experiment;
use findings::Findings;
use gradus::Error;
use gradus::figure::{self, Format};
use gradus::files::{expect_own, remove_leftovers, replace};

/// A published figure that can be redrawn.
pub struct Reproduction {
    /// Name on the command line, and of its folder.
    pub name: &'static str,
    /// Text of the experiment file.
    text: &'static str,
    make: fn(&Experiment) -> Result<Findings, Error>,
}

/// All reproductions, in the order of the gallery.
pub const ALL: &[Reproduction] = &[
    Reproduction { name: "gae", text: include_str!("gae.toml"), make: gae::reproduce },
    Reproduction { name: "ppo-objectives", text: include_str!("objectives.toml"), make: objectives::reproduce },
    Reproduction { name: "ppo-details", text: include_str!("details.toml"), make: details::reproduce },
    Reproduction { name: "a2c-is-ppo", text: include_str!("a2c.toml"), make: a2c::reproduce },
    Reproduction { name: "pqn", text: include_str!("pqn.toml"), make: pqn::reproduce },
    Reproduction { name: "bsuite", text: include_str!("bsuite.toml"), make: bsuite::reproduce },
    Reproduction { name: "sac-temperature", text: include_str!("sac.toml"), make: sac::reproduce },
    Reproduction { name: "trust-region", text: include_str!("trust-region.toml"), make: trust_region::reproduce },
    Reproduction { name: "overestimation", text: include_str!("overestimation.toml"), make: overestimation::reproduce },
    Reproduction { name: "length-bias", text: include_str!("length-bias.toml"), make: length_bias::reproduce },
    Reproduction { name: "overoptimisation", text: include_str!("overoptimisation.toml"), make: overoptimisation::reproduce },
    Reproduction { name: "how-many-seeds", text: include_str!("seeds.toml"), make: seeds::reproduce },
    Reproduction { name: "sutton-barto-2", text: include_str!("textbook/2.toml"), make: textbook::bandits::testbed },
    Reproduction { name: "sutton-barto-4.2", text: include_str!("textbook/4.2.toml"), make: textbook::dynamic::rental },
    Reproduction { name: "sutton-barto-4.3", text: include_str!("textbook/4.3.toml"), make: textbook::dynamic::stakes },
    Reproduction { name: "sutton-barto-5.1", text: include_str!("textbook/5.1.toml"), make: textbook::blackjack::evaluation },
    Reproduction { name: "sutton-barto-5.2", text: include_str!("textbook/5.2.toml"), make: textbook::blackjack::control },
    Reproduction { name: "sutton-barto-5.3", text: include_str!("textbook/5.3.toml"), make: textbook::blackjack::importance_sampling },
    Reproduction { name: "sutton-barto-5.4", text: include_str!("textbook/5.4.toml"), make: textbook::importance::infinite_variance },
    Reproduction { name: "sutton-barto-6.2", text: include_str!("textbook/6.2.toml"), make: textbook::walks::batch },
    Reproduction { name: "sutton-barto-6.3", text: include_str!("textbook/6.3.toml"), make: textbook::cliff::methods },
    Reproduction { name: "sutton-barto-6.5", text: include_str!("textbook/6.5.toml"), make: textbook::maximisation::bias },
    Reproduction { name: "sutton-barto-7.2", text: include_str!("textbook/7.2.toml"), make: textbook::walks::n_step },
    Reproduction { name: "sutton-barto-8.2", text: include_str!("textbook/8.2.toml"), make: textbook::maze::dyna },
    Reproduction { name: "sutton-barto-8.4", text: include_str!("textbook/8.4.toml"), make: textbook::maze::blocking },
    Reproduction { name: "sutton-barto-8.5", text: include_str!("textbook/8.5.toml"), make: textbook::maze::shortcut },
    Reproduction { name: "sutton-barto-10.1", text: include_str!("textbook/10.1.toml"), make: textbook::mountain_car::cost_to_go },
    Reproduction { name: "sutton-barto-10.2", text: include_str!("textbook/10.2.toml"), make: textbook::mountain_car::step_sizes },
    Reproduction { name: "sutton-barto-10.4", text: include_str!("textbook/10.4.toml"), make: textbook::mountain_car::sensitivity },
    Reproduction { name: "sutton-barto-12.3", text: include_str!("textbook/12.3.toml"), make: textbook::walks::lambda },
    Reproduction { name: "sutton-barto-13.1", text: include_str!("textbook/13.1.toml"), make: textbook::corridor::reinforce },
];

fn hint(name: &str, known: &[&str]) -> String {
    match gradus::envs::names::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("`{} reproduce list` shows all {}", gradus::program_name(), known.len()),
    }
}

/// Returns the reproduction called `name`.
pub fn find(name: &str) -> Result<&'static Reproduction, Error> {
    let known: Vec<&str> = ALL.iter().map(|reproduction| reproduction.name).collect();
    let unknown = || Error::Unknown { what: "reproduction", name: name.into(), hint: hint(name, &known) };
    if let Some(reproduction) = ALL.iter().find(|reproduction| reproduction.name == name) {
        return Ok(reproduction);
    }
    // the number of a figure alone, such as 6.3
    let number = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let is_figure = |reproduction: &&Reproduction| !number.is_empty() && reproduction.name.ends_with(&format!("-{number}"));
    let mut figures = ALL.iter().filter(is_figure);
    figures.next().filter(|_| figures.next().is_none()).ok_or_else(unknown)
}

/// The results of an interrupted run.
const UNFINISHED: &str = "unfinished.csv";

/// What a reproduction has written.
pub struct Written {
    /// The verdict on the publication's main sentence.
    pub verdict: String,
    /// The answer to each claim, which a quick version does not have, and the claim with its numbers.
    pub claims: Vec<(Option<&'static str>, String)>,
    /// What differs from the publication.
    pub differs: String,
    /// The main figure.
    pub figure: PathBuf,
}

impl Reproduction {
    /// Title and publication.
    pub fn about(&self) -> Result<(String, String), Error> {
        let experiment = Experiment::parse(self.name, self.text, false)?;
        Ok((experiment.title, experiment.source))
    }

    /// Runs the experiment and writes its figures, tables and page to the folder `dir`. The same settings write the same bytes.
    pub fn run(&self, dir: &Path, is_quick: bool) -> Result<Written, Error> {
        let mut experiment = Experiment::parse(self.name, self.text, is_quick)?;
        expect_own(dir, (&["experiment.toml", UNFINISHED], "experiment.toml"), "a new folder, or one of a reproduction")?;
        fs::create_dir_all(dir).map_err(|source| Error::Io { action: "create", path: dir.into(), source })?;
        // what marks the folder of an interrupted run as ours
        let mark = dir.join("experiment.toml");
        if !mark.exists() {
            replace(&mark, self.text.as_bytes()).map_err(|source| Error::Io { action: "write", path: mark, source })?;
        }
        experiment.unfinished = Some(dir.join(UNFINISHED));
        let Findings { mut claims, figures, tables } = (self.make)(&experiment)?;
        assert_eq!(claims.len(), experiment.evidence.len(), "{}: every claim has its evidence", self.name);
        for (claim, evidence) in claims.iter_mut().zip(&experiment.evidence) {
            claim.evidence = evidence.clone();
        }
        let drawn = figures.iter().flat_map(|(name, _)| Format::USUAL.map(|format| format!("{name}.{}", format.ending())));
        let names: Vec<String> = tables
            .iter()
            .map(|(name, _)| name.to_string())
            .chain(drawn)
            .chain(["verdict.csv".into(), "README.md".into(), "README.sources".into()])
            .collect();
        remove_leftovers(dir, |name| names.iter().any(|own| own == name));
        let _ = fs::remove_file(dir.join(UNFINISHED));
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            replace(&path, text.as_bytes()).map_err(|source| Error::Io { action: "write", path, source })
        };
        fs::create_dir_all(dir).map_err(|source| Error::Io { action: "create", path: dir.into(), source })?;
        write("experiment.toml", self.text)?;
        tables.iter().try_for_each(|(name, text)| write(name, text))?;
        for (name, drawn) in &figures {
            for format in Format::USUAL {
                figure::write(drawn, &dir.join(format!("{name}.{}", format.ending())))?;
            }
        }
        write("verdict.csv", &findings::verdict_csv(&claims))?;
        let names: Vec<&str> = figures.iter().map(|(name, _)| *name).collect();
        pages::write(&dir.join("README.md"), &page::page(self, &experiment, &claims, &names, is_quick))?;
        let verdict = if is_quick {
            format!("Quick version: too few runs to decide anything. What would be decided: {}", experiment.main)
        } else {
            format!("{}: {} Of its claims {}.", findings::verdict(&claims), experiment.main, findings::counted(&claims))
        };
        let claims = claims.iter().map(|claim| ((!is_quick).then(|| claim.answer().word()), findings::told(claim))).collect();
        Ok(Written { verdict, claims, differs: experiment.differs.trim().into(), figure: dir.join("figure.png") })
    }
}

impl Reproduction {
    /// Writes the page in the folder `dir` again, with the words of the experiment's file as they are now and the numbers of `verdict.csv`, without the experiment itself. Pages of
    /// quick versions, and folders with other settings or claims, stay as they are.
    fn rewrite(&self, dir: &Path) -> Result<(), Error> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).map_err(|source| Error::Io { action: "read", path, source })
        };
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            replace(&path, text.as_bytes()).map_err(|source| Error::Io { action: "write", path, source })
        };
        let experiment = Experiment::parse(self.name, self.text, false)?;
        let (page, before) = (read("README.md")?, read("experiment.toml")?);
        let is_same = Experiment::parse(self.name, &before, false).is_ok_and(|before| before.has_settings_of(&experiment));
        let Some(mut claims) = findings::read_verdict(&read("verdict.csv")?) else { return Ok(()) };
        if page.contains("**Quick version.**") || !is_same || claims.len() != experiment.evidence.len() {
            return Ok(());
        }
        for (claim, evidence) in claims.iter_mut().zip(&experiment.evidence) {
            claim.evidence = evidence.clone();
        }
        let name = |line: &str| {
            let (_, file) = line.rsplit_once('(')?;
            file.strip_suffix(".svg)").or(file.strip_suffix(".png)")).map(str::to_owned)
        };
        let figures: Vec<String> = page.lines().filter(|line| line.starts_with("![")).filter_map(name).collect();
        let figures: Vec<&str> = figures.iter().map(String::as_str).collect();
        let page = page::page(self, &experiment, &claims, &figures, false);
        write("experiment.toml", self.text)?;
        write("verdict.csv", &findings::verdict_csv(&claims))?;
        pages::write(&dir.join("README.md"), &page)
    }
}

/// Writes the gallery to `README.md` in the folder `dir`, which has folders of reproductions, and their pages with the words of now.
pub fn gallery(dir: &Path) -> Result<PathBuf, Error> {
    let row = |reproduction: &Reproduction| page::row(reproduction, &Experiment::parse(reproduction.name, reproduction.text, false)?, dir);
    let made: Vec<&Reproduction> = ALL.iter().filter(|reproduction| dir.join(reproduction.name).join("README.md").exists()).collect();
    if made.is_empty() {
        return Err(Error::Folder { path: dir.into(), problem: "expected a folder with reproductions, got none".into() });
    }
    made.iter().try_for_each(|reproduction| reproduction.rewrite(&dir.join(reproduction.name)))?;
    let rows: Vec<String> = made.into_iter().map(row).collect::<Result<_, Error>>()?;
    let path = dir.join("README.md");
    pages::write(&path, &page::gallery(&rows))?;
    Ok(path)
}
