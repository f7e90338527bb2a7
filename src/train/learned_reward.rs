//! A learned reward instead of the environment's reward, as in learning from human preferences. An outcome reward model scores whole
//! texts; a process reward model scores each step. The model can be trained further on completions of the current policy (iterative GRPO:
//! Shao et al., arXiv 2402.03300, algorithm 1).
//!
//! The environment's reward is still measured. If it falls while the model's score rises, the policy exploits errors of the model. This is
//! called over-optimisation (Gao et al., arXiv 2210.10760).

use std::path::Path;

use gradus_agents::process_reward::sigmoid;
use gradus_agents::{ConfigError, End, OptimiserConfig, Rollout, UpdateContext};
use gradus_base::random::episode_seed;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, add_with_prefix, get_u64, with_prefix, without_prefix};
use gradus_envs::EnvSpec;
use gradus_envs::text::{Split, TextWorld};
use gradus_nets::{ActionRows, Behaviour, Device, Observations, Policy, Schedule, Store, Texts};
use gradus_rollouts::{Episode, PlayedEpisode};

use crate::config::of_text;
use crate::config::{Config, Labelling, Network, RewardConfig, WrapperConfig};
use crate::saved::{Beginner, EXAMPLES_FILE, begin_as, check_reward_model, examples_file, read_config};
use crate::train::examples::{Examples, How, Quality, Questions, Verifier};
use crate::train::metrics::Metrics;
use crate::{Error, memory};

/// The reward model of a training run. [`load_reward`](crate::run::load_reward) loads it from a run's folder.
pub struct LearnedReward {
    config: RewardConfig,
    optimiser: OptimiserConfig,
    seed: u64,
    own_world: EnvSpec,
    network: Network,
    world: TextWorld,
    model: Box<dyn Policy>,
    /// How steps are labelled, if the model is a process reward model.
    labelling: Option<Labelling>,
    /// What the model was trained on so far.
    old: Examples,
    rounds: u64,
}

/// Training problems per validation problem each time the model is trained. The model's accuracy is measured on the validation problems.
const MEASURED: usize = 4;

/// The environment number from which [`episode_seed`] derives the reward model's seeds.
const OWN: u64 = u32::MAX as u64 - 2;

impl LearnedReward {
    /// Creates the reward model if the configuration has one. The model starts as a copy of `policy`; [`begin`](Self::begin) replaces its
    /// parameters if the configuration names a folder.
    pub(crate) fn new(config: &Config, world: &EnvSpec, policy: Option<&dyn Policy>) -> Result<Option<Self>, Error> {
        let Some(wanted) = config.reward_model.clone().filter(RewardConfig::is_on) else { return Ok(None) };
        let expected = "one with an actor-critic network, because a reward model needs it";
        let policy = policy.ok_or_else(|| ConfigError::unless(false, "agent", expected, &config.agent).unwrap_err())?;
        let own = config.wrappers.clone();
        let is_plain = !own.normalise_rewards && own.reward_scale == 1.0 && own.clip_reward == f32::INFINITY;
        let text = of_text("a reward model", world)?;
        let bytes = wanted.completions as f64 * memory::of_completion(text);
        let equal = format!("of {} completions", wanted.completions);
        memory::expect("reward_model.pairs", wanted.pairs, &equal, |pairs| pairs * bytes)?;
        ConfigError::unless(is_plain, "wrappers", "unchanged rewards with a reward model", "scaled, normalised or clipped rewards")?;
        wanted.labelling().map_or(Ok(()), |labelling| labelling.check_for(text))?;
        Ok(Some(Self {
            optimiser: OptimiserConfig {
                learning_rate: wanted.learning_rate,
                schedule: Schedule::Constant,
                warmup: 0.0,
                ..config.optimiser.clone()
            },
            old: Examples::none(wanted.labelling().is_some()),
            labelling: wanted.labelling(),
            config: wanted,
            seed: config.seed,
            model: policy.snapshot(),
            own_world: world.clone(),
            network: config.network.clone(),
            world: text.clone(),
            rounds: 0,
        }))
    }

    /// Loads the reward model in the folder `model`, which `gradus reward-model` wrote, for the texts of `world`. Other settings are those
    /// of `config`.
    pub(crate) fn of_folder(model: &Path, config: &Config, world: &EnvSpec) -> Result<Self, Error> {
        let of_model = read_config(model)?;
        let supervision = of_model.reward_model.unwrap_or_default().supervision;
        let reward_model = RewardConfig { folder: model.display().to_string(), supervision, ..RewardConfig::default() };
        let (network, reward_model) = (of_model.network, Some(reward_model));
        let wrappers = WrapperConfig::default(); // the run's wrappers change its own rewards, not those of the model
        let config = Config { device: Device::Cpu, network, reward_model, wrappers, ..config.clone() };
        let policy = config.policy(world)?;
        let learned = Self::new(&config, world, Some(policy.as_ref()))?;
        let mut learned = learned.expect("the configuration has a reward model");
        learned.begin()?;
        Ok(learned)
    }

