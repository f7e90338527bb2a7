//! A reward model: a network whose value head scores whole texts (or any observations). It is trained on preferences.
//!
//! A preference says which of two completions of one prompt is better. Bradley and Terry (1952) model its probability as sigmoid(r_c -
//! r_r), where r_c and r_r are the scores of the chosen and the rejected completion. The loss is that of Stiennon et al.
//! (arXiv 2009.01325), with the margin of Llama 2 (arXiv 2307.09288, equation 2):
//!
//! > L = - log sigmoid(r_c - r_r - margin) + c (r_c + r_r)^2
//!
//! The optional last term keeps scores around 0, because preferences alone do not determine the offset of the scores. The loss of a ranking
//! of more than two completions is either the mean loss of its pairs or the Plackett-Luce loss. The Plackett-Luce model draws a ranking
//! from best to worst: at each place, it chooses one of the items that remain.
//!
//! The losses are formulas in the scores. All completions of a ranking are in one minibatch, and they are scored first. The derivatives of
//! the formula are then passed to the engine as an objective over single observations.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{at_least, from};
use gradus_base::{Settings, settings};
use gradus_nets::{ActionRows, Batch, Observations, Of, Policy, QValues, Store, Texts, UpdatedGroups};
use serde::{Deserialize, Serialize};

use crate::agent::{Report, UpdateContext};
use crate::error::{AgentError, ConfigError};
use crate::parts::optimiser::OptimiserConfig;
use crate::preferences::slopes::Slopes;

/// The loss of a ranking of more than two observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ranked {
    /// The mean loss over all pairs.
    Pairs,
    /// The negative log-likelihood of the whole ranking under the Plackett-Luce model.
    PlackettLuce,
}

settings! {
    /// The settings of a reward model's training.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct RewardModelConfig {
        /// Passes over the rankings.
        pub epochs: usize = 1 => at_least(1),
        /// Rankings in a minibatch.
        pub minibatch_size: usize = 32 => at_least(1),
        /// Loss of a ranking of more than two completions: pairs (mean over all pairs) or plackett-luce.
        pub ranked: Ranked = Ranked::Pairs,
        /// Coefficient c of the term that keeps scores around 0; 0: none.
        pub centring: f32 = 0.0 => from(0.0),
        /// Fraction of the earlier rankings that is replayed when the model is trained further.
        pub replay: f32 = 0.1 => from(0.0),
    }
}

impl RewardModelConfig {
    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        Ok(self.check_ranges("reward_model")?)
    }
}

/// The difference of two scores, and their sum.
#[derive(Clone, Copy)]
enum Difference {}
#[derive(Clone, Copy)]
enum Sum {}

/// Returns the term that keeps scores around 0, as a function of their sum s: c s^2.
fn centring_loss(sum: Of<Sum>, c: f32) -> Of<Sum> {
    c * sum * sum
}

/// Returns the Bradley-Terry loss of a pair of scores, -log sigmoid(chosen - rejected - margin), plus `centring` times the square of their
/// sum. Also returns the derivatives of this loss with respect to the two scores.
///
/// ```
/// use gradus_agents::reward_model::bradley_terry;
/// for (chosen, loss) in [(0.0, 0.693_147), (1.0, 0.313_262), (2.0, 0.126_928), (-1.0, 1.313_262)] {
///     assert!((bradley_terry(chosen, 0.0, 0.0, 0.0).0 - loss).abs() < 1e-6);
/// }
/// ```
pub fn bradley_terry(chosen: f32, rejected: f32, margin: f32, centring: f32) -> (f32, [f32; 2]) {
    let ranked = -(Of::<Difference>::variable(chosen - rejected) - margin).log_sigmoid();
    let centred = centring_loss(Of::variable(chosen + rejected), centring);
    (ranked.value() + centred.value(), [centred.slope() + ranked.slope(), centred.slope() - ranked.slope()])
}

/// Returns the Plackett-Luce loss of a ranking, given the scores from best to worst, and its derivatives.
///
/// > L = - sum_i log(e^{r_i} / sum_{j >= i} e^{r_j})
///
/// For two scores it equals the Bradley-Terry loss with margin 0 and no centring.
///
/// ```
/// let (loss, derivatives) = gradus_agents::reward_model::plackett_luce(&[0.0, 0.0, 0.0]);
/// assert!((loss - 6.0_f32.ln()).abs() < 1e-6); // probability 1/3!: all 3! orders are equally likely
/// assert!((derivatives[0] + 2.0 / 3.0).abs() < 1e-6);
/// ```
pub fn plackett_luce(scores: &[f32]) -> (f32, Vec<f32>) {
    let (mut loss, mut derivatives, mut direction) = (0.0, vec![0.0; scores.len()], vec![0.0; scores.len()]);
    for i in 0..scores.len().saturating_sub(1) {
        let of_rank = -QValues::new(&scores[i..], &mut direction[i..]).log_softmax(0);
        loss += of_rank.value();
        derivatives[i..].iter_mut().zip(&direction[i..]).for_each(|(sum, d)| *sum += of_rank.slope() * d);
    }
    (loss, derivatives)
}

