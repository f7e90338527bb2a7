//! Settings that explain a bad run, and advice that this run can follow.

use super::record::{Record, first, mean};
use super::symptoms::Symptom;
use gradus::Config;
use gradus::config::effect::predicts;
use gradus::numbers::short;

/// Learning rates that networks learn with, by a wide margin.
const RATES: std::ops::RangeInclusive<f32> = 1e-6..=0.05;

impl Record {
    /// Returns what a setting of this run says about a bad policy. Such a setting comes before everything that was measured.
    pub(super) fn unusual(&self) -> Vec<Symptom> {
        let own = |name: &str| format!("{}.{name}", self.config.agent);
        let is = |name: &str, wanted: f64| self.setting(&own(name)).is_some_and(|value| value == wanted);
        let mut found = Vec::new();
        let mut say = |seen: String, advice: &str| {
            found.push(Symptom { name: "unusual-setting", seen, advice: advice.into(), page: "metrics#which-to-look-at-first" });
        };
        let rate = self.config.optimiser.learning_rate;
        if !self.is_table && !RATES.contains(&rate) {
            let what = if rate > 0.05 { "a policy jumps with every step" } else { "a policy hardly moves" };
            say(format!("optimiser.learning_rate is {rate}, with which {what}"), "Most agents learn with 0.0001 to 0.01.");
        }
        let alpha = self.setting(&own("alpha")).filter(|_| self.is_table);
        let falls = self.setting(&own("alpha_decay")).unwrap_or(0.0) > 0.0;
        if let Some(alpha) = alpha.filter(|alpha| *alpha < 0.001) {
            say(format!("{} is {alpha}, with which values hardly change", own("alpha")), "0.01 to 0.5 is usual.");
        }
        // one that falls may begin at 1
        if let Some(alpha) = alpha.filter(|alpha| *alpha > 0.5 && !falls) {
            say(
                format!("{} is {alpha}, with which a value forgets all but the last outcomes", own("alpha")),
                "Where outcomes are random, 0.01 to 0.2 is usual, or a step size that falls.",
            );
        }
        let gamma = self.setting(&own("gamma")).filter(|_| self.is_table && !predicts(&self.config.agent));
        if let Some(gamma) = gamma.filter(|gamma| *gamma < 0.9) {
            say(format!("{} is {gamma}, and the return that counts here is not discounted", own("gamma")), "Use 0.95 to 1.");
        }
        let temperature = self.setting("transformer.temperature").filter(|t| self.is_text && !(0.2..=3.0).contains(t));
        if let Some(temperature) = temperature {
            say(
                format!("transformer.temperature is {temperature}"),
                "Use 1: far below it completions are copies of each other, far above it they are noise.",
            );
        }
        if let Some(beta) = self.setting("dpo.beta").filter(|beta| !(0.005..=5.0).contains(beta)) {
            say(
                format!("dpo.beta is {beta}"),
                "0.01 to 0.5 is usual: a large one keeps the policy at the reference, a small one lets it go anywhere.",
            );
        }
        // optimistic initial values explore, too: an agent may have no epsilon by default
        let defaults = Config::preset(&self.config.agent, &self.config.environment, None);
        let is_default = |name: &str| {
            defaults
                .as_ref()
                .is_ok_and(|defaults| defaults.settings().into_iter().any(|(key, value)| key == own(name) && value.parse() == Ok(0.0)))
        };
        let greedy_table = self.is_table && is("epsilon", 0.0) && !is_default("epsilon");
        let greedy_network = is("exploration_initial_eps", 0.0) && is("exploration_final_eps", 0.0);
        let is_far = self.progress().map_or(!self.is_learning(), |progress| progress < 0.5);
        if (greedy_table || greedy_network) && is_far {
            let name = own(if greedy_table { "epsilon" } else { "exploration_initial_eps" });
            say(
                format!("{name} is 0, so the agent never explores"),
                "Without random actions it repeats what it tried first, unless its initial values are higher than every return. Use 0.1, or an epsilon that falls from 1.",
            );
        }
        if is("value_coefficient", 0.0) && self.setting(&own("gae_lambda")).is_some() {
            say(
                format!("{} is 0, so the critic does not learn", own("value_coefficient")),
                "Advantages are differences from the critic's values. Use 0.5 or 1.",
            );
        }
        for line in self.config.vain_in_this_run() {
            say(line, "Change it or train for more steps.");
        }
        found
    }