    /// Loads the model's initial parameters from the folder that the configuration names. If the run trains the model further and replays
    /// old examples, also loads the examples that the model was trained on.
    pub(crate) fn begin(&mut self) -> Result<(), Error> {
        let RewardConfig { folder, pairs, training, supervision, .. } = &self.config;
        if folder.is_empty() {
            return Ok(());
        }
        let path = Path::new(folder);
        check_reward_model(path, *supervision)?;
        if let (Some(ours), true) = (&self.labelling, *pairs > 0) {
            let theirs = read_config(path)?.reward_model.unwrap_or_default();
            let ours = (ours.labels.name(), ours.rollouts, &ours.success);
            let theirs = (theirs.labels.name(), theirs.rollouts, &theirs.success);
            let show = |(labels, rollouts, success): (&str, usize, &String)| format!("{labels}, {rollouts} rollouts, success {success}");
            let problem = || format!("expected labels as those of this run ({}), got others ({})", show(ours), show(theirs));
            if ours != theirs {
                return Err(Error::folder(path, problem()));
            }
        }
        let own = Config { network: self.network.clone(), ..Config::default() };
        begin_as(path, Beginner { world: &self.own_world, config: &own, keys: &[] }, self.model.as_mut())?;
        if *pairs > 0 && training.replay > 0.0 {
            let (file, tensors) = examples_file(path)?.ok_or_else(|| {
                let advice = format!("make the folder again with `{} reward-model`, or set reward_model.replay=0", crate::program_name());
                let problem = format!("expected {EXAMPLES_FILE}, for reward_model.replay = {}, got none; {advice}", training.replay);
                Error::folder(path, problem)
            })?;
            let old = Examples::load(self.labelling.is_some(), &tensors, &self.world);
            self.old = old.map_err(|source| Error::Tensors { path: file, source })?;
        }
        Ok(())
    }

    /// Trains the model on completions sampled from `policy`, if a training is due before update number `iteration`. Returns the training
    /// loss, and how well the model agrees with completions of the validation split. All are NaN if no training was due.
    pub(crate) fn retrain_if_due(&mut self, policy: &dyn Behaviour, iteration: u64) -> Result<Metrics, Error> {
        let RewardConfig { pairs, completions, retrain_every, .. } = self.config;
        let is_due = pairs > 0 && (iteration == 0 || (retrain_every > 0 && iteration.is_multiple_of(retrain_every)));
        let names = Quality::names(self.labelling.is_some());
        let mut numbers = vec![f64::NAN; names.len()];
        if is_due && self.rounds <= iteration {
            let seed = episode_seed(self.seed, OWN, self.rounds);
            let questions = |problems| Questions { problems, completions };
            let mut verifier = Verifier::new(&self.world);
            let how = How::of(self.labelling.as_ref(), &mut verifier);
            let new = Examples::draw(policy, &self.world, Split::Train, questions(pairs), how, seed)?;
            let expected = match &new {
                Examples::Rankings(rankings) => Some("different rewards for at least one").filter(|_| rankings.is_empty()),
                Examples::Steps(texts) => Some("a step in at least one").filter(|_| texts.iter().all(|text| text.steps.is_empty())),
            };
            // a model that begins untrained would stay so
            if let Some(expected) = expected.filter(|_| self.config.folder.is_empty() && retrain_every == 0) {
                let what = format!("the {pairs} problems of reward_model.pairs, of {}", self.own_world.name);
                return Err(Error::Parse { what, expected: expected.into(), got: new.describe() });
            }
            let by_verifier = self.labelling.as_ref().map(|_| Labelling::by_verifier());
            let (held_out, how) = (questions(pairs.div_ceil(MEASURED)), How::of(by_verifier.as_ref(), &mut verifier));
            let validation = Examples::draw(policy, &self.world, Split::Validation, held_out, how, seed ^ 1)?;
            numbers = self.train(new, &validation, seed)?;
            self.rounds += 1;
        }
        Ok(names.iter().map(|name| (*name).into()).zip(numbers).collect())
    }

