//! Direct preference optimisation (Rafailov et al., arXiv 2305.18290).
//!
//! A pair has a chosen and a rejected completion of one prompt. Of all policies, pi_ref e^{r/beta} / Z maximises the mean of the reward r
//! minus beta KL(pi || pi_ref). So a policy has the implicit reward beta log(pi / pi_ref), up to a term that depends on the prompt alone. If
//! preferences follow the model of Bradley and Terry, pi can be fitted to pairs without a reward model (equation 7):
//!
//! > L = - log sigmoid(beta D),   D = log(pi(y_c) / pi_ref(y_c)) - log(pi(y_r) / pi_ref(y_r))
//!
//! Each logarithm of a completion y is the sum over its decisions, EOS included. beta has the meaning of `reference.coefficient` in the other
//! agents: it is the price of the divergence from the [`reference`](crate::parts::reference) policy.
//!
//! ```text
//! for every update:
//!     collect groups of G completions
//!     pairs = the completions with the highest and the lowest reward of each group, or the next pairs of a file
//!     for each epoch:
//!         for each minibatch of pairs:
//!             descend the gradient of the mean of L by one step
//!     every `refresh_every` updates: pi_ref = pi
//! ```
//!
//! With pairs from completions of the current policy this is online DPO (Guo et al., arXiv 2402.04792). With pairs from a file it is the DPO
//! of the paper: the completions of the current policy are only measured.
//!
//! The loss of a pair depends on two whole completions. A first pass therefore computes log pi of all decisions of a minibatch. A second pass
//! hands the derivatives to the engine.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, at_least, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_base::{Settings, settings};
use gradus_nets::{ActionRows, Batch, Observations, Of, Policy, Store, Texts, UpdatedGroups};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{Advantages, AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::groups::{by_id, has_spread};
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::{Estimator, KlPlace, Reference, ReferenceConfig};
use crate::preferences::slopes::Slopes;
use crate::rollout::{End, GroupId, Rollout, Segment};

/// The loss of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairLoss {
    /// - log sigmoid(beta D), as in DPO.
    Sigmoid,
    /// (D - 1 / (2 beta))^2, as in IPO (Azar et al., arXiv 2310.12036, equation 17). D stays finite even if every preference is certain.
    Ipo,
}

settings! {
    /// The settings of DPO.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DpoConfig {
        /// File of pairs in JSON Lines, or folder of `gradus reward-model`; empty: the best and the worst completion of each group.
        pub pairs: String = String::new(),
        /// Coefficient beta of the divergence from the reference policy; `reference.coefficient` is not used.
        pub beta: f32 = 0.1 => above(0.0),
        /// Completions per prompt; at least 2, and a divisor of the number of environments. A file gives as many pairs per update as there
        /// are groups.
        pub group_size: usize = 8,
        /// Completions of each environment per update.
        pub episodes_per_env: usize = 1,
        /// Passes over the pairs of an update.
        pub epochs: usize = 1 => at_least(1),
        /// Minibatches in each pass; fewer if there are fewer pairs.
        pub minibatches: usize = 1 => at_least(1),
        /// Loss of a pair: sigmoid (DPO) or ipo (a squared distance, which is not minimised by ever larger differences).
        pub loss: PairLoss = PairLoss::Sigmoid,
        /// Probability that a label is wrong, below 0.5, for the loss sigmoid.
        pub label_smoothing: f32 = 0.0 => from(0.0).below(0.5),
    }
}

impl DpoConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        let size = self.group_size;
        ConfigError::unless(size >= 2, "dpo.group_size", "at least 2 (a pair has two completions)", size)?;
        let expected = format!("a divisor of {envs}, the number of environments");
        ConfigError::unless(envs.is_multiple_of(size), "dpo.group_size", &expected, size)?;
        ConfigError::unless_rollout("dpo.episodes_per_env", self.episodes_per_env, envs)?;
        let fits = self.loss == PairLoss::Sigmoid || self.label_smoothing == 0.0;
        ConfigError::unless(fits, "dpo.label_smoothing", "0 with loss = \"ipo\"", self.label_smoothing)
    }
}

