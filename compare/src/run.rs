//! One run of a comparison: trains, evaluates at fixed steps and stores the results.
//!
//! A run is identified by its key, a hash of its settings. `runs/KEY.csv` has the run's settings, its origin (the code that made it and a
//! hash of each file that it read) and its evaluations. `runs/KEY.timing` has the seconds, and on text tasks `runs/KEY.problems` the return of
//! every problem. `runs/KEY.safetensors` has the final policy. The first lines of `KEY.csv` and `KEY.timing` are hashes. A stored run is kept only if settings, origin and hashes are
//! unchanged. `runs/KEY.csv` is written atomically at the end of the run. A long run saves
//! `runs/KEY.state` regularly and resumes from it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gradus_base::tensors::{self, Tensor, get_u64};
use hmac_sha256::Hash;

use super::code::hash;
use gradus::config::inputs;
use gradus::evaluate::{Mode, evaluate};
use gradus::files::{hexadecimal, read, read_to_string, replace};
use gradus::{Config, Error, Trainer};

/// Least time between checkpoints of a run.
pub(super) const CHECKPOINT: Duration = Duration::from_secs(20);

/// One evaluation of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evaluated {
    /// Environment steps that the policy was trained on.
    pub(super) step: u64,
    /// The mean return of the episodes.
    pub(super) mean: f64,
    /// The sample standard deviation of the returns.
    pub(super) std: f64,
    /// The lowest return.
    pub(super) min: f64,
    /// The highest return.
    pub(super) max: f64,
    /// The mean number of steps per episode.
    pub(super) length: f64,
    /// Seconds of training before the evaluation, not counting evaluations.
    pub(super) seconds: f64,
}

/// A finished run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) evaluated: Vec<Evaluated>,
    /// On text tasks, the return of every problem in the last evaluation, in the order of the fixed list; otherwise empty.
    pub(super) problems: Vec<f64>,
}

const HEADER: &str = "step,return,std,min,max,length";

/// A run to be made.
pub(super) struct Job<'a> {
    pub(super) agent: &'a str,
    pub(super) config: Config,
    /// The folder from which the comparison names its files.
    pub(super) folder: &'a Path,
    pub(super) evaluations: u64,
    pub(super) episodes: usize,
    /// What the numbers depend on besides the settings, one line each: the code, and the files that the run reads.
    pub(super) origin: Vec<String>,
}

/// The result that an earlier comparison stored for a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stored {
    /// A result of the same code, settings and files.
    Kept(Outcome),
    /// A result of other code or files; the text says what has changed.
    Outdated(String),
    /// No result, or a damaged one.
    Nothing,
}

