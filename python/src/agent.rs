//! Agents: they act, observe and update when they are told to, or train in a world of ours by themselves.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use gradus::base::tensors::{Data, Tensor, Tensors, decode, encode, get_u64};
use gradus::envs::{Ending, EnvSpec, Finished, Outcome, Space, VecEnv};
use gradus::{Config, Mode};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::envs::{described, locked};
use crate::failed;

/// Whether steps were observed since the last update, in what [`Agent::save`] returns.
const BETWEEN: &str = "between_updates";

/// The name of the environments' state in what [`Agent::save`] returns.
fn worlds_of(agent: &gradus::Agent) -> String {
    format!("worlds.{}", agent.config().environment)
}

/// How long an agent trains before it asks whether Python wants something, such as an interruption.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// An agent.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct Agent {
    inner: Mutex<Inner>,
}

struct Inner {
    agent: gradus::Agent,
    /// The environments of a world of ours.
    envs: Option<VecEnv>,
    /// What the last update reported.
    report: Vec<(String, f64)>,
    /// Steps at their end, returns and lengths of the episodes since they were last asked for.
    episodes: Vec<(u64, f64, u32)>,
}

fn space(of: &Bound<'_, PyTuple>) -> PyResult<Space> {
    let kind: String = of.get_item(0)?.extract()?;
    let at = |i: usize| of.get_item(i);
    Ok(match &kind[..] {
        "discrete" => Space::Discrete(at(1)?.extract()?),
        "multi_discrete" => Space::MultiDiscrete(at(1)?.extract()?),
        "box" => Space::Box { low: at(1)?.extract()?, high: at(2)?.extract()? },
        "image" => Space::Image(gradus::envs::Image {
            frames: at(1)?.extract()?,
            height: at(2)?.extract()?,
            width: at(3)?.extract()?,
            channels: at(4)?.extract()?,
            largest: at(5)?.extract()?,
        }),
        other => return Err(failed(format!("space: expected discrete, multi_discrete, box or image, got {other}"))),
    })
}

fn configured(config: Config, settings: &[String]) -> PyResult<Config> {
    settings.iter().try_fold(config, |config, setting| config.with_setting(setting)).map_err(failed)
}

impl Inner {
    /// Takes a step of the loop in a world of ours.
    fn step(&mut self) -> Result<(), gradus::Error> {
        let Self { agent, envs: Some(envs), .. } = self else { return Ok(()) };
        agent.begin_episodes(envs)?;
        // as Stable-Baselines3's agents, without masks, as the policy is used
        let actions = agent.act(envs.observation_rows(), None)?;
        envs.step_unfinished(actions)?;
        agent.observe(&Outcome { masks: None, ..envs.outcome() })?;
        if self.learn()? {
            self.episodes.extend(self.agent.episodes().iter().map(|episode| (episode.step, episode.episode_return, episode.length)));
        }
        Ok(())
    }

    /// Learns, if a rollout is complete. Returns whether it was.
    fn learn(&mut self) -> Result<bool, gradus::Error> {
        let Some(report) = self.agent.update()? else { return Ok(false) };
        // agents with short rollouts report a group of them together
        if !report.is_empty() {
            self.report = report.into_iter().map(|(name, value)| (name.into(), value)).collect();
        }
        Ok(true)
    }
}

