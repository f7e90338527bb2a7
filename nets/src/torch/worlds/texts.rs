//! Prompts, completions and verdicts on a device, with one completion per environment, and the store that is created from them.
//!
//! For each completion, these numbers are copied to the host: the lengths of prompt and completion, the log-probabilities of the tokens,
//! the reward, whether the completion was cut off, and whether it is an exact solution.

use gradus_envs::{EnvSpec, Space, TensorEnvSpec};
use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::random::episode_seeds;
use super::target_sum::{TargetSum, Verdicts};
use crate::torch::fault::one_line;
use crate::torch::parameters::{to_device, to_host};
use crate::torch::transformer::{Drawn, Rows, StreamPosition, Transformer};
use crate::{Observations, Prefix, Store};

/// Upper bound on a task's largest target number, because each call that generates completions reads the prompts of all target numbers.
const MOST_NUMBERS: u32 = 1 << 10;

/// The text environments of a run on a device.
pub struct TextWorlds {
    program: TargetSum,
    seed: u64,
    envs: usize,
    group: usize,
    /// Largest number of tokens of a completion.
    most: usize,
    /// For each token, whether it ends a completion.
    ends: Tensor,
    /// The group of each environment; the environments of a group have the same prompt.
    groups: Tensor,
}

/// One completion per environment, ordered by environment. The tokens are on the device.
pub struct Completions {
    /// Number of tokens of each prompt.
    pub prompts: Vec<usize>,
    /// Number of tokens of each completion, including EOS.
    pub lengths: Vec<usize>,
    /// Reward of each completion, penalties included.
    pub rewards: Vec<f32>,
    /// Whether each completion was cut off before EOS.
    pub is_cut: Vec<bool>,
    /// Whether each completion solves its problem exactly.
    pub is_exact: Vec<bool>,
    /// log pi of the tokens, padded to the largest number of tokens per completion.
    log_probs: Vec<f32>,
    /// One row per completion: the tokens of its prompt, then its own tokens. Tokens after the end of a completion are ignored.
    tokens: Tensor,
}

/// Whether `policy` can generate the texts of `world`, and they can be verified on the policy's device.
pub fn knows_text(world: &EnvSpec, policy: &Transformer) -> bool {
    let (Some(TensorEnvSpec::TargetSum(task)), Some(text)) = (&world.tensor_spec, &world.text) else { return false };
    let Space::Text { vocabulary, context } = text.space() else { return false };
    let (writes, reads) = policy.writes_and_reads();
    text.prompt.is_none() && task.largest() <= MOST_NUMBERS && vocabulary as usize == writes && context <= reads
}

impl TextWorlds {
    /// Creates environments 0 to `envs` - 1 of the run with seed `seed`, in groups of `group`, on the device of `policy`; an error is one
    /// line.
    ///
    /// # Panics
    /// Unless [`knows_text`] returns `true` for `world` and `policy`.
    pub fn new(world: &EnvSpec, (envs, group): (usize, usize), seed: u64, policy: &Transformer) -> Result<Self, String> {
        assert!(
            knows_text(world, policy),
            "worlds: expected an environment with a tensor program that fits the policy, got {}",
            world.name
        );
        let device = policy.device();
        let kind = if device == Device::Mps { Kind::Float } else { Kind::Double };
        let (Some(TensorEnvSpec::TargetSum(task)), Some(text)) = (&world.tensor_spec, &world.text) else {
            unreachable!("`knows_text` has checked it")
        };
        let eos = text.task.vocabulary().eos();
        let ends: Vec<bool> = (0..=eos).map(|token| token == eos || text.task.is_stop(token)).collect();
        let group = group.max(1);
        let make = || {
            let groups: Vec<i64> = (0..envs).map(|env| (env / group) as i64).collect();
            let (ends, groups) = (to_device(&ends, device)?, to_device(&groups, device)?);
            Ok(Self { program: TargetSum::new(task, text, device, kind)?, seed, envs, group, most: text.max_new_tokens(), ends, groups })
        };
        make().map_err(|error: TchError| one_line(&error))
    }

    /// Generates the completions of episode number `episode`, `at_once` environments at a time (0: all), with the random numbers of
    /// `positions`. An error is one line, which the policy also records.
    ///
    /// # Panics
    /// Unless `positions` has one entry per environment.
    pub fn write(&self, policy: &Transformer, episode: u64, positions: &[StreamPosition], at_once: usize) -> Result<Completions, String> {
        assert_eq!(positions.len(), self.envs, "positions: expected one per environment");
        no_grad(|| self.write_all(policy, episode, positions, at_once)).map_err(|error| policy.failed(&error))
    }