impl AgentConfig for DpoConfig {
    const NAME: &'static str = "dpo";
    const ABOUT: &'static str =
        "direct preference optimisation: pairs of completions and a reference policy, no reward model and no critic";
    const PRESETS: &'static [Preset] = preset_files!["dpo": "text" "default"; "chat" "default"];
    const FILES: &'static [&'static str] = &["pairs"];
    const PAIRS: Option<&'static str> = Some("pairs");

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let expected = "a text task, because it compares completions";
        ConfigError::unless(setup.world.text.is_some(), Self::NAME, expected, &setup.world.name)?;
        Ok(Dpo::new(self.clone(), setup.pairs.to_vec(), setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    /// DPO has no critic; it compares completions by their rewards.
    fn advantages(&self) -> Advantages {
        Advantages::AgainstOthers { gamma: 1.0 }
    }
}

pub use crate::config::Pair;

/// Returns the loss of a pair as a function of the difference D. With the label smoothing e (Mitchell, 2023, "cDPO") the loss is (1 - e)
/// L(beta D) + e L(-beta D), which is smallest where sigmoid(beta D) = 1 - e.
///
/// ```
/// use gradus_agents::dpo::{Difference, PairLoss, pair_loss};
/// use gradus_nets::Of;
///
/// let loss = |kind| pair_loss(Of::variable(3.0), 0.5, kind, 0.0);
/// let sigmoid = loss(PairLoss::Sigmoid); // - log sigmoid(1.5), and - 0.5 sigmoid(-1.5)
/// assert!((sigmoid.value() - 0.201_413).abs() < 1e-6 && (sigmoid.slope() + 0.5 * 0.182_426).abs() < 1e-6);
/// assert_eq!(loss(PairLoss::Ipo).value(), 4.0); // (3 - 1)^2
/// ```
pub fn pair_loss(d: Of<Difference>, beta: f32, loss: PairLoss, label_smoothing: f32) -> Of<Difference> {
    match loss {
        PairLoss::Sigmoid => {
            let (right, wrong) = ((beta * d).log_sigmoid(), (-beta * d).log_sigmoid());
            -(1.0 - label_smoothing) * right - label_smoothing * wrong
        }
        PairLoss::Ipo => (d - 0.5 / beta).squared(),
    }
}

/// The difference D of a pair, of which its loss is a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {}

/// Returns the segments with the highest and the lowest return of each group, in the order of the groups. A group whose returns differ by
/// no more than rounding errors has no pair. Episodes that could not be scored are left out; of several equal returns the first counts.
pub fn best_and_worst(rollout: &Rollout) -> Vec<[usize; 2]> {
    let value = |i: &usize| -> f64 { rollout.rewards[rollout.segments[*i].range.clone()].iter().map(|r| f64::from(*r)).sum() };
    let pair = |group: Vec<usize>| {
        let scored: Vec<(usize, f64)> = group.iter().map(|i| (*i, value(i))).filter(|(_, value)| !value.is_nan()).collect();
        let better = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let worse = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        let (best, worst) = (scored.iter().min_by(|a, b| better(a, b))?, scored.iter().min_by(|a, b| worse(a, b))?);
        has_spread(&[best.1, worst.1]).then_some([best.0, worst.0])
    };
    by_id(&rollout.segments).into_iter().filter_map(pair).collect()
}

/// Returns pairs as a rollout: two episodes per pair, first the chosen one, whose last reward is 1, then the rejected one, whose rewards are
/// all 0. The log-probabilities are 0, because the policy may not have sampled the completions.
pub fn rollout_of<'a>(pairs: impl IntoIterator<Item = &'a Pair>, context: usize) -> Rollout {
    let (mut texts, mut actions, mut rewards, mut segments) = (Texts::new(context), Vec::new(), Vec::new(), Vec::new());
    for (group, pair) in pairs.into_iter().enumerate() {
        for (completion, reward) in [(&pair.chosen, 1.0), (&pair.rejected, 0.0)] {
            let begin = actions.len();
            for t in 0..completion.len() {
                texts.push([&pair.prompt, &completion[..t]].concat().into_iter());
            }
            texts.end_text();
            actions.extend_from_slice(completion);
            rewards.resize(actions.len(), 0.0);
            rewards.last_mut().into_iter().for_each(|last| *last = reward);
            segments.push(Segment { range: begin..actions.len(), end: End::Terminated, group: GroupId(group as u32) });
        }
    }
    let n = actions.len();
    Rollout::new(Store::of(Observations::Texts(texts), ActionRows::Discrete(actions)), rewards, vec![0.0; n], segments)
}

