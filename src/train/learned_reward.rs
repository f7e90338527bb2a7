//! A learned reward instead of the environment's reward, as in learning from human preferences. A reward model scores whole texts. The
//! model can be trained further on rankings of completions of the current policy (iterative GRPO: Shao et al., arXiv 2402.03300,
//! algorithm 1).
//!
//! The environment's reward is still measured. If it falls while the model's score rises, the policy exploits errors of the model. This is
//! called over-optimisation (Gao et al., arXiv 2210.10760).

use std::path::Path;

use gradus_agents::reward_model::{evaluate, train};
use gradus_agents::{ConfigError, End, OptimiserConfig, Rollout, UpdateContext};
use gradus_envs::World;
use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::text::{Split, TextWorld};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64, with_prefix, without_prefix};
use gradus_nets::{ActionRows, Behaviour, Observations, Policy, Schedule, Store, Texts};
use gradus_rollouts::{Episode, PlayedEpisode};

use crate::config::of_text;
use crate::config::{Config, Network, RewardConfig};
use crate::saved::begin_as;
use crate::saved::{RANKINGS_FILE, rankings_file};
use crate::train::metrics::Metrics;
use crate::train::preferences::{self, Questions, RANKINGS, RankedTexts, draw, preferences};
use crate::{Error, memory};

/// The reward model of a training run. [`load_reward`](crate::run::load_reward) loads it from a run's folder.
pub struct LearnedReward {
    config: RewardConfig,
    optimiser: OptimiserConfig,
    seed: u64,
    own_world: World,
    network: Network,
    world: TextWorld,
    model: Box<dyn Policy>,
    /// The rankings that the model was trained on so far.
    old: Vec<RankedTexts>,
    rounds: u64,
}

/// Training problems per validation problem each time the model is trained. The model's accuracy is measured on the validation problems.
const MEASURED: usize = 4;

/// The environment number from which [`episode_seed`] derives the reward model's seeds.
const OWN: u64 = u32::MAX as u64 - 2;

impl LearnedReward {
    /// Creates the reward model if the configuration has one. The model starts as a copy of `policy`; [`begin`](Self::begin) replaces its
    /// parameters if the configuration names a folder.
    pub(crate) fn new(config: &Config, world: &World, policy: Option<&dyn Policy>) -> Result<Option<Self>, Error> {
        let Some(wanted) = config.reward_model.clone().filter(RewardConfig::is_on) else { return Ok(None) };
        let expected = "one with an actor-critic network, because a reward model needs it";
        let policy = policy.ok_or_else(|| ConfigError::unless(false, "agent", expected, &config.agent).unwrap_err())?;
        let own = config.wrappers.clone();
        let is_plain = !own.normalise_rewards && own.clip_reward == f32::INFINITY;
        let text = of_text("a reward model", world)?;
        let bytes = wanted.completions as f64 * memory::of_completion(text);
        let equal = format!("of {} completions", wanted.completions);
        memory::expect("reward_model.pairs", wanted.pairs, &equal, |pairs| pairs * bytes)?;
        ConfigError::unless(is_plain, "wrappers", "unchanged rewards with a reward model", "normalised or clipped rewards")?;
        Ok(Some(Self {
            optimiser: OptimiserConfig { learning_rate: wanted.learning_rate, schedule: Schedule::Constant, ..config.optimiser.clone() },
            config: wanted,
            seed: config.seed,
            model: policy.snapshot(),
            own_world: world.clone(),
            network: config.network.clone(),
            world: text.clone(),
            old: Vec::new(),
            rounds: 0,
        }))
    }

