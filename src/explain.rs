//! Reads the metrics of a run and says what looks sick.
//!
//! Every symptom is a function of the columns of `metrics.csv`, of the returns in `episodes.csv` and of the settings. Bounds are wide: a symptom that a healthy run shows is
//! worse than one that is missed. `tests/looking/explain.rs` tries them on runs with a planted mistake and on healthy ones.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::effect::predicts;
use crate::envs::{Space, World};
use crate::files::read_to_string;
use crate::numbers::short;
use crate::statistics::{Scores, mann_whitney};
use crate::{Config, Error};

/// Something that looks sick.
pub(crate) struct Symptom {
    /// Short name, for programs.
    pub(crate) name: &'static str,
    /// What is seen, with its numbers.
    pub(crate) seen: String,
    /// What it may mean, and what to try.
    pub(crate) advice: &'static str,
    /// The page that explains it.
    pub(crate) page: &'static str,
}

/// What is known of a run.
pub(crate) struct Record {
    config: Config,
    /// The finite numbers of each column of `metrics.csv`, in order.
    columns: BTreeMap<String, Vec<f64>>,
    /// The return of each episode.
    returns: Vec<f64>,
    /// The number of steps of each episode.
    lengths: Vec<f64>,
    /// Whether each episode ended by a time limit.
    truncated: Vec<bool>,
    solved_at: Option<f64>,
    /// The number of discrete actions.
    actions: Option<f64>,
}

/// Reads a table as texts: the header, then the rows.
fn table(path: &Path) -> Result<Vec<Vec<String>>, Error> {
    let text = read_to_string(path)?;
    Ok(text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect())
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() { f64::NAN } else { sorted[sorted.len() / 2] }
}

