//! A process reward model: a network whose value head scores every step of a solution, not only the whole text as a
//! [reward model](crate::preferences::reward_model) does.
//!
//! Every step has a label y between 0 (wrong) and 1 (right). The score r of a step is read after the step's last token, and sigmoid(r) is the
//! model's probability that the step is right (Lightman et al., arXiv 2305.20050). The loss is the mean cross-entropy of the steps
//! (Wang et al., arXiv 2312.08935, equation 3):
//!
//! > L = - y log sigmoid(r) - (1 - y) log(1 - sigmoid(r))
//!
//! The reward of a step is sigmoid(r).

use std::ops::Range;

use gradus_base::math::exp;
use gradus_base::random::{Purpose, Stream};
use gradus_nets::{ActionRows, Batch, Evaluation, Objective, Observations, Outputs, Policy, Store, Texts, UpdatedGroups};

use crate::agent::{Report, UpdateContext};
use crate::error::AgentError;
use crate::parts::optimiser::OptimiserConfig;
use crate::preferences::reward_model::RewardModelConfig;

/// Returns the probability of a score, 1 / (1 + e^-r), which is the reward of a step.
pub fn sigmoid(score: f32) -> f32 {
    let small = exp(-score.abs());
    if score >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) }
}

/// The label of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLabel {
    /// Number of tokens of the text, prompt included, up to the end of the step.
    pub tokens: usize,
    /// From 0, wrong, to 1, right.
    pub label: f32,
}

/// Solutions whose steps have labels.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledSteps {
    /// One row per step: the text up to the end of the step.
    store: Store,
    labels: Vec<f32>,
    /// The rows of each solution.
    solutions: Vec<Range<usize>>,
}

impl LabelledSteps {
    /// Creates labelled steps from whole texts of at most `context` tokens and the labels of their steps, in order.
    ///
    /// # Panics
    /// If a step ends after the end of its text, or if its label is not from 0 to 1.
    pub fn new<'a>(context: usize, solutions: impl IntoIterator<Item = (&'a [u32], &'a [StepLabel])>) -> Self {
        let (mut all, mut labels, mut rows) = (Texts::new(context), Vec::new(), Vec::new());
        for (text, steps) in solutions {
            for StepLabel { tokens, label } in steps {
                assert!((0.0..=1.0).contains(label), "label of a step: expected a number from 0 to 1, got {label}");
                all.push(text[..*tokens].iter().copied());
                labels.push(*label);
            }
            all.end_text();
            rows.push(labels.len() - steps.len()..labels.len());
        }
        let store = Store::of(Observations::Texts(all), ActionRows::Discrete(vec![0; labels.len()]));
        Self { store, labels, solutions: rows }
    }

    /// Number of steps.
    pub fn steps(&self) -> usize {
        self.labels.len()
    }

    /// Number of solutions.
    pub fn solutions(&self) -> usize {
        self.solutions.len()
    }
}

/// The loss of a step.
struct CrossEntropy<'a>(&'a [f32]);

impl Objective for CrossEntropy<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let (score, label) = (pi.value, self.0[i]);
        let agrees = f32::from(u8::from((score.value() >= 0.0) == (label >= 0.5)));
        score.cross_entropy(label).with_diagnostics([agrees])
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Critic
    }
}

/// Trains the value head of `policy` and the layers below it on labelled steps, with one optimiser step per minibatch of solutions. Each
/// step of a minibatch has the same weight. The settings `ranked`, `centring` and `replay` are not used.
///
/// The report's metrics are measured before each optimiser step: loss and accuracy are averaged over steps, the gradient norm over
/// minibatches. A step counts as right if its probability is at least 1/2, and its label is right if it is at least 1/2.
pub fn train(
    policy: &mut dyn Policy,
    steps: &LabelledSteps,
    config: &RewardModelConfig,
    optimiser: &OptimiserConfig,
    context: UpdateContext,
) -> Result<Report, AgentError> {
    config.check()?;
    optimiser.check()?;
    let step = optimiser.step(context.progress);
    let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
    let mut order: Vec<usize> = (0..steps.solutions.len()).collect();
    let (mut loss, mut agreeing, mut norms, mut minibatches) = (0.0, 0.0, 0.0, 0.0_f64);
    for epoch in 0..config.epochs {
        stream.shuffle(&mut order);
        for part in order.chunks(config.minibatch_size) {
            let rows: Vec<u32> = part.iter().flat_map(|i| steps.solutions[*i].clone()).map(|row| row as u32).collect();
            if rows.is_empty() {
                continue;
            }
            let weights = vec![1.0 / rows.len() as f32; rows.len()];
            let batch = (&steps.store, Batch::new(&rows, &weights));
            let (sums, norm) = context.gradient(policy, batch, &CrossEntropy(&steps.labels), epoch)?;
            policy.apply(&step);
            loss += sums.loss * rows.len() as f64;
            agreeing += sums.diagnostics[0] * rows.len() as f64;
            norms += norm;
            minibatches += 1.0;
        }
    }
    context.check_parameters(policy, config.epochs - 1)?;
    // NaN without steps
    let count = (steps.steps() * config.epochs) as f64;
    Ok(vec![
        ("reward_model/loss", loss / count),
        ("reward_model/accuracy", agreeing / count),
        ("reward_model/grad_norm", norms / minibatches.max(1.0)),
        ("reward_model/learning_rate", f64::from(step.learning_rate)),
    ])
}

