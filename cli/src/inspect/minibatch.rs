//! `gradus inspect --minibatch`: looks into one update, decision by decision.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gradus::base::threads;
use gradus::envs::EnvSpec;
use gradus::nets::{
    ActionRows, Batch, Evaluation, Listener, Objective, Outputs, Policy, PolicyOutput, Store, Sums, UpdatedGroups, Wrapped,
};
use gradus::saved::load_policy;
use gradus::{Error, Trainer};

use crate::output::say;

/// Of more epochs, the first ones and the last one are shown.
const EPOCHS: usize = 5;

/// A decision, each time that it was drawn.
#[derive(Clone, Debug, Default)]
struct Drawn {
    /// Its probability now divided by that before the update.
    ratios: Vec<f32>,
    /// What its log-probability is pulled by: at the ratio 1, and now.
    pulls: Vec<[f32; 2]>,
}

impl Drawn {
    /// Whether the clip left no pull when the decision was drawn for the `epoch`-th time.
    fn is_clipped(&self, epoch: usize) -> bool {
        self.pulls[epoch][0] != 0.0 && self.pulls[epoch][1] == 0.0
    }
}

/// All decisions of an update.
#[derive(Default)]
struct Record {
    actions: Vec<String>,
    /// The log-probabilities before the first step.
    before: Vec<f32>,
    /// The decisions of the first minibatch.
    first: Vec<u32>,
    drawn: Vec<Drawn>,
    steps: usize,
}

struct Recorder {
    record: Arc<Mutex<Record>>,
    /// Writes a token.
    symbol: Arc<dyn Fn(u32) -> String + Send + Sync>,
}

struct Recorded<'a> {
    objective: &'a dyn Objective,
    record: &'a Mutex<Record>,
}

fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener for Recorder {
    fn gradient(&mut self, policy: &mut dyn Policy, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        {
            let mut record = lock(&self.record);
            if record.steps == 0 {
                policy.log_probs(store, &mut record.before);
                record.actions = actions(&store.actions, self.symbol.as_ref());
                record.first = batch.indices.to_vec();
                record.drawn = vec![Drawn::default(); record.before.len()];
            }
            record.steps += 1;
        }
        policy.gradient(store, batch, &Recorded { objective, record: &self.record })
    }
}

impl Objective for Recorded<'_> {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.objective.decision(index, pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        let now = outputs.to_vec();
        self.objective.slice(indices, weights, outputs, sums);
        let mut record = lock(self.record);
        for (i, index) in indices.iter().enumerate().filter(|(i, _)| weights[*i] > 0.0) {
            let before = record.before[*index as usize];
            // what the loss would pull by if the policy had not changed
            let mut unchanged = [PolicyOutput { log_prob: before, ..now[i] }];
            self.objective.slice(&[*index], &[1.0], &mut unchanged, &mut Sums::default());
            let drawn = &mut record.drawn[*index as usize];
            drawn.ratios.push((now[i].log_prob - before).exp());
            drawn.pulls.push([-unchanged[0].log_prob, -outputs[i].log_prob / weights[i]]);
        }
    }

    fn updates(&self) -> UpdatedGroups {
        self.objective.updates()
    }
}

/// Writes each action: its number, its token, or the first of its numbers.
fn actions(rows: &ActionRows, symbol: &dyn Fn(u32) -> String) -> Vec<String> {
    match rows {
        ActionRows::Discrete(numbers) => numbers.iter().map(|number| symbol(*number)).collect(),
        ActionRows::Continuous { rows, width } => rows.chunks(*width).map(|row| format!("{:.2}", row[0])).collect(),
        ActionRows::OnDevice(n) => vec!["-".into(); *n],
    }
}

/// Makes one update from the policy of a run, with a new optimiser, and prints what it does to `shown` decisions of its first minibatch.
pub(super) fn look_into(dir: &Path, shown: usize) -> Result<(), Error> {
    let (mut config, world, _) = load_policy(dir)?;
    let record: Arc<Mutex<Record>> = Arc::default();
    let recorder = Recorder { record: record.clone(), symbol: symbols(&world) };
    let recorder = Mutex::new(Some(recorder));
    // observations are normalised as in the run
    config.init = dir.display().to_string();
    let agent = config.agent.clone();
    let wrap = |policy: Box<dyn Policy>| -> Box<dyn Policy> {
        let listener = recorder.lock().unwrap_or_else(PoisonError::into_inner).take().expect("one policy is trained");
        Box::new(Wrapped { policy, listener })
    };
    // one thread: decisions are then recorded in one order
    threads::with(1, || {
        let mut trainer = Trainer::around(config, &wrap)?.ok_or_else(|| Error::Parse {
            what: "--minibatch".into(),
            expected: "a run of an agent with a policy network, such as ppo".into(),
            got: agent.clone(),
        })?;
        trainer.iterate().map(|_| ())
    })?;
    let record = lock(&record);
    let (all, steps) = (record.before.len(), record.steps);
    let steps = if steps == 1 { "one step".into() } else { format!("{steps} steps") };
    let listed = shown.min(record.first.len());
    say(format!("one update of {agent} from {}: {steps} of the optimiser, {listed} of {all} decisions", dir.display()));
    table(&record, shown).iter().for_each(say);
    Ok(())
}