    /// Trains the model on `new` and a share of the old examples. Returns the training loss, and the agreement with `validation`.
    fn train(&mut self, new: Examples, validation: &Examples, seed: u64) -> Result<Vec<f64>, Error> {
        let context = self.world.space().width() - 1;
        let update = UpdateContext { seed, iteration: self.rounds, progress: 0.0 };
        let report = new.train(&self.old, self.model.as_mut(), context, &self.config.training, &self.optimiser, update)?;
        let loss = report.iter().find(|(name, _)| *name == "reward_model/loss").map_or(f64::NAN, |(_, loss)| *loss);
        let quality = validation.quality(self.model.as_mut(), context);
        if self.config.training.replay > 0.0 {
            self.old.extend(new);
        }
        Ok([vec![loss], quality.figures()].concat())
    }

    /// Replaces the rewards of each text by [those of the model](LearnedReward::rewards). Returns the learned reward of each text in the
    /// order of the segments, with NaN for a text that continues in the next rollout.
    pub(crate) fn replace(&mut self, rollout: &mut Rollout, episodes: &[Episode], greedy: &[PlayedEpisode]) -> Vec<f64> {
        let ActionRows::Discrete(actions) = &rollout.store.actions else { unreachable!("tokens are discrete") };
        let is_process = self.labelling.is_some();
        let is_whole = |i: usize| !matches!(rollout.segments[i].end, End::Cut { .. });
        // the decisions that the model scores
        let scored: Vec<Vec<usize>> = (0..rollout.segments.len())
            .map(|i| {
                let range = rollout.segments[i].range.clone();
                match is_process {
                    true => range.filter(|t| rollout.step_ends[*t]).collect(),
                    false => range.last().filter(|_| is_whole(i)).into_iter().collect(),
                }
            })
            .collect();
        let through = |t: &usize| [rollout.store.texts().prefix(*t), &actions[*t..=*t]].concat();
        let scores = self.scores(scored.iter().map(|decisions| decisions.iter().map(through).collect()));
        // segments are ordered by environment, episodes by time; within an environment both have the same order
        let mut by_env: Vec<&Episode> = episodes.iter().collect();
        by_env.sort_by_key(|episode| episode.env);
        let penalties: Vec<usize> = self.world.penalties().collect();
        let charged = |scores: &[f64]| penalties.iter().map(|i| scores[*i]).sum::<f64>();
        let (mut rewards, mut learned, mut by_env) = (vec![0.0_f64; rollout.len()], vec![f64::NAN; rollout.segments.len()], by_env.iter());
        scored.iter().flatten().zip(scores).for_each(|(t, score)| rewards[*t] = score);
        for (i, segment) in rollout.segments.iter().enumerate() {
            if !is_whole(i) {
                continue;
            }
            let (episode, last) = (by_env.next().expect("a whole segment has an episode"), segment.range.end - 1);
            rewards[last] -= charged(&episode.scores);
            learned[i] = rewards[segment.range.clone()].iter().sum();
            let earlier = episode.length as usize - segment.range.len();
            if is_process && earlier > 0 {
                // steps in earlier rollouts have their rewards already; here they count towards the text's sum
                let text = through(&last);
                let (prompt, completion) = text.split_at(text.len() - episode.length as usize);
                learned[i] += self.rewards(prompt, completion)[..earlier].iter().sum::<f64>();
            }
        }
        if !is_process {
            rollout.step_ends.clear(); // the model scores whole texts, not steps
        }
        rollout.rewards = rewards.into_iter().map(|reward| reward as f32).collect();
        for (rewards, episode) in rollout.greedy_rewards.iter_mut().zip(greedy) {
            let text: Vec<u32> = gradus_envs::text::tokens(&episode.observation).collect();
            let (prompt, completion) = text.split_at(text.len() - rewards.len());
            *rewards = self.rewards(prompt, completion).into_iter().map(|reward| reward as f32).collect();
        }
        learned
    }

    /// Returns the reward of each token of a whole completion, EOS included. An outcome reward model gives its score of the text to the last
    /// token. A process reward model gives the last token of each step its probability that the step is right. The environment's penalties
    /// for a missing EOS and for length are subtracted from the reward of the last token. All other rewards are 0.
    pub fn rewards(&mut self, prompt: &[u32], completion: &[u32]) -> Vec<f64> {
        let mut rewards = self.scores_of(&[(prompt, completion)]).remove(0);
        let charges = self.world.charges(completion).iter().sum::<f64>();
        rewards.last_mut().into_iter().for_each(|last| *last -= charges);
        rewards
    }