impl Job<'_> {
    /// Returns the settings, including those of the evaluations. They do not depend on the folder from which the command is called.
    fn settings(&self) -> String {
        let config = self.config.seen_from(self.folder).unwrap_or_else(|_| self.config.clone());
        format!("evaluations = {}\nevaluation_episodes = {}\n{}", self.evaluations, self.episodes, config.to_toml())
    }

    /// Returns the environment as the comparison calls it.
    pub(super) fn environment(&self) -> String {
        inputs::environment_from(&self.config.environment, self.folder)
    }

    /// Returns everything that the numbers depend on: the origin and the settings.
    fn description(&self) -> String {
        format!("{}\n{}", self.origin.join("\n"), self.settings())
    }

    /// Returns the hash of the settings.
    pub(super) fn key(&self) -> String {
        format!("{:016x}", hash(self.settings().as_bytes()))
    }

    /// Returns the line that identifies the code.
    pub(super) fn code(&self) -> &str {
        self.origin.first().map_or("", String::as_str)
    }

    fn path(&self, dir: &Path, ending: &str) -> PathBuf {
        dir.join(format!("{}.{ending}", self.key()))
    }

    /// Returns the file of the final policy.
    pub(super) fn policy(&self, dir: &Path) -> PathBuf {
        self.path(dir, "safetensors")
    }

    /// Reads the result that an earlier comparison stored for this run in `dir`.
    pub(super) fn stored(&self, dir: &Path) -> Stored {
        let files = match read_run(&self.path(dir, "csv")) {
            Ok(Some(files)) => files,
            Ok(None) => return Stored::Nothing,
            Err(Unusable::Unhashed) => return Stored::Outdated("an older version stored it".into()),
            Err(Unusable::Damaged) => return Stored::Outdated("its stored result is damaged".into()),
        };
        // runs of older versions have no policy
        let policy = self.policy(dir);
        if policy.is_file() && !read(&policy).is_ok_and(|bytes| tensors::decode(&bytes).is_ok()) {
            return Stored::Outdated("its stored policy is damaged".into());
        }
        let head = comment(&self.settings());
        let Some((origin, rows)) = files.results.split_once(&head) else { return Stored::Nothing };
        let Some(evaluated) = self.parse(rows, &files.seconds) else { return Stored::Nothing };
        let problems: Option<Vec<f64>> = files.problems.lines().map(|line| line.parse().ok()).collect();
        let Some(problems) = problems else { return Stored::Nothing };
        let was: Vec<&str> = origin.lines().map(|line| line.trim_start_matches("# ")).collect();
        match self.origin.iter().zip(&was).find(|(now, was)| now != was) {
            None if was.len() == self.origin.len() => Stored::Kept(Outcome { evaluated, problems }),
            other => {
                let (now, was) = other.map_or(("the files that it reads", ""), |(now, was)| (now.as_str(), *was));
                let what = now.split(':').next().unwrap_or_default();
                Stored::Outdated(if was.split(':').next() == Some(what) {
                    format!("{what} has changed")
                } else {
                    "its files have changed".into()
                })
            }
        }
    }

    fn parse(&self, rows: &str, seconds: &str) -> Option<Vec<Evaluated>> {
        let mut rows = rows.strip_suffix('\n')?.lines();
        if rows.next()? != HEADER {
            return None;
        }
        let mut seconds = seconds.lines();
        let evaluated: Option<Vec<Evaluated>> = rows.map(|row| parse_row(row, seconds.next()?)).collect();
        evaluated.filter(|all| all.len() as u64 == self.evaluations + 1 && seconds.next().is_none())
    }

    fn store(&self, dir: &Path, Outcome { evaluated, problems }: &Outcome) -> Result<(), Error> {
        let seconds: String = evaluated.iter().map(|at| format!("{}\n", at.seconds)).collect();
        let row = |at: &Evaluated| format!("{},{},{},{},{},{}\n", at.step, at.mean, at.std, at.min, at.max, at.length);
        let rows: String = evaluated.iter().map(row).collect();
        let problems: String = problems.iter().map(|number| format!("{number}\n")).collect();
        let text = format!("{}{HEADER}\n{rows}", comment(&self.description()));
        let write = |ending, text: &str| {
            let path = self.path(dir, ending);
            replace(&path, text.as_bytes()).map_err(Error::io("write", &path))
        };
        write("timing", &with_hash(&[&seconds]))?;
        if !problems.is_empty() {
            write("problems", &problems)?;
        }
        // last, because this file marks the run as finished
        write("csv", &with_hash(&[&text, &problems]))?;
        let _ = fs::remove_file(self.path(dir, "state"));
        Ok(())
    }

    /// Trains to the end, from the last checkpoint if there is one, and stores the result in `dir`. When `stop` becomes true, finishes the
    /// current iteration, writes a checkpoint and returns [`Error::Stopped`].
    pub(super) fn run(&self, dir: &Path, checkpoint_every: Duration, stop: &AtomicBool) -> Result<Outcome, Error> {
        let mut trainer = Trainer::new(self.config.clone())?;
        let (mut evaluated, mut seconds) = match self.load(dir, &mut trainer) {
            Some(loaded) => loaded,
            None => {
                // loading an unsuitable checkpoint may have changed the trainer
                trainer = Trainer::new(self.config.clone())?;
                (vec![self.evaluate(&trainer, 0.0)?.0], 0.0)
            }
        };
        let (mut saved, mut problems) = (Instant::now(), Vec::new());
        while (evaluated.len() as u64) <= self.evaluations {
            // evaluation k is due at the fraction k / evaluations of the steps, or at the end of the training
            let due = (self.config.steps as u128 * evaluated.len() as u128).div_ceil(u128::from(self.evaluations)) as u64;
            let began = Instant::now();
            // the last evaluation uses the final parameters
            let is_last = evaluated.len() as u64 == self.evaluations;
            while (trainer.steps() < due || is_last) && !trainer.is_finished() {
                if stop.load(Ordering::Relaxed) {
                    self.save(dir, &trainer, &evaluated, seconds + began.elapsed().as_secs_f64())?;
                    return Err(Error::Stopped(format!("at step {} of {}", trainer.steps(), trainer.total_steps())));
                }
                trainer.iterate()?;
            }
            seconds += began.elapsed().as_secs_f64();
            let (at, of_problems) = self.evaluate(&trainer, seconds)?;
            evaluated.push(at);
            problems = of_problems;
            if saved.elapsed() >= checkpoint_every && evaluated.len() as u64 <= self.evaluations {
                self.save(dir, &trainer, &evaluated, seconds)?;
                saved = Instant::now();
            }
        }
        let outcome = Outcome { evaluated, problems };
        let path = self.policy(dir);
        replace(&path, &tensors::encode(&trainer.export(), &trainer.config().to_file_in(dir)?)).map_err(Error::io("write", &path))?;
        self.store(dir, &outcome)?;
        Ok(outcome)
    }

    /// Evaluates the policy. Returns the evaluation and, on text tasks, the return of every problem.
    fn evaluate(&self, trainer: &Trainer, seconds: f64) -> Result<(Evaluated, Vec<f64>), Error> {
        // the same episodes every time, none of them used in training: see `evaluate`
        let played = evaluate(trainer.policy(), &trainer.evaluation_world(), self.episodes, self.config.seed, Mode::Greedy)?;
        let length = played.lengths.iter().map(|steps| f64::from(*steps)).sum::<f64>() / played.lengths.len() as f64;
        let at = Evaluated { step: trainer.steps(), mean: played.mean, std: played.std, min: played.min, max: played.max, length, seconds };
        Ok((at, if played.problems.is_some() { played.returns } else { Vec::new() }))
    }

    fn save(&self, dir: &Path, trainer: &Trainer, evaluated: &[Evaluated], seconds: f64) -> Result<(), Error> {
        let mut state = trainer.whole_checkpoint()?;
        let bits = |at: &Evaluated| {
            let numbers = [at.mean, at.std, at.min, at.max, at.length, at.seconds].map(f64::to_bits);
            std::iter::once(at.step).chain(numbers)
        };
        state.insert(EVALUATIONS.into(), Tensor::u64(evaluated.iter().flat_map(bits).collect()));
        state.insert(SECONDS.into(), Tensor::u64(vec![seconds.to_bits()]));
        let path = self.path(dir, "state");
        replace(&path, &tensors::encode(&state, &self.description())).map_err(Error::io("write", &path))
    }

    /// Loads the checkpoint into `trainer`. Returns the evaluations and the seconds of training so far; `None` if there is no suitable
    /// checkpoint.
    fn load(&self, dir: &Path, trainer: &mut Trainer) -> Option<(Vec<Evaluated>, f64)> {
        let (mut state, note) = tensors::decode(&read(&self.path(dir, "state")).ok()?).ok()?;
        let (rows, rest) = get_u64(&state, EVALUATIONS).ok()?.as_chunks::<7>();
        let evaluated = rows.iter().map(|&[step, ref numbers @ ..]| {
            let [mean, std, min, max, length, seconds] = numbers.map(f64::from_bits);
            Evaluated { step, mean, std, min, max, length, seconds }
        });
        let evaluated: Vec<_> = evaluated.collect();
        let fits = note == self.description() && rest.is_empty() && (1..=self.evaluations as usize).contains(&evaluated.len());
        let [seconds] = *get_u64(&state, SECONDS).ok()? else { return None };
        state.remove(EVALUATIONS);
        state.remove(SECONDS);
        fits.then_some(())?;
        trainer.load(&state).ok()?;
        Some((evaluated, f64::from_bits(seconds)))
    }
}