    /// Loads the model's initial parameters from the folder that the configuration names. If the run trains the model further and replays
    /// old rankings, also loads the rankings that the model was trained on.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        let RewardConfig { folder, pairs, training, .. } = &self.config;
        if folder.is_empty() {
            return Ok(());
        }
        let path = Path::new(folder);
        begin_as(path, (&self.own_world, &self.network), self.model.as_mut())?;
        if *pairs > 0 && training.replay > 0.0 {
            let (file, tensors) = rankings_file(path)?.ok_or_else(|| {
                let advice = "make the folder again with `gradus reward-model`, or set reward_model.replay=0";
                let problem = format!("expected {RANKINGS_FILE}, for reward_model.replay = {}, got none; {advice}", training.replay);
                Error::folder(path, problem)
            })?;
            self.old = self.of_file(&tensors).map_err(|source| Error::Tensors { path: file, source })?;
        }
        Ok(())
    }

    /// Reads the rankings in these tensors, as texts of this environment.
    fn of_file(&self, tensors: &Tensors) -> Result<Vec<RankedTexts>, TensorsError> {
        let (vocabulary, context) = (self.world.task.vocabulary().len() as u32, self.world.space().width() - 1);
        preferences::load(get_u64(tensors, RANKINGS)?, vocabulary, context)
    }

    /// Trains the model on completions sampled from `policy`, if a training is due before update number `iteration`. Returns the training
    /// loss, and the accuracy and the margin on rankings of the validation split. All are NaN if no training was due.
    pub(crate) fn retrain_if_due(&mut self, policy: &dyn Behaviour, iteration: u64) -> Result<Metrics, Error> {
        let RewardConfig { pairs, completions, retrain_every, .. } = self.config;
        let is_due = pairs > 0 && (iteration == 0 || (retrain_every > 0 && iteration.is_multiple_of(retrain_every)));
        let mut numbers = [f64::NAN; 3];
        if is_due && self.rounds <= iteration {
            let seed = episode_seed(self.seed, OWN, self.rounds);
            let questions = |problems| Questions { problems, completions };
            let new = draw(policy, &self.world, Split::Train, questions(pairs), seed)?;
            let validation = draw(policy, &self.world, Split::Validation, questions(pairs.div_ceil(MEASURED)), seed ^ 1)?;
            numbers = self.train(new, &validation, seed)?;
            self.rounds += 1;
        }
        Ok(["reward_model/loss", "reward_model/accuracy", "reward_model/margin"].map(Into::into).into_iter().zip(numbers).collect())
    }

    /// Trains the model on `new` and a share of the old rankings. Returns the training loss, and the accuracy and margin on `validation`.
    fn train(&mut self, new: Vec<RankedTexts>, validation: &[RankedTexts], seed: u64) -> Result<[f64; 3], Error> {
        let context = self.world.space().width() - 1;
        let mut stream = Stream::new(seed, Purpose::Shuffle, u64::MAX >> 8);
        let all = preferences(&new, context).with_replay(&preferences(&self.old, context), self.config.training.replay, &mut stream);
        let update = UpdateContext { seed, iteration: self.rounds, progress: 0.0 };
        let report = train(self.model.as_mut(), &all, &self.config.training, &self.optimiser, update)?;
        let loss = report.iter().find(|(name, _)| *name == "reward_model/loss").map_or(f64::NAN, |(_, loss)| *loss);
        let agreement = evaluate(self.model.as_mut(), &preferences(validation, context));
        self.old.extend(new);
        Ok([loss, agreement.accuracy(), agreement.margin()])
    }

    /// Replaces the rewards of each text. The reward of the last token of a whole text becomes the model's score less the environment's
    /// penalties for a missing EOS and for length. All other rewards become 0. Returns the rewards of the last tokens in the order of the
    /// segments, with NaN for a text that continues in the next rollout.
    pub(crate) fn replace(&mut self, rollout: &mut Rollout, episodes: &[Episode], greedy: &[PlayedEpisode]) -> Vec<f64> {
        let ActionRows::Discrete(actions) = &rollout.store.actions else { unreachable!("tokens are discrete") };
        let whole: Vec<usize> = (0..rollout.segments.len()).filter(|i| !matches!(rollout.segments[*i].end, End::Cut { .. })).collect();
        let text = |i: &usize| {
            let last = rollout.segments[*i].range.end - 1;
            [rollout.store.texts().prefix(last), &actions[last..=last]].concat()
        };
        let scores = self.scores(whole.iter().map(text));
        let of_greedy = self.scores(greedy.iter().map(|episode| gradus_envs::text::tokens(&episode.observation).collect()));
        // segments are ordered by environment, episodes by time; within an environment both have the same order
        let mut by_env: Vec<&Episode> = episodes.iter().collect();
        by_env.sort_by_key(|episode| episode.env);
        let penalties: Vec<usize> = self.world.penalties().collect();
        let charged = |scores: &[f64]| penalties.iter().map(|i| scores[*i]).sum::<f64>();
        rollout.rewards.fill(0.0);
        rollout.step_ends.clear(); // the model scores whole texts, not steps
        let mut learned = vec![f64::NAN; rollout.segments.len()];
        for ((i, score), episode) in whole.iter().zip(scores).zip(by_env) {
            learned[*i] = f64::from(score) - charged(&episode.scores);
            let last = rollout.segments[*i].range.end - 1;
            rollout.rewards[last] = learned[*i] as f32;
        }
        for (rewards, (score, episode)) in rollout.greedy_rewards.iter_mut().zip(of_greedy.iter().zip(greedy)) {
            rewards.fill(0.0);
            rewards.last_mut().into_iter().for_each(|last| *last = (f64::from(*score) - charged(&episode.scores)) as f32);
        }
        learned
    }

    /// Returns the reward of a whole completion, EOS included: the model's score less the environment's penalties for a missing EOS and for
    /// length.
    pub fn reward(&mut self, prompt: &[u32], completion: &[u32]) -> f64 {
        let score = self.scores(std::iter::once([prompt, completion].concat()))[0];
        f64::from(score) - self.world.charges(completion).iter().sum::<f64>()
    }

    /// Returns the model's scores of whole texts.
    fn scores(&mut self, texts: impl Iterator<Item = Vec<u32>>) -> Vec<f32> {
        let mut all = Texts::new(self.world.space().width() - 1);
        for text in texts {
            all.push(text.into_iter());
            all.end_text();
        }
        let mut scores = Vec::new();
        if !all.is_empty() {
            self.model.values(&Store::of(Observations::Texts(all), ActionRows::Discrete(Vec::new())), &mut scores);
        }
        scores
    }

    /// Saves everything that is needed to resume bit for bit.
    pub(crate) fn save(&self) -> Tensors {
        let mut tensors = with_prefix(self.model.save(), MODEL);
        tensors.append(&mut with_prefix(self.model.save_optimiser(), OPTIMISER));
        tensors.insert(RANKINGS.into(), preferences::save(&self.old));
        tensors.insert(ROUNDS.into(), Tensor::u64(vec![self.rounds]));
        tensors
    }

    /// Loads the tensors of [`save`](LearnedReward::save), to resume the training.
    pub(crate) fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let part = |prefix: &str| without_prefix(tensors, prefix);
        self.model.load(&part(MODEL))?;
        self.model.load_optimiser(&part(OPTIMISER))?;
        self.old = self.of_file(tensors)?;
        match *get_u64(tensors, ROUNDS)? {
            [rounds] => self.rounds = rounds,
            _ => return Err(TensorsError::State("rounds of the reward model: expected one number".into())),
        }
        Ok(())
    }
}

