//! Best of n: of n completions of a prompt, take the one that a judge prefers. It needs no training and is the baseline of every other use of
//! a reward.
//!
//! From a pool of N completions per problem, the mean over all subsets of n completions is computed exactly for every n (Nakano et al., arXiv
//! 2112.09332, appendix I). With the worths in ascending order, completion number i (from 1) is the best of a subset with probability
//!
//! > w_i = C(i - 1, n - 1) / C(N, n)
//!
//! The divergence of best of n from the policy is at most log n - (n - 1) / n (Beirami et al., arXiv 2401.01879).

use std::path::Path;

use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::Split;
use gradus_nets::{Device, Policy, Sampling};
use gradus_rollouts::generate;
use serde::Serialize;

use super::load_reward;
use crate::config::of_text;
use crate::evaluate::Problems;
use crate::numbers::mean_and_error;
use crate::saved::load_policy;
use crate::train::examples::{Judge, Verifier, judge_in};
use crate::{Error, memory};

/// Means over the problems of the best of n completions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BestOf {
    /// Number of completions from which the judge chooses.
    pub n: usize,
    /// The largest possible divergence from the policy, in nats per completion.
    pub kl_bound: f64,
    /// Mean worth of the chosen completion to the judge, penalties subtracted.
    pub worth: f64,
    /// Mean reward of the chosen completion from the environment, penalties subtracted.
    pub reward: f64,
    /// Standard error of the mean reward over the problems.
    pub error: f64,
}

/// An evaluation of best of n.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestOfRun {
    /// The judge, in words.
    pub judge: String,
    /// The problems.
    pub problems: Problems,
    /// One entry for n = 1, 2, 4, ... and the largest n.
    pub best_of: Vec<BestOf>,
}

/// Evaluates best of n of the policy of the run in `dir`, for every power of two n below `most` and for `most`, on the first `problems`
/// problems of the split. The judge is that in the folder `judge` (a reward model, or the policy of a run); by default the run's own reward
/// model, or the task's verifier if the run has none.
pub fn best_of(dir: &Path, judge: Option<&Path>, split: Split, problems: usize, most: usize, seed: u64) -> Result<BestOfRun, Error> {
    let (config, world, policy) = load_policy(dir)?;
    let world = world.on_split(split);
    let text = of_text("best of n", &world)?;
    let (named, mut judge): (String, Box<dyn Judge>) = match judge {
        Some(folder) => {
            let config = crate::Config { device: Device::Cpu, ..config };
            (folder.display().to_string(), judge_in(folder, &config, &world)?)
        }
        None => match load_reward(dir)? {
            Some(learned) => ("the run's reward model".into(), Box::new(learned)),
            None => ("the task's verifier".into(), Box::new(Verifier::new(text))),
        },
    };
    let listed = text.listed(problems);
    let bytes = most as f64 * memory::of_completion(text);
    memory::expect("--episodes", listed.seeds.len(), &format!("of {most} completions"), |problems| problems * bytes)?;
    let prompts = text.prompts(&listed);
    let pools = pools(policy.as_ref(), text, &prompts, most, seed, judge.as_mut())?;
    let sizes: Vec<usize> = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|n| *n < most).chain([most]).collect();
    let problems = Problems::of(&world, text, (prompts.len(), problems), listed.is_whole);
    Ok(BestOfRun { judge: named, problems, best_of: sizes.into_iter().map(|n| of_subsets(&pools, n)).collect() })
}

/// The worth and the reward of every completion of a problem.
type Pool = Vec<(f64, f64)>;

