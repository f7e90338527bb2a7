//! Text environments with prompts, completions and verification on the policy's device. The host receives lengths, rewards, verdicts
//! (exact, cut off) and log-probabilities of a rollout.
//!
//! Between two rollouts every environment is at the start of an episode, and its state follows from the episode's number. A checkpoint has
//! the same words as a checkpoint of environments on the host. Loading computes these words again and checks that they are equal.

use gradus_agents::{Collection, Completion, End, GroupId, Rollout, Segment};
use gradus_base::random::episode_seed;
use gradus_envs::text::TextWorld;
use gradus_envs::{Ending, EnvError, EnvSpec, Starts};
use gradus_nets::Behaviour;
use gradus_nets::torch::worlds::{Completions, TextWorlds, knows_text};
use gradus_nets::torch::{StreamPosition, Transformer};

use super::{OnDevice, as_type};
use crate::collect::assemble::in_order;
use crate::collect::{Episode, NotThere};
use crate::normaliser::Normaliser;

/// The text environments of a run on a device.
pub struct Texts {
    worlds: TextWorlds,
    world: EnvSpec,
    text: TextWorld,
    score_names: Vec<String>,
    starts: Starts,
    per_env: usize,
    /// Number of episodes that every environment has begun.
    begun: u64,
    /// Position of each environment's action stream.
    positions: Vec<u64>,
}

impl Texts {
    pub fn new(
        (world, text): (&EnvSpec, &TextWorld),
        (envs, seed): (usize, u64),
        collection: Collection,
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        let Collection::Episodes { per_env, group, .. } = collection else {
            return Err(NotThere::Unsuited("this agent collects parts of texts"));
        };
        let policy = as_type::<Transformer>(policy).ok_or(NotThere::Unsuited("the policy is not a transformer on libtorch"))?;
        if !knows_text(world, policy) {
            return Err(NotThere::Unsuited("this environment with its wrappers has no tensor program"));
        }
        let worlds = TextWorlds::new(world, (envs, group), seed, policy).map_err(NotThere::Failed)?;
        let (score_names, starts) = (text.score_names(), Starts { seed, group });
        Ok(Self { worlds, world: world.clone(), text: text.clone(), score_names, starts, per_env, begun: 1, positions: vec![0; envs] })
    }

    /// Returns the words that each environment would save at the start of its `begun`-th episode.
    fn words(&self, begun: u64) -> Vec<Vec<u64>> {
        let mut env = self.world.env();
        let mut row = vec![0.0_f32; env.observation_space().width()];
        let mut of_group = |group: usize| {
            let seed = episode_seed(self.starts.seed, group as u64, begun.wrapping_sub(1));
            env.reset(seed, &mut row);
            let state = env.save();
            let words = [begun, seed, 0.0_f64.to_bits(), 0, 0].into_iter().chain(row.iter().map(|x| u64::from(x.to_bits())));
            words.chain([state.len() as u64]).chain(state).collect::<Vec<u64>>()
        };
        let mut words: Vec<Vec<u64>> = Vec::with_capacity(self.positions.len());
        for env in 0..self.positions.len() {
            let same = env.checked_sub(1).filter(|before| self.starts.group_of(*before) == self.starts.group_of(env));
            let own = same.map_or_else(|| of_group(self.starts.group_of(env)), |before| words[before].clone());
            words.push(own);
        }
        words
    }
}

impl OnDevice for Texts {
    fn score_names(&self) -> &[String] {
        &self.score_names
    }