/// Direct preference optimisation.
pub struct Dpo {
    config: DpoConfig,
    /// The pairs of the file; empty: pairs come from the completions of the policy.
    pairs: Vec<Pair>,
    /// Length of the longest text of the pairs.
    context: usize,
    optimiser: OptimiserConfig,
    reference: Reference,
    envs: usize,
}

impl Dpo {
    /// Creates DPO with these settings, for `envs` environments. With `pairs` it learns from them instead of the rollouts.
    pub fn new(
        config: DpoConfig,
        pairs: Vec<Pair>,
        optimiser: OptimiserConfig,
        reference: ReferenceConfig,
        envs: usize,
    ) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        ConfigError::unless(reference.coefficient == 0.0, "reference.coefficient", "0, because DPO has dpo.beta", reference.coefficient)?;
        let is_in_loss = reference.place == KlPlace::Loss;
        ConfigError::unless(is_in_loss, "reference.place", "loss, because DPO's loss has the penalty already", "reward")?;
        let target = reference.adaptive_target;
        ConfigError::unless(
            target == f32::INFINITY,
            "reference.adaptive_target",
            "inf, because DPO's beta is a constant of its loss",
            target,
        )?;
        let is_off = reference.stop_kl == f32::INFINITY;
        ConfigError::unless(is_off, "reference.stop_kl", "inf, because DPO's update takes all its steps", reference.stop_kl)?;
        let reference = ReferenceConfig { coefficient: config.beta, estimator: Estimator::K1, ..reference };
        let length = |pair: &Pair| pair.prompt.len() + pair.chosen.len().max(pair.rejected.len());
        let context = pairs.iter().map(length).max().unwrap_or_default();
        Ok(Self { config, pairs, context, optimiser, reference: Reference::new(reference)?, envs })
    }

    /// Returns the number of the file's pairs and a hash of them (FNV-1a, 64 bits), so that a training is not continued with others.
    fn identity(&self) -> Vec<u64> {
        let parts = self.pairs.iter().flat_map(|pair| [&pair.prompt, &pair.chosen, &pair.rejected]);
        let words = parts.flat_map(|part| std::iter::once(part.len() as u64).chain(part.iter().map(|token| u64::from(*token))));
        let hash = words.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3));
        vec![self.pairs.len() as u64, hash]
    }

    /// Number of pairs per update.
    fn pairs_per_update(&self) -> usize {
        self.envs * self.config.episodes_per_env / self.config.group_size
    }

    /// Returns the pairs of the file for update number `iteration`. All pairs are used once, in random order, before one is used again.
    fn of_file(&self, context: UpdateContext) -> impl Iterator<Item = &Pair> {
        let (n, first) = (self.pairs.len(), context.iteration as usize * self.pairs_per_update());
        let (mut epoch, mut order) = (usize::MAX, Vec::new());
        (first..first + self.pairs_per_update()).map(move |i| {
            if epoch != i / n {
                epoch = i / n;
                order = (0..n).collect();
                Stream::new(context.seed, Purpose::Shuffle, OF_FILE + epoch as u64).shuffle(&mut order);
            }
            &self.pairs[order[i % n]]
        })
    }
}

/// Number of the first stream that shuffles the pairs of a file, above the numbers of updates. Streams have numbers of 56 bits.
const OF_FILE: u64 = 1 << 55;