/// Returns the sample standard deviation.
fn spread(numbers: &[f64]) -> f64 {
    let middle = mean(numbers);
    (numbers.iter().map(|x| (x - middle) * (x - middle)).sum::<f64>() / (numbers.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// Returns the first or last part of some numbers, at least one.
fn first(numbers: &[f64], part: usize) -> &[f64] {
    &numbers[..numbers.len().div_ceil(part)]
}

fn last(numbers: &[f64], part: usize) -> &[f64] {
    &numbers[numbers.len() - numbers.len().div_ceil(part)..]
}

/// Whether two samples differ by their ranks, with p below 0.001 (Mann and Whitney).
fn differ(x: &[f64], y: &[f64]) -> bool {
    let some = |numbers: &[f64]| Scores::new(vec![numbers.iter().step_by(numbers.len().div_ceil(300).max(1)).copied().collect()]);
    matches!((some(x), some(y)), (Ok(x), Ok(y)) if mann_whitney(&x, &y) < 1e-3)
}

impl Record {
    /// Reads the logs in a run folder.
    pub(crate) fn read(dir: &Path, config: Config, world: &World) -> Result<Self, Error> {
        let metrics = table(&dir.join("metrics.csv"))?;
        let header = metrics.first().cloned().unwrap_or_default();
        let column =
            |place: usize| metrics[1..].iter().filter_map(|row| row.get(place)?.parse().ok()).filter(|x: &f64| x.is_finite()).collect();
        let columns =
            if metrics.is_empty() { BTreeMap::new() } else { header.into_iter().enumerate().map(|(i, name)| (name, column(i))).collect() };
        let episodes = table(&dir.join("episodes.csv"))?;
        let place = |name: &str| episodes.first().and_then(|header| header.iter().position(|other| other == name));
        let (value, length, end) = (place("return"), place("length"), place("end"));
        let rows = || episodes.iter().skip(1);
        let returns = rows().filter_map(|row| row.get(value?)?.parse().ok()).collect();
        let lengths = rows().filter_map(|row| row.get(length?)?.parse().ok()).collect();
        let truncated = rows().filter_map(|row| Some(row.get(end?)?.contains("truncated"))).collect();
        let actions = match world.env().action_space() {
            Space::Discrete(n) if world.text.is_none() => Some(f64::from(n)),
            _ => None,
        };
        Ok(Self { config, columns, returns, lengths, truncated, solved_at: world.solved_at, actions })
    }

    /// Returns the numbers of the first of these columns that has any.
    fn any(&self, names: &[&str]) -> &[f64] {
        names.iter().filter_map(|name| self.columns.get(*name)).find(|numbers| !numbers.is_empty()).map_or(&[], Vec::as_slice)
    }

    fn setting(&self, key: &str) -> Option<f64> {
        self.config.settings().into_iter().find(|(own, _)| own == key).and_then(|(_, value)| value.parse().ok())
    }

    /// The mean return at the end, if there are enough episodes to say.
    fn at_end(&self) -> Option<f64> {
        (self.returns.len() >= 20).then(|| mean(last(&self.returns, 10)))
    }

    fn is_solved(&self) -> bool {
        self.solved_at.zip(self.at_end()).is_some_and(|(solved, end)| end >= solved)
    }

    /// Whether returns are higher at the end than at the beginning, by the means or by the ranks, or whether the values of a table have come closer to the exact ones.
    fn is_improved(&self) -> bool {
        let (begin, end) = (first(&self.returns, 10), last(&self.returns, 10));
        let error = (spread(begin).powi(2) / begin.len() as f64 + spread(end).powi(2) / end.len() as f64).sqrt();
        let errors = self.any(&["train/value_error"]);
        let is_closer = errors.last().is_some_and(|last| *last < 0.7 * errors[0] || *last < 0.01);
        mean(end) - mean(begin) > 3.0 * error || median(end) > median(begin) && differ(begin, end) || is_closer
    }

    /// Returns everything that looks sick, the clearest first.
    pub(crate) fn symptoms(&self) -> Vec<Symptom> {
        let checks = [
            Self::no_episode,
            Self::nothing_but_one_return,
            Self::kl_exploded,
            Self::clipped_too_often,
            Self::values_diverge,
            Self::value_loss_grows,
            Self::critic_is_no_use,
            Self::entropy_collapsed,
            Self::policy_stands_still,
            Self::still_random,
            Self::gradients_cut,
            Self::groups_are_equal,
            Self::completions_cut,
            Self::forgot,
            Self::does_not_learn,
            Self::at_ceiling,
        ];
        let found: Vec<Symptom> = checks.iter().filter_map(|check| check(self)).collect();
        // that it does not learn says little beside a cause
        let is_alone = found.len() == 1;
        found.into_iter().filter(|symptom| symptom.name != "does-not-learn" || is_alone).collect()
    }

    fn no_episode(&self) -> Option<Symptom> {
        (self.returns.is_empty() && !self.columns.is_empty()).then(|| Symptom {
            name: "no-episode",
            seen: "no episode has ended".into(),
            advice: "Train for more steps, or give the environment a time limit: returns are only known of whole episodes.",
            page: "docs/your-own-environment.md",
        })
    }

    fn nothing_but_one_return(&self) -> Option<Symptom> {
        let (low, high) = self.returns.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        // the same return may be the best one, unless it is nothing, or what the time limit leaves
        let is_low = low == 0.0 || self.truncated.iter().all(|is_truncated| *is_truncated);
        (self.returns.len() >= 20 && low == high && is_low && !self.is_solved()).then(|| Symptom {
            name: "one-return",
            seen: format!("all {} episodes have the return {}", self.returns.len(), short(low)),
            advice: "The agent has never met a reward that differs, so nothing tells good actions from bad ones. It needs more exploration (a higher entropy coefficient or epsilon, \
                     optimistic values), more steps, or a denser reward.",
            page: "docs/metrics.md#episodes-and-evaluation",
        })
    }

    fn kl_exploded(&self) -> Option<Symptom> {
        let kl = self.any(&["train/approx_kl", "kl/old"]);
        let (middle, most) = (median(last(kl, 2)), kl.iter().copied().fold(0.0, f64::max));
        (kl.len() >= 5 && (middle > 0.15 || most > 20.0)).then(|| Symptom {
            name: "kl-exploded",
            seen: format!("the policy moves far in one update: KL divergence {} in the second half, at most {}", short(middle), short(most)),
            advice: "Lower the learning rate, take fewer epochs, or stop an update early (ppo.target_kl): the data of a rollout are only valid near the policy that collected them.",
            page: "docs/metrics.md#the-step-divergence-from-the-old-policy",
        })
    }

    fn clipped_too_often(&self) -> Option<Symptom> {
        let clipped = mean(last(self.any(&["train/clip_fraction", "clip/fraction"]), 2));
        (clipped > 0.5).then(|| Symptom {
            name: "clipped",
            seen: format!("{:.0} % of the decisions are clipped in the second half", 100.0 * clipped),
            advice: "Most decisions have no gradient any more when an update ends. Lower the learning rate or the number of epochs.",
            page: "docs/metrics.md#the-step-divergence-from-the-old-policy",
        })
    }

    fn values_diverge(&self) -> Option<Symptom> {
        let values = self.any(&["train/q_value"]);
        let size = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).fold(0.0, f64::max);
        let (largest, returns) = (median(last(values, 10)).abs(), size(&self.returns));
        (values.len() >= 5 && !self.returns.is_empty() && largest > 5.0 * returns + 10.0).then(|| Symptom {
            name: "values-diverge",
            seen: format!("action values of {} at the end, while no episode has a return beyond {}", short(largest), short(returns)),
            advice: "Values feed on themselves. Lower the learning rate, update the target network less often (a smaller tau or a longer interval), or use double Q-learning.",
            page: "docs/metrics.md#value-function",
        })
    }

    fn value_loss_grows(&self) -> Option<Symptom> {
        let loss = self.any(&["train/value_loss", "train/critic_loss", "loss/value"]);
        let (begin, end) = (median(first(loss, 4)), median(last(loss, 4)));
        let size = |numbers: &[f64]| mean(&numbers.iter().map(|x| x * x).collect::<Vec<_>>());
        // returns that grow explain a loss that grows with their square
        let grown =
            if self.returns.len() >= 20 { size(last(&self.returns, 4)) / size(first(&self.returns, 4)).max(1e-9) } else { f64::INFINITY };
        (loss.len() >= 6 && end > 1e-3 && end > 30.0 * begin * grown.max(1.0)).then(|| Symptom {
            name: "value-loss-grows",
            seen: format!("the value loss grew from {} to {}, more than the returns explain", short(begin), short(end)),
            advice: "The critic diverges. Lower the learning rate or the value coefficient, clip gradients, or normalise rewards.",
            page: "docs/metrics.md#value-function",
        })
    }

    fn critic_is_no_use(&self) -> Option<Symptom> {
        // REINFORCE has a baseline, and no critic unless it is asked for
        let has_critic = !matches!(self.config.agent.as_str(), "reinforce" | "grpo");
        let explained = if has_critic { self.any(&["train/explained_variance", "value/explained_variance"]) } else { &[] };
        let late = median(last(explained, 4));
        let has_spread = self.returns.len() >= 20 && spread(last(&self.returns, 4)) > 1e-3 * mean(last(&self.returns, 4)).abs().max(1e-3);
        let most = explained.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_worse = late < -0.1 && !self.is_solved();
        // after a single step nothing remains to be predicted
        let has_time = self.lengths.is_empty() || mean(&self.lengths) > 1.5;
        (explained.len() >= 20 && has_time && has_spread && (is_worse || most < 0.05)).then(|| Symptom {
            name: "critic-no-use",
            seen: format!("explained variance {late:.2} in the last quarter, at most {most:.2}: the critic is hardly better than a constant"),
            advice: "Check that the value coefficient is not 0 and that the learning rate of the critic is not too small or too large; with returns of hundreds, normalise rewards.",
            page: "docs/metrics.md#value-function",
        })
    }

    fn entropy_collapsed(&self) -> Option<Symptom> {
        let entropy: Vec<f64> = match self.any(&["train/entropy_loss"]) {
            [] => self.any(&["entropy"]).to_vec(),
            losses => losses.iter().map(|loss| -loss).collect(),
        };
        let (begin, end) = (mean(first(&entropy, 20)), mean(last(&entropy, 10)));
        // an agent that has learned may be certain
        let has_learned = self.is_solved() || self.is_improved();
        // the entropy of continuous actions has no zero
        let is_discrete = self.actions.is_some() || self.columns.contains_key("entropy");
        let most = self.actions.map_or(begin, f64::ln);
        (entropy.len() >= 10 && is_discrete && most > 0.0 && end < 0.02 * most && !has_learned).then(|| Symptom {
            name: "entropy-collapsed",
            seen: format!("entropy {} at the end, {} at the beginning, without a better return", short(end), short(begin)),
            advice: "The policy stopped exploring before it had learned. Raise the entropy coefficient, lower the learning rate, or normalise advantages.",
            page: "docs/metrics.md#loss",
        })
    }

    fn policy_stands_still(&self) -> Option<Symptom> {
        let kl = self.any(&["train/approx_kl", "kl/old"]);
        let middle = median(kl);
        (kl.len() >= 10 && middle.abs() < 1e-6 && !self.is_solved() && !self.is_improved()).then(|| Symptom {
            name: "policy-stands-still",
            seen: format!("the policy hardly moves: KL divergence {middle:.1e} per update"),
            advice: "Raise the learning rate. Check that gradients are not clipped to almost nothing and that advantages are not all 0.",
            page: "docs/metrics.md#the-step-divergence-from-the-old-policy",
        })
    }

    fn still_random(&self) -> Option<Symptom> {
        let epsilon = self.any(&["rollout/exploration_rate"]);
        let end = epsilon.last().copied().unwrap_or(0.0);
        let predicts = predicts(&self.config.agent);
        (end > 0.5 && !predicts && !self.is_solved()).then(|| Symptom {
            name: "still-random",
            seen: format!("{:.0} % of the actions are random at the end", 100.0 * end),
            advice: "Returns of the training are those of random actions. Let epsilon fall sooner or further; an evaluation shows the greedy policy.",
            page: "docs/metrics.md#value-function",
        })
    }

    fn gradients_cut(&self) -> Option<Symptom> {
        let norms = self.any(&["train/grad_norm", "grad_norm"]);
        let most = self.setting("optimiser.max_grad_norm")?;
        let middle = median(last(norms, 2));
        (norms.len() >= 10 && most > 0.0 && middle > 200.0 * most && !self.is_improved()).then(|| Symptom {
            name: "gradients-cut",
            seen: format!("the gradient's norm is {}, and is cut to {}", short(middle), short(most)),
            advice: "Every gradient is cut to a small share, often because the value loss dominates. Normalise rewards, lower the value coefficient, or use separate networks.",
            page: "docs/metrics.md#gradient-and-optimiser",
        })
    }

    fn groups_are_equal(&self) -> Option<Symptom> {
        let equal = mean(last(self.any(&["reward/frac_zero_std"]), 2));
        let reward = mean(last(self.any(&["reward/mean"]), 4));
        (equal > 0.9 && reward < 0.9).then(|| Symptom {
            name: "groups-equal",
            seen: format!("in {:.0} % of the groups all completions have the same reward", 100.0 * equal),
            advice: "Such groups teach nothing. Use easier tasks, larger groups, a warm start, or a higher temperature.",
            page: "docs/metrics.md#texts-groups-and-sampling",
        })
    }

    fn completions_cut(&self) -> Option<Symptom> {
        let cut = mean(last(self.any(&["completions/clipped_ratio"]), 4));
        (cut > 0.5).then(|| Symptom {
            name: "completions-cut",
            seen: format!("{:.0} % of the completions reach the longest allowed length", 100.0 * cut),
            advice: "The policy does not end its texts. Raise text.max_new_tokens, or punish texts without an end (text.missing_eos_penalty).",
            page: "docs/metrics.md#texts-rewards-and-lengths",
        })
    }

    fn forgot(&self) -> Option<Symptom> {
        let n = self.returns.len();
        let window = n.div_ceil(10);
        if n < 100 {
            return None;
        }
        let means: Vec<f64> = self.returns.windows(window).step_by(window.div_ceil(4)).map(mean).collect();
        let best = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (begin, end) = (mean(first(&self.returns, 10)), mean(last(&self.returns, 10)));
        let noise = spread(last(&self.returns, 10)) / (window as f64).sqrt();
        let lost = best - end;
        (best > begin && lost > 0.6 * (best - begin) && lost > 6.0 * noise).then(|| Symptom {
            name: "forgot",
            seen: format!("the mean return was {} and is {} at the end", short(best), short(end)),
            advice: "The policy was better and has collapsed. Lower the learning rate or let it fall, and keep the best policy by evaluations (evaluate_every).",
            page: "docs/metrics.md#what-healthy-and-sick-curves-look-like",
        })
    }

    fn does_not_learn(&self) -> Option<Symptom> {
        let (begin, end) = (mean(first(&self.returns, 10)), mean(last(&self.returns, 10)));
        let predicts = predicts(&self.config.agent);
        (self.returns.len() >= 50 && !self.is_improved() && !self.is_solved() && !predicts).then(|| Symptom {
            name: "does-not-learn",
            seen: format!("the mean return of the first tenth of the episodes is {}, that of the last tenth {}", short(begin), short(end)),
            advice: "No other symptom says why. Try more steps, another learning rate, and the agent on an easier environment.",
            page: "docs/metrics.md#which-to-look-at-first",
        })
    }

    fn at_ceiling(&self) -> Option<Symptom> {
        let end = last(&self.returns, 5);
        let ends_by_limit =
            !self.truncated.is_empty() && self.truncated[self.truncated.len() - end.len().min(self.truncated.len())..].iter().all(|is| *is);
        (self.returns.len() >= 100 && spread(end) == 0.0 && ends_by_limit && self.is_solved()).then(|| Symptom {
            name: "at-ceiling",
            seen: format!("every episode of the last fifth has the largest return, {}", short(end[0])),
            advice: "Nothing is wrong, but this environment tells no more differences between agents: compare how fast they learn, or use a harder one.",
            page: "docs/metrics.md#episodes-and-evaluation",
        })
    }
}