fn symbols(world: &EnvSpec) -> Arc<dyn Fn(u32) -> String + Send + Sync> {
    match &world.text {
        Some(text) => {
            let vocabulary = text.task.vocabulary().clone();
            Arc::new(move |token| vocabulary.symbol(token))
        }
        None => Arc::new(|action| action.to_string()),
    }
}

/// Returns the lines of the table.
fn table(record: &Record, shown: usize) -> Vec<String> {
    let epochs = record.drawn.iter().map(|drawn| drawn.ratios.len()).max().unwrap_or(0);
    let columns: Vec<usize> = (0..epochs).filter(|epoch| *epoch + 1 < EPOCHS || *epoch + 1 == epochs || epochs <= EPOCHS).collect();
    let mut indices = record.first.clone();
    indices.sort_unstable();
    let mut lines = vec![format!("\n{:>8}  {:<8}  {:>8}  {:>9}  ratio, epoch by epoch (*: clipped, no pull)", "", "", "probab.", "")];
    let heads: String = columns.iter().map(|epoch| format!("{:>8} ", epoch + 1)).collect();
    lines.push(format!("{:>8}  {:<8}  {:>8}  {:>9} {heads}", "decision", "action", "before", "advantage").trim_end().to_owned());
    for index in indices.into_iter().take(shown) {
        let (drawn, before) = (&record.drawn[index as usize], record.before[index as usize]);
        let ratio = |epoch: &usize| match drawn.ratios.get(*epoch) {
            Some(ratio) => format!("{ratio:>8.3}{}", if drawn.is_clipped(*epoch) { '*' } else { ' ' }),
            None => format!("{:>9}", ""),
        };
        let ratios: String = columns.iter().map(ratio).collect();
        let advantage = drawn.pulls.first().map_or(f32::NAN, |[pull, _]| *pull);
        let action = &record.actions[index as usize];
        lines.push(format!("{index:>8}  {action:<8}  {:>8.3}  {advantage:>9.3} {ratios}", before.exp()).trim_end().to_owned());
    }
    // a policy that takes one step has no ratio but 1
    if record.steps > 1 {
        lines.push(format!("\n{:>8}  {:>9}  {:>16}", "epoch", "clipped", "mean |ratio - 1|"));
    }
    for epoch in columns.into_iter().filter(|_| record.steps > 1) {
        let all: Vec<&Drawn> = record.drawn.iter().filter(|drawn| drawn.ratios.len() > epoch).collect();
        let n = all.len() as f64;
        let clipped = all.iter().filter(|drawn| drawn.is_clipped(epoch)).count() as f64;
        let away: f64 = all.iter().map(|drawn| f64::from((drawn.ratios[epoch] - 1.0).abs())).sum();
        lines.push(format!("{:>8}  {:>7.1} %  {:>16.4}", epoch + 1, 100.0 * clipped / n, away / n));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::{Config, Run, Show};

    /// PPO's pull is ratio times advantage, or 0 where the clip cuts it; a first epoch begins with the ratio 1.
    #[test]
    fn pulls_are_those_of_the_clipped_objective() {
        let folder = gradus_testing::tempdir().unwrap();
        let dir = folder.path().join("run");
        let config = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
        let settings = ["ppo.epochs=6", "ppo.entropy_coefficient=0", "optimiser.learning_rate=0.01", "ppo.normalise_over=rollout"];
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        Run::create(Config { steps: 2048, ..config }, &dir).unwrap().train(Show::Nothing).unwrap();
        let (config, _, policy) = load_policy(&dir).unwrap();
        let record: Arc<Mutex<Record>> = Arc::default();
        let parameters = policy.save();
        let wrap = |mut policy: Box<dyn Policy>| -> Box<dyn Policy> {
            policy.load(&parameters).unwrap();
            Box::new(Wrapped { policy, listener: Recorder { record: record.clone(), symbol: Arc::new(|action| action.to_string()) } })
        };
        threads::with(1, || Trainer::around(config, &wrap).unwrap().unwrap().iterate()).unwrap();
        let record = lock(&record);
        let mut clipped = 0;
        for drawn in &record.drawn {
            assert_eq!(drawn.ratios.len(), 6, "each decision is drawn once an epoch");
            for (ratio, [advantage, pull]) in drawn.ratios.iter().zip(&drawn.pulls) {
                let is_cut = if *advantage > 0.0 { *ratio > 1.2 } else { *ratio < 0.8 };
                let expected = if is_cut { 0.0 } else { ratio * advantage };
                assert!((pull - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{ratio} {advantage} {pull}");
                clipped += usize::from(is_cut);
            }
        }
        assert!(clipped > 10, "{clipped}");
        assert!(record.first.iter().all(|index| (record.drawn[*index as usize].ratios[0] - 1.0).abs() < 1e-5));
        let lines = table(&record, 3);
        assert_eq!(lines.len(), 2 + 3 + 1 + EPOCHS, "{lines:#?}");
        assert!(lines[..5].iter().all(|line| line.trim().chars().count() <= 88), "{lines:#?}");
    }
}