impl Agent for Dpo {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes_per_env, group: self.config.group_size, greedy: false }
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions / self.config.minibatches
    }

    fn kept_policies(&self) -> usize {
        self.reference.kept_policies()
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let beta = self.reference.coefficient();
        let kl_penalty = self.reference.penalty(rollout);
        let own = best_and_worst(rollout);
        let groups = by_id(&rollout.segments).len();
        let of_file;
        let (rollout_of_pairs, reference, pairs) = if self.pairs.is_empty() {
            (rollout, kl_penalty.log_probs.clone(), own.clone())
        } else {
            of_file = rollout_of(self.of_file(context), self.context);
            let reference = self.reference.log_probs(&of_file);
            (&of_file, reference, (0..self.pairs_per_update()).map(|i| [2 * i, 2 * i + 1]).collect())
        };
        let mut learner = PairLearner { policy, rollout: rollout_of_pairs, reference: &reference, beta, config: &self.config, context };
        let mut totals = Totals::default();
        let step = self.optimiser.step(context.progress);
        let mut order = pairs;
        let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        for epoch in 0..self.config.epochs {
            stream.shuffle(&mut order);
            let (n, parts) = (order.len(), self.config.minibatches.min(order.len()));
            let minibatches = (0..parts).map(|i| &order[i * n / parts..(i + 1) * n / parts]);
            for minibatch in minibatches.filter(|minibatch| !minibatch.is_empty()) {
                let norm = learner.gradient(minibatch, epoch, &mut totals)?;
                learner.policy.apply(&step);
                totals.norms += norm;
                totals.steps += 1.0;
            }
        }
        context.check_parameters(policy, self.config.epochs - 1)?;
        self.reference.finish(policy, rollout, &kl_penalty);
        let (by_decision, _) = kl_penalty.measured(rollout);
        let mut report = totals.report();
        report.push(("train/frac_zero_std", 1.0 - own.len() as f64 / groups.max(1) as f64));
        report.push(("train/frac_unscored", rollout.frac_unscored()));
        report.push(("train/learning_rate", f64::from(step.learning_rate)));
        report.extend(kl_penalty.report(rollout, by_decision));
        Ok(report)
    }

    fn save(&self) -> Tensors {
        let mut tensors = self.reference.save();
        tensors.insert(PAIRS.into(), Tensor::u64(self.identity()));
        tensors
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        if get_u64(state, PAIRS)? != self.identity() {
            let problem = "dpo.pairs: expected the pairs with which the training began, got others";
            return Err(TensorsError::State(problem.into()));
        }
        self.reference.load(policy, state)
    }
}

/// Name of the tensor that identifies the pairs of the file.
const PAIRS: &str = "pairs";

/// The gradient of pairs of segments.
struct PairLearner<'a> {
    policy: &'a mut dyn Policy,
    rollout: &'a Rollout,
    /// log pi_ref of every decision.
    reference: &'a [f32],
    beta: f32,
    config: &'a DpoConfig,
    context: UpdateContext,
}

impl PairLearner<'_> {
    /// Computes the gradient of the mean loss of `pairs`, each a chosen and a rejected segment, and returns its norm. Adds to `totals`.
    fn gradient(&mut self, pairs: &[[usize; 2]], epoch: usize, totals: &mut Totals) -> Result<f64, AgentError> {
        let range = |segment: usize| self.rollout.segments[segment].range.clone();
        let mut rows: Vec<u32> = pairs.iter().flatten().flat_map(|segment| range(*segment)).map(|row| row as u32).collect();
        rows.sort_unstable();
        rows.dedup(); // a segment may be in several pairs
        let weights = vec![1.0; rows.len()];
        let outputs = self.policy.outputs(&self.rollout.store, &rows, UpdatedGroups::Actor);

        let mut slopes = vec![0.0; self.rollout.len()];
        for [chosen, rejected] in pairs {
            // log(pi / pi_ref) of a whole completion
            let log_ratio = |segment: usize| range(segment).map(|t| outputs[t].log_prob - self.reference[t]).sum::<f32>();
            let ratios = [*chosen, *rejected].map(log_ratio);
            let difference = ratios[0] - ratios[1];
            let loss = pair_loss(Of::variable(difference), self.beta, self.config.loss, self.config.label_smoothing);
            let slope = loss.slope() / pairs.len() as f32;
            slopes[range(*chosen)].iter_mut().for_each(|d| *d += slope);
            slopes[range(*rejected)].iter_mut().for_each(|d| *d -= slope);
            totals.add(loss.value(), ratios.map(|ratio| self.beta * ratio));
        }
        if !totals.loss.is_finite() {
            return Err(self.context.not_finite("loss", totals.loss, epoch));
        }
        let batch = (&self.rollout.store, Batch::new(&rows, &weights));
        let (_, norm) = self.context.gradient(self.policy, batch, &Slopes::OfLogProbs(&slopes), epoch)?;
        Ok(norm)
    }
}

