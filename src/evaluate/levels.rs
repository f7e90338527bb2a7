//! What returns are worth in an environment: that of random actions, that which counts as solved, and the best that is possible or known.

use gradus_base::math::ln;
use gradus_base::tensors::{Tensors, TensorsError};
use gradus_envs::{EnvSpec, Space};
use gradus_nets::{ActionRows, Actor, Behaviour, Choice};

use super::{Mode, evaluate};
use crate::config::is_text;
use crate::saved::first_policy;
use crate::{Config, Error};

/// Episodes in which returns of random actions are measured.
const EPISODES: usize = 100;

/// Returns to compare a return with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Mean return of uniformly random allowed actions, or of a text task's untrained network, which is greedy, in 100 episodes, and its standard error; of a transition table it is exact, without an error.
    pub random: (f64, f64),
    /// Whether the text task's network was not random when the training began: it is that of a pretrained model, or of another run.
    pub has_begun_trained: bool,
    /// Mean return at which the environment counts as solved, if it says so.
    pub solved: Option<f64>,
    /// The highest mean return that is possible within the time limit, if a transition table tells it.
    pub optimum: Option<f64>,
    /// The best return that is known: the highest median of a default preset's seeds. Of an environment of another crate none is known.
    pub best: Option<f64>,
}

impl Levels {
    /// Measures the level of random actions in the configured environment. This also works for environments of other crates.
    pub fn of(config: &Config, world: &EnvSpec) -> Result<Self, Error> {
        let exact = of_table(world);
        let is_pretrained = world.text.as_ref().is_some_and(|text| text.task.vocabulary().language().is_some());
        // the parameters that it began with may be gone
        let initial = if is_text(world) && !config.init.is_empty() { first_policy(config, world).ok() } else { None };
        let has_begun_trained = is_pretrained || initial.is_some();
        let evaluation = || match is_text(world) {
            true => evaluate(initial.map_or_else(|| config.policy(world), Ok)?.as_ref(), world, EPISODES, 1, Mode::Greedy),
            false => evaluate(&Uniform::in_world(world), world, EPISODES, 1, Mode::Sampled),
        };
        let random = match exact {
            Some((uniform, _)) => (uniform, 0.0),
            None => evaluation().map(|random| (random.mean, random.error()))?,
        };
        Ok(Self {
            random,
            has_begun_trained,
            solved: world.solved_at,
            optimum: exact.map(|(_, best)| best),
            best: gradus_agents::best_known(&world.name),
        })
    }

    /// Whether the mean of some returns does not differ from that of random actions by three standard errors, or is below it.
    pub fn is_random(&self, mean: f64, error: f64) -> bool {
        let (random, own) = self.random;
        mean <= random + 3.0 * (error * error + own * own).sqrt()
    }
}

/// Outcomes to look at for the optimum of a table: a fraction of a second.
const OUTCOMES: usize = 100_000_000;

/// Returns the mean return of uniformly random allowed actions and the highest one, within the time limit, by dynamic programming over the steps that are left.
/// Returns `None` without a transition table, or if the values of a large one, or of one without a limit, have not converged.
fn of_table(world: &EnvSpec) -> Option<(f64, f64)> {
    let model = world.model()?;
    let table = model.table();
    let pairs = || (0..table.states()).flat_map(|state| (0..table.actions()).map(move |action| (state, action)));
    let outcomes: usize = pairs().map(|(state, action)| table.outcomes(state, action).len()).sum();
    let sweeps = OUTCOMES / outcomes.max(1);
    let limit = world.max_episode_steps.map_or(usize::MAX, |limit| limit as usize);
    let allowed = model.allowed();
    let value = |values: &[f64], state: usize, action: usize| {
        let after = |next: u32, terminated: bool| if terminated { 0.0 } else { values[next as usize] };
        table.outcomes(state, action).iter().map(|o| o.probability * (o.reward + after(o.next, o.terminated))).sum::<f64>()
    };
    let mean = |backup: &dyn Fn(&[f64]) -> f64| -> Option<f64> {
        let mut values = vec![0.0; table.states()];
        let mut change = 0.0;
        for _ in 0..limit.min(sweeps) {
            let step = |state: usize| {
                let actions = (0..table.actions()).filter(|action| allowed[state * table.actions() + action]);
                backup(&actions.map(|action| value(&values, state, action)).collect::<Vec<f64>>())
            };
            let next: Vec<f64> = (0..table.states()).map(step).collect();
            change = values.iter().zip(&next).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            values = next;
            if change < 1e-12 {
                break;
            }
        }
        let mean = table.starts().iter().zip(&values).filter(|(p, _)| **p > 0.0).map(|(p, value)| p * value).sum::<f64>();
        Some(mean).filter(|mean| mean.is_finite() && (limit <= sweeps || change < 1e-12))
    };
    let uniform = mean(&|of_actions| of_actions.iter().sum::<f64>() / of_actions.len() as f64)?;
    Some((uniform, mean(&|of_actions| of_actions.iter().copied().fold(f64::NEG_INFINITY, f64::max))?))
}