const MODEL: &str = "model.";
const OPTIMISER: &str = "optimiser.";
const ROUNDS: &str = "rounds";

#[cfg(test)]
mod tests {
    use gradus_agents::Collection;

    use super::*;
    use gradus_rollouts::Collector;

    /// Target sum with penalties, and a reward model without zero parameters, so that its scores are not 0.
    fn setting() -> (Config, World, LearnedReward) {
        let config = Config::preset("grpo", "target-sum", None).unwrap();
        let settings = ["text.missing_eos_penalty=0.5", "text.length_penalty=0.25", "reward_model.pairs=400", "reward_model.epochs=4"];
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        let world = config.world().unwrap();
        let mut policy = config.network.policy(&world, 3).unwrap();
        let parameters: Vec<f32> = policy.parameters().iter().map(|x| if *x == 0.0 { 0.1 } else { *x }).collect();
        policy.set_parameters(&parameters);
        let learned = LearnedReward::new(&config, &world, Some(policy.as_ref())).unwrap().unwrap();
        (config, world, learned)
    }

    /// The reward of the last token is the score less the penalties, also in greedy episodes.
    #[test]
    fn scores_replace_rewards() {
        let (_, world, mut learned) = setting();
        let policy = learned.model.snapshot();
        for collection in [Collection::Episodes { per_env: 2, group: 2, greedy: true }, Collection::Steps(9)] {
            let mut collector = Collector::new(&world, 6, 1, collection).unwrap();
            let (mut rollout, episodes) = collector.collect(policy.as_ref()).unwrap();
            let before = rollout.clone();
            let scores = learned.replace(&mut rollout, &episodes, collector.greedy_episodes());
            assert!(rollout.store == before.store && rollout.step_ends.is_empty() && !before.step_ends.is_empty());
            let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("tokens") };
            let (mut ended, mut cut) = (0, 0);
            for (segment, score) in rollout.segments.iter().zip(scores) {
                let range = segment.range.clone();
                let last = range.end - 1;
                assert!(rollout.rewards[range.start..last].iter().all(|reward| *reward == 0.0));
                if let End::Cut { .. } = segment.end {
                    assert!(score.is_nan() && rollout.rewards[last] == 0.0);
                    continue;
                }
                // the same text, scored alone
                let text = [rollout.store.texts().prefix(last), &actions[last..=last]].concat();
                let alone = learned.scores(std::iter::once(text.clone()))[0];
                let is_cut = actions[last] != world.text.as_ref().unwrap().task.vocabulary().eos();
                let length = text.len() - 2; // a prompt of two tokens
                let expected = alone - if is_cut { 0.5 } else { 0.0 } - 0.25 * length as f32;
                assert!((rollout.rewards[last] - expected).abs() < 1e-5, "expected {expected}, got {}", rollout.rewards[last]);
                assert!((score as f32 - expected).abs() < 1e-5);
                ended += 1;
                cut += usize::from(is_cut);
            }
            assert!(ended == episodes.len() && cut > 0, "{ended} ended, {cut} of them were cut");
            for (rewards, episode) in rollout.greedy_rewards.iter().zip(collector.greedy_episodes()) {
                let (greedy, before) = rewards.split_last().unwrap();
                assert!(rewards.len() == episode.rewards.len() && before.iter().all(|reward| *reward == 0.0));
                let text: Vec<u32> = gradus_envs::text::tokens(&episode.observation).collect();
                let is_cut = *text.last().unwrap() != world.text.as_ref().unwrap().task.vocabulary().eos();
                let expected = learned.scores(std::iter::once(text.clone()))[0] - 0.25 * (text.len() - 2) as f32;
                assert!((greedy - (expected - if is_cut { 0.5 } else { 0.0 })).abs() < 1e-5);
            }
        }
    }

    /// The model learns to score better completions higher, and a model loaded from a checkpoint continues with the same numbers.
    #[test]
    fn training_learns_the_preferences_and_resumes() {
        let (_, _, mut learned) = setting();
        let policy = learned.model.snapshot();
        let first = learned.retrain_if_due(policy.as_ref(), 0).unwrap();
        assert!(first[1].1 > 0.7, "accuracy {}", first[1].1);
        let saved = learned.save();
        assert!(learned.retrain_if_due(policy.as_ref(), 1).unwrap().iter().all(|(_, x)| x.is_nan()), "not due");
        assert!(learned.save() == saved);

        let (_, _, mut other) = setting();
        other.load(&saved).unwrap();
        assert!(other.save() == saved);
        let later = |learned: &mut LearnedReward| {
            learned.config.retrain_every = 5;
            let metrics = learned.retrain_if_due(policy.as_ref(), 5).unwrap();
            (metrics, learned.save())
        };
        assert!(later(&mut learned) == later(&mut other));
        let mut damaged = saved.clone();
        damaged.insert(RANKINGS.into(), Tensor::u64(vec![2, 3, 3, 1, 1, 1, 1, 1]));
        assert!(other.load(&damaged).is_err());
    }
}
