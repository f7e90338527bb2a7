//! Environments as tensor programs. Thousands of them run on the policy's device, and their observations and actions stay on the device.
//!
//! The steps of [`Worlds`] have no branch: every environment computes both its next state and the initial state of its next episode, and
//! selects the initial state if the episode has ended. So the host waits for the device only at the end of a rollout. Then rewards, log pi
//! and endings are copied to the host. On a GPU, the launches of a rollout are recorded and repeated as one CUDA graph.
//!
//! [`TextWorlds`] compute prompts, completions and verdicts on the device. Only log pi of the tokens and a few numbers per completion are
//! copied to the host.
//!
//! The random numbers are those of the host: the keyed streams of [`gradus_base::random`], word for word. So an environment's episodes have
//! the same seeds, initial states and random numbers as on the host, and actions are sampled with the same uniform numbers. A checkpoint
//! that is written on the device can be resumed on the host.

mod bandit;
mod cartpole;
mod normal;
pub(super) mod random;
mod rollout;
mod target_sum;
mod texts;

use gradus_envs::{EnvSpec, TensorEnvSpec};
use tch::{Device, Kind, TchError, Tensor};

use super::ActorCritic;
use super::fault::{Fault, one_line};
use super::parameters::{to_device, to_host, whole_to_host};
use super::{actor_critic, transformer};
use crate::{ActionRows, Observations, Store, Texts};
use random::episode_seeds;
pub use random::philox;
pub use rollout::Record;
pub use texts::{Completions, TextWorlds, knows_text};

/// A tensor program of an environment. A state tensor has one column per environment. All random numbers of an episode are drawn at its
/// start.
trait Program: Send {
    /// Numbers per observation.
    fn width(&self) -> usize;

    /// Number of steps after which an episode is truncated, if there is a limit.
    fn limit(&self) -> Option<u32> {
        None
    }

    /// A lower bound on the length of an episode.
    fn shortest(&self) -> usize {
        1
    }

    /// Number of blocks of random words that an initial state needs.
    fn blocks(&self) -> usize;

    /// Returns the initial states of the episodes with these seeds: episodes x numbers x environments. The seeds are split into two words,
    /// each episodes x environments.
    fn starts(&self, seeds: &[Tensor; 2], kind: Kind) -> Result<Tensor, TchError>;

    /// Takes one step of all environments.
    fn step(&self, state: &Tensor, actions: &Tensor) -> Result<Stepped, TchError>;

    /// Returns the observations, one row per environment.
    fn observe(&self, state: &Tensor) -> Result<Tensor, TchError>;

    /// Returns the words that the host's environment would save in this state. `episode` is the episode's seed and its length so far.
    fn save(&self, state: &[f64], episode: (u64, u32)) -> Vec<u64>;

    /// Replaces the initial state in `state` by the saved state; an error is one line.
    fn load(&self, words: &[u64], episode: (u64, u32), state: &mut [f64]) -> Result<(), String>;
}

/// The result of a step.
struct Stepped {
    state: Tensor,
    /// Rewards, in f32.
    rewards: Tensor,
    terminated: Tensor,
}

/// The state of one environment, in the host's format.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// Number of episodes that have begun.
    pub episodes: u64,
    /// Seed of the current episode.
    pub seed: u64,
    /// Number of steps of the current episode so far.
    pub length: u32,
    /// The current observation.
    pub observation: Vec<f32>,
    /// The result of [`Env::save`](gradus_envs::Env::save) and, with a time limit, the elapsed steps.
    pub state: Vec<u64>,
}

/// Environments on a device.
pub struct Worlds {
    program: Box<dyn Program>,
    device: Device,
    /// f64 if the device supports it.
    kind: Kind,
    seed: u64,
    /// Environment numbers: 0, 1, ...
    ids: Tensor,
    /// The states: numbers x environments.
    state: Tensor,
    /// Number of steps of each environment's current episode.
    elapsed: Tensor,
    /// Number of episodes of each environment that have begun.
    episodes: Tensor,
    /// Number of words drawn from every stream of actions.
    position: u64,
    /// The number of the random block of the next word, on the device.
    block: Tensor,
    /// The launches of a rollout for each place of its first word in a random block, if they were recorded.
    recorded: [Option<rollout::Recorded>; 4],
    /// The key of the last rollout.
    last: Option<rollout::Key>,
    /// The policy's record of the device's first error.
    fault: Fault,
}