    fn collect(
        &mut self,
        policy: &dyn Behaviour,
        normaliser: &mut Normaliser,
        (before, max_concurrent): (u64, usize),
    ) -> Result<(Rollout, Vec<Episode>), EnvError> {
        let policy = as_type::<Transformer>(policy).expect("the policy that these environments were made for");
        let (first, mut rounds) = (self.begun - 1, Vec::with_capacity(self.per_env));
        for _ in 0..self.per_env {
            let position = |(env, position): (usize, &u64)| StreamPosition { index: env as u64, position: *position };
            let positions: Vec<StreamPosition> = self.positions.iter().enumerate().map(position).collect();
            let round = self.worlds.write(policy, self.begun - 1, &positions, max_concurrent).map_err(EnvError::State)?;
            self.positions.iter_mut().zip(&round.lengths).for_each(|(position, length)| *position += *length as u64);
            self.begun += 1;
            rounds.push(round);
        }

        let n: usize = rounds.iter().flat_map(|round| &round.lengths).sum();
        let (mut rewards, mut log_probs, mut step_ends) = (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut segments, mut after, mut finished, mut endings) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut lengths, mut completions) = (Vec::with_capacity(self.positions.len()), Vec::new());
        for env in 0..self.positions.len() {
            let begin = rewards.len();
            endings.clear();
            for (i, round) in rounds.iter().enumerate() {
                let Completions { lengths, rewards: text_rewards, is_cut, is_exact, .. } = round;
                let (length, reward, is_cut) = (lengths[env], text_rewards[env], is_cut[env]);
                let seed = episode_seed(self.starts.seed, self.starts.group_of(env) as u64, first + i as u64);
                if !reward.is_finite() {
                    return Err(EnvError::NotFinite {
                        world: self.world.name.clone(),
                        what: "reward".into(),
                        env,
                        got: f64::from(reward),
                        step: length as u32,
                        seed,
                    });
                }
                let truncated = is_cut && self.text.options.length_bootstraps;
                let end = if truncated { End::Truncated { successor: n + after.len() } } else { End::Terminated };
                after.extend(truncated.then_some((env, i)));
                let group = GroupId((self.starts.group_of(env) * self.per_env + i) as u32);
                segments.push(Segment { range: rewards.len()..rewards.len() + length, end, group });
                let ending = Ending::new(!truncated, truncated);
                completions.push(Completion { is_correct: Some(is_exact[env]), is_truncated: is_cut });
                let scores = self.text.scores(vec![f64::from(u8::from(is_exact[env]))], is_cut, length);
                let episode = Episode { step: 0, env, seed, episode_return: f64::from(reward), length: length as u32, ending, scores };

                let (rest, all) = (length - 1, rewards.len() + length);
                rewards.resize(all - 1, 0.0);
                rewards.push(reward);
                log_probs.extend_from_slice(round.log_probs(env));
                step_ends.resize(all - 1, false);
                step_ends.push(true);
                endings.extend(std::iter::repeat_n(Ending::Running, rest).chain([ending]));
                finished.push((all - 1 - begin, episode));
            }
            normaliser.learn(env, &[], &mut rewards[begin..], &endings);
            lengths.push((rewards.len() - begin) as u64);
        }
        normaliser.scale_rewards(&mut rewards);
        let store = self.worlds.store(policy, &rounds, &after).map_err(EnvError::State)?;
        let episodes = in_order(finished, lengths, before);
        Ok((Rollout { step_ends, completions, ..Rollout::new(store, rewards, log_probs, segments) }, episodes))
    }

    fn save(&self) -> (Vec<u64>, Vec<u64>) {
        (self.words(self.begun).concat(), self.positions.clone())
    }

    fn load<'a>(&mut self, mut words: &'a [u64], positions: &[u64]) -> Result<&'a [u64], String> {
        let begun = words.first().copied().unwrap_or(0);
        for (env, expected) in self.words(begun).iter().enumerate() {
            let (own, rest) =
                words.split_at_checked(expected.len()).ok_or_else(|| format!("environment {env}: the saved state is too short"))?;
            if own != expected || begun == 0 {
                return Err(format!("environment {env}: expected the start of episode {begun} of seed {}, got {own:?}", self.starts.seed));
            }
            words = rest;
        }
        self.begun = begun;
        self.positions = positions.into();
        Ok(words)
    }
}