const EVALUATIONS: &str = "evaluations";
const SECONDS: &str = "seconds";

/// The start of the first line of `KEY.csv` and `KEY.timing`. A hash follows.
const HASH_MARK: &str = "# sha256 ";

/// Returns the line with the hash of `parts`, and the first part.
fn with_hash(parts: &[&str]) -> String {
    let mut hash = Hash::new();
    parts.iter().for_each(|part| hash.update(part));
    format!("{HASH_MARK}{}\n{}", hexadecimal(&hash.finalize()), parts[0])
}

/// The files of a stored run, without the lines of their hashes. Two are equal if their numbers are, however long they took.
pub(super) struct RunFiles {
    results: String,
    seconds: String,
    problems: String,
}

impl PartialEq for RunFiles {
    fn eq(&self, other: &Self) -> bool {
        self.results == other.results && self.problems == other.problems
    }
}

/// Why a stored run cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// An older version stored it, without hashes.
    Unhashed,
    /// A file is damaged or missing.
    Damaged,
}

/// Reads the files of a stored run and checks their hashes. `path` is that of `KEY.csv`; returns `None` if it does not exist.
pub(super) fn read_run(path: &Path) -> Result<Option<RunFiles>, Unusable> {
    let read = |ending| read_to_string(&path.with_extension(ending));
    let results = match read_to_string(path) {
        Ok(text) => text,
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(Unusable::Damaged),
    };
    if !results.starts_with(HASH_MARK) {
        return Err(Unusable::Unhashed);
    }
    let seconds = read("timing").map_err(|_| Unusable::Damaged)?;
    let problems = read("problems").unwrap_or_default();
    let without_hash = |text: &str| text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    let files = RunFiles { results: without_hash(&results), seconds: without_hash(&seconds), problems };
    let is_intact = results == with_hash(&[&files.results, &files.problems]) && seconds == with_hash(&[&files.seconds]);
    if is_intact { Ok(Some(files)) } else { Err(Unusable::Damaged) }
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", format!("# {line}").trim_end())).collect()
}