#[pymethods]
impl Agent {
    /// An agent with the preset's settings for a world of ours, and others (`KEY=VALUE`); with `spaces`, for environments elsewhere.
    #[new]
    #[pyo3(signature = (agent, world, preset, settings, spaces=None))]
    fn new(
        agent: &str,
        world: &str,
        preset: Option<&str>,
        settings: Vec<String>,
        spaces: Option<(Bound<'_, PyTuple>, Bound<'_, PyTuple>)>,
    ) -> PyResult<Self> {
        let (agent, envs) = match spaces {
            None => {
                let config = configured(Config::preset(agent, world, preset).map_err(failed)?, &settings)?;
                let agent = gradus::Agent::new(config).map_err(failed)?;
                let envs = agent.vec_env(agent.environments()).map_err(failed)?;
                (agent, Some(envs))
            }
            Some((observations, actions)) => {
                let world = EnvSpec::of_spaces(world, space(&observations)?, space(&actions)?);
                let config = configured(Config::preset_in(agent, &world, preset).map_err(failed)?, &settings)?;
                (gradus::Agent::in_world(config, &world).map_err(failed)?, None)
            }
        };
        Ok(Self { inner: Mutex::new(Inner { agent, envs, report: Vec::new(), episodes: Vec::new() }) })
    }

    /// Number of environments.
    #[getter]
    fn num_envs(&self, py: Python<'_>) -> usize {
        locked(py, &self.inner).agent.environments().len()
    }

    /// Steps of complete rollouts.
    #[getter]
    fn steps(&self, py: Python<'_>) -> u64 {
        locked(py, &self.inner).agent.steps()
    }

    /// Steps of the whole training.
    #[getter]
    fn total_steps(&self, py: Python<'_>) -> u64 {
        locked(py, &self.inner).agent.total_steps()
    }

    /// Updates so far.
    #[getter]
    fn iterations(&self, py: Python<'_>) -> u64 {
        locked(py, &self.inner).agent.iterations()
    }

    /// Whether all steps are done.
    #[getter]
    fn is_finished(&self, py: Python<'_>) -> bool {
        locked(py, &self.inner).agent.is_finished()
    }

    /// The settings by name, as TOML writes their values.
    fn settings(&self, py: Python<'_>) -> Vec<(String, String)> {
        locked(py, &self.inner).agent.config().settings()
    }