/// Random actions: uniform among the allowed ones, within the bounds of continuous ones, and standard normal where these have no bounds.
struct Uniform {
    width: usize,
    actions: Space,
}

impl Uniform {
    fn in_world(world: &EnvSpec) -> Self {
        let env = world.env();
        Self { width: env.observation_space().width(), actions: env.action_space() }
    }
}

impl Behaviour for Uniform {
    fn observation_width(&self) -> usize {
        self.width
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(UniformActor(self))
    }

    fn save(&self) -> Tensors {
        Tensors::new()
    }

    fn load(&mut self, _: &Tensors) -> Result<(), TensorsError> {
        Ok(())
    }
}

struct UniformActor<'a>(&'a Uniform);

impl Actor for UniformActor<'_> {
    fn act(&mut self, _: &[f32], masks: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]) {
        let (Choice::Sample(streams) | Choice::Truncated(streams, _)) = choice else {
            unreachable!("random actions are sampled");
        };
        match &self.0.actions {
            Space::Box { low, high } => {
                let mut rows = Vec::with_capacity(streams.len() * low.len());
                for stream in streams {
                    rows.extend(low.iter().zip(high).map(|(low, high)| match low.is_finite() && high.is_finite() {
                        true => low + (high - low) * stream.unit_f64() as f32,
                        false => stream.normal(),
                    }));
                }
                *actions = ActionRows::Continuous { rows, width: low.len() };
                log_probs.fill(0.0);
            }
            Space::Image(_) | Space::Text { .. } => unreachable!("actions are neither images nor texts"),
            space @ (Space::Discrete(_) | Space::MultiDiscrete(_)) => {
                let n = space.mask_width();
                let mut chosen = Vec::with_capacity(streams.len());
                for (i, (stream, log_prob)) in streams.iter_mut().zip(log_probs).enumerate() {
                    let (mut action, mut place) = (0, i * n);
                    *log_prob = 0.0;
                    for size in space.sizes() {
                        let is_allowed = |value: &u32| masks.is_none_or(|masks| masks[place + *value as usize]);
                        let allowed: Vec<u32> = (0..*size).filter(is_allowed).collect();
                        action = action * size + allowed[stream.below(allowed.len() as u32) as usize];
                        *log_prob -= ln(allowed.len() as f32);
                        place += *size as usize;
                    }
                    chosen.push(action);
                }
                *actions = ActionRows::Discrete(chosen);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published optima: Taxi 7.93, CliffWalking -13. FrozenLake's 0.74 within 100 steps is also that of Gymnasium's table.
    #[test]
    fn the_optimum_of_a_table_is_known() {
        // the gambler has no time limit
        for (world, expected) in [("gambler", 0.4), ("taxi", 7.93), ("cliff-walking", -13.0), ("frozen-lake", 0.74), ("cartpole", f64::NAN)]
        {
            let found = of_table(&gradus_envs::registry::find(world).unwrap()).map_or(f64::NAN, |(_, best)| best);
            assert!((found - expected).abs() < 0.01 || expected.is_nan() && found.is_nan(), "{world}: {found}");
        }
    }

    /// Random actions in CartPole have a mean return of about 22 (Gymnasium), in the taxi with its masks more than the -770 of unmasked ones, and -1200 in Pendulum.
    #[test]
    fn random_actions_have_their_known_returns() {
        for (agent, world, from, to) in [
            ("ppo", "cartpole", 19.0, 26.0),
            ("ppo", "pendulum", -1300.0, -1100.0),
            ("ppo", "mountain-car", -200.0, -200.0),
            ("q-learning", "taxi", -330.0, -180.0),
            ("ppo", "target-sum", -1.0, 0.5),
        ] {
            let config = Config::preset(agent, world, None).unwrap();
            let levels = Levels::of(&config, &config.world().unwrap()).unwrap();
            assert!((from..=to).contains(&levels.random.0), "{world}: {levels:?}");
            assert!(levels.is_random(levels.random.0 - 1e-9, 0.0) && !levels.is_random(levels.random.0 + 1000.0, 1.0));
        }
    }
}