/// A ranking of observations from best to worst; a ranking of two is a preference.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Rows of the store, from best to worst.
    pub rows: Vec<u32>,
    /// Margin between the two scores of each pair. The Plackett-Luce loss ignores it.
    pub margin: f32,
}

/// Ranked observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Preferences {
    /// The observations. The actions of the store are not used.
    pub store: Store,
    /// The rankings.
    pub rankings: Vec<Ranking>,
}

impl Preferences {
    /// Creates preferences from observations and their rankings.
    ///
    /// # Panics
    /// If a ranking refers to a row that does not exist.
    pub fn new(observations: Observations, rankings: Vec<Ranking>) -> Self {
        let n = observations.len();
        let is_there = rankings.iter().flat_map(|ranking| &ranking.rows).all(|row| (*row as usize) < n);
        assert!(is_there, "rankings: expected rows of {n} observations");
        Self { store: Store::of(observations, ActionRows::Discrete(vec![0; n])), rankings }
    }

    /// Creates preferences over whole texts of at most `context` tokens.
    pub fn of_texts<'a>(context: usize, texts: impl IntoIterator<Item = &'a [u32]>, rankings: Vec<Ranking>) -> Self {
        let mut all = Texts::new(context);
        for text in texts {
            all.push(text.iter().copied());
            all.end_text();
        }
        Self::new(Observations::Texts(all), rankings)
    }

    /// Returns these preferences followed by a random fraction `share` of the rankings of `old`. The replay keeps the model from forgetting
    /// earlier preferences. Shao et al. (arXiv 2402.03300, algorithm 1) replay 10 %.
    pub fn with_replay(&self, old: &Preferences, share: f32, stream: &mut Stream) -> Self {
        let wanted = (f64::from(share) * old.rankings.len() as f64).round() as usize;
        let mut order: Vec<u32> = (0..old.rankings.len() as u32).collect();
        stream.shuffle(&mut order);
        let (mut observations, mut rankings) = (self.store.observations().clone(), self.rankings.clone());
        for i in order.into_iter().take(wanted) {
            let Ranking { rows, margin } = &old.rankings[i as usize];
            let first = observations.len() as u32;
            rows.iter().for_each(|row| copy(old.store.observations(), *row as usize, &mut observations));
            rankings.push(Ranking { rows: (first..first + rows.len() as u32).collect(), margin: *margin });
        }
        Self::new(observations, rankings)
    }

    /// Appends all preferences of `more`.
    pub fn extend(&mut self, more: &Preferences) {
        let mut observations = self.store.observations().clone();
        let first = observations.len() as u32;
        observations.extend(more.store.observations());
        let moved = |ranking: &Ranking| Ranking { rows: ranking.rows.iter().map(|row| row + first).collect(), ..*ranking };
        let rankings = self.rankings.iter().cloned().chain(more.rankings.iter().map(moved)).collect();
        *self = Self::new(observations, rankings);
    }
}

/// Appends observation `row` of `from` to `to`.
fn copy(from: &Observations, row: usize, to: &mut Observations) {
    match (from, to) {
        (Observations::Rows { rows, width }, to) => to.push(&rows[row * width..(row + 1) * width]),
        (Observations::Texts(from), Observations::Texts(to)) => {
            to.end_text();
            to.push(from.prefix(row).iter().copied());
            to.end_text();
        }
        (Observations::Texts(_), _) => panic!("observations: expected texts, got rows of numbers"),
        _ => panic!("observations: expected texts or rows of numbers on the host, got observations on a device"),
    }
}

/// Returns one score for each row of the store: the score of the row if it is in `rows`, else 0.
fn scores(policy: &mut dyn Policy, store: &Store, rows: &[u32]) -> Vec<f32> {
    let outputs = policy.outputs(store, rows, UpdatedGroups::Critic);
    outputs.into_iter().map(|output| output.value).collect()
}

