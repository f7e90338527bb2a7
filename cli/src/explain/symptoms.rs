//! What looks sick in a run.
//!
//! Every symptom is a function of the columns of `metrics.csv`, of the returns in `episodes.csv`, of the settings, and of an evaluation beside the levels of the environment:
//! the return of random actions, and the one that counts as solved. Bounds are wide: a symptom that a healthy run shows is worse than one that is missed. A policy that is
//! good has no symptom. `cli/tests/commands/explain.rs` tries the symptoms on runs with a planted mistake and on healthy ones.

use gradus::config::effect::predicts;
use gradus::evaluate::levels::Levels;
use gradus::numbers::short;

use crate::end::baseline;

use super::record::{Record, first, last, mean, median, spread};

/// Something that looks sick.
pub(super) struct Symptom {
    /// Short name, for programs.
    pub(super) name: &'static str,
    /// What is seen, with its numbers.
    pub(super) seen: String,
    /// What it may mean, and what to try.
    pub(super) advice: String,
    /// The page that explains it, as `gradus guide` calls it.
    pub(super) page: &'static str,
}

impl Record {
    /// Returns everything that looks sick, the clearest first. Of a run that stopped early, this comes first.
    pub(super) fn symptoms(&self) -> Vec<Symptom> {
        let Some(done) = self.stopped_at else { return self.sickness() };
        let unfinished = Symptom {
            name: "unfinished",
            seen: format!("the run has {done} of its {} steps", self.config.steps),
            advice: format!(
                "What follows is about the policy so far. If the run does not go on just now, `{} train --resume DIR` continues it, or says again what ended it.",
                gradus::program_name()
            ),
            page: "reliability",
        };
        // what more steps may change is no symptom yet
        const EARLY: [&str; 6] = ["no-update", "few-updates", "no-episode", "still-random", "not-learned", "worse-than-random"];
        let others = if done == 0 { Vec::new() } else { self.sickness() };
        [unfinished].into_iter().chain(others.into_iter().filter(|other| !EARLY.contains(&other.name))).collect()
    }

    fn sickness(&self) -> Vec<Symptom> {
        // each of these explains everything else
        let alone: [fn(&Self) -> Option<Symptom>; 7] = [
            Self::no_update,
            Self::not_finite,
            Self::nothing_to_learn,
            Self::few_updates,
            Self::no_episode,
            Self::gamma_is_zero,
            Self::wrong_values,
        ];
        if let Some(symptom) = alone.iter().find_map(|check| check(self)) {
            return vec![symptom];
        }
        if self.is_good() {
            return Vec::new();
        }
        let checks = [
            Self::nothing_but_one_return,
            Self::kl_exploded,
            Self::clipped_too_often,
            Self::values_diverge,
            Self::value_loss_grows,
            Self::entropy_collapsed,
            Self::entropy_stays,
            Self::gradients_cut,
            Self::policy_stands_still,
            Self::critic_is_no_use,
            Self::still_random,
            Self::groups_are_equal,
            Self::completions_cut,
            Self::memory_is_no_use,
            Self::forgot,
            Self::greedy_policy_fails,
        ];
        let unusual = self.unusual();
        let found = checks.iter().filter_map(|check| check(self));
        // where a setting explains a bad end, how the end came about is no news
        let found: Vec<Symptom> = found.filter(|found| unusual.is_empty() || !["forgot", "greedy-fails"].contains(&found.name)).collect();
        let all: Vec<Symptom> = unusual.into_iter().chain(found).collect();
        if all.is_empty() { self.not_learned().into_iter().collect() } else { all }
    }

    /// Returns what is worth knowing of a healthy run.
    pub(super) fn remark(&self) -> Option<String> {
        let end = last(&self.returns, 5);
        let ends_by_limit =
            !self.truncated.is_empty() && self.truncated[self.truncated.len() - end.len().min(self.truncated.len())..].iter().all(|is| *is);
        (self.returns.len() >= 100 && spread(end) == 0.0 && ends_by_limit && self.is_good()).then(|| {
            let most = short(end[0]);
            format!("every episode of the last fifth has the largest return, {most}: returns at the end tell no difference between agents any more, how fast they learn does")
        })
    }

