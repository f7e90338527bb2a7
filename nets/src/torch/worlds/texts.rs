//! Texts that are asked for, written and judged on a device: a completion of every environment, and the store that comes of it.
//!
//! What comes down of a completion is log pi of its tokens, its length, how it ended and what it was worth.

use gradus_envs::{Space, TensorEnvSpec, World};
use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::random::episode_seeds;
use super::target_sum::{TargetSum, Verdicts};
use crate::torch::fault::one_line;
use crate::torch::parameters::{to_device, to_host};
use crate::torch::transformer::{Drawn, Hand, Rows, Transformer};
use crate::{Observations, Prefix, Store};

/// The largest number whose prompt is read: those of all numbers are, whichever are asked for.
const MOST_NUMBERS: u32 = 1 << 10;

/// The text environments of a run on a device.
pub struct TextWorlds {
    program: TargetSum,
    seed: u64,
    envs: usize,
    group: usize,
    /// Tokens of a completion, at most.
    most: usize,
    /// Whether each token ends a completion.
    ends: Tensor,
    /// The group of each environment: those of one group are asked the same.
    groups: Tensor,
}

/// A completion of each environment, by its number. The tokens are still on the device.
pub struct Completions {
    /// Tokens of each prompt.
    pub prompts: Vec<usize>,
    /// Tokens of each completion, EOS included.
    pub lengths: Vec<usize>,
    /// What each is worth, penalties included.
    pub rewards: Vec<f32>,
    /// Whether each was cut.
    pub is_cut: Vec<bool>,
    /// Whether each is right in full.
    pub is_exact: Vec<bool>,
    /// log pi, so many numbers for each completion as one can have tokens.
    log_probs: Vec<f32>,
    /// Prompts and completions, a row for each; what is behind the end of one is of no account.
    tokens: Tensor,
}

/// Whether the texts of `world` can be asked for and judged on a device, and be written there by `policy`.
pub fn knows_text(world: &World, policy: &Transformer) -> bool {
    let (Some(TensorEnvSpec::TargetSum(task)), Some(text)) = (&world.tensor_spec, &world.text) else { return false };
    let Space::Text { vocabulary, context } = text.space() else { return false };
    let (writes, reads) = policy.writes_and_reads();
    text.prompt.is_none() && task.largest() <= MOST_NUMBERS && vocabulary as usize == writes && context <= reads
}

impl TextWorlds {
    /// The environments 0 to `envs` - 1 of the run with seed `seed`, in groups of `group`, on the device of `policy`; an error is one line.
    ///
    /// # Panics
    /// Unless the world is one of which all can be there, see [`knows_text`].
    pub fn new(world: &World, (envs, group): (usize, usize), seed: u64, policy: &Transformer) -> Result<Self, String> {
        assert!(knows_text(world, policy), "worlds: expected one with a tensor program that fits the policy, got {}", world.name);
        let device = policy.device();
        let kind = if device == Device::Mps { Kind::Float } else { Kind::Double };
        let (Some(TensorEnvSpec::TargetSum(task)), Some(text)) = (&world.tensor_spec, &world.text) else {
            unreachable!("it was asked for")
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

    /// Episode number `episode` of every environment, so many of them at once (0: all); a hand for each says with which of its random numbers.
    /// An error is one line, which the policy remembers.
    ///
    /// # Panics
    /// Unless there is a hand for every environment.
    pub fn write(&self, policy: &Transformer, episode: u64, hands: &[Hand], at_once: usize) -> Result<Completions, String> {
        assert_eq!(hands.len(), self.envs, "hands: expected one per environment");
        no_grad(|| self.write_all(policy, episode, hands, at_once)).map_err(|error| policy.failed(&error))
    }

    fn write_all(&self, policy: &Transformer, episode: u64, hands: &[Hand], at_once: usize) -> Result<Completions, TchError> {
        let (program, n, most) = (&self.program, self.envs as i64, self.most as i64);
        let ids = Tensor::f_arange(self.envs.div_ceil(self.group) as i64, (Kind::Int64, self.groups.device()))?;
        let asked = program.numbers(&episode_seeds(self.seed, &ids, &Tensor::from(episode as i64))?)?;
        let numbers = asked.f_index_select(0, &self.groups)?;

        let (mut tokens, mut log_probs, mut begin) = (Vec::new(), Vec::new(), 0);
        for hands in hands.chunks(if at_once == 0 { self.envs } else { at_once }) {
            let of = numbers.f_narrow(0, begin, hands.len() as i64)?;
            let texts = (&program.prompts, &program.lengths);
            let drawn = policy.write_there(texts, &of, (self.seed, hands), (self.most, &self.ends))?;
            let Drawn { tokens: some_tokens, log_probs: some_log_probs, .. } = drawn;
            tokens.push(some_tokens);
            log_probs.push(some_log_probs);
            begin += hands.len() as i64;
        }
        let completions = Tensor::f_cat(&tokens, 1)?.f_transpose(0, 1)?.f_contiguous()?;
        let Verdicts { rewards, lengths, is_cut, is_exact } = program.verify(&numbers, &completions)?;

        // each completion moves up to its prompt
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

    /// The store of the decisions of these rounds, ordered by environment, round and token; behind them stand the whole texts that `after` names
    /// by environment and round. An error is one line, which the policy remembers.
    pub fn store(&self, policy: &Transformer, rounds: &[Completions], after: &[(usize, usize)]) -> Result<Store, String> {
        let prefix = |env: usize, round: usize, said: usize| Prefix {
            text: (env * rounds.len() + round) as u32,
            length: (rounds[round].prompts[env] + said) as u32,
        };
        let mut prefixes: Vec<Prefix> = Vec::new();
        for env in 0..self.envs {
            for (round, Completions { lengths, .. }) in rounds.iter().enumerate() {
                prefixes.extend((0..lengths[env]).map(|said| prefix(env, round, said)));
            }
        }
        let decisions = prefixes.len();
        prefixes.extend(after.iter().map(|(env, round)| prefix(*env, *round, rounds[*round].lengths[*env])));
        let make = || {
            let tokens: Vec<&Tensor> = rounds.iter().map(|round| &round.tokens).collect();
            let tokens = Tensor::f_stack(&tokens, 1)?.f_flatten(0, 1)?;
            let width = tokens.size()[1];
            // an action is the token behind the prefix
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
    /// log pi of the tokens of environment `env`.
    pub fn log_probs(&self, env: usize) -> &[f32] {
        let most = self.log_probs.len() / self.lengths.len();
        &self.log_probs[env * most..][..self.lengths[env]]
    }
}