/// Whether this module has a tensor program for `world`, and the observations and actions of `world` fit `policy`.
pub fn knows(world: &EnvSpec, policy: &ActorCritic) -> bool {
    world.tensor_spec.as_ref().is_some_and(is_known) && {
        let env = world.env();
        let actions = if let gradus_envs::Space::Discrete(n) = env.action_space() { Some(n as usize) } else { None };
        (env.observation_space().width(), actions) == policy.reads_and_chooses()
    }
}

fn is_known(tensor_spec: &TensorEnvSpec) -> bool {
    match tensor_spec {
        TensorEnvSpec::CartPole { limit } => *limit > 0,
        TensorEnvSpec::Bandit(_) => true,
        // the noise must begin at a block boundary of its stream
        TensorEnvSpec::ContextualBandit(bandit) => bandit.width().is_multiple_of(4),
        TensorEnvSpec::Text | TensorEnvSpec::TargetSum(_) => false,
    }
}

fn program(tensor_spec: &TensorEnvSpec, device: Device, kind: Kind) -> Result<Box<dyn Program>, TchError> {
    Ok(match tensor_spec {
        TensorEnvSpec::CartPole { limit } => Box::new(cartpole::CartPole { limit: *limit }),
        TensorEnvSpec::Bandit(bandit) => Box::new(bandit::Bandit::new(bandit, device, kind)?),
        TensorEnvSpec::ContextualBandit(bandit) => Box::new(bandit::ContextualBandit::new(bandit, device, kind)?),
        TensorEnvSpec::Text | TensorEnvSpec::TargetSum(_) => unreachable!("`is_known` excludes it"),
    })
}

impl Worlds {
    /// Creates environments 0 to `envs` - 1 of the run with seed `seed`, at the start of their first episodes, on the device of `policy`;
    /// an error is one line.
    ///
    /// # Panics
    /// Unless [`knows`] returns `true` for `world` and `policy`.
    pub fn new(world: &EnvSpec, envs: usize, seed: u64, policy: &ActorCritic) -> Result<Self, String> {
        assert!(knows(world, policy), "worlds: expected an environment with a tensor program that fits the policy, got {}", world.name);
        let device = policy.device();
        let kind = if device == Device::Mps { Kind::Float } else { Kind::Double };
        let make = || {
            let Some(tensor_spec) = &world.tensor_spec else { unreachable!("`knows` has checked it") };
            let program = program(tensor_spec, device, kind)?;
            let whole = (Kind::Int64, device);
            let ids = Tensor::f_arange(envs as i64, whole)?;
            let zeros = Tensor::f_zeros([1, envs as i64], whole)?;
            let state = program.starts(&episode_seeds(seed, &ids, &zeros)?, kind)?.f_select(0, 0)?;
            let (elapsed, episodes) = (Tensor::f_zeros([envs as i64], whole)?, Tensor::f_ones([envs as i64], whole)?);
            let (block, fault) = (Tensor::f_zeros([1], whole)?, policy.fault().clone());
            Ok(Self {
                program,
                device,
                kind,
                seed,
                ids,
                state,
                elapsed,
                episodes,
                position: 0,
                block,
                recorded: Default::default(),
                last: None,
                fault,
            })
        };
        make().map_err(|error: TchError| one_line(&error))
    }

    /// Number of environments.
    pub fn len(&self) -> usize {
        self.ids.numel()
    }

    /// Whether there are no environments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of words drawn from every environment's stream of actions.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the state of every environment.
    pub fn save(&self) -> Result<Vec<Standing>, String> {
        let n = self.len();
        let down = || {
            let state = numbers(&self.state.f_transpose(0, 1)?)?;
            let observations = to_host(&self.program.observe(&self.state)?)?;
            let key = episode_seeds(self.seed, &self.ids, &self.episodes.f_sub_scalar(1)?)?;
            let counts = Tensor::f_stack(&[&self.episodes, &self.elapsed, &key[0], &key[1]], 0)?;
            Ok::<_, TchError>((state, observations, whole_to_host(&counts)?))
        };
        // the policy records the error, too, so that no checkpoint is written
        let (state, observations, counts) = down().map_err(|error| {
            self.fault.note(&error);
            one_line(&error)
        })?;
        let rows = state.chunks_exact(state.len() / n.max(1)).zip(observations.chunks_exact(self.program.width()));
        let standing = |(env, (state, observation)): (usize, (&[f64], &[f32]))| {
            let [episodes, length, low, high] = [0, 1, 2, 3].map(|row| counts[row * n + env] as u64);
            let (seed, length) = (low | high << 32, length as u32);
            Standing { episodes, seed, length, observation: observation.into(), state: self.program.save(state, (seed, length)) }
        };
        Ok(rows.enumerate().map(standing).collect())
    }