    fn no_update(&self) -> Option<Symptom> {
        let done = self.any(&["time/total_timesteps"]).last().copied().unwrap_or(0.0);
        let starts = self.setting(&format!("{}.learning_starts", self.config.agent)).filter(|starts| done <= *starts && done > 0.0)?;
        Some(Symptom {
            name: "no-update",
            seen: format!("no update was made: updates begin after step {starts}, and the run has {done} steps"),
            advice: format!("Train for more steps, or lower {}.learning_starts.", self.config.agent),
            page: "dqn",
        })
    }

    fn not_finite(&self) -> Option<Symptom> {
        let (column, row) = self.infinite.as_ref()?;
        Some(Symptom {
            name: "not-finite",
            seen: format!("{column} is infinite in iteration {}", row + 1),
            advice: format!(
                "Numbers are too large for 32 bits: {}lower the learning rate (optimiser.learning_rate is {}), or clip gradients (optimiser.max_grad_norm).",
                "normalise or scale rewards (wrappers.normalise_rewards, wrappers.reward_scale), ", self.config.optimiser.learning_rate
            ),
            page: "metrics#loss",
        })
    }

    fn gamma_is_zero(&self) -> Option<Symptom> {
        let gamma = self.setting(&format!("{}.gamma", self.config.agent)).filter(|gamma| self.is_short_sighted(*gamma))?;
        (!self.lengths.is_empty() && (predicts(&self.config.agent) || !self.is_good())).then(|| Symptom {
            name: "gamma-too-small",
            seen: format!("gamma is {gamma}, and an episode has {} steps on average", short(mean(&self.lengths))),
            advice: format!(
                "With it a reward counts for {} steps. Use 0.9 to 0.999 where actions matter for longer.",
                short(1.0 / (1.0 - gamma))
            ),
            page: "metrics#value-function",
        })
    }

    fn no_episode(&self) -> Option<Symptom> {
        (self.returns.is_empty() && !self.columns.is_empty()).then(|| Symptom {
            name: "no-episode",
            seen: "no episode has ended".into(),
            advice: "Train for more steps, or give the environment a time limit: returns are only known of whole episodes.".into(),
            page: "your-own-environment",
        })
    }

    fn nothing_but_one_return(&self) -> Option<Symptom> {
        let (low, high) = self.returns.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
        // the same return may be the best one, unless it is nothing, or what the time limit leaves
        let is_low = low == 0.0 || self.truncated.iter().all(|is_truncated| *is_truncated);
        (self.returns.len() >= 20 && low == high && is_low).then(|| Symptom {
            name: "one-return",
            seen: format!("all {} episodes have the return {}", self.returns.len(), short(low)),
            advice: "The agent has never met a reward that differs, so nothing tells good actions from bad ones. It needs more exploration (a higher entropy coefficient or epsilon, \
                     optimistic values), more steps, or a denser reward."
                .into(),
            page: "metrics#episodes-and-evaluation",
        })
    }

    fn memory_is_no_use(&self) -> Option<Symptom> {
        let used = self.remembered.filter(|used| *used < 0.01)?;
        Some(Symptom {
            name: "memory-unused",
            seen: format!("in an episode the policy decides as if it remembered nothing: with and without its memory its answers differ by {}", short(used)),
            advice: "If the observations say all that matters, a network without a cell is several times faster (network.cell=none). Otherwise what matters is forgotten \
                     before it is of use, or no gradient reaches it: raise network.cell_bias (3 or 5), ppo.rollout_steps or the like, and a network.sequence_length that \
                     is shorter than the time to remember; with one reward at the end, gamma and gae_lambda near 1."
                .into(),
            page: "memory",
        })
    }