    /// What the last update reported.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = PyDict::new(py);
        for (name, value) in &locked(py, &self.inner).report {
            report.set_item(name, value)?;
        }
        Ok(report)
    }

    /// The episodes since the last call: the steps of the training at their end, their returns and lengths.
    fn take_episodes(&self, py: Python<'_>) -> Vec<(u64, f64, u32)> {
        std::mem::take(&mut locked(py, &self.inner).episodes)
    }

    /// Trains in a world of ours until `updates` updates or all steps are done, without Python's lock.
    fn train(&self, py: Python<'_>, updates: u64) -> PyResult<()> {
        let last = {
            let inner = locked(py, &self.inner);
            if inner.envs.is_none() {
                return Err(failed("train: expected an agent in a world of Gradus; in environments elsewhere it acts and observes"));
            }
            inner.agent.iterations().saturating_add(updates)
        };
        loop {
            let begin = Instant::now();
            // a handler of signals may use the agent, so it is not locked then
            let mut guard = locked(py, &self.inner);
            let inner = &mut *guard;
            let is_done = |agent: &gradus::Agent| agent.is_finished() || agent.iterations() >= last;
            py.detach(|| {
                while !is_done(&inner.agent) && begin.elapsed() < ASK_EVERY {
                    inner.step()?;
                }
                Ok(())
            })
            .map_err(|error: gradus::Error| failed(error))?;
            if is_done(&inner.agent) {
                return Ok(());
            }
            drop(guard);
            py.check_signals()?;
        }
    }

    /// Chooses an action for each environment.
    #[pyo3(signature = (observations, masks=None))]
    fn act<'py>(
        &self,
        py: Python<'py>,
        observations: PyReadonlyArray2<'py, f32>,
        masks: Option<PyReadonlyArray2<'py, bool>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut inner = locked(py, &self.inner);
        let masks = masks.as_ref().map(in_rows).transpose()?;
        let actions = inner.agent.act(in_rows(&observations)?, masks).map_err(failed)?;
        array(py, actions)
    }

    /// Learns of what the actions led to: rewards, whether episodes terminated or were truncated, the observations after the step and, of environments that began a new
    /// episode in it, the last observations of the old one. Returns whether a rollout is complete, from which `update` learns.
    #[allow(clippy::too_many_arguments)] // as Gymnasium's step returns them
    #[pyo3(signature = (observations, rewards, terminations, truncations, finals, masks=None))]
    fn observe(
        &self,
        py: Python<'_>,
        observations: PyReadonlyArray2<'_, f32>,
        rewards: PyReadonlyArray1<'_, f32>,
        terminations: PyReadonlyArray1<'_, bool>,
        truncations: PyReadonlyArray1<'_, bool>,
        finals: Vec<(usize, PyReadonlyArray1<'_, f32>)>,
        masks: Option<PyReadonlyArray2<'_, bool>>,
    ) -> PyResult<bool> {
        let mut guard = locked(py, &self.inner);
        let inner = &mut *guard;
        let endings: Vec<Ending> =
            terminations.as_array().iter().zip(truncations.as_array()).map(|(over, cut)| Ending::new(*over, *cut)).collect();
        let finished = finals.iter().map(|(env, observation)| {
            let ending =
                *endings.get(*env).ok_or_else(|| failed(format!("finals: expected an environment below {}, got {env}", endings.len())))?;
            let observation = observation.as_slice().map_err(failed)?.to_vec();
            Ok(Finished { env: *env, seed: 0, ending, episode_return: 0.0, length: 0, observation, mask: None, scores: Vec::new() })
        });
        let finished = finished.collect::<PyResult<Vec<_>>>()?;
        let masks = masks.as_ref().map(in_rows).transpose()?;
        let outcome =
            Outcome { masks, finished: &finished, ..Outcome::new(rewards.as_slice().map_err(failed)?, &endings, in_rows(&observations)?) };
        inner.agent.observe(&outcome).map_err(failed)?;
        Ok(inner.agent.is_complete())
    }

    /// Learns, if a rollout is complete. Returns whether it was.
    fn update(&self, py: Python<'_>) -> PyResult<bool> {
        let mut guard = locked(py, &self.inner);
        let inner = &mut *guard;
        py.detach(|| inner.learn()).map_err(failed)
    }

    /// A copy of the policy.
    fn policy(&self, py: Python<'_>) -> PyResult<Policy> {
        let inner = locked(py, &self.inner);
        Ok(Policy { inner: Mutex::new(inner.agent.policy().map_err(failed)?) })
    }

    /// Replaces the parameters by arrays, by name.
    fn set_parameters(&self, py: Python<'_>, parameters: Bound<'_, PyDict>) -> PyResult<()> {
        let mut tensors = Tensors::new();
        for (name, array) in parameters {
            let name: String = name.extract()?;
            let wrong = |_| failed(format!("{name}: expected an array of float32"));
            let array: PyReadonlyArrayDyn<'_, f32> = array.extract().map_err(wrong)?;
            tensors.insert(name, Tensor::f32(array.shape(), array.as_array().iter().copied().collect()));
        }
        locked(py, &self.inner).agent.set_parameters(&tensors).map_err(failed)
    }

    /// Everything that the agent needs to go on, as bytes.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let inner = locked(py, &self.inner);
        let mut tensors = inner.agent.save();
        if let Some(envs) = &inner.envs {
            tensors.insert(worlds_of(&inner.agent), Tensor::u64(envs.save()));
        }
        tensors.insert(BETWEEN.into(), Tensor::u64(vec![inner.agent.is_between_updates().into()]));
        Ok(PyBytes::new(py, &encode(&tensors, "")))
    }

    /// Goes on where an agent with the same settings, apart from the number of steps, was saved. Unless `goes_on`, episodes that were going on are over, and environments
    /// of a world of ours begin new ones. After an error the agent must not be used.
    fn load(&self, py: Python<'_>, bytes: &[u8], goes_on: bool) -> PyResult<()> {
        let mut guard = locked(py, &self.inner);
        let Inner { agent, envs, .. } = &mut *guard;
        let (mut tensors, _) = decode(bytes).map_err(failed)?;
        let worlds = tensors.remove(&worlds_of(agent));
        let is_between = get_u64(&tensors, BETWEEN).is_ok_and(|between| *between == [1]);
        agent.load(&tensors).map_err(failed)?;
        let has_begun = agent.steps() > 0 || is_between;
        if has_begun && (!goes_on || is_between || envs.is_some() && worlds.is_none()) {
            agent.interrupt();
        }
        if let (Some(Tensor { data: Data::U64(words), .. }), Some(envs)) = (worlds, envs) {
            envs.load(&words).map_err(failed)?;
            let anew = if has_begun && !goes_on { 0..envs.len() } else { 0..0 };
            anew.into_iter().try_for_each(|env| envs.begin_anew(env)).map_err(failed)?;
        }
        Ok(())
    }

    /// Loads what an agent with another number of environments has learnt. After an error the agent must not be used.
    fn load_learnt(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let (tensors, _) = decode(bytes).map_err(failed)?;
        locked(py, &self.inner).agent.load_learnt(&tensors).map_err(failed)
    }
}

