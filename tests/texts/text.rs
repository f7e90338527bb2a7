//! On texts, rollouts and trainings do not depend on the number of threads or on `max_concurrent`. What `sample` and `inspect` return
//! agrees with the definitions.

use std::sync::atomic::Ordering;

use crate::copycat::{Copycat, Dice};
use gradus::agents::Advantages;
use gradus::agents::groups::{GroupStd, Supervision};
use gradus::agents::{Collection, End, Rollout};
use gradus::envs::Action;
use gradus::envs::registry;
use gradus::envs::text::Split;
use gradus::evaluate::inspect::{Looked, inspect};
use gradus::evaluate::sample::{Drawn, sample};
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::tensors::{self, Tensor, Tensors};
use gradus::nets::{ActionRows, Observations, Sampling, Store, Texts, TransformerConfig, threads};
use gradus::rollouts::{Collector, Episode};
use gradus::run::load_reward;
use gradus::run::sft::{WarmStart, warm_start};
use gradus::saved::load_policy;
use gradus::{Config, LearnedReward, Run, Show, Trainer};

const EPISODES: Collection = Collection::Episodes { per_env: 2, group: 3, greedy: true };

/// Returns two rollouts of 12 environments, the largest number of rows in one call of the actor, and the collector's checkpoint.
fn collect(collection: Collection, threads: usize, max_concurrent: usize) -> (Vec<(Rollout, Vec<Episode>)>, usize, Tensors) {
    threads::with(threads, || {
        let dice = Dice::default();
        let mut collector = Collector::new(&Copycat::world(), 12, 7, collection).unwrap().with_max_concurrent(max_concurrent);
        let rollouts = (0..2).map(|_| collector.collect(&dice).unwrap()).collect();
        (rollouts, dice.most_rows.load(Ordering::Relaxed), collector.save())
    })
}

#[test]
fn rollouts_do_not_depend_on_threads_or_max_concurrent() {
    for collection in [EPISODES, Collection::Episodes { per_env: 1, group: 1, greedy: false }, Collection::Steps(9)] {
        let (rollouts, most, saved) = collect(collection, 1, 0);
        assert_eq!(most, 12);
        for (threads, max_concurrent, expected_most) in
            [(2, 0, 6), (5, 0, 3), (1, 1, 1), (1, 3, 3), (2, 3, 2), (5, 3, 1), (1, 99, 12), (2, 5, 3)]
        {
            let (other, most, other_saved) = collect(collection, threads, max_concurrent);
            assert!(other == rollouts, "{collection:?}: rollouts differ with {threads} threads, {max_concurrent} at once");
            assert!(other_saved == saved, "{collection:?}: checkpoints differ with {threads} threads, {max_concurrent} at once");
            assert_eq!(most, expected_most, "{collection:?}: {threads} threads, {max_concurrent} at once");
        }
        assert_ne!(rollouts[0], rollouts[1]);
    }
}

/// Every decision observes the prompt and the tokens before it, and each text is stored once.
#[test]
fn observations_are_prefixes_of_texts() {
    let (rollouts, ..) = collect(EPISODES, 2, 4);
    for (rollout, episodes) in &rollouts {
        let texts = rollout.store.texts();
        let ActionRows::Discrete(actions) = &rollout.store.actions else { panic!("expected discrete actions") };
        let cut = rollout.segments.iter().filter(|segment| segment.end != End::Terminated).count();
        assert_eq!((rollout.segments.len(), episodes.len(), texts.len()), (24, 24, 24 + cut));
        assert!(cut > 0, "no text was cut");
        for segment in &rollout.segments {
            let range = segment.range.clone();
            let first = texts.prefix(range.start).to_vec();
            assert_eq!(first.len(), 2);
            for i in range.clone() {
                assert_eq!(texts.prefix(i), [&first, &actions[range.start..i]].concat());
                assert_eq!(rollout.step_ends[i], actions[i] == 1);
                assert_eq!(rollout.log_probs[i], -(texts.prefix(i).len() as f32));
            }
            if let End::Truncated { successor } = segment.end {
                assert_eq!(texts.prefix(successor), [&first, &actions[range]].concat());
            }
        }
        // the score of an episode is the number of tokens of its prompt and completion
        assert!(episodes.iter().all(|episode| episode.scores == [f64::from(episode.length) + 2.0]));
    }
}