    fn kl_exploded(&self) -> Option<Symptom> {
        let kl = self.any(&["train/approx_kl", "kl/old"]);
        let (middle, most) = (median(last(kl, 2)), kl.iter().copied().fold(0.0, f64::max));
        (kl.len() >= 5 && (middle > 0.15 || most > 20.0)).then(|| Symptom {
            name: "kl-exploded",
            seen: format!(
                "the policy moves far in one update: KL divergence {} in the second half, at most {}",
                short(middle),
                short(most)
            ),
            advice: format!(
                "Lower the learning rate ({}){}: the data of a rollout are only valid near the policy that collected them.",
                self.config.optimiser.learning_rate,
                if self.has("target_kl") { ", take fewer epochs, or stop an update early (target_kl)" } else { ", or take fewer epochs" }
            ),
            page: "metrics#the-step-divergence-from-the-old-policy",
        })
    }

    fn clipped_too_often(&self) -> Option<Symptom> {
        let share = |names: &[&str]| mean(last(self.any(names), 2));
        // only these decisions have lost their gradient; a clip fraction also counts those that are pulled back
        let clipped = share(&["train/clip_low", "clip/low"]) + share(&["train/clip_high", "clip/high"]);
        (clipped > 0.5).then(|| Symptom {
            name: "clipped",
            seen: format!("{:.0} % of the decisions have no gradient in the second half, because they are clipped", 100.0 * clipped),
            advice: "Lower the learning rate or the number of epochs, or widen the clip range.".into(),
            page: "metrics#the-step-divergence-from-the-old-policy",
        })
    }