/// The numbers of a matrix, row after row.
fn in_rows<'a, T: numpy::Element>(matrix: &'a PyReadonlyArray2<'_, T>) -> PyResult<&'a [T]> {
    // a slice of a matrix that lies column after column would have another order
    if !matrix.is_c_contiguous() {
        return Err(failed("expected an array whose rows lie one after the other (numpy.ascontiguousarray), got another order"));
    }
    matrix.as_slice().map_err(failed)
}

/// Actions as NumPy's arrays: whole numbers, or rows.
fn array<'py>(py: Python<'py>, actions: gradus::envs::Actions<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match actions {
        gradus::envs::Actions::Discrete(numbers) => PyArray1::from_iter(py, numbers.iter().map(|number| i64::from(*number))).into_any(),
        gradus::envs::Actions::Continuous { rows, width } => {
            PyArray1::from_slice(py, rows).reshape([rows.len() / width.max(1), width])?.into_any()
        }
    })
}

/// A policy that acts, and learns no more.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct Policy {
    inner: Mutex<gradus::Policy>,
}

#[pymethods]
impl Policy {
    /// The policy in a run's folder.
    #[staticmethod]
    fn open(folder: std::path::PathBuf) -> PyResult<Self> {
        Ok(Self { inner: Mutex::new(gradus::Policy::load(folder).map_err(failed)?) })
    }

    /// Writes the policy to a new folder, for the commands `eval` and `play`.
    fn save(&self, py: Python<'_>, folder: std::path::PathBuf) -> PyResult<()> {
        locked(py, &self.inner).save(folder).map_err(failed)
    }

    /// Returns `n` completions of each prompt, of a policy that writes.
    fn generate(&self, py: Python<'_>, prompts: Vec<String>, n: usize, temperature: f32, seed: u64) -> PyResult<Vec<Vec<String>>> {
        let guard = locked(py, &self.inner);
        let policy = &*guard;
        py.detach(|| crate::text::generate(policy.behaviour(), policy.world(), &prompts, n, temperature, seed)).map_err(failed)
    }