    fn write_all(&self, policy: &Transformer, episode: u64, positions: &[StreamPosition], at_once: usize) -> Result<Completions, TchError> {
        let (program, n, most) = (&self.program, self.envs as i64, self.most as i64);
        let ids = Tensor::f_arange(self.envs.div_ceil(self.group) as i64, (Kind::Int64, self.groups.device()))?;
        let asked = program.numbers(&episode_seeds(self.seed, &ids, &Tensor::from(episode as i64))?)?;
        let numbers = asked.f_index_select(0, &self.groups)?;

        let (mut tokens, mut log_probs, mut begin) = (Vec::new(), Vec::new(), 0);
        for positions in positions.chunks(if at_once == 0 { self.envs } else { at_once }) {
            let of = numbers.f_narrow(0, begin, positions.len() as i64)?;
            let texts = (&program.prompts, &program.lengths);
            let drawn = policy.write_there(texts, &of, (self.seed, positions), (self.most, &self.ends))?;
            let Drawn { tokens: some_tokens, log_probs: some_log_probs, .. } = drawn;
            tokens.push(some_tokens);
            log_probs.push(some_log_probs);
            begin += positions.len() as i64;
        }
        let completions = Tensor::f_cat(&tokens, 1)?.f_transpose(0, 1)?.f_contiguous()?;
        let Verdicts { rewards, lengths, is_cut, is_exact } = program.verify(&numbers, &completions)?;

        // the first token of a completion is moved to the position after the last token of its prompt
        let places = Tensor::f_arange(most, (Kind::Int64, numbers.device()))?;
        let prompts = program.lengths.f_index_select(0, &numbers)?;
        let empty = Tensor::f_zeros([n, most], (Kind::Int64, numbers.device()))?;
        let rows = Tensor::f_cat(&[program.prompts.f_index_select(0, &numbers)?, empty], 1)?;
        let rows = rows.f_scatter(1, &places.f_add(&prompts.f_unsqueeze(-1)?)?, &completions)?;

        let columns = [&prompts, &lengths, &rewards, &is_cut, &is_exact];
        let columns = columns.iter().map(|column| column.f_to_kind(Kind::Float)).collect::<Result<Vec<_>, TchError>>()?;
        let log_probs = Tensor::f_cat(&log_probs, 1)?.f_transpose(0, 1)?.f_reshape([-1])?;
        let mut down = to_host(&Tensor::f_cat(&[Tensor::f_cat(&columns, 0)?, log_probs], 0)?)?;
        let log_probs = down.split_off(5 * self.envs);
        let column = |i: usize| down[i * self.envs..][..self.envs].iter().copied();
        Ok(Completions {
            prompts: column(0).map(|length| length as usize).collect(),
            lengths: column(1).map(|length| length as usize).collect(),
            rewards: column(2).collect(),
            is_cut: column(3).map(|is_cut| is_cut != 0.0).collect(),
            is_exact: column(4).map(|is_exact| is_exact != 0.0).collect(),
            log_probs,
            tokens: rows,
        })
    }

    /// Creates a store of the decisions of these rounds, ordered by environment, round and token. After the decisions it has the whole
    /// texts of `after`, each given by its environment and its round. An error is one line, which the policy also records.
    pub fn store(&self, policy: &Transformer, rounds: &[Completions], after: &[(usize, usize)]) -> Result<Store, String> {
        let prefix = |env: usize, round: usize, tokens: usize| Prefix {
            text: (env * rounds.len() + round) as u32,
            length: (rounds[round].prompts[env] + tokens) as u32,
        };
        let mut prefixes: Vec<Prefix> = Vec::new();
        for env in 0..self.envs {
            for (round, Completions { lengths, .. }) in rounds.iter().enumerate() {
                prefixes.extend((0..lengths[env]).map(|tokens| prefix(env, round, tokens)));
            }
        }
        let decisions = prefixes.len();
        prefixes.extend(after.iter().map(|(env, round)| prefix(*env, *round, rounds[*round].lengths[*env])));
        let make = || {
            let tokens: Vec<&Tensor> = rounds.iter().map(|round| &round.tokens).collect();
            let tokens = Tensor::f_stack(&tokens, 1)?.f_flatten(0, 1)?;
            let width = tokens.size()[1];
            // the action is the token after the prefix
            let next: Vec<i64> = prefixes[..decisions].iter().map(|at| i64::from(at.text) * width + i64::from(at.length)).collect();
            let actions = tokens.f_view([-1])?.f_index_select(0, &to_device(&next, tokens.device())?)?;
            let vocabulary = policy.writes_and_reads().0;
            Ok(Rows { tokens: tokens.into(), actions: actions.into(), masks: None, vocabulary })
        };
        let rows = no_grad(make).map_err(|error| policy.failed(&error))?;
        Ok(Store::resident(Observations::TextsOnDevice(prefixes), decisions, rows))
    }
}

impl Completions {
    /// log pi of the tokens in the completion of environment `env`.
    pub fn log_probs(&self, env: usize) -> &[f32] {
        let most = self.log_probs.len() / self.lengths.len();
        &self.log_probs[env * most..][..self.lengths[env]]
    }
}