/// The greedy episode of a group begins with the group's prompt. Its reward noise comes from the seed of that prompt.
#[test]
fn each_group_has_its_greedy_rewards() {
    let (rollouts, ..) = collect(EPISODES, 2, 4);
    for (rollout, episodes) in &rollouts {
        // 12 environments in groups of 3, with two episodes of each environment, make 8 groups
        assert_eq!(rollout.greedy_rewards.len(), 8);
        for segment in &rollout.segments {
            let group = segment.group.0 as usize;
            let prompt = rollout.store.texts().prefix(segment.range.start);
            let seed = episodes.iter().find(|episode| episode.env == 3 * (group / 2) && episode_number(episodes, episode) == group % 2);
            let mut env = Copycat::world().env();
            let mut row = vec![0.0; 13];
            env.reset(seed.unwrap().seed, &mut row);
            let tokens: Vec<u32> = gradus::envs::text::tokens(&row).collect();
            assert_eq!(tokens, prompt, "group {group}");
            let actions = [prompt[0], prompt[0], prompt[0], prompt[0], prompt[0], 0];
            let rewards: Vec<f32> = actions.iter().map(|action| env.step(Action::Discrete(*action), &mut row).reward as f32).collect();
            assert_eq!(rollout.greedy_rewards[group], rewards, "group {group}");
        }
    }
}

/// Returns the index of an episode among the episodes of its environment.
fn episode_number(episodes: &[Episode], episode: &Episode) -> usize {
    episodes.iter().filter(|other| other.env == episode.env && other.step < episode.step).count()
}

#[test]
fn evaluations_do_not_depend_on_threads() {
    for mode in [Mode::Greedy, Mode::Sampled] {
        let played = |count| threads::with(count, || evaluate(&Dice::default(), &Copycat::world(), 150, 3, mode).unwrap());
        let one = played(1);
        assert_eq!((&one, &one), (&played(2), &played(5)));
        assert_eq!((one.scores.len(), one.scores[0].name.as_str()), (1, "tokens"));
        let lengths: f64 = one.lengths.iter().map(|length| f64::from(*length) + 2.0).sum();
        assert!((one.score("tokens").unwrap() - lengths / 150.0).abs() < 1e-12);
        let is_even = one.lengths.iter().all(|length| *length == 6);
        assert_eq!(is_even, mode == Mode::Greedy);
    }
}

/// Returns small trainings on texts, of every agent that supports them.
fn trainings() -> Vec<Config> {
    let settings: [(&str, &[&str]); 12] = [
        ("reinforce", &["reinforce.baseline=value"]),
        ("reinforce", &["reinforce.baseline=greedy", "reinforce.group_size=3", "reference.coefficient=0.1", "reference.refresh_every=2"]),
        ("reinforce", &["reinforce.baseline=leave-one-out", "reinforce.group_size=2", "reinforce.aggregation=sequence-sum"]),
        ("a2c", &["a2c.rollout_steps=7"]),
        ("a2c", &["a2c.rollout_steps=7", "reward_model.pairs=12", "reward_model.retrain_every=2"]),
        (
            "reinforce",
            &[
                "reinforce.baseline=greedy",
                "reward_model.pairs=12",
                "reward_model.completions=3",
                "reward_model.retrain_every=1",
                "reward_model.epochs=2",
            ],
        ),
        ("ppo", &["ppo.rollout_steps=10", "ppo.minibatch_size=24", "ppo.epochs=2"]),
        (
            "ppo",
            &[
                "ppo.episodes_per_env=2",
                "ppo.minibatch_size=16",
                "ppo.normalise_over=rollout",
                "ppo.whiten_rewards=true",
                "ppo.huber=0.5",
                "reference.coefficient=0.2",
                "reference.place=reward",
                "reference.adaptive_target=0.1",
                "reference.horizon=100",
            ],
        ),
        ("grpo", &["grpo.group_size=3", "reference.coefficient=0.05", "grpo.episodes_per_env=2", "grpo.sampling_rounds=3"]),
        (
            "grpo",
            &[
                "grpo.group_size=3",
                "grpo.supervision=process",
                "grpo.group_std=batch",
                "grpo.sampling_rounds=3",
                "grpo.aggregation=sequence-mean",
                "reference.coefficient=0.05",
                "reference.estimator=exact",
            ],
        ),
        ("grpo", &["grpo.group_size=3", "grpo.ratio=sequence", "grpo.clip=0.01", "grpo.clip_high=0.02", "reference.measure=true"]),
        ("grpo", &["grpo.group_size=2", "transformer.critic=separate", "transformer.positions=learned", "text.length_bootstraps=true"]),
    ];
    let small = ["transformer.layers=1", "transformer.width=32", "transformer.heads=2", "transformer.feed_forward_width=32"];
    let config = |(agent, own): (&str, &[&str])| {
        let config = Config { environment: "cartpole".into(), ..Config::default() };
        let config = config.with_toml(&format!("agent = \"{agent}\"\nenvironment = \"target-sum\"")).unwrap();
        let config = small.iter().chain(own).fold(config, |config, setting| config.with_setting(setting).unwrap());
        Config { envs: 6, steps: 150, evaluate_every: 60, ..config }
    };
    settings.into_iter().map(config).collect()
}