    fn values_diverge(&self) -> Option<Symptom> {
        let values = self.any(&["train/q_value"]);
        let size = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).fold(0.0, f64::max);
        // values are those of scaled rewards
        let scale = self.setting("wrappers.reward_scale").unwrap_or(1.0);
        let (largest, returns) = (median(last(values, 10)).abs(), scale * size(&self.returns));
        (values.len() >= 5 && !self.returns.is_empty() && largest > 5.0 * returns + 10.0).then(|| Symptom {
            name: "values-diverge",
            seen: format!("action values of {} at the end, while no episode has a return beyond {}", short(largest), short(returns)),
            advice: match self.config.agent.as_str() {
                "munchausen-dqn" => "Values contain the entropy, times the temperature: lower munchausen-dqn.temperature first. Else values feed on themselves: lower the learning rate, or copy the target network less often (target_update_interval).",
                "sac" => "Values contain the entropy, times sac.ent_coef: lower it, or let it be learned, first. Else values feed on themselves: lower the learning rate or sac.tau.",
                "ddpg" | "td3" => "Values feed on themselves. Lower the learning rate, or tau, so that the target networks follow more slowly.",
                "pqn" => "Values feed on themselves. Lower the learning rate, or use network.layer_norm = true.",
                _ => "Values feed on themselves. Lower the learning rate, update the target network less often (a smaller tau or a longer interval), or use double Q-learning.",
            }
            .into(),
            page: "metrics#loss",
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
            advice: format!(
                "The critic diverges. Lower the learning rate ({}) or the value coefficient, clip gradients, or normalise rewards.",
                self.config.optimiser.learning_rate
            ),
            page: "metrics#value-function",
        })
    }

    fn critic_is_no_use(&self) -> Option<Symptom> {
        // REINFORCE has a baseline, and no critic unless it is asked for
        let has_critic = !matches!(self.config.agent.as_str(), "reinforce" | "grpo");
        let explained = if has_critic { self.any(&["train/explained_variance", "value/explained_variance"]) } else { &[] };
        let late = median(last(explained, 4));
        let has_spread = self.returns.len() >= 20 && spread(last(&self.returns, 4)) > 1e-3 * mean(last(&self.returns, 4)).abs().max(1e-3);
        let most = explained.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // after a single step nothing remains to be predicted
        let has_time = self.lengths.is_empty() || mean(&self.lengths) > 1.5;
        (explained.len() >= 20 && has_time && self.sees_states && has_spread && !self.is_learning() && (late < -0.1 || most < 0.05)).then(|| Symptom {
            name: "critic-no-use",
            seen: format!("explained variance {late:.2} in the last quarter, at most {most:.2}: the critic is hardly better than a constant"),
            advice: format!(
                "Check that the value coefficient is not 0, and that the learning rate ({}) is not too small or too large; with returns of hundreds, normalise rewards. \
                 `gradus probe {}` tries the critic where its values are known.",
                self.config.optimiser.learning_rate, self.config.agent
            ),
            page: "metrics#value-function",
        })
    }

    /// The mean entropy at the beginning and at the end, and the largest possible one, of discrete actions.
    fn entropies(&self) -> Option<(f64, f64, f64)> {
        let entropy: Vec<f64> = match self.any(&["train/entropy_loss"]) {
            [] => self.any(&["entropy"]).to_vec(),
            losses => losses.iter().map(|loss| -loss).collect(),
        };
        let (begin, end) = (mean(first(&entropy, 20)), mean(last(&entropy, 10)));
        // the entropy of continuous actions has no zero
        let is_discrete = self.actions.is_some() || self.columns.contains_key("entropy");
        let most = self.actions.map_or(begin, f64::ln);
        (entropy.len() >= 10 && is_discrete && most > 0.0).then_some((begin, end, most))
    }

    fn entropy_collapsed(&self) -> Option<Symptom> {
        let (begin, end, most) = self.entropies()?;
        // an agent that has learned may be certain
        (end < 0.02 * most && !self.is_improved() && self.forgot().is_none()).then(|| Symptom {
            name: "entropy-collapsed",
            seen: format!("entropy {} at the end, {} at the beginning, without a better return", short(end), short(begin)),
            advice: format!("The policy stopped exploring before it had learned. {}.", self.keep_exploring()),
            page: "metrics#loss",
        })
    }

    fn entropy_stays(&self) -> Option<Symptom> {
        let (_, end, most) = self.entropies()?;
        let coefficient = self.setting(&format!("{}.entropy_coefficient", self.config.agent)).filter(|coefficient| *coefficient > 0.05)?;
        (end > 0.95 * most && !self.is_improved()).then(|| Symptom {
            name: "entropy-stays",
            seen: format!("the policy is still nearly uniform: entropy {} at the end, at most {} is possible", short(end), short(most)),
            advice: format!("The entropy bonus outweighs the rewards. Lower {}.entropy_coefficient ({coefficient}).", self.config.agent),
            page: "metrics#loss",
        })
    }

    fn policy_stands_still(&self) -> Option<Symptom> {
        let kl = self.any(&["train/approx_kl", "kl/old"]);
        let (middle, most) = (median(kl), kl.iter().map(|x| x.abs()).fold(0.0, f64::max));
        // a policy that jumped and is certain now stands still, too
        let is_saturated = most > 1e-3 || self.entropies().is_some_and(|(_, end, most)| end < 0.1 * most);
        (kl.len() >= 10 && middle.abs() < 1e-6 && !is_saturated && !self.is_learning() && self.gradients_cut().is_none()).then(|| Symptom {
            name: "policy-stands-still",
            seen: format!("the policy hardly moves: KL divergence {middle:.1e} per update"),
            advice: format!(
                "Raise the learning rate ({}). Check that gradients are not clipped to almost nothing (optimiser.max_grad_norm) and that advantages are not all 0.",
                self.config.optimiser.learning_rate
            ),
            page: "metrics#the-step-divergence-from-the-old-policy",
        })
    }

    fn still_random(&self) -> Option<Symptom> {
        let epsilon = self.any(&["rollout/exploration_rate"]);
        let end = epsilon.last().copied().unwrap_or(0.0);
        (end > 0.5 && !predicts(&self.config.agent)).then(|| Symptom {
            name: "still-random",
            seen: format!("{:.0} % of the actions are random at the end", 100.0 * end),
            advice: "Returns of the training are those of random actions. Let epsilon fall sooner or further; an evaluation shows the greedy policy.".into(),
            page: "metrics#gradient-and-optimiser",
        })
    }

    fn gradients_cut(&self) -> Option<Symptom> {
        let norms = self.any(&["train/grad_norm", "grad_norm"]);
        let most = self.setting("optimiser.max_grad_norm")?;
        let middle = median(last(norms, 2));
        (norms.len() >= 10 && most > 0.0 && middle > 200.0 * most && !self.is_learning()).then(|| Symptom {
            name: "gradients-cut",
            seen: format!("the gradient's norm is {}, and is cut to {most}", short(middle)),
            advice: match most < 0.01 {
                true => format!("optimiser.max_grad_norm is {most:e}; 0.5 to 10 is usual."),
                false if self.has("value_coefficient") => "Every gradient is cut to a small share, often because the value loss dominates. Normalise rewards, lower the value coefficient, or raise optimiser.max_grad_norm.".into(),
                false => "Every gradient is cut to a small share. Normalise or scale rewards, or raise optimiser.max_grad_norm.".into(),
            },
            page: "metrics#gradient-and-optimiser",
        })
    }

    fn groups_are_equal(&self) -> Option<Symptom> {
        let equal = mean(last(self.any(&["reward/frac_zero_std"]), 2));
        let reward = mean(last(self.any(&["reward/mean"]), 4));
        (equal > 0.9 && reward < 0.9 && !self.is_improved()).then(|| Symptom {
            name: "groups-equal",
            seen: format!("in {:.0} % of the groups all completions have the same reward", 100.0 * equal),
            advice: "Such groups teach nothing. Use easier tasks, larger groups, a warm start, or a higher temperature.".into(),
            page: "metrics-text#texts-groups-and-sampling",
        })
    }

    fn completions_cut(&self) -> Option<Symptom> {
        let cut = mean(last(self.any(&["completions/clipped_ratio"]), 4));
        (cut > 0.9).then(|| Symptom {
            name: "completions-cut",
            seen: format!("{:.0} % of the completions reach the longest allowed length", 100.0 * cut),
            advice:
                "The policy does not end its texts. Raise text.max_new_tokens, or punish texts without an end (text.missing_eos_penalty)."
                    .into(),
            page: "metrics-text#texts-rewards-and-lengths",
        })
    }

    fn forgot(&self) -> Option<Symptom> {
        let n = self.returns.len();
        let window = n.div_ceil(10);
        if n < 100 {
            return None;
        }
        let windows = self.returns.windows(window).step_by(window.div_ceil(4)).map(|some| (mean(some), spread(some)));
        let (best, of_best) = windows.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        let (begin, end) = (mean(first(&self.returns, 10)), mean(last(&self.returns, 10)));
        let noise = spread(last(&self.returns, 10)) / (window as f64).sqrt();
        let lost = best - end;
        // there was something to forget: more than the best of many windows has by chance
        let chance = of_best.max(spread(first(&self.returns, 10))) / (window as f64).sqrt();
        let share = self.goal().zip(self.levels).map_or(1.0, |(goal, levels)| (best - levels.random.0) / (goal - levels.random.0));
        let had_learned = best - begin > 6.0 * chance && share > 0.05;
        (had_learned && lost > 0.6 * (best - begin) && lost > 6.0 * noise).then(|| Symptom {
            name: "forgot",
            seen: format!("the mean return was {} and is {} at the end", short(best), short(end)),
            advice: format!(
                "The policy was better and has collapsed. {}, and keep the best policy by evaluations{}.",
                self.smaller_steps(),
                self.by_evaluations()
            ),
            page: "troubleshooting#what-healthy-and-sick-curves-look-like",
        })
    }

    /// The greedy policy is much worse than the training, which explored.
    fn greedy_policy_fails(&self) -> Option<Symptom> {
        let ((greedy, error), end, (random, _)) = (self.greedy?, mean(last(&self.returns, 10)), self.levels?.random);
        // texts are sampled
        if self.columns.contains_key("reward/mean") {
            return None;
        }
        let noise = (error * error + spread(last(&self.returns, 10)).powi(2) / last(&self.returns, 10).len() as f64).sqrt();
        let (gained, lost) = (end - random, end - greedy);
        // episodes of the training end, or could, those of the greedy policy do not
        let goes_in_circles = self.is_endless;
        let fails = self.returns.len() >= 20 && self.is_improved() && gained > 0.0 && lost > 0.4 * gained && lost > 6.0 * noise;
        (fails || goes_in_circles).then(|| Symptom {
            name: "greedy-fails",
            seen: match fails {
                true => format!("the last episodes of the training return {} on average, but the greedy policy {}", short(end), short(greedy)),
                false => format!("no episode of the greedy policy ends before the time limit; it returns {}, and the training returned {} at the end", short(greedy), short(end)),
            },
            advice: match self.is_table || goes_in_circles {
                true => format!(
                    "Where values are not final yet, a greedy policy can walk in circles that random actions leave. Train for more steps{}. Where states look alike, the best policy is random: evaluate it with --sampled.",
                    // sweeps and averages have no step size
                    if ["value-iteration", "policy-iteration", "off-policy-monte-carlo", "monte-carlo"].contains(&self.config.agent.as_str()) { "" } else { "; a table's values settle only with a step size that falls (alpha_decay)" }
                ),
                false => format!(
                    "The final parameters are worse than those of the steps before, as happens to value-based agents{}. \
                     {}, or keep the best policy by evaluations{}.",
                    // a policy of values has no probabilities to sample from
                    if self.any(&["rollout/exploration_rate"]).is_empty() { ", or the policy needs its random actions (evaluate it with --sampled)" } else { "" },
                    self.smaller_steps(),
                    self.by_evaluations()
                ),
            },
            page: "troubleshooting#what-healthy-and-sick-curves-look-like",
        })
    }

    /// Whether the agent has a setting of this name.
    fn has(&self, name: &str) -> bool {
        self.setting(&format!("{}.{name}", self.config.agent)).is_some()
    }

    /// How to make evaluations, if there are none.
    fn by_evaluations(&self) -> &'static str {
        if self.config.evaluate_every == 0 { " (evaluate_every)" } else { "" }
    }

    /// No symptom says why, but the policy is no good.
    fn not_learned(&self) -> Option<Symptom> {
        if predicts(&self.config.agent) {
            return None;
        }
        let random = |levels: Levels| short(levels.random.0);
        let goal = |to: f64| {
            self.goal().map_or_else(String::new, |goal| {
                format!("{}{}", if to < goal { ", and the goal is " } else { ", as good as " }, short(goal))
            })
        };
        let probe = match self.is_text {
            true => String::new(),
            false => format!("`gradus probe {}` tries the agent where the right answer is known.", self.config.agent),
        };
        // too few episodes to say that it is below the optimum
        let is_near =
            |(levels, (greedy, error)): (Levels, (f64, f64))| levels.optimum.is_some_and(|optimum| greedy >= optimum - 2.0 * error);
        if self.levels.zip(self.greedy).is_some_and(is_near) {
            return None;
        }
        if let Some((levels, (greedy, error))) = self.levels.zip(self.greedy) {
            // an error of 0 may be one of rare rewards that were not met
            let margin = self.goal().map_or(0.0, |goal| 0.05 * (goal - levels.random.0).max(0.0));
            let is_worse = greedy < levels.random.0 - margin.max(4.0 * (error * error + levels.random.1.powi(2)).sqrt());
            let who = baseline(self.is_text, &levels);
            let seen = format!("the greedy policy returns {}, {who} {}{}", short(greedy), random(levels), goal(greedy));
            if is_worse {
                let advice = format!(
                    "A policy that is certain of wrong actions can be. {}, and see whether another seed ends there, too; in an environment or an agent of your own, check the sign of the reward \
                     and of the loss. {probe}",
                    self.smaller_steps()
                );
                return Some(Symptom { name: "worse-than-random", seen, advice, page: "your-own-agent" });
            }
            let is_far = self.progress().is_some_and(|progress| progress < 0.05);
            return (is_far || levels.is_random(greedy, error) && !self.is_improved()).then(|| Symptom {
                name: "not-learned",
                seen,
                advice: format!(
                    "No other symptom says why. Check the sign and the size of the reward, try more steps and other learning rates. {probe}"
                ),
                page: "metrics#which-to-look-at-first",
            });
        }
        let (begin, end) = (mean(first(&self.returns, 10)), mean(last(&self.returns, 10)));
        (self.returns.len() >= 50 && !self.is_improved()).then(|| Symptom {
            name: "not-learned",
            seen: format!("the mean return of the first tenth of the episodes is {}, that of the last tenth {}", short(begin), short(end)),
            advice: format!("No other symptom says why. Try more steps and other learning rates. {probe}"),
            page: "metrics#which-to-look-at-first",
        })
    }
}