    /// As [`rewards`](LearnedReward::rewards), for several completions and without penalties.
    pub(crate) fn scores_of(&mut self, completions: &[(&[u32], &[u32])]) -> Vec<Vec<f64>> {
        let is_process = self.labelling.is_some();
        // the lengths of each completion up to which the model scores it
        let ends = |(prompt, completion): &(&[u32], &[u32])| -> Vec<usize> {
            let is_end = |tokens: &usize| is_process && self.world.task.step_reward(prompt, &completion[..*tokens]).is_some();
            let whole = Some(completion.len()).filter(|length| *length > 0);
            (1..completion.len()).filter(is_end).chain(whole).collect()
        };
        let ends: Vec<Vec<usize>> = completions.iter().map(ends).collect();
        let prefixes = |((prompt, completion), ends): (&(&[u32], &[u32]), &Vec<usize>)| -> Vec<Vec<u32>> {
            ends.iter().map(|tokens| [prompt, &completion[..*tokens]].concat()).collect()
        };
        let mut scores = self.scores(completions.iter().zip(&ends).map(prefixes)).into_iter();
        let mut all: Vec<Vec<f64>> = completions.iter().map(|(_, completion)| vec![0.0; completion.len()]).collect();
        for (rewards, ends) in all.iter_mut().zip(&ends) {
            ends.iter().zip(&mut scores).for_each(|(tokens, score)| rewards[tokens - 1] = score);
        }
        all
    }

    /// Whether the model is a process reward model.
    pub fn is_process(&self) -> bool {
        self.labelling.is_some()
    }

    /// Returns the model's scores of prefixes of texts: of whole texts as they are, of steps as probabilities. The prefixes of a text are
    /// ordered by length.
    fn scores(&mut self, texts: impl Iterator<Item = Vec<Vec<u32>>>) -> Vec<f64> {
        let mut all = Texts::new(self.world.space().width() - 1);
        for prefixes in texts {
            prefixes.into_iter().for_each(|prefix| all.push(prefix.into_iter()));
            all.end_text();
        }
        let mut scores = Vec::new();
        if !all.is_empty() {
            self.model.values(&Store::of(Observations::Texts(all), ActionRows::Discrete(Vec::new())), &mut scores);
        }
        let is_process = self.labelling.is_some();
        scores.into_iter().map(|score| f64::from(if is_process { sigmoid(score) } else { score })).collect()
    }

    /// Saves everything that is needed to resume bit for bit.
    pub(crate) fn save(&self) -> Tensors {
        let mut tensors = with_prefix(self.model.save(), MODEL);
        add_with_prefix(&mut tensors, self.model.save_optimiser(), OPTIMISER);
        add_with_prefix(&mut tensors, self.old.save(), "");
        tensors.insert(ROUNDS.into(), Tensor::u64(vec![self.rounds]));
        tensors
    }

    /// Loads the tensors of [`save`](LearnedReward::save), to resume the training.
    pub(crate) fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let part = |prefix: &str| without_prefix(tensors, prefix);
        self.model.load(&part(MODEL))?;
        self.model.load_optimiser(&part(OPTIMISER))?;
        self.old = Examples::load(self.labelling.is_some(), tensors, &self.world)?;
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
    fn setting() -> (Config, EnvSpec, LearnedReward) {
        setting_of("target-sum", "reward_model.supervision=outcome")
    }