/// Trains and returns the final state.
fn train(config: &Config, threads: usize, stop_after: Option<u64>) -> Tensors {
    threads::with(threads, || {
        let mut trainer = Trainer::new(config.clone()).unwrap();
        while !trainer.is_finished() && stop_after.is_none_or(|n| trainer.iteration() < n) {
            trainer.iterate().unwrap();
        }
        if stop_after.is_some() {
            let state = trainer.save();
            trainer = Trainer::new(config.clone()).unwrap();
            trainer.load(&state).unwrap();
        }
        trainer.finish().unwrap();
        trainer.save()
    })
}

#[test]
fn trainings_do_not_depend_on_threads_max_concurrent_or_interruptions() {
    for config in trainings() {
        let straight = train(&config, 1, None);
        for (threads, max_concurrent, stop_after) in [(2, 0, None), (5, 0, Some(2)), (1, 1, None), (1, 4, None), (2, 3, Some(1))] {
            let other = train(&Config { max_concurrent, ..config.clone() }, threads, stop_after);
            for (key, tensor) in &straight {
                let agent = &config.agent;
                assert!(
                    other.get(key) == Some(tensor),
                    "{agent}: {key} differs with {threads} threads, {max_concurrent} at once, stopped after {stop_after:?}"
                );
            }
            assert_eq!(straight.len(), other.len());
        }
        assert!(train(&Config { seed: 2, ..config }, 1, None) != straight, "another seed gives the same training");
    }
}

/// The sampler computes log-probabilities from cached keys and values, one token at a time. The learner computes them from whole texts.
#[test]
fn sampler_and_learner_compute_the_same_log_probs() {
    for config in trainings().into_iter().filter(|config| config.agent != "a2c") {
        let metrics = Trainer::new(config.clone()).unwrap().iterate().unwrap().metrics;
        let metric = |wanted: &str| metrics.iter().find(|(name, _)| name == wanted).unwrap_or_else(|| panic!("no {wanted}: {metrics:?}")).1;
        let [mean, largest] = ["mean", "max"].map(|of| metric(&format!("sampling/sampling_logp_difference/{of}")));
        assert!(largest < 1e-5 && mean <= largest, "{}: mean difference {mean}, largest difference {largest}", config.agent);
        assert!(metric("kl/old_k1").abs() < 0.1, "{}: {metrics:?}", config.agent);
    }
}