    /// The spaces.
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyTuple>)> {
        let env = locked(py, &self.inner).world().env();
        Ok((described(py, &env.observation_space())?, described(py, &env.action_space())?))
    }

    /// The seed of sampled actions.
    fn set_seed(&self, py: Python<'_>, seed: u64) {
        locked(py, &self.inner).set_seed(seed);
    }

    /// How many numbers the policy remembers of an episode.
    #[getter]
    fn memory_width(&self, py: Python<'_>) -> usize {
        locked(py, &self.inner).memory().len()
    }

    /// Chooses an action for each row. `memory` has what the policy remembers of each episode, and is replaced.
    #[pyo3(signature = (observations, deterministic, masks=None, memory=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        observations: PyReadonlyArray2<'py, f32>,
        deterministic: bool,
        masks: Option<PyReadonlyArray2<'py, bool>>,
        memory: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut policy = locked(py, &self.inner);
        let expected = (observations.shape()[0], policy.memory().len());
        let own = |memory: Bound<'py, PyAny>| {
            let array = memory.cast::<PyArray2<f32>>().ok().filter(|array| (array.shape()[0], array.shape()[1]) == expected).cloned();
            array.ok_or_else(|| {
                let said = |name: &str| memory.getattr(name).map_or_else(|_| "no array".into(), |value| value.to_string());
                failed(format!("memory: expected float32 of shape {expected:?}, got {} of shape {}", said("dtype"), said("shape")))
            })
        };
        let memory = memory.map(own).transpose()?;
        let mode = if deterministic { Mode::Greedy } else { Mode::Sampled };
        let masks = masks.as_ref().map(in_rows).transpose()?;
        let shape = observations.shape();
        let rows = gradus::ndarray::ArrayView2::from_shape((shape[0], shape[1]), in_rows(&observations)?).map_err(failed)?;
        let mut memory = memory.map(|memory| memory.try_readwrite().map_err(|error| failed(format!("memory: {error}")))).transpose()?;
        if memory.as_ref().is_some_and(|memory| !memory.is_c_contiguous()) {
            return Err(failed("memory: expected rows one after the other in memory, got another order"));
        }
        let remembered = match &mut memory {
            Some(memory) => memory.as_slice_mut().map_err(failed)?,
            None => &mut [],
        };
        array(py, policy.predict_many_with(rows, remembered, masks, mode).map_err(failed)?)
    }

    /// What the network computes from rows of observations, which are normalised as in training; discrete ones are one-hot codes, and each is the first of an episode to a policy with a memory: values, action values and probabilities, as far as it has them.
    fn inspect<'py>(&self, py: Python<'py>, observations: PyReadonlyArray2<'py, f32>) -> PyResult<Bound<'py, PyDict>> {
        let mut policy = locked(py, &self.inner);
        let (width, shape) = (policy.behaviour().observation_width(), observations.shape());
        if shape[1] != width {
            return Err(failed(format!("observations: expected rows of {width} numbers, got {}", shape[1])));
        }
        let seen = policy.inspect(in_rows(&observations)?).map_err(failed)?;
        let parts = PyDict::new(py);
        let values: Option<Vec<f64>> = if seen.is_empty() { None } else { seen.iter().map(|one| one.value).collect() };
        if let Some(values) = values {
            parts.set_item("values", PyArray1::from_vec(py, values))?;
        }
        for (name, rows) in [
            ("action_values", seen.iter().map(|one| &one.action_values[..]).collect::<Vec<_>>()),
            ("probabilities", seen.iter().map(|one| &one.probabilities[..]).collect()),
        ] {
            if rows.first().is_some_and(|row| !row.is_empty()) {
                parts.set_item(name, PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), rows[0].len()])?)?;
            }
        }
        Ok(parts)
    }

    /// Evaluates the policy in its world: the returns and lengths of episodes.
    fn evaluate(&self, py: Python<'_>, episodes: usize, deterministic: bool) -> PyResult<(Vec<f64>, Vec<u32>)> {
        let guard = locked(py, &self.inner);
        let (policy, mode) = (&*guard, if deterministic { Mode::Greedy } else { Mode::Sampled });
        let evaluation = py.detach(|| policy.evaluate(episodes, mode)).map_err(failed)?;
        Ok((evaluation.returns, evaluation.lengths))
    }

    /// The parameters by name, in PyTorch's layout.
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, tensor) in locked(py, &self.inner).behaviour().save() {
            if let Data::F32(numbers) = &tensor.data {
                all.set_item(name, PyArray1::from_slice(py, numbers).reshape(tensor.shape.clone())?)?;
            }
        }
        Ok(all)
    }
}

/// Adds this file's classes.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Agent>()?;
    module.add_class::<Policy>()
}