    /// As [`setting`], on another task and with another setting.
    fn setting_of(task: &str, setting: &str) -> (Config, EnvSpec, LearnedReward) {
        let config = Config::preset("grpo", task, None).unwrap();
        let settings =
            ["text.missing_eos_penalty=0.5", "text.length_penalty=0.25", "reward_model.pairs=400", "reward_model.epochs=4", setting];
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
                let alone = learned.scores(std::iter::once(vec![text.clone()]))[0] as f32;
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
                let expected = learned.scores(std::iter::once(vec![text.clone()]))[0] as f32 - 0.25 * (text.len() - 2) as f32;
                assert!((greedy - (expected - if is_cut { 0.5 } else { 0.0 })).abs() < 1e-5);
            }
        }
    }

    /// With a process reward model, the last token of each step gets the probability that the step is right, and all other tokens get 0.
    /// The penalties are subtracted from the last reward. A text that began in an earlier rollout counts with all its steps.
    #[test]
    fn probabilities_of_steps_replace_rewards() {
        let (_, world, mut learned) = setting_of("chain-sum", "reward_model.supervision=process");
        let (text, policy) = (world.text.as_ref().unwrap(), learned.model.snapshot());
        let probability = |learned: &mut LearnedReward, text: &[u32]| {
            let mut all = Texts::new(learned.world.space().width() - 1);
            all.push(text.iter().copied());
            all.end_text();
            let mut score = Vec::new();
            learned.model.values(&Store::of(Observations::Texts(all), ActionRows::Discrete(Vec::new())), &mut score);
            1.0 / (1.0 + f64::from(-score[0]).exp())
        };
        for collection in [Collection::Episodes { per_env: 2, group: 2, greedy: true }, Collection::Steps(5)] {
            let mut collector = Collector::new(&world, 8, 1, collection).unwrap();
            let (mut whole, mut continued, mut inner) = (0, 0, 0);
            for _ in 0..4 {
                let (mut rollout, episodes) = collector.collect(policy.as_ref()).unwrap();
                let ends = rollout.step_ends.clone();
                let sums = learned.replace(&mut rollout, &episodes, collector.greedy_episodes());
                assert_eq!(rollout.step_ends, ends, "process supervision needs the ends of steps");
                let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("tokens") };
                for (segment, sum) in rollout.segments.iter().zip(sums) {
                    let (last, is_cut) = (segment.range.end - 1, matches!(segment.end, End::Cut { .. }));
                    for t in segment.range.clone() {
                        let so_far = [rollout.store.texts().prefix(t), &actions[t..=t]].concat();
                        let mut expected = if ends[t] { probability(&mut learned, &so_far) } else { 0.0 };
                        inner += usize::from(ends[t] && t < last);
                        if t == last && !is_cut {
                            assert!(ends[t], "a text ends with a step");
                            expected -= text.charges(&so_far[6..]).iter().sum::<f64>();
                        }
                        assert!((f64::from(rollout.rewards[t]) - expected).abs() < 1e-5, "expected {expected}, got {}", rollout.rewards[t]);
                    }
                    let so_far = [rollout.store.texts().prefix(last), &actions[last..=last]].concat();
                    if is_cut {
                        assert!(sum.is_nan());
                        continue;
                    }
                    let (prompt, completion) = so_far.split_at(6);
                    let rewards = learned.rewards(prompt, completion);
                    let tail = &rewards[completion.len() - segment.range.len()..];
                    let same = |(a, b): (&f64, &f32)| (a - f64::from(*b)).abs() < 1e-5;
                    assert!(tail.iter().zip(&rollout.rewards[segment.range.clone()]).all(same), "{rewards:?}");
                    assert!((sum - rewards.iter().sum::<f64>()).abs() < 1e-5, "expected the sum of {rewards:?}, got {sum}");
                    whole += 1;
                    continued += usize::from(completion.len() > segment.range.len());
                }
                for (rewards, episode) in rollout.greedy_rewards.iter().zip(collector.greedy_episodes()) {
                    let whole: Vec<u32> = gradus_envs::text::tokens(&episode.observation).collect();
                    let expected: f64 = learned.rewards(&whole[..6], &whole[6..]).iter().sum();
                    assert!((rewards.iter().map(|reward| f64::from(*reward)).sum::<f64>() - expected).abs() < 1e-5);
                }
            }
            let is_by_steps = matches!(collection, Collection::Steps(_));
            assert!(
                whole > 10 && inner > 10 && (continued > 0) == is_by_steps,
                "{whole} whole, {continued} continued, {inner} inner steps"
            );
        }
    }

    /// Labels by the verifier teach the model which steps are right, and a model loaded from a checkpoint continues with the same numbers.
    #[test]
    fn a_process_model_learns_and_resumes() {
        let of_verifier = || {
            let (_, _, mut learned) = setting_of("chain-sum", "reward_model.supervision=process");
            learned.labelling = Some(Labelling { rollouts: 2, ..Labelling::default() });
            learned
        };
        let mut learned = of_verifier();
        let policy = learned.model.snapshot();
        let first = learned.retrain_if_due(policy.as_ref(), 0).unwrap();
        assert_eq!(first.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), Quality::names(true));
        let saved = learned.save();
        let mut other = of_verifier();
        other.load(&saved).unwrap();
        assert!(other.save() == saved && other.old == learned.old && learned.old.len() == 800);
        let later = |learned: &mut LearnedReward| {
            learned.config.retrain_every = 5;
            let metrics = learned.retrain_if_due(policy.as_ref(), 5).unwrap();
            (format!("{metrics:?}"), learned.save())
        };
        let (one, two) = (later(&mut learned), later(&mut other));
        assert!(one == two && learned.old.len() == 1600);
        let mut damaged = saved.clone();
        damaged.insert("steps".into(), Tensor::u64(vec![1, 1, 1, 9, 0]));
        assert!(other.load(&damaged).is_err());
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
        damaged.insert("rankings".into(), Tensor::u64(vec![2, 3, 3, 1, 1, 1, 1, 1]));
        assert!(other.load(&damaged).is_err());
    }
}