/// Samples `most` completions of each prompt. Returns their worths and rewards, in ascending order of worth.
fn pools(
    policy: &dyn Policy,
    text: &gradus_envs::text::TextWorld,
    prompts: &[Vec<u32>],
    most: usize,
    seed: u64,
    judge: &mut dyn Judge,
) -> Result<Vec<Pool>, Error> {
    let repeated: Vec<Vec<u32>> = prompts.iter().flat_map(|prompt| vec![prompt.clone(); most]).collect();
    let stream = |i: usize| Stream::new(seed, Purpose::Evaluation, 1 + i as u64);
    let completions = generate(policy, text, &repeated, &stream, &Sampling::default());
    Error::unless_sound(policy)?;
    let all: Vec<(&[u32], &[u32])> = repeated.iter().zip(&completions).map(|(prompt, completion)| (&prompt[..], &completion[..])).collect();
    // what a policy trained on this judge would maximise: its worth less the penalties
    let charges = all.iter().map(|(_, completion)| text.charges(completion).iter().sum::<f64>());
    let worth: Vec<f64> = judge.worth(&all)?.into_iter().zip(charges).map(|(worth, charges)| worth - charges).collect();
    let rewards = text.verify_all(&all)?.into_iter().map(|(reward, _)| reward);
    let both: Vec<(f64, f64)> = worth.into_iter().zip(rewards).collect();
    let sorted = |pool: &[(f64, f64)]| {
        let mut pool = pool.to_vec();
        pool.sort_by(|a, b| a.0.total_cmp(&b.0));
        pool
    };
    Ok(both.chunks(most).map(sorted).collect())
}

/// Returns the means over all subsets of n completions of each pool.
fn of_subsets(pools: &[Pool], n: usize) -> BestOf {
    let weights = weights(pools.first().map_or(0, Vec::len), n);
    let mean = |pool: &Pool, number: fn(&(f64, f64)) -> f64| pool.iter().zip(&weights).map(|(of, weight)| weight * number(of)).sum::<f64>();
    let (worth, _) = mean_and_error(pools.iter().map(|pool| mean(pool, |of| of.0)));
    let (reward, error) = mean_and_error(pools.iter().map(|pool| mean(pool, |of| of.1)));
    BestOf { n, kl_bound: (n as f64).ln() - (n as f64 - 1.0) / n as f64, worth, reward, error }
}

/// Returns the probability that each of `all` completions, in ascending order, is the best of a random subset of n.
fn weights(all: usize, n: usize) -> Vec<f64> {
    let mut weights = vec![0.0; all];
    let mut weight = n as f64 / all as f64;
    for i in (n..=all).rev() {
        weights[i - 1] = weight;
        // C(i - 2, n - 1) / C(i - 1, n - 1)
        weight *= (i as f64 - n as f64) / (i as f64 - 1.0).max(1.0);
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the subsets in which each completion is the best.
    #[test]
    fn weights_are_the_shares_of_subsets() {
        for (all, n) in [(1, 1), (5, 1), (5, 2), (5, 3), (5, 5), (9, 4)] {
            let (mut counts, mut subsets) = (vec![0.0; all], 0.0);
            for subset in (0_u32..1 << all).filter(|subset| subset.count_ones() as usize == n) {
                counts[31 - subset.leading_zeros() as usize] += 1.0;
                subsets += 1.0;
            }
            for (weight, count) in weights(all, n).iter().zip(&counts) {
                assert!((weight - count / subsets).abs() < 1e-12, "{n} of {all}: {:?}", weights(all, n));
            }
        }
    }

    /// Two problems with three completions each, by hand.
    #[test]
    fn the_best_of_two_by_hand() {
        // worths 1 2 3 with rewards 5 7 0: of the pairs (1 2), (1 3), (2 3) the best have the rewards 7, 0, 0
        let pools = [vec![(1.0, 5.0), (2.0, 7.0), (3.0, 0.0)], vec![(0.0, 1.0), (0.5, 1.0), (1.0, 1.0)]];
        let best = of_subsets(&pools, 2);
        assert!((best.worth - (8.0 / 3.0 + 2.5 / 3.0) / 2.0).abs() < 1e-12 && (best.reward - (7.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
        assert!((best.kl_bound - (2.0_f64.ln() - 0.5)).abs() < 1e-12);
        assert_eq!(of_subsets(&pools, 1).kl_bound, 0.0);
    }
}
