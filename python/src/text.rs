//! Training on texts, with rewards that are functions in Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use gradus::base::random::{Purpose, Stream};
use gradus::envs::text::Finish;
use gradus::envs::text::rewards::{Completed, OnError, RewardFunctions, Rewards};
use gradus::envs::{EnvError, EnvSpec, registry};
use gradus::nets::{Behaviour, Sampling};
use gradus::{Config, Trainer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::envs::locked;
use crate::failed;

fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Eos => "eos",
        Finish::Stop => "stop",
        Finish::Length => "length",
    }
}

/// Functions in Python, and the exception that one of them raised.
struct Functions {
    names: Vec<String>,
    functions: Vec<Py<PyAny>>,
    raised: Mutex<Option<PyErr>>,
}

impl Functions {
    /// Calls every function with a list for each of its arguments.
    fn call(&self, py: Python<'_>, completions: &[Completed<'_>]) -> PyResult<Vec<Vec<Option<f64>>>> {
        let columns = PyDict::new(py);
        let column =
            |of: &dyn Fn(&Completed<'_>) -> PyResult<Py<PyAny>>| PyList::new(py, completions.iter().map(of).collect::<PyResult<Vec<_>>>()?);
        let text = |text: &str| Ok(text.into_pyobject(py)?.into_any().unbind());
        columns.set_item("prompts", column(&|one| text(&one.prompt))?)?;
        columns.set_item("completions", column(&|one| text(&one.completion))?)?;
        columns.set_item("completion_ids", column(&|one| Ok(PyList::new(py, one.tokens)?.into_any().unbind()))?)?;
        columns.set_item("finish", column(&|one| text(finish(one.finish)))?)?;
        let json = py.import("json")?;
        let loads = |one: &Completed<'_>| Ok(json.call_method1("loads", (one.answer.to_string(),))?.unbind());
        columns.set_item("answer", column(&loads)?)?;
        let rewards = self.functions.iter().zip(&self.names).map(|(function, name)| {
            let numbers: Vec<Option<f64>> = function.bind(py).call1((columns.copy()?,))?.extract()?;
            let (expected, got) = (completions.len(), numbers.len());
            if got != expected {
                return Err(failed(format!("{name}: expected a list of {expected} numbers, one for each completion, got {got}")));
            }
            match numbers.iter().flatten().find(|number| !number.is_finite()) {
                Some(number) => Err(failed(format!("{name}: expected finite numbers, got {number}"))),
                None => Ok(numbers),
            }
        });
        let rewards = rewards.collect::<PyResult<Vec<_>>>()?;
        Ok((0..completions.len()).map(|i| rewards.iter().map(|of| of[i]).collect()).collect())
    }
}

impl RewardFunctions for Functions {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn rewards(&self, completions: &[Completed<'_>], _: bool) -> Vec<Result<Vec<Option<f64>>, String>> {
        Python::attach(|py| match self.call(py, completions) {
            Ok(rewards) => rewards.into_iter().map(Ok).collect(),
            Err(error) => {
                let problem = error.to_string();
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                completions.iter().map(|_| Err(problem.clone())).collect()
            }
        })
    }
}

/// An agent that learns on texts.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct TextTrainer {
    trainer: Mutex<Trainer>,
    functions: Arc<Functions>,
}

impl TextTrainer {
    /// The exception of a reward function, or this error.
    fn raised(&self, error: impl std::fmt::Display) -> PyErr {
        self.functions.raised.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(|| failed(error))
    }
}

#[pymethods]
impl TextTrainer {
    /// `functions` have a name, the function, and a weight; each is called with a dictionary of lists.
    #[new]
    fn new(
        py: Python<'_>,
        agent: &str,
        world: &str,
        settings: Vec<String>,
        functions: Vec<(String, Py<PyAny>, f64)>,
        task_weight: f64,
    ) -> PyResult<Self> {
        let config = Config::preset(agent, world, None).map_err(failed)?;
        let config = settings.iter().try_fold(config, |config, setting| config.with_setting(setting)).map_err(failed)?;
        let (mut names, mut own, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for (name, function, weight) in functions {
            names.push(name);
            own.push(function);
            weights.push(weight);
        }
        let functions = Arc::new(Functions { names, functions: own, raised: Mutex::new(None) });
        let trainer = py.detach(|| {
            let mut world = registry::find(world)?;
            if !functions.names.is_empty() {
                world = world.with_rewards(Rewards { functions: functions.clone(), weights, task_weight, on_error: OnError::Stop })?;
            }
            Trainer::in_world(config, world)
        });
        Ok(Self { trainer: Mutex::new(trainer.map_err(failed)?), functions })
    }

    /// Whether all steps are done.
    #[getter]
    fn is_finished(&self, py: Python<'_>) -> bool {
        locked(py, &self.trainer).is_finished()
    }

    /// Generated tokens so far.
    #[getter]
    fn steps(&self, py: Python<'_>) -> u64 {
        locked(py, &self.trainer).steps()
    }

    /// Generates completions and learns from them, without Python's lock but in the reward functions. Returns the metrics.
    fn iterate(&self, py: Python<'_>) -> PyResult<Vec<(String, f64)>> {
        py.check_signals()?;
        let mut guard = locked(py, &self.trainer);
        let trainer = &mut *guard;
        let iteration = py.detach(|| trainer.iterate()).map_err(|error| self.raised(error))?;
        Ok(iteration.metrics.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }

    /// Returns `n` completions of each prompt.
    fn generate(&self, py: Python<'_>, prompts: Vec<String>, n: usize, temperature: f32, seed: u64) -> PyResult<Vec<Vec<String>>> {
        let guard = locked(py, &self.trainer);
        let (policy, world) = (guard.policy(), guard.world());
        py.detach(|| generate(policy, &world, &prompts, n, temperature, seed)).map_err(failed)
    }

    /// Writes the policy to a new folder, for `Policy.open` and the commands `chat`, `sample` and `eval`.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let policy = locked(py, &self.trainer).to_policy().map_err(failed)?;
        py.detach(|| policy.save(folder)).map_err(failed)
    }
}

/// Returns `n` completions of each prompt.
pub(crate) fn generate(
    policy: &dyn Behaviour,
    world: &EnvSpec,
    prompts: &[String],
    n: usize,
    temperature: f32,
    seed: u64,
) -> Result<Vec<Vec<String>>, gradus::Error> {
    let text = world.text.as_ref().ok_or_else(|| EnvError::Text("generate: expected a text task".into()))?;
    let encoded = prompts.iter().map(|prompt| {
        let tokens = text.task.prompt_of(prompt).map_err(EnvError::Text)?;
        text.check_prompt(&tokens)?;
        Ok(tokens)
    });
    let encoded = encoded.collect::<Result<Vec<Vec<u32>>, EnvError>>()?;
    let repeated: Vec<Vec<u32>> = encoded.into_iter().flat_map(|prompt| vec![prompt; n]).collect();
    let sampling = Sampling { temperature, ..Sampling::default() };
    sampling.check().map_err(|error| EnvError::Text(error.to_string()))?;
    let stream = |i: usize| Stream::new(seed, Purpose::Evaluation, 1 + i as u64);
    let completions = gradus::rollouts::generate(policy, text, &repeated, &stream, &sampling);
    let decoded: Vec<String> = completions.iter().map(|tokens| text.task.vocabulary().decode(tokens)).collect();
    Ok(decoded.chunks(n.max(1)).map(<[String]>::to_vec).collect())
}

/// Adds this file's class.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TextTrainer>()
}
