//! Running statistics of observations and rewards, and the normalisation that uses them.
//!
//! The statistics are frozen while a rollout is collected and updated afterwards, environment by environment, so that results depend on
//! neither the number of threads nor their timing. Observations are normalised with the statistics from the start of the rollout. At the
//! end of the rollout, rewards are divided by the standard deviation of returns, with statistics that include the rollout. Evaluation does
//! not update the statistics: see [`Normaliser::frozen`].

use std::sync::Arc;

use gradus_agents::Scaling;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f64, get_u64, named};
use gradus_envs::wrappers::{ReturnStatistics, RunningStatistics};
use gradus_envs::{Ending, EnvError, EnvSpec};

use crate::WrapperConfig;

/// Normalised numbers are clipped to [-10, 10], as in Stable-Baselines3's `VecNormalize`.
const CLIP: f32 = 10.0;

/// The running statistics of a training.
pub struct Normaliser {
    observations: Option<Arc<RunningStatistics>>,
    returns: Option<ReturnStatistics>,
    reward_scale: f32,
    clip_reward: f32,
}

/// Names of the tensors with the observation statistics, all in f64; see `docs/policy-file.md`.
const MEAN: &str = "observations.mean";
const VARIANCE: &str = "observations.variance";
const COUNT: &str = "observations.count";
const EPSILON: &str = "observations.epsilon";
const CLIPPED_TO: &str = "observations.clip";
/// The observation statistics in files of earlier versions: count, means and variances as the bits of f64 numbers.
const OLD_OBSERVATIONS: &str = "observation_statistics";
const RETURNS: &str = "return_statistics";

impl Normaliser {
    /// Creates empty statistics for `envs` environments with observations of `width` numbers.
    pub fn new(config: &WrapperConfig, envs: usize, width: usize) -> Self {
        Self {
            observations: config.normalise_observations.then(|| Arc::new(RunningStatistics::new(width))),
            returns: config.normalise_rewards.then(|| ReturnStatistics::new(envs, config.reward_discount)),
            reward_scale: config.reward_scale,
            clip_reward: config.clip_reward,
        }
    }

    /// Whether [`learn`](Normaliser::learn) needs the raw observations.
    pub(crate) fn wants_observations(&self) -> bool {
        self.observations.is_some()
    }

    /// Returns the current normalisation, for rollouts that are not normalised.
    pub(crate) fn scaling(&self) -> Scaling {
        let reward_scale = self.returns.as_ref().map(|returns| returns.statistics().scale()[0]);
        Scaling { observations: self.observations.clone(), reward_scale, clip: CLIP }
    }

    /// Normalises rows of observations in place.
    pub fn show(&self, rows: &mut [f32]) {
        if let Some(statistics) = &self.observations {
            statistics.normalise_rows(rows, CLIP);
        }
    }

    /// Scales and clips the rewards of environment `env` in place, then updates the statistics with them and with its raw observations.
    pub(crate) fn learn(&mut self, env: usize, observations: &[f32], rewards: &mut [f32], endings: &[Ending]) {
        if let Some(statistics) = &mut self.observations {
            Arc::make_mut(statistics).update(observations);
        }
        self.scale_and_clip(rewards);
        if let Some(returns) = &mut self.returns {
            returns.update(env, rewards, endings);
        }
    }

    /// Normalises the rewards of a whole rollout in place.
    pub(crate) fn scale_rewards(&self, rewards: &mut [f32]) {
        if let Some(returns) = &self.returns {
            rewards.iter_mut().for_each(|reward| *reward = returns.normalise(*reward, CLIP));
        }
    }

    /// Scales, clips and normalises an episode's rewards in the same way as the rewards of the last rollout.
    pub(crate) fn scaled(&self, mut rewards: Vec<f32>) -> Vec<f32> {
        self.scale_and_clip(&mut rewards);
        self.scale_rewards(&mut rewards);
        rewards
    }

    /// Multiplies rewards by the configured scale and clips them, in place.
    fn scale_and_clip(&self, rewards: &mut [f32]) {
        if self.reward_scale != 1.0 {
            rewards.iter_mut().for_each(|reward| *reward *= self.reward_scale);
        }
        if self.clip_reward < f32::INFINITY {
            rewards.iter_mut().for_each(|reward| *reward = reward.clamp(-self.clip_reward, self.clip_reward));
        }
    }