/// What `sample` returns for a completion agrees with the completion's reward, and with advantages computed from their definitions.
#[test]
fn completions_are_explained() {
    let world = registry::find("target-sum").unwrap();
    let text = world.text.clone().unwrap();
    let mut policy = gradus::config::Network::from(TransformerConfig::default()).policy(&world, 3).unwrap();
    // a critic with values other than 0
    let parameters: Vec<f32> = policy.parameters().iter().map(|x| if *x == 0.0 { 0.1 } else { *x }).collect();
    policy.set_parameters(&parameters);
    let prompt = text.task.vocabulary().encode("4>").unwrap();
    let drawn = Drawn { n: 9, sampling: Sampling::default(), seed: 5 };
    let mut of = |drawn, compared| sample((policy.as_mut(), None), &text, &prompt, drawn, compared, None).unwrap();

    let by_group = of(drawn, Advantages::OfGroup(GroupStd::Population, Supervision::Outcome));
    let rewards: Vec<f64> = by_group.iter().map(|it| it.verdict.as_ref().unwrap().0).collect();
    let mean = rewards.iter().sum::<f64>() / 9.0;
    let std = (rewards.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / 9.0).sqrt();
    assert!(std > 0.0, "all completions have the same reward");
    let by_values = of(drawn, Advantages::OfValues { gamma: 1.0, lambda: 1.0 });
    for ((a, b), &reward) in by_group.iter().zip(&by_values).zip(&rewards) {
        for (token, same) in a.tokens.iter().zip(&b.tokens) {
            assert_eq!((token.token, token.log_prob, token.value), (same.token, same.log_prob, same.value));
            assert!(token.log_prob < 0.0 && token.entropy > 0.0 && token.entropy < 10_f32.ln() + 1e-5);
            assert!((f64::from(token.advantage.unwrap()) - (reward - mean) / (std + 1e-4)).abs() < 1e-5);
            // with gamma = lambda = 1, GAE is R - V(s)
            assert!((f64::from(same.advantage.unwrap() + same.value) - reward).abs() < 1e-5);
        }
        // the verifier gives the shown tokens the shown reward
        let completion: Vec<u32> = a.tokens.iter().map(|token| token.token).collect();
        assert_eq!(text.verify(&prompt, &completion).unwrap().0, reward);
    }
    // from a policy that takes every token as often, the KL divergence is what the entropy lacks
    let mut even = gradus::config::Network::from(TransformerConfig::default()).policy(&world, 3).unwrap();
    even.set_parameters(&vec![0.0; even.parameters().len()]);
    let mut again = even.snapshot();
    again.set_parameters(policy.parameters());
    let compared = Advantages::OfReturns { gamma: 1.0 };
    for completion in sample((policy.as_mut(), Some(even.as_mut())), &text, &prompt, drawn, compared, None).unwrap() {
        for token in completion.tokens {
            let expected = (text.task.vocabulary().len() as f32).ln() - token.entropy;
            assert!((token.kl.unwrap() - expected).abs() < 1e-5, "{:?} {expected}", token.kl);
        }
    }
    let same = sample((policy.as_mut(), Some(again.as_mut())), &text, &prompt, drawn, compared, None).unwrap();
    assert!(same.iter().flat_map(|completion| &completion.tokens).all(|token| token.kl == Some(0.0)));
    let mut of = |drawn, compared| sample((policy.as_mut(), None), &text, &prompt, drawn, compared, None).unwrap();
    // leave-one-out: the advantage is G/(G-1) times the reward's distance from the mean
    for (completion, reward) in of(drawn, Advantages::AgainstOthers { gamma: 1.0 }).iter().zip(&rewards) {
        let expected = (reward - mean) * 9.0 / 8.0;
        assert!(completion.tokens.iter().all(|token| (f64::from(token.advantage.unwrap()) - expected).abs() < 1e-5));
    }
    // without a baseline, the advantage is the discounted reward of the last token
    for (completion, reward) in of(drawn, Advantages::OfReturns { gamma: 0.5 }).iter().zip(&rewards) {
        for (left, token) in completion.tokens.iter().rev().enumerate() {
            assert!((f64::from(token.advantage.unwrap()) - reward * 0.5_f64.powi(left as i32)).abs() < 1e-5);
        }
    }
    // a completion does not depend on the number of completions, and greedy completions are equal
    assert_eq!(of(Drawn { n: 3, ..drawn }, Advantages::OfValues { gamma: 1.0, lambda: 1.0 }), by_values[..3]);
    let greedy = of(
        Drawn { sampling: Sampling { temperature: 0.0, ..Sampling::default() }, ..drawn },
        Advantages::OfGroup(GroupStd::Population, Supervision::Outcome),
    );
    assert!(greedy.iter().all(|completion| *completion == greedy[0]));
    assert_eq!(
        of(
            Drawn { sampling: Sampling { top_k: 1, ..Sampling::default() }, ..drawn },
            Advantages::OfGroup(GroupStd::Population, Supervision::Outcome)
        ),
        greedy
    );
    assert!(
        of(Drawn { n: 1, ..drawn }, Advantages::OfGroup(GroupStd::Population, Supervision::Outcome))[0]
            .tokens
            .iter()
            .all(|token| token.advantage.is_none())
    );
}