fn parse_row(row: &str, seconds: &str) -> Option<Evaluated> {
    let cells: Vec<&str> = row.split(',').collect();
    let [step, ref numbers @ ..] = *cells.as_slice() else { return None };
    let numbers: Vec<f64> = numbers.iter().map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
    let [mean, std, min, max, length] = *numbers.as_slice() else { return None };
    Some(Evaluated { step: step.parse().ok()?, mean, std, min, max, length, seconds: seconds.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn job() -> Job<'static> {
        let config = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
        let origin = vec!["code: gradus 1, sources 2".into(), "init: a/policy.safetensors 3".into()];
        Job { agent: "ppo", config: Config { steps: 6_000, ..config }, folder: Path::new(""), evaluations: 4, episodes: 3, origin }
    }

    /// The evaluations with seconds set to 0.
    fn numbers(evaluated: &[Evaluated]) -> Vec<Evaluated> {
        evaluated.iter().map(|at| Evaluated { seconds: 0.0, ..*at }).collect()
    }

    #[test]
    fn evaluations_follow_the_first_rollout_that_reaches_their_step() {
        let dir = gradus_testing::tempdir().unwrap();
        let steps: Vec<u64> = job().run(dir.path(), CHECKPOINT, &NEVER).unwrap().evaluated.iter().map(|at| at.step).collect();
        // a rollout has 512 steps; each evaluation follows the first rollout that reaches its quarter of the 6000 steps
        assert_eq!(steps, [0, 1536, 3072, 4608, 6144]);
        let once = Job { evaluations: 1, config: Config { steps: 600, ..job().config }, ..job() };
        assert_eq!(once.run(dir.path(), CHECKPOINT, &NEVER).unwrap().evaluated.len(), 2);
    }

    #[test]
    fn a_stored_run_is_read_back_only_with_its_own_settings() {
        let dir = gradus_testing::tempdir().unwrap();
        assert_eq!(job().stored(dir.path()), Stored::Nothing);
        let evaluated = job().run(dir.path(), CHECKPOINT, &NEVER).unwrap();
        assert_eq!(job().stored(dir.path()), Stored::Kept(evaluated));
        let others =
            [Job { episodes: 4, ..job() }, Job { evaluations: 5, ..job() }, Job { config: Config { seed: 2, ..job().config }, ..job() }];
        for other in others {
            assert!(other.key() != job().key() && other.stored(dir.path()) == Stored::Nothing);
            // a collision of keys would be noticed, because the file has the settings
            fs::copy(job().path(dir.path(), "csv"), other.path(dir.path(), "csv")).unwrap();
            fs::copy(job().path(dir.path(), "timing"), other.path(dir.path(), "timing")).unwrap();
            assert_eq!(other.stored(dir.path()), Stored::Nothing);
        }
        let path = job().path(dir.path(), "csv");
        let text = fs::read_to_string(&path).unwrap();
        let damaged = Stored::Outdated("its stored result is damaged".into());
        fs::write(&path, &text[..text.len() - 1]).unwrap();
        assert_eq!(job().stored(dir.path()), damaged, "a truncated file");
        fs::write(&path, text.split_once('\n').unwrap().1).unwrap();
        assert_eq!(job().stored(dir.path()), Stored::Outdated("an older version stored it".into()), "a file without a hash");
        fs::write(&path, text).unwrap();
        assert!(matches!(job().stored(dir.path()), Stored::Kept(_)));
        fs::remove_file(job().path(dir.path(), "timing")).unwrap();
        assert_eq!(job().stored(dir.path()), damaged, "a missing file");
    }

    #[test]
    fn a_stored_run_with_a_flipped_bit_is_never_kept() {
        let (dir, job) = (gradus_testing::tempdir().unwrap(), job());
        job.run(dir.path(), CHECKPOINT, &NEVER).unwrap();
        for ending in ["csv", "timing"] {
            let path = job.path(dir.path(), ending);
            let intact = fs::read(&path).unwrap();
            for bit in (0..8 * intact.len()).step_by(if ending == "csv" { 13 } else { 1 }) {
                let mut flipped = intact.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, flipped).unwrap();
                assert!(!matches!(job.stored(dir.path()), Stored::Kept(_)), "{ending}, bit {bit}");
            }
            fs::write(&path, intact).unwrap();
        }
        assert!(matches!(job.stored(dir.path()), Stored::Kept(_)));
    }

    /// On text tasks, the last evaluation is stored problem by problem.
    #[test]
    fn returns_of_problems_are_read_back() {
        let dir = gradus_testing::tempdir().unwrap();
        let config = Config::preset("grpo", "target-sum", None).unwrap();
        let job = Job { config: Config { steps: 2_000, ..config }, evaluations: 2, episodes: 30, ..job() };
        let outcome = job.run(dir.path(), Duration::ZERO, &NEVER).unwrap();
        let mean = outcome.problems.iter().sum::<f64>() / outcome.problems.len() as f64;
        assert!((mean - outcome.evaluated[2].mean).abs() < 1e-12 && outcome.problems.len() > 1);
        assert_eq!(job.stored(dir.path()), Stored::Kept(outcome));
        fs::remove_file(job.path(dir.path(), "problems")).unwrap();
        assert_eq!(job.stored(dir.path()), Stored::Outdated("its stored result is damaged".into()));
    }

    #[test]
    fn a_run_of_other_code_or_other_files_is_outdated() {
        let dir = gradus_testing::tempdir().unwrap();
        job().run(dir.path(), Duration::ZERO, &NEVER).unwrap();
        let outdated = |origin: &[&str]| Job { origin: origin.iter().map(|line| line.to_string()).collect(), ..job() }.stored(dir.path());
        let (code, init) = ("code: gradus 1, sources 2", "init: a/policy.safetensors 3");
        for (origin, why) in [
            (vec!["code: gradus 1, sources 4", init], "code has changed"),
            (vec![code, "init: a/policy.safetensors 5"], "init has changed"),
            (vec![code, "reward_model.folder: b 6"], "its files have changed"),
            (vec![code], "its files have changed"),
            (vec![code, init, "reward_model.folder: b 6"], "its files have changed"),
        ] {
            assert_eq!(outdated(&origin), Stored::Outdated(why.into()), "{origin:?}");
        }
        // the checkpoint of a run that read other files is not loaded
        let (mut trainer, other) = (Trainer::new(job().config).unwrap(), Job { origin: vec![code.into()], ..job() });
        job().save(dir.path(), &trainer, &[job().evaluate(&trainer, 0.0).unwrap().0], 0.5).unwrap();
        assert!(job().load(dir.path(), &mut trainer).is_some() && other.load(dir.path(), &mut trainer).is_none());
    }

    #[test]
    fn a_run_resumes_from_its_checkpoint() {
        let dir = gradus_testing::tempdir().unwrap();
        let whole = job().run(dir.path(), Duration::ZERO, &NEVER).unwrap().evaluated;
        assert!(!job().path(dir.path(), "state").exists(), "a finished run needs no checkpoint");
        // stopped after evaluation 2; evaluation 0 is the one before training
        let mut trainer = Trainer::new(job().config).unwrap();
        while trainer.steps() < whole[2].step {
            trainer.iterate().unwrap();
        }
        let mut so_far = whole[..3].to_vec();
        so_far[1].mean = 1234.0; // a marker
        job().save(dir.path(), &trainer, &so_far, 0.5).unwrap();
        let resumed = job().run(dir.path(), Duration::ZERO, &NEVER).unwrap().evaluated;
        assert_eq!(resumed[1].mean, 1234.0, "resumed from the checkpoint");
        assert!(resumed[3].seconds > 0.5, "the time before the checkpoint counts");
        assert_eq!(numbers(&resumed[2..]), numbers(&whole[2..]), "with the same numbers");
        // another run's checkpoint, or a damaged one, is ignored
        let mut others = trainer.save();
        others.insert(EVALUATIONS.into(), Tensor::u64(vec![0; 21]));
        for bytes in [b"damaged".to_vec(), tensors::encode(&others, "other settings")] {
            fs::write(job().path(dir.path(), "state"), bytes).unwrap();
            assert_eq!(numbers(&job().run(dir.path(), CHECKPOINT, &NEVER).unwrap().evaluated), numbers(&whole));
        }
    }
}
