//! Environments: one, and many in lockstep.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::sync::MutexExt;

use gradus::envs::{Action, Actions, Autoreset, Env as _, EnvSpec, Space, VecEnv as Vector, registry};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1, PyReadwriteArray2,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::failed;

/// Locks what only one thread may use at a time. While this thread waits, it does not hold Python's lock, for which the other one may wait.
pub(crate) fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

/// A space as a tuple whose first entry is its kind.
pub(crate) fn described<'py>(py: Python<'py>, space: &Space) -> PyResult<Bound<'py, PyTuple>> {
    match space {
        Space::Discrete(n) => ("discrete", *n).into_pyobject(py),
        Space::MultiDiscrete(sizes) => ("multi_discrete", sizes.clone()).into_pyobject(py),
        Space::Box { low, high } => ("box", low.clone(), high.clone()).into_pyobject(py),
        Space::Image(image) => ("image", image.frames, image.height, image.width, image.channels, image.largest).into_pyobject(py),
        Space::Text { vocabulary, context } => ("text", *vocabulary, *context).into_pyobject(py),
    }
}

/// An action of this space, from a number or an array of them.
enum Taken {
    Discrete(u32),
    Continuous(Vec<f32>),
}

impl Taken {
    fn of(space: &Space, action: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = || {
            let got = action.repr().map_or_else(|_| "something without a text".into(), |text| text.to_string());
            failed(format!("action: expected an element of {space}, got {got}"))
        };
        let taken = match space {
            Space::Box { .. } => Taken::Continuous(action.extract().map_err(|_| wrong())?),
            _ => Taken::Discrete(action.extract().map_err(|_| wrong())?),
        };
        // the classic environments take forces outside of their bounds, as Gymnasium's do
        let fits = match (space, &taken) {
            (Space::Box { low, .. }, Taken::Continuous(numbers)) => {
                numbers.len() == low.len() && numbers.iter().all(|number| number.is_finite())
            }
            _ => space.contains(taken.action()),
        };
        if fits { Ok(taken) } else { Err(wrong()) }
    }

    fn action(&self) -> Action<'_> {
        match self {
            Taken::Discrete(number) => Action::Discrete(*number),
            Taken::Continuous(numbers) => Action::Continuous(numbers),
        }
    }
}

/// What a world is, without making one.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct World {
    spec: EnvSpec,
}

#[pymethods]
impl World {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        Ok(Self { spec: registry::find(name).map_err(failed)? })
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.spec.name
    }

    /// Gymnasium's name of the same task.
    #[getter]
    fn gymnasium_id(&self) -> Option<&str> {
        self.spec.gymnasium_id.as_deref()
    }

    /// What it is, in a sentence.
    #[getter]
    fn about(&self) -> &str {
        &self.spec.about
    }

    /// The mean return from which on it counts as solved.
    #[getter]
    fn solved_at(&self) -> Option<f64> {
        self.spec.solved_at
    }

    /// The steps after which an episode is truncated.
    #[getter]
    fn max_episode_steps(&self) -> Option<u32> {
        self.spec.max_episode_steps
    }

    /// The transition table, if the environment has one: for each state and action the outcomes, each with its probability, next state, reward and whether it terminates.
    fn transitions(&self) -> Option<Vec<Vec<Vec<(f64, u32, f64, bool)>>>> {
        let model = self.spec.model()?;
        let table = model.table();
        let outcome = |outcome: &gradus::envs::tabular::Outcome| (outcome.probability, outcome.next, outcome.reward, outcome.terminated);
        let outcomes = |state, action| table.outcomes(state, action).iter().map(outcome).collect();
        Some((0..table.states()).map(|state| (0..table.actions()).map(|action| outcomes(state, action)).collect()).collect())
    }

    /// The spaces of observations and actions.
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)> {
        let env = self.spec.checked_env().map_err(failed)?;
        Ok((described(py, &env.observation_space())?, described(py, &env.action_space())?))
    }

    /// How Gymnasium's `render` can show it.
    fn render_modes(&self) -> PyResult<Vec<&'static str>> {
        let mut env = self.spec.checked_env().map_err(failed)?;
        env.reset(0, &mut vec![0.0; env.observation_space().width()]);
        let modes = [("rgb_array", env.render().is_some()), ("ansi", env.ansi().is_some())];
        Ok(modes.into_iter().filter(|(_, has)| *has).map(|(mode, _)| mode).collect())
    }
}

/// One environment, whose caller begins its episodes.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct Env {
    inner: Mutex<One>,
}

struct One {
    env: Box<dyn gradus::envs::Env>,
    actions: Space,
    observation: Vec<f32>,
    has_begun: bool,
}

/// An observation, the reward, and whether the episode terminated and was truncated.
type Stepped<'py> = (Bound<'py, PyArray1<f32>>, f64, bool, bool);

