//! Settings that explain a bad run, and advice that this run can follow.

use super::{Record, Symptom, mean};
use crate::numbers::short;

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
        if let Some(alpha) = self.setting(&own("alpha")).filter(|alpha| self.is_table && *alpha < 0.001) {
            say(format!("{} is {alpha}, with which values hardly change", own("alpha")), "0.01 to 0.5 is usual.");
        }
        let greedy_table = self.is_table && is("epsilon", 0.0);
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
        (!self.is_table && rows > 0.0 && updates < FEW && !self.is_good()).then(|| Symptom {
            name: "few-updates",
            seen: format!("the run made {updates} updates"),
            advice: "That is too few to learn from. Train for more steps.".into(),
            page: "metrics#which-to-look-at-first",
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
        let length = mean(&self.lengths);
        length > 2.0 && (gamma < 0.3 || gamma < 0.8 && 1.0 / (1.0 - gamma) < 0.05 * length)
    }
}