    /// Returns `world` with observations normalised by the current statistics, which are no longer updated.
    pub fn frozen(&self, world: &EnvSpec) -> EnvSpec {
        match &self.observations {
            Some(statistics) => world.clone().normalised(statistics.clone(), CLIP),
            None => world.clone(),
        }
    }

    /// Returns a copy that has only the statistics of the observations.
    pub(crate) fn of_observations(&self) -> Self {
        Self { observations: self.observations.clone(), returns: None, reward_scale: 1.0, clip_reward: f32::INFINITY }
    }

    /// Returns the statistics of the observations, which are part of the policy file.
    pub fn save_observations(&self) -> Tensors {
        let Some(statistics) = &self.observations else { return Tensors::new() };
        let scalar = |x: f64| Tensor::f64(&[], vec![x]);
        let row = |numbers: &[f64]| Tensor::f64(&[numbers.len()], numbers.to_vec());
        named(vec![
            (MEAN.into(), row(statistics.mean())),
            (VARIANCE.into(), row(statistics.variance())),
            (COUNT.into(), scalar(statistics.count())),
            (EPSILON.into(), scalar(RunningStatistics::EPSILON)),
            (CLIPPED_TO.into(), scalar(f64::from(CLIP))),
        ])
    }

    /// Returns all statistics, for a checkpoint.
    pub fn save(&self) -> Tensors {
        let mut tensors = self.save_observations();
        if let Some(returns) = &self.returns {
            tensors.insert(RETURNS.into(), Tensor::u64(returns.save().into_iter().map(f64::to_bits).collect()));
        }
        tensors
    }

    /// Loads the statistics of the observations and removes them from `tensors`, if observations are normalised.
    pub fn load_observations(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        if let Some(statistics) = &mut self.observations {
            let saved = saved_observations(tensors, statistics.width())?;
            *statistics = Arc::new(RunningStatistics::load(statistics.width(), &saved).map_err(state)?);
            Self::take_observations(tensors);
        }
        Ok(())
    }

    /// Removes the statistics of the observations from `tensors` and returns them.
    pub fn take_observations(tensors: &mut Tensors) -> Tensors {
        let names = [MEAN, VARIANCE, COUNT, EPSILON, CLIPPED_TO, OLD_OBSERVATIONS];
        named(names.iter().filter_map(|name| tensors.remove_entry(*name)).collect())
    }

    /// Loads the statistics of the observations if `tensors` has them and observations are normalised.
    pub(crate) fn begin_with(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        if [MEAN, OLD_OBSERVATIONS].iter().any(|name| tensors.contains_key(*name)) { self.load_observations(tensors) } else { Ok(()) }
    }

    /// All environments begin new episodes.
    pub(crate) fn begin_again(&mut self) {
        if let Some(returns) = &mut self.returns {
            returns.begin_again();
        }
    }

    /// Loads everything that [`save`](Normaliser::save) returned.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.load_observations(&mut tensors.clone())?;
        match &mut self.returns {
            Some(returns) => returns.load(&numbers(tensors, RETURNS)?).map_err(state),
            None => Ok(()),
        }
    }
}

/// Returns count, means and variances of observations of `width` numbers, in the layout of [`RunningStatistics::load`].
fn saved_observations(tensors: &Tensors, width: usize) -> Result<Vec<f64>, TensorsError> {
    if tensors.contains_key(OLD_OBSERVATIONS) && !tensors.contains_key(MEAN) {
        return numbers(tensors, OLD_OBSERVATIONS);
    }
    for (name, ours) in [(EPSILON, RunningStatistics::EPSILON), (CLIPPED_TO, f64::from(CLIP))] {
        let theirs = get_f64(tensors, name, &[])?[0];
        if theirs != ours {
            return Err(TensorsError::State(format!("tensor `{name}`: expected {ours}, got {theirs}")));
        }
    }
    Ok([get_f64(tensors, COUNT, &[])?, get_f64(tensors, MEAN, &[width])?, get_f64(tensors, VARIANCE, &[width])?].concat())
}

fn numbers(tensors: &Tensors, name: &str) -> Result<Vec<f64>, TensorsError> {
    Ok(get_u64(tensors, name)?.iter().map(|bits| f64::from_bits(*bits)).collect())
}

fn state(error: EnvError) -> TensorsError {
    TensorsError::State(error.to_string())
}