    /// Restores the states of the environments, and the number of words drawn from every stream of actions. An error is one line. After an
    /// error these environments must not be used.
    pub fn load(&mut self, standing: &[Standing], position: u64) -> Result<(), String> {
        let n = self.len();
        if standing.len() != n {
            return Err(format!("expected {n} environments, got {}", standing.len()));
        }
        let up = |number: fn(&Standing) -> u64| {
            to_device(&standing.iter().map(|env| number(env) as i64).collect::<Vec<_>>(), self.device).map_err(|error| one_line(&error))
        };
        let seeds = [up(|env| env.seed & 0xFFFF_FFFF)?, up(|env| env.seed >> 32)?];
        let starts = || {
            let seeds = [seeds[0].f_unsqueeze(0)?, seeds[1].f_unsqueeze(0)?];
            numbers(&self.program.starts(&seeds, self.kind)?.f_select(0, 0)?.f_transpose(0, 1)?)
        };
        let mut state = starts().map_err(|error| one_line(&error))?;
        let width = state.len() / n.max(1);
        for (env, (known, state)) in standing.iter().zip(state.chunks_exact_mut(width.max(1))).enumerate() {
            self.program.load(&known.state, (known.seed, known.length), state).map_err(|what| format!("environment {env}: {what}"))?;
            if let Some(number) = state.iter().find(|number| !number.is_finite()) {
                return Err(format!("environment {env}: expected finite numbers, got {number}"));
            }
        }
        let place = || {
            Tensor::f_from_slice(&state)?.f_view([n as i64, -1])?.f_transpose(0, 1)?.f_contiguous()?.f_to_kind(self.kind)?.f_to(self.device)
        };
        self.state = place().map_err(|error| one_line(&error))?;
        self.elapsed = up(|env| u64::from(env.length))?;
        self.episodes = up(|env| env.episodes)?;
        (self.recorded, self.last) = (Default::default(), None);
        self.position = position;
        Ok(())
    }
}

/// Copies a store from a device to the host, for inspection. An error is one line.
pub fn on_host(store: &Store) -> Result<Store, String> {
    let discrete = |actions: &Tensor| {
        let actions = whole_to_host(actions)?.into_iter().map(|action| action as u32).collect();
        Ok::<_, TchError>(ActionRows::Discrete(actions))
    };
    let absent = || TchError::Shape("expected the rows of a rollout on a device".into());
    let down = || match store.observations() {
        Observations::OnDevice { width, .. } => {
            let rows = store.copy(|_| true, || Err::<actor_critic::Rows, _>(absent()))?;
            Ok(Store::new(*width, to_host(&rows.observations)?, discrete(&rows.actions)?))
        }
        Observations::TextsOnDevice(prefixes) => {
            let rows = store.copy(|_| true, || Err::<transformer::Rows, _>(absent()))?;
            let (tokens, context) = (whole_to_host(&rows.tokens)?, rows.tokens.size()[1] as usize);
            let mut texts = Texts::new(context);
            for (i, prefix) in prefixes.iter().enumerate() {
                // an observation after the last decision of a segment is a separate text
                if i >= store.actions.len() || i > 0 && prefixes[i - 1].text != prefix.text {
                    texts.end_text();
                }
                let row = &tokens[prefix.text as usize * context..][..prefix.length as usize];
                texts.push(row.iter().map(|token| *token as u32));
            }
            texts.end_text();
            Ok(Store::of(Observations::Texts(texts), discrete(&rows.actions)?))
        }
        _ => Ok(store.clone()),
    };
    down().map_err(|error: TchError| one_line(&error))
}

/// Copies all numbers of a tensor to the host, in f64.
fn numbers(tensor: &Tensor) -> Result<Vec<f64>, TchError> {
    let here = tensor.f_to(Device::Cpu)?.f_to_kind(Kind::Double)?.f_contiguous()?;
    let mut numbers = vec![0.0; here.numel()];
    let n = numbers.len();
    here.f_copy_data(&mut numbers, n)?;
    Ok(numbers)
}
