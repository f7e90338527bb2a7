//! Rollouts on a device: the environments take steps with a policy's actions, and the recorded steps become a store.

use gradus_base::random::Purpose;
use gradus_envs::Ending;
use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::random::{episode_seeds, halves, sample, unit_f32, words};
use super::{Stepped, Worlds};
use crate::torch::ActorCritic;
use crate::torch::actor_critic::Rows;
use crate::torch::parameters::{to_device, to_host};
use crate::torch::raw::{Graph, Shared};
use crate::{Observations, Store};

/// The largest number of steps whose random numbers are drawn at once. Fewer draws need fewer kernel launches.
const STRETCH: usize = 32;
/// The largest number of random blocks drawn at once, which bounds the memory. A single step may need more.
const MOST_BLOCKS: usize = 1 << 24;

/// The random numbers of the next steps.
struct EpisodeRng {
    /// The uniform numbers for sampling actions: steps x environments.
    uniforms: Tensor,
    /// The initial states of the next episodes: episodes x numbers x environments.
    starts: Tensor,
    /// For each environment, the number of initial states in `starts` that have been used.
    begun: Tensor,
}

/// A rollout. Rewards, log-probabilities and endings are ordered by environment and then by time. Observations and actions are on the
/// device, where the next rollout may overwrite them.
pub struct Record {
    /// Reward of each step.
    pub rewards: Vec<f32>,
    /// log pi(a|s) of each step.
    pub log_probs: Vec<f32>,
    /// Whether each step ended its episode, and how.
    pub endings: Vec<Ending>,
    /// The observations: steps x environments x numbers per observation.
    observations: Shared,
    /// The actions: steps x environments.
    actions: Shared,
    /// The observations after truncated steps (environments x `finals`), then the current observations of all environments.
    after: Shared,
    /// Number of rows of `after` for the truncated episodes of an environment.
    finals: usize,
}

/// The steps of a rollout on the device.
struct Steps {
    /// Steps x environments x numbers per observation.
    observations: Tensor,
    /// Steps x environments.
    actions: Tensor,
    /// Rewards, log pi and endings: 3 x environments x steps.
    scalars: Tensor,
    /// The observations after truncated steps (environments x `finals`), then the current observations of all environments.
    after: Tensor,
    finals: usize,
}

impl Steps {
    /// Returns the same tensors.
    fn views(&self) -> Self {
        let [observations, actions, scalars, after] =
            [&self.observations, &self.actions, &self.scalars, &self.after].map(Tensor::shallow_clone);
        Self { observations, actions, scalars, after, finals: self.finals }
    }
}

/// Everything that the launches of a rollout depend on, apart from the contents of tensors and from the place of the first word in its random block: the address of the policy's
/// parameters, and the number of steps.
pub(super) type Key = (usize, usize);

/// The launches of a rollout, recorded.
pub(super) struct Recorded {
    graph: Graph,
    steps: Steps,
}

impl Worlds {
    /// Draws the random numbers of `steps` steps, from step number `first` of the rollout on.
    fn rng(&self, episodes: &Tensor, first: usize, steps: usize) -> Result<EpisodeRng, TchError> {
        // all streams of actions are at the same position
        let begin = self.position % 4 + first as u64;
        let (from, to) = (begin / 4, (begin + steps as u64 - 1) / 4);
        let blocks = Tensor::f_arange_start(from as i64, to as i64 + 1, (Kind::Int64, self.device))?.f_add(&self.block)?.f_unsqueeze(-1)?;
        let drawn = words(&halves(self.seed), Purpose::Action, &self.ids, &blocks)?;
        let drawn = Tensor::f_stack(&drawn, 1)?.f_flatten(0, 1)?.f_narrow(0, (begin % 4) as i64, steps as i64)?;
        let next = Tensor::f_arange(self.starts_of(steps) as i64, (Kind::Int64, self.device))?.f_unsqueeze(-1)?;
        let seeds = episode_seeds(self.seed, &self.ids, &next.f_add(episodes)?)?;
        Ok(EpisodeRng { uniforms: unit_f32(&drawn)?, starts: self.program.starts(&seeds, self.kind)?, begun: episodes.f_zeros_like()? })
    }

    /// Returns the number of initial states to prepare for `steps` steps. In the worst case the first step ends an episode, and so does
    /// every `shortest`-th step after it. One more initial state is needed, because every step reads the next initial state.
    fn starts_of(&self, steps: usize) -> usize {
        2 + (steps - 1) / self.program.shortest()
    }