#[pymethods]
impl Env {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        let env = registry::find(name).and_then(|spec| spec.checked_env()).map_err(failed)?;
        let (actions, observation) = (env.action_space(), vec![0.0; env.observation_space().width()]);
        Ok(Self { inner: Mutex::new(One { env, actions, observation, has_begun: false }) })
    }

    /// Begins the episode of a seed.
    fn reset<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyArray1<f32>> {
        let mut one = locked(py, &self.inner);
        let One { env, observation, has_begun, .. } = &mut *one;
        env.reset(seed, observation);
        *has_begun = true;
        PyArray1::from_slice(py, observation)
    }

    /// Begins an episode in a physical state, after which the environment draws from the seed.
    fn start_from<'py>(&self, py: Python<'py>, state: Vec<f64>, seed: u64) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let mut one = locked(py, &self.inner);
        let One { env, observation, has_begun, .. } = &mut *one;
        env.reset(seed, observation);
        env.start_from(&state, observation).map_err(failed)?;
        env.reseed(seed);
        *has_begun = true;
        Ok(PyArray1::from_slice(py, observation))
    }

    /// Takes a step.
    fn step<'py>(&self, py: Python<'py>, action: &Bound<'py, PyAny>) -> PyResult<Stepped<'py>> {
        let mut one = locked(py, &self.inner);
        let One { env, actions, observation, has_begun } = &mut *one;
        if !*has_begun {
            return Err(failed("step: expected `reset` before it, got none"));
        }
        let action = Taken::of(actions, action)?;
        let step = env.step(action.action(), observation);
        if let Some(number) = observation.iter().find(|number| !number.is_finite()) {
            return Err(failed(format!("observation: expected finite numbers, got {number}")));
        }
        Ok((PyArray1::from_slice(py, observation), step.reward, step.terminated, step.truncated))
    }

    /// The actions that the policy may choose now, if the environment says so.
    fn action_mask<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<bool>>> {
        let one = locked(py, &self.inner);
        let mut mask = vec![true; one.actions.mask_width()];
        (!mask.is_empty() && one.env.action_mask(&mut mask)).then(|| PyArray1::from_vec(py, mask))
    }

    /// The state of the episode.
    fn save(&self, py: Python<'_>) -> Vec<u64> {
        locked(py, &self.inner).env.save()
    }

    /// Goes on with an episode that was saved. The observation is that of the next step.
    fn load(&self, py: Python<'_>, state: Vec<u64>) -> PyResult<()> {
        let mut one = locked(py, &self.inner);
        one.env.load(&state).map_err(failed)?;
        one.has_begun = true;
        Ok(())
    }

    /// The state as text.
    fn ansi(&self, py: Python<'_>) -> Option<String> {
        locked(py, &self.inner).env.ansi()
    }

    /// A picture of the state: rows x columns x 3.
    fn picture<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray3<u8>>>> {
        let one = locked(py, &self.inner);
        let Some((pixels, [rows, columns])) = one.env.render().and_then(|scene| gradus::draw::still(&scene)) else { return Ok(None) };
        Ok(Some(pixels.into_pyarray(py).reshape([rows, columns, 3])?))
    }
}

fn mode(name: &str) -> PyResult<Autoreset> {
    Ok(match name {
        "same_step" => Autoreset::SameStep,
        "next_step" => Autoreset::NextStep,
        "disabled" => Autoreset::Disabled,
        other => return Err(failed(format!("autoreset: expected same_step, next_step or disabled, got {other}"))),
    })
}

/// Many environments in lockstep.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct VecEnv {
    spec: EnvSpec,
    autoreset: Autoreset,
    inner: Mutex<Vector>,
}

/// The actions of a vector, from an array with an entry or a row for each environment. Numbers outside of their bounds are clipped.
pub(crate) enum Many {
    Discrete(Vec<u32>),
    Continuous(Vec<f32>, usize),
}

impl Many {
    pub(crate) fn of(space: &Space, actions: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |expected: &str| failed(format!("actions: expected an array of {expected} for each environment"));
        if let Space::Box { low, high } = space {
            let rows: PyReadonlyArray2<'_, f32> = actions.extract().map_err(|_| wrong("float32, with a row"))?;
            let array = rows.as_array();
            if array.ncols() != low.len() {
                return Err(failed(format!("actions: expected {} numbers for each environment, got {}", low.len(), array.ncols())));
            }
            let bounds = low.iter().zip(high).cycle();
            return Ok(Many::Continuous(
                array.iter().zip(bounds).map(|(number, (low, high))| number.clamp(*low, *high)).collect(),
                low.len(),
            ));
        }
        let numbers: PyReadonlyArray1<'_, i64> = actions.extract().map_err(|_| wrong("int64, with a number"))?;
        let number = |n: &i64| u32::try_from(*n).map_err(|_| failed(format!("actions: expected elements of {space}, got {n}")));
        Ok(Many::Discrete(numbers.as_array().iter().map(number).collect::<PyResult<_>>()?))
    }