/// Number of equally wide intervals of probability in the [calibration error](StepQuality::calibration_error).
const BINS: usize = 10;

/// How well the probabilities of a process reward model agree with the labels of held-out solutions.
///
/// A step whose label is below 1/2 is wrong. A solution counts up to and including its first wrong step, as in PRM800K (Lightman et al.,
/// arXiv 2305.20050): the steps after a mistake have no meaning of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepQuality {
    /// Number of steps that count.
    pub steps: usize,
    /// Number of solutions with a wrong step.
    pub wrong_solutions: usize,
    /// Number of solutions without a wrong step.
    pub right_solutions: usize,
    right_steps: usize,
    found: usize,
    accepted: usize,
    squares: f64,
    /// For each interval of probability: number of steps, sum of their probabilities, sum of their labels.
    bins: [(usize, f64, f64); BINS],
}

impl StepQuality {
    /// Adds a solution: the probability and the label of each step.
    pub fn add(&mut self, probabilities: &[f32], labels: &[f32]) {
        let first_below = |numbers: &[f32]| numbers.iter().position(|x| *x < 0.5);
        let wrong = first_below(labels);
        match wrong {
            Some(wrong) => {
                self.wrong_solutions += 1;
                self.found += usize::from(first_below(probabilities) == Some(wrong));
            }
            None => {
                self.right_solutions += 1;
                self.accepted += usize::from(first_below(probabilities).is_none());
            }
        }
        let counted = wrong.map_or(labels.len(), |wrong| wrong + 1);
        for (p, y) in probabilities.iter().zip(labels).take(counted) {
            self.steps += 1;
            self.right_steps += usize::from((*p >= 0.5) == (*y >= 0.5));
            let (p, y) = (f64::from(*p), f64::from(*y));
            self.squares += (p - y) * (p - y);
            let bin = &mut self.bins[((p * BINS as f64) as usize).min(BINS - 1)];
            *bin = (bin.0 + 1, bin.1 + p, bin.2 + y);
        }
    }

    /// Returns the fraction of steps whose probability is on the same side of 1/2 as the label. NaN without steps.
    pub fn accuracy(&self) -> f64 {
        self.right_steps as f64 / self.steps as f64
    }

    /// Returns the fraction of the wrong solutions in which the first step with a probability below 1/2 is the first wrong step. NaN
    /// without wrong solutions.
    pub fn first_error(&self) -> f64 {
        self.found as f64 / self.wrong_solutions as f64
    }

    /// Returns the fraction of the right solutions in which no step has a probability below 1/2. NaN without right solutions.
    pub fn accepted(&self) -> f64 {
        self.accepted as f64 / self.right_solutions as f64
    }

    /// Returns the mean of (p - y)^2 over the steps, the score of Brier (1950). NaN without steps.
    pub fn brier(&self) -> f64 {
        self.squares / self.steps as f64
    }

    /// Returns the expected calibration error (Guo et al., arXiv 1706.04599, equation 3): the mean of |mean probability - mean label| over
    /// ten equally wide intervals of probability, weighted by their numbers of steps. NaN without steps.
    pub fn calibration_error(&self) -> f64 {
        self.bins.iter().map(|(_, p, y)| (p - y).abs()).sum::<f64>() / self.steps as f64
    }
}

/// Measures how well the probabilities of `policy` agree with held-out labels.
pub fn evaluate(policy: &mut dyn Policy, held_out: &LabelledSteps) -> StepQuality {
    let mut scores = Vec::new();
    policy.values(&held_out.store, &mut scores);
    let probabilities: Vec<f32> = scores.into_iter().map(sigmoid).collect();
    let mut quality = StepQuality::default();
    held_out.solutions.iter().for_each(|rows| quality.add(&probabilities[rows.clone()], &held_out.labels[rows.clone()]));
    quality
}