/// A warm start learns the answers and stops at `until_exact`. It does not depend on the number of threads.
#[test]
fn training_begins_with_the_parameters_of_a_warm_start() {
    let config = Config::preset("grpo", "copy-1", None).unwrap();
    let config = gradus::run::sft::defaults(config);
    let world = registry::find("copy-1").unwrap();
    let wanted = WarmStart { steps: 300, batch: 16, until_exact: 0.5, evaluate_every: 5, problems: 40 };
    let started = |count| {
        threads::with(count, || {
            let mut policy = config.network.policy(&world, 1).unwrap();
            let all = warm_start(policy.as_mut(), &world, &config, &wanted, |_| {}).unwrap();
            (all, policy.save())
        })
    };
    let (all, parameters) = started(1);
    assert!((all.clone(), parameters.clone()) == started(2), "the warm start differs between one and two threads");
    let (last, before) = all.split_last().unwrap();
    assert!(last.exact >= 0.5 && last.step < 300 && before.iter().all(|at| at.exact < 0.5), "{all:?}");
    assert!(last.loss < 0.7 * all[0].loss, "{all:?}");
    let validation = evaluate(
        Trainer::with_parameters(config.clone(), world.clone(), &parameters).unwrap().policy(),
        &world.clone().on_split(Split::Validation),
        40,
        config.seed,
        Mode::Greedy,
    );
    assert_eq!(validation.unwrap().score("exact"), Some(last.exact));
}

/// `sample` and `inspect` use the rewards of a run's reward model, and also show the environment's own reward.
#[test]
fn sample_and_inspect_use_the_learned_reward() {
    let dir = gradus_testing::tempdir().unwrap();
    let settings = ["reward_model.pairs=200", "text.missing_eos_penalty=0.5", "text.length_penalty=0.25", "envs=8", "steps=200"];
    let config = Config::preset("grpo", "target-sum", None).unwrap();
    let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
    let folder = dir.path().join("run");
    Run::create(config, &folder).unwrap().train(Show::Nothing).unwrap();

    let (config, world, mut policy) = load_policy(&folder).unwrap();
    let mut learned = load_reward(&folder).unwrap().unwrap();
    let text = world.text.clone().unwrap();
    let prompt = text.task.vocabulary().encode("4>").unwrap();
    let drawn = Drawn { n: 9, sampling: Sampling::default(), seed: 5 };
    let mut shown = |learned: Option<&mut LearnedReward>| {
        sample((policy.as_mut(), None), &text, &prompt, drawn, Advantages::OfReturns { gamma: 1.0 }, learned).unwrap()
    };
    let (plain, scored) = (shown(None), shown(Some(&mut learned)));
    // evaluate the reward model in the checkpoint without our scoring code
    let (state, _) = tensors::decode(&std::fs::read(folder.join("state.safetensors")).unwrap()).unwrap();
    let named = |(name, tensor): (String, Tensor)| Some((name.strip_prefix("reward_model.model.")?.to_string(), tensor));
    let mut model = config.network.policy(&world, 99).unwrap();
    model.load(&state.into_iter().filter_map(named).collect()).unwrap();
    for (plain, scored) in plain.iter().zip(&scored) {
        assert_eq!((plain.learned, &plain.verdict), (None, &scored.verdict));
        let completion: Vec<u32> = scored.tokens.iter().map(|token| token.token).collect();
        let mut all = Texts::new(text.space().width() - 1);
        all.push([&prompt[..], &completion].concat().into_iter());
        all.end_text();
        let mut score = Vec::new();
        model.values(&Store::of(Observations::Texts(all), ActionRows::Discrete(Vec::new())), &mut score);
        let is_cut = completion.last() != Some(&text.task.vocabulary().eos());
        let expected = f64::from(score[0]) - if is_cut { 0.5 } else { 0.0 } - 0.25 * completion.len() as f64;
        assert!((scored.learned.unwrap() - expected).abs() < 1e-5);
        assert!(scored.tokens.iter().all(|token| (f64::from(token.advantage.unwrap()) - expected).abs() < 1e-5));
    }

    let looked = Looked { groups: 3, group_size: 4, seed: 1, gamma: 1.0, lambda: 1.0 };
    let of_world = inspect(policy.as_mut(), &world, &config, looked, None).unwrap();
    let found = inspect(policy.as_mut(), &world, &config, looked, Some(&mut learned)).unwrap();
    assert_eq!((of_world.true_rewards, found.true_rewards.as_ref()), (None, Some(&of_world.rollout.rewards)));
    let ActionRows::Discrete(actions) = &found.rollout.store.actions else { panic!("expected discrete actions") };
    for segment in &found.rollout.segments {
        let range = segment.range.clone();
        let prompt = found.rollout.store.texts().prefix(range.start);
        assert!(
            (f64::from(found.rollout.rewards[range.end - 1]) - learned.rewards(prompt, &actions[range.clone()]).iter().sum::<f64>()).abs()
                < 1e-5
        );
    }
}