    pub(crate) fn actions(&self) -> Actions<'_> {
        match self {
            Many::Discrete(numbers) => Actions::Discrete(numbers),
            Many::Continuous(rows, width) => Actions::Continuous { rows, width: *width },
        }
    }
}

/// An episode that ended in a step: its environment, return, length, final observation, and the action mask of its end.
type Ended<'py> = (usize, f64, u32, Bound<'py, PyArray1<f32>>, Option<Bound<'py, PyArray1<bool>>>);

impl VecEnv {
    fn ended<'py>(py: Python<'py>, envs: &Vector) -> Vec<Ended<'py>> {
        let of = |episode: &gradus::envs::Finished| {
            let mask = episode.mask.as_ref().map(|mask| PyArray1::from_slice(py, mask));
            (episode.env, episode.episode_return, episode.length, PyArray1::from_slice(py, &episode.observation), mask)
        };
        envs.outcome().finished.iter().map(of).collect()
    }
}

#[pymethods]
impl VecEnv {
    #[new]
    fn new(name: &str, num_envs: usize, seed: u64, autoreset: &str) -> PyResult<Self> {
        let (spec, autoreset) = (registry::find(name).map_err(failed)?, mode(autoreset)?);
        let inner = spec.vec_env_with(0..num_envs, seed, autoreset).map_err(failed)?;
        Ok(Self { spec, autoreset, inner: Mutex::new(inner) })
    }

    /// Begins new episodes, which follow from the seed.
    fn reset(&self, py: Python<'_>, seed: u64) -> PyResult<()> {
        let mut inner = locked(py, &self.inner);
        *inner = self.spec.vec_env_with(0..inner.len(), seed, self.autoreset).map_err(failed)?;
        Ok(())
    }

    /// Writes the observations.
    fn observe(&self, py: Python<'_>, mut observations: PyReadwriteArray2<'_, f32>) -> PyResult<()> {
        copy(locked(py, &self.inner).observation_rows(), observations.as_slice_mut().map_err(failed)?)
    }

    /// The action masks, one row after the other.
    fn action_masks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<bool>>>> {
        let inner = locked(py, &self.inner);
        let Some(masks) = inner.action_masks() else { return Ok(None) };
        Ok(Some(PyArray1::from_slice(py, masks).reshape([inner.len(), masks.len() / inner.len().max(1)])?))
    }

    /// Takes a step in each environment, without Python's lock, and writes what follows. Returns the episodes that ended.
    fn step<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        mut observations: PyReadwriteArray2<'py, f32>,
        mut rewards: PyReadwriteArray1<'py, f64>,
        mut terminations: PyReadwriteArray1<'py, bool>,
        mut truncations: PyReadwriteArray1<'py, bool>,
    ) -> PyResult<Vec<Ended<'py>>> {
        let mut guard = locked(py, &self.inner);
        let inner = &mut *guard;
        let actions = Many::of(&inner.action_space(), actions)?;
        py.detach(|| inner.step(actions.actions()).map(drop)).map_err(failed)?;
        let outcome = inner.outcome();
        copy(outcome.observations, observations.as_slice_mut().map_err(failed)?)?;
        let rewards = rewards.as_slice_mut().map_err(failed)?;
        rewards.iter_mut().zip(outcome.rewards).for_each(|(to, from)| *to = (*from).into());
        let (terminations, truncations) = (terminations.as_slice_mut().map_err(failed)?, truncations.as_slice_mut().map_err(failed)?);
        for ((terminated, truncated), ending) in terminations.iter_mut().zip(truncations).zip(outcome.endings) {
            (*terminated, *truncated) = (ending.terminated(), ending.truncated());
        }
        Ok(Self::ended(py, inner))
    }

    /// Begins the next episode of the environments whose entry is true, whether the last one is over or not.
    fn begin_anew(&self, py: Python<'_>, envs: PyReadonlyArray1<'_, bool>) -> PyResult<()> {
        let mut inner = locked(py, &self.inner);
        for (env, wanted) in envs.as_array().iter().enumerate() {
            if *wanted {
                inner.begin_anew(env).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Copies numbers to an array of the same length.
pub(crate) fn copy(from: &[f32], to: &mut [f32]) -> PyResult<()> {
    if from.len() != to.len() {
        return Err(failed(format!("observations: expected room for {} numbers, got {}", from.len(), to.len())));
    }
    to.copy_from_slice(from);
    Ok(())
}

/// The names of all worlds.
#[pyfunction]
fn worlds() -> Vec<String> {
    registry::all().into_iter().map(|spec| spec.name).collect()
}

/// Adds this file's classes and functions.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<World>()?;
    module.add_class::<Env>()?;
    module.add_class::<VecEnv>()?;
    module.add_function(wrap_pyfunction!(worlds, module)?)
}