    /// The update that has been made too few times to say anything else.
    pub(super) fn few_updates(&self) -> Option<Symptom> {
        const FEW: f64 = 10.0;
        let rows = self.columns.get("time/total_timesteps").map_or(0, Vec::len) as f64;
        let updates = self.any(&["train/n_updates"]).last().copied().unwrap_or(rows);
        let (least, of) = match self.pairs {
            Some(pairs) => (FEW * pairs as f64, format!(", and the table has {pairs} values")),
            None => (FEW, String::new()),
        };
        let is_known = !self.is_table || self.pairs.is_some();
        (is_known && rows > 0.0 && updates < least && !self.is_good()).then(|| Symptom {
            name: "few-updates",
            seen: format!("the run made {updates} updates{of}"),
            advice: "That is too few to learn from. Train for more steps.".into(),
            page: "metrics#which-to-look-at-first",
        })
    }

    /// No policy is better than random actions.
    pub(super) fn nothing_to_learn(&self) -> Option<Symptom> {
        let levels = self.levels.filter(|_| !predicts(&self.config.agent))?;
        let optimum = levels.optimum.filter(|optimum| (optimum - levels.random.0).abs() < 1e-9)?;
        Some(Symptom {
            name: "nothing-to-learn",
            seen: format!("the best return that is possible, {}, is that of random actions", short(optimum)),
            advice: "No action matters. Check that the goal can be reached, and that rewards differ.".into(),
            page: "your-own-environment",
        })
    }

    /// The values of a prediction have not come closer to the exact ones, with a step size that explains it.
    pub(super) fn wrong_values(&self) -> Option<Symptom> {
        let errors = self.any(&["train/value_error"]);
        let (begin, end) = (*errors.first()?, *errors.last()?);
        let own = |name: &str| self.setting(&format!("{}.{name}", self.config.agent));
        let alpha = own("alpha").filter(|alpha| *alpha < 0.001 || *alpha > 0.5 && own("alpha_decay").unwrap_or(0.0) == 0.0)?;
        (predicts(&self.config.agent) && errors.len() >= 5 && end > 0.5 * begin && end > 0.02).then(|| Symptom {
            name: "values-stay-wrong",
            seen: format!(
                "the error of the values is {} at the end, and was {} at the beginning, with a step size of {alpha}",
                short(end),
                short(begin)
            ),
            advice: "A large step size keeps values moving with every outcome, a small one hardly moves them: 0.01 to 0.2 is usual.".into(),
            page: "metrics#gradient-and-optimiser",
        })
    }

    /// How this run takes smaller steps.
    pub(super) fn smaller_steps(&self) -> String {
        if self.is_table {
            let alpha = self.setting(&format!("{}.alpha", self.config.agent));
            return alpha
                .map_or_else(String::new, |alpha| format!("Lower the step size ({}.alpha is {})", self.config.agent, short(alpha)));
        }
        let rate = self.config.optimiser.learning_rate;
        let falls = self.is_text_setting("optimiser.schedule", "linear");
        format!("Lower the learning rate ({rate}){}", if falls { "" } else { " or let it fall (optimiser.schedule=linear)" })
    }

    /// What keeps a policy exploring, as far as this agent has settings for it.
    pub(super) fn keep_exploring(&self) -> String {
        let own = |name: &str| format!("{}.{name}", self.config.agent);
        let mut ways = vec![self.smaller_steps()];
        if let Some(coefficient) = self.setting(&own("entropy_coefficient")) {
            ways.push(format!("raise {} ({})", own("entropy_coefficient"), short(coefficient)));
        }
        if self.is_text_setting(&own("normalise_advantages"), "false") {
            ways.push(format!("set {}=true", own("normalise_advantages")));
        }
        ways.join(", or ")
    }

    fn is_text_setting(&self, key: &str, wanted: &str) -> bool {
        self.config.settings().iter().any(|(own, value)| own == key && value.trim_matches('"') == wanted)
    }

    /// Whether gamma lets rewards count for far fewer steps than an episode has.
    pub(super) fn is_short_sighted(&self, gamma: f64) -> bool {
        // a policy that has learned nothing may have learned to end at once
        let length = mean(&self.lengths).max(mean(first(&self.lengths, 10)));
        length > 2.0 && (gamma < 0.3 || gamma < 0.8 && 1.0 / (1.0 - gamma) < 0.05 * length)
    }
}