    /// Returns the number of steps whose random numbers are drawn at once.
    fn stretch(&self) -> usize {
        let blocks = |steps| self.starts_of(steps) * self.program.blocks() * self.len();
        (2..=STRETCH).rev().find(|steps| blocks(*steps) <= MOST_BLOCKS).unwrap_or(1)
    }

    /// Takes `steps` steps of every environment under `policy`, with autoreset in the same step. An error is one line, which the policy
    /// also records. After an error these environments must not be used.
    pub fn roll(&mut self, policy: &ActorCritic, steps: usize) -> Result<Record, String> {
        let roll = || {
            let taken = self.take(policy, steps)?;
            let scalars = to_host(&taken.scalars)?;
            let [rewards, log_probs, codes] = [0, 1, 2].map(|part| &scalars[part * scalars.len() / 3..(part + 1) * scalars.len() / 3]);
            let endings = codes.iter().map(|code| Ending::new(*code as u8 & 1 != 0, *code as u8 & 2 != 0)).collect();
            let Steps { observations, actions, after, finals, .. } = taken;
            Ok(Record {
                rewards: rewards.to_vec(),
                log_probs: log_probs.to_vec(),
                endings,
                observations: observations.into(),
                actions: actions.into(),
                after: after.into(),
                finals,
            })
        };
        no_grad(roll).map_err(|error| policy.failed(&error))
    }

    /// Takes `steps` steps. A rollout has thousands of launches, which take the host longer than the GPU, so a GPU repeats the launches of an
    /// earlier rollout, which began at the same place of a random block.
    fn take(&mut self, policy: &ActorCritic, steps: usize) -> Result<Steps, TchError> {
        let _ = self.block.f_fill_((self.position / 4) as i64)?;
        let (key, place) = ((policy.parameters.leaf().data_ptr() as usize, steps), (self.position % 4) as usize);
        if self.last != Some(key) {
            self.recorded = Default::default();
        }
        let taken = match (self.device, &mut self.recorded[place]) {
            (_, Some(recorded)) => {
                recorded.graph.replay();
                recorded.steps.views()
            }
            // the first rollout prepares libtorch's libraries, which a recording cannot
            (Device::Cuda(gpu), _) if self.last == Some(key) && Graph::is_supported() => {
                let (mut graph, recorded) = Graph::record(gpu, None, || self.launch(policy, steps))?;
                graph.replay();
                let taken = recorded.views();
                self.recorded[place] = Some(Recorded { graph, steps: recorded });
                taken
            }
            _ => self.launch(policy, steps)?,
        };
        self.last = Some(key);
        self.position += steps as u64;
        Ok(taken)
    }