/// Returns the rows of all `rankings`, sorted and without duplicates.
fn rows_of<'a>(rankings: impl IntoIterator<Item = &'a Ranking>) -> Vec<u32> {
    let mut rows: Vec<u32> = rankings.into_iter().flat_map(|ranking| ranking.rows.iter().copied()).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Returns the loss of one ranking, and adds `weight` times its derivatives to `derivatives`.
fn ranking_loss(ranking: &Ranking, scores: &[f32], config: &RewardModelConfig, weight: f32, derivatives: &mut [f32]) -> f32 {
    let of = |row: u32| scores[row as usize];
    match config.ranked {
        Ranked::PlackettLuce if ranking.rows.len() > 2 => {
            let of_ranking: Vec<f32> = ranking.rows.iter().map(|row| of(*row)).collect();
            let (loss, slopes) = plackett_luce(&of_ranking);
            let centred = centring_loss(Of::variable(of_ranking.iter().sum()), config.centring);
            for (row, slope) in ranking.rows.iter().zip(slopes) {
                derivatives[*row as usize] += weight * (slope + centred.slope());
            }
            loss + centred.value()
        }
        _ => {
            let (mut loss, pairs) = (0.0, pairs(ranking));
            let weight_of_pair = weight / pairs.len().max(1) as f32;
            for (chosen, rejected) in &pairs {
                let (of_pair, slopes) = bradley_terry(of(*chosen), of(*rejected), ranking.margin, config.centring);
                loss += of_pair;
                derivatives[*chosen as usize] += weight_of_pair * slopes[0];
                derivatives[*rejected as usize] += weight_of_pair * slopes[1];
            }
            loss / pairs.len().max(1) as f32
        }
    }
}

/// Returns all pairs of a ranking. In each pair, the better observation is first.
fn pairs(ranking: &Ranking) -> Vec<(u32, u32)> {
    let rows = &ranking.rows;
    (0..rows.len()).flat_map(|i| (i + 1..rows.len()).map(move |j| (rows[i], rows[j]))).collect()
}

/// Trains the value head of `policy` and the layers below it on preferences, with one optimiser step per minibatch.
///
/// The report's metrics are measured before each step. The loss is averaged over rankings, the accuracy and the margin over pairs, and the
/// gradient norm over minibatches.
pub fn train(
    policy: &mut dyn Policy,
    preferences: &Preferences,
    config: &RewardModelConfig,
    optimiser: &OptimiserConfig,
    context: UpdateContext,
) -> Result<Report, AgentError> {
    config.check()?;
    optimiser.check()?;
    let Preferences { store, rankings } = preferences;
    let step = optimiser.step(context.progress);
    let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
    let mut order: Vec<u32> = (0..rankings.len() as u32).collect();
    let (mut loss, mut agreement, mut norms, mut minibatches) = (0.0, Agreement::default(), 0.0, 0.0_f64);
    for epoch in 0..config.epochs {
        stream.shuffle(&mut order);
        for part in order.chunks(config.minibatch_size) {
            let part: Vec<&Ranking> = part.iter().map(|i| &rankings[*i as usize]).collect();
            let rows = rows_of(part.iter().copied());
            let scores = scores(policy, store, &rows);
            let (mut derivatives, weight) = (vec![0.0; store.rows()], 1.0 / part.len() as f32);
            let of_part: f64 = part.iter().map(|ranking| f64::from(ranking_loss(ranking, &scores, config, weight, &mut derivatives))).sum();
            if !of_part.is_finite() {
                return Err(context.not_finite("loss", of_part, epoch));
            }
            loss += of_part;
            part.iter().for_each(|ranking| agreement.add(ranking, &scores));
            let weights = vec![1.0; rows.len()];
            let batch = (store, Batch::new(&rows, &weights));
            let (_, norm) = context.gradient(policy, batch, &Slopes::OfValues(&derivatives), epoch)?;
            policy.apply(&step);
            norms += norm;
            minibatches += 1.0;
        }
    }
    context.check_parameters(policy, config.epochs - 1)?;
    // NaN without rankings
    let count = (rankings.len() * config.epochs) as f64;
    Ok(vec![
        ("reward_model/loss", loss / count),
        ("reward_model/accuracy", agreement.accuracy()),
        ("reward_model/margin", agreement.margin()),
        ("reward_model/grad_norm", norms / minibatches.max(1.0)),
        ("reward_model/learning_rate", f64::from(step.learning_rate)),
    ])
}

/// Agreement of scores with preferences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    right: f64,
    margins: f64,
    pairs: f64,
}

impl Agreement {
    /// Adds all pairs of a ranking. A pair with equal scores counts as half right.
    fn add(&mut self, ranking: &Ranking, scores: &[f32]) {
        for (chosen, rejected) in pairs(ranking) {
            let margin = f64::from(scores[chosen as usize] - scores[rejected as usize]);
            self.right += if margin > 0.0 { 1.0 } else { 0.5 * f64::from(u8::from(margin == 0.0)) };
            self.margins += margin;
            self.pairs += 1.0;
        }
    }

    /// Returns the fraction of pairs in which the preferred observation has the higher score; a pair with equal scores counts
    /// half. NaN without pairs.
    pub fn accuracy(&self) -> f64 {
        self.right / self.pairs
    }

    /// Returns the mean score difference of the pairs; NaN without pairs.
    pub fn margin(&self) -> f64 {
        self.margins / self.pairs
    }
}

/// Measures how well the scores of `policy` agree with held-out preferences.
pub fn evaluate(policy: &mut dyn Policy, held_out: &Preferences) -> Agreement {
    let scores = scores(policy, &held_out.store, &rows_of(&held_out.rankings));
    let mut agreement = Agreement::default();
    held_out.rankings.iter().for_each(|ranking| agreement.add(ranking, &scores));
    agreement
}
