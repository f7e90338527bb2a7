//! The metrics of an iteration and their names.

use std::borrow::Cow;

use crate::numbers::mean_and_std;
use gradus_rollouts::Episode;

/// Names and values; NaN if there is no value.
pub type Metrics = Vec<(Cow<'static, str>, f64)>;

/// The name of a metric in an agent's report, its name in a text task, and the factor that converts its value: 1 or -1.
const ON_TEXTS: [(&str, &str, f64); 21] = [
    ("train/loss", "loss/total", 1.0),
    ("train/policy_gradient_loss", "loss/policy", 1.0),
    ("train/value_loss", "loss/value", 1.0),
    ("train/entropy_loss", "entropy", -1.0),
    ("train/approx_kl", "kl/old", 1.0),
    ("train/old_approx_kl", "kl/old_k1", 1.0),
    ("train/kl_divergence", "kl/old_exact", 1.0),
    ("train/kl_reference", "kl/ref", 1.0),
    ("train/kl_coefficient", "kl/coefficient", 1.0),
    ("train/clip_fraction", "clip/fraction", 1.0),
    ("train/kl_reference_sequence", "kl/ref_sequence", 1.0),
    ("train/reference_coefficient", "kl/ref_coefficient", 1.0),
    ("train/clip_low", "clip/low", 1.0),
    ("train/clip_high", "clip/high", 1.0),
    ("train/frac_unscored", "reward/frac_unscored", 1.0),
    ("train/explained_variance", "value/explained_variance", 1.0),
    ("train/frac_zero_std", "reward/frac_zero_std", 1.0),
    ("train/frac_filtered", "reward/frac_filtered", 1.0),
    ("train/frac_masked", "completions/frac_masked", 1.0),
    ("train/grad_norm", "grad_norm", 1.0),
    ("train/learning_rate", "learning_rate", 1.0),
];

/// Renames an agent's metrics to the names that are usual for text tasks.
pub(crate) fn renamed(metrics: Metrics) -> Metrics {
    let rename = |(name, x): (Cow<'static, str>, f64)| match ON_TEXTS.iter().find(|(theirs, ..)| *theirs == name) {
        Some((_, ours, sign)) => (Cow::Borrowed(*ours), sign * x),
        None => (name, x),
    };
    metrics.into_iter().map(rename).collect()
}

/// The name of the score that is 1 for a completion that was cut, otherwise 0.
const CUT: &str = "finish/length";

/// Returns whether a completion was cut. A text environment may report the cut as a score instead of a truncation. `names` are the names of
/// the scores.
pub(crate) fn was_cut(names: &[String], episode: &Episode) -> bool {
    match names.iter().position(|name| name == CUT) {
        Some(i) => episode.scores[i] > 0.0,
        None => episode.ending.truncated(),
    }
}

/// Returns the metrics of the completions of an iteration. If the run has a reward model, `learned` has the model's rewards, with NaN for a
/// text that continues in the next rollout, and the metric `reward/true` is the environment's reward.
pub(crate) fn of_completions(names: &[String], episodes: &[Episode], learned: Option<&[f64]>) -> Metrics {
    let own: Vec<f64> = episodes.iter().map(|episode| episode.episode_return).collect();
    let rewards = learned.unwrap_or(&own).iter().copied().filter(|reward| !reward.is_nan());
    let (mean, std) = mean_and_std(rewards);
    let (length, _) = mean_and_std(episodes.iter().map(|episode| f64::from(episode.length)));
    let (clipped, _) = mean_and_std(episodes.iter().map(|episode| f64::from(u8::from(was_cut(names, episode)))));
    let std = if episodes.is_empty() { f64::NAN } else { std };
    let mut metrics = vec![("reward/mean", mean), ("reward/std", std)];
    metrics.extend(learned.map(|_| ("reward/true", mean_and_std(own.into_iter()).0)));
    metrics.extend([("completions/mean_length", length), ("completions/clipped_ratio", clipped)]);
    metrics.into_iter().map(|(name, x)| (name.into(), x)).collect()
}

/// Returns the means of the scores of an iteration's episodes.
pub(crate) fn of_scores(names: &[String], episodes: &[Episode]) -> Metrics {
    let mean = |i: usize| mean_and_std(episodes.iter().map(|episode| episode.scores[i])).0;
    let others = names.iter().enumerate().filter(|(_, name)| *name != CUT); // `CUT` is reported as completions/clipped_ratio
    others.map(|(i, name)| (format!("scores/{name}").into(), mean(i))).collect()
}

#[cfg(test)]
mod tests {
    use gradus_envs::Ending;

    use super::*;

    #[test]
    fn completion_metrics_are_means_over_episodes() {
        let episode = |episode_return, length, ending| Episode {
            step: 0,
            env: 0,
            seed: 0,
            episode_return,
            length,
            ending,
            scores: vec![episode_return * 2.0],
        };
        let episodes = [episode(1.0, 3, Ending::Terminated), episode(0.0, 5, Ending::Both), episode(0.5, 4, Ending::Terminated)];
        let metrics = of_completions(&["exact".into()], &episodes, None);
        let expected = [("reward/mean", 0.5), ("reward/std", 0.5), ("completions/mean_length", 4.0)];
        for ((name, x), (expected_name, expected)) in metrics.iter().zip(expected) {
            assert!(name == expected_name && (x - expected).abs() < 1e-12, "expected {expected_name} {expected}, got {name} {x}");
        }
        assert!((metrics[3].1 - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(of_scores(&["exact".into()], &episodes), [("scores/exact".into(), 1.0)]);
        let cut = of_completions(&["finish/length".into()], &episodes[1..], None);
        assert_eq!(cut[3], ("completions/clipped_ratio".into(), 0.5), "the score decides, not the ending");
        let learned = of_completions(&["exact".into()], &episodes, Some(&[4.0, f64::NAN, 2.0]));
        assert_eq!((learned[0].1, learned[2].0.as_ref(), learned[2].1), (3.0, "reward/true", 0.5));
        assert!(of_completions(&[], &[], None).iter().all(|(_, x)| x.is_nan()), "NaN without episodes");
    }

    #[test]
    fn entropy_loss_becomes_entropy_on_texts() {
        let metrics = renamed(vec![("train/entropy_loss".into(), -1.5), ("kl/old".into(), 0.1)]);
        assert_eq!(metrics, [("entropy".into(), 1.5), ("kl/old".into(), 0.1)]);
    }
}