    /// Launches `steps` steps, without waiting for the device. The state of the environments is updated in place.
    fn launch(&self, policy: &ActorCritic, steps: usize) -> Result<Steps, TchError> {
        let (n, width) = (self.len() as i64, self.program.width() as i64);
        let actor = policy.log_probs_of_rows()?;
        let zeros = |shape: &[i64], kind| Tensor::f_zeros(shape, (kind, self.device));
        let t = steps as i64;
        let observations = zeros(&[t, n, width], Kind::Float)?;
        let taken = zeros(&[t, n], Kind::Int64)?;
        // rewards, log pi, endings
        let scalars = zeros(&[3, t, n], Kind::Float)?;
        // every step writes to the next free row of `after`, and a truncation keeps that row; so an environment needs one row more than its
        // largest number of truncated episodes
        let finals = self.program.limit().map_or(0, |limit| 2 + steps.saturating_sub(1) / limit.max(1) as usize);
        let mut after = zeros(&[n, finals as i64, width], Kind::Float)?;
        let mut truncations = self.episodes.f_zeros_like()?;
        let row = |tensor: &Tensor, step: usize| tensor.f_select(0, step as i64);
        let [rewards, log_probs, endings] = [row(&scalars, 0)?, row(&scalars, 1)?, row(&scalars, 2)?];
        let (mut state, mut elapsed) = (self.state.shallow_clone(), self.elapsed.shallow_clone());
        let mut episodes = self.episodes.shallow_clone();

        let stretch = self.stretch();
        let mut rng = self.rng(&episodes, 0, stretch.min(steps))?;
        let mut observed = self.program.observe(&state)?;
        for step in 0..steps {
            if step > 0 && step.is_multiple_of(stretch) {
                episodes = episodes.f_add(&rng.begun)?;
                rng = self.rng(&episodes, step, stretch.min(steps - step))?;
            }
            row(&observations, step)?.f_copy_(&observed)?;
            let distribution = actor(&observed)?;
            let actions = sample(&distribution, &row(&rng.uniforms, step % stretch)?)?;
            row(&taken, step)?.f_copy_(&actions)?;
            row(&log_probs, step)?.f_copy_(&distribution.f_gather(-1, &actions.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1)?)?;

            let Stepped { state: next, rewards: paid, terminated } = self.program.step(&state, &actions)?;
            row(&rewards, step)?.f_copy_(&paid)?;
            elapsed = elapsed.f_add_scalar(1)?;
            let mut done = terminated.shallow_clone();
            let mut ending = terminated.f_to_kind(Kind::Float)?;
            if let Some(limit) = self.program.limit() {
                let truncated = elapsed.f_ge(i64::from(limit))?;
                let place = truncations.f_view([n, 1, 1])?.f_expand([n, 1, width], false)?;
                let _ = after.f_scatter_(1, &place, &self.program.observe(&next)?.f_unsqueeze(1)?)?;
                truncations = truncations.f_add(&truncated)?;
                ending = ending.f_add(&truncated.f_mul_scalar(2)?)?;
                done = done.f_logical_or(&truncated)?;
            }
            row(&endings, step)?.f_copy_(&ending)?;

            // an environment whose episode is over begins its next episode
            let begun = rng.begun.f_view([1, 1, n])?.f_expand([1, next.size()[0], n], false)?;
            let start = rng.starts.f_gather(0, &begun, false)?.f_select(0, 0)?;
            state = start.f_where_self(&done, &next)?;
            elapsed = elapsed.f_mul(&done.f_logical_not()?)?;
            rng.begun = rng.begun.f_add(&done)?;
            observed = self.program.observe(&state)?;
        }
        let keep = |own: &Tensor, new: &Tensor| own.shallow_clone().f_copy_(new);
        keep(&self.state, &state)?;
        keep(&self.elapsed, &elapsed)?;
        keep(&self.episodes, &episodes.f_add(&rng.begun)?)?;

        let scalars = scalars.f_transpose(1, 2)?.f_contiguous()?;
        let after = Tensor::f_cat(&[after.f_flatten(0, 1)?, observed], 0)?;
        Ok(Steps { observations, actions: taken, scalars, after, finals })
    }
}

impl Record {
    /// The index that selects, in [`store`](Record::store), the observation after truncation number `truncation` of environment `env`.
    pub fn after_truncation(&self, env: usize, truncation: usize) -> usize {
        env * self.finals + truncation
    }

    /// The index that selects, in [`store`](Record::store), the current observation of environment `env`.
    pub fn after_all(&self, env: usize) -> usize {
        self.observations.size()[1] as usize * self.finals + env
    }

    /// Creates a store of all decisions, in the order of the rewards, followed by the observations with indices `after`. An error is one
    /// line, which the policy also records.
    pub fn store(&self, policy: &ActorCritic, after: &[usize]) -> Result<Store, String> {
        let [steps, n, width] = self.observations.size()[..] else { unreachable!("three dimensions") };
        let make = || {
            let (decisions, more) = (steps * n, after.len() as i64);
            let device = self.observations.device();
            let rows = Tensor::f_empty([decisions + more, width], (Kind::Float, device))?;
            rows.f_narrow(0, 0, decisions)?.f_view([n, steps, width])?.f_copy_(&self.observations.f_transpose(0, 1)?)?;
            let index = to_device(&after.iter().map(|row| *row as i64).collect::<Vec<_>>(), device)?;
            rows.f_narrow(0, decisions, more)?.f_copy_(&self.after.f_index_select(0, &index)?)?;
            let actions = self.actions.f_transpose(0, 1)?.f_contiguous()?.f_view([-1])?;
            let rows = Rows { observations: rows.into(), actions: actions.into(), masks: None };
            let observations = Observations::OnDevice { rows: (decisions + more) as usize, width: width as usize };
            Ok::<_, TchError>(Store::resident(observations, decisions as usize, rows))
        };
        no_grad(make).map_err(|error| policy.failed(&error))
    }
}