/// Sums over the pairs of an update.
#[derive(Default)]
struct Totals {
    loss: f64,
    chosen: f64,
    rejected: f64,
    right: f64,
    pairs: f64,
    norms: f64,
    steps: f64,
}

impl Totals {
    fn add(&mut self, loss: f32, [chosen, rejected]: [f32; 2]) {
        self.loss += f64::from(loss);
        self.chosen += f64::from(chosen);
        self.rejected += f64::from(rejected);
        self.right += if chosen > rejected { 1.0 } else { 0.5 * f64::from(u8::from(chosen == rejected)) };
        self.pairs += 1.0;
    }

    /// The loss, the implicit rewards beta log(pi / pi_ref) with TRL's names, and the gradient norm, each before the step; NaN without pairs.
    fn report(&self) -> Report {
        let mean = |sum: f64| sum / self.pairs;
        vec![
            ("train/loss", mean(self.loss)),
            ("rewards/chosen", mean(self.chosen)),
            ("rewards/rejected", mean(self.rejected)),
            ("rewards/margins", mean(self.chosen - self.rejected)),
            ("rewards/accuracies", mean(self.right)),
            ("train/grad_norm", self.norms / self.steps),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preferences::process_reward::sigmoid;

    /// The probability that the chosen completion wins is at the minimum of the smoothed loss.
    #[test]
    fn the_smoothed_loss_is_smallest_at_the_labels_probability() {
        let (beta, smoothing) = (0.3, 0.2);
        let at_the_minimum = (0.8_f32 / 0.2).ln() / beta;
        assert!(pair_loss(Of::variable(at_the_minimum), beta, PairLoss::Sigmoid, smoothing).slope().abs() < 1e-6);
        assert!((sigmoid(beta * at_the_minimum) - 0.8).abs() < 1e-6);
        for loss in [PairLoss::Sigmoid, PairLoss::Ipo] {
            for difference in [-40.0_f32, -1.0, 0.0, 0.7, 3.0, 40.0] {
                let smoothing = if loss == PairLoss::Ipo { 0.0 } else { smoothing };
                let of = |d: f32| f64::from(pair_loss(Of::variable(d), beta, loss, smoothing).value());
                let (slope, step) = (pair_loss(Of::variable(difference), beta, loss, smoothing).slope(), 0.0625);
                let by_hand = (of(difference + step) - of(difference - step)) / (2.0 * f64::from(step));
                assert!((f64::from(slope) - by_hand).abs() < 2e-3 * by_hand.abs().max(0.1), "{loss:?} at {difference}: {by_hand}, {slope}");
            }
        }
    }

    /// Every pair of the file is used once per pass, in an order that depends on the seed and the pass.
    #[test]
    fn the_pairs_of_a_file_are_used_in_turn() {
        let pair = |i| Pair { prompt: vec![i], chosen: vec![0], rejected: vec![1] };
        let config = DpoConfig { group_size: 2, ..DpoConfig::default() };
        let dpo = Dpo::new(config, (0..10).map(pair).collect(), OptimiserConfig::default(), ReferenceConfig::default(), 8).unwrap();
        let of = |seed, iteration| dpo.of_file(UpdateContext { seed, iteration, progress: 0.0 }).map(|pair| pair.prompt[0]);
        let pass = |seed, passes: std::ops::Range<u64>| passes.flat_map(|iteration| of(seed, iteration)).collect::<Vec<_>>();
        let all = pass(3, 0..5); // four pairs per update
        for pass in [&all[..10], &all[10..]] {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert!(all[..10] != all[10..] && all != pass(4, 0..5) && all == pass(3, 0..5));
        // the order of the file is not the order of the minibatches
        let mut order: Vec<usize> = (0..10).collect();
        Stream::new(3, Purpose::Shuffle, 0).shuffle(&mut order);
        assert!(order.iter().zip(&all).any(|(a, b)| *a as u32 != *b));
    }
}
