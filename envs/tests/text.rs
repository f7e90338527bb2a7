//! The Markov decision process of a text: how it begins, goes on, ends and is saved, and what is said when something does not fit.

use std::sync::{Arc, Mutex};

use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::text::{Division, Finish, Problem, Rule, Rules, Split, Task, TextOptions, Verdict, Vocabulary, tokens};
use gradus_envs::wrappers::ClipReward;
use gradus_envs::{Action, Actions, Autoreset, Ending, Env, EnvError, Starts, Step, VecEnv, World, checker, registry};

fn world(name: &str) -> World {
    registry::find(name).unwrap()
}

fn encode(world: &World, text: &str) -> Vec<u32> {
    world.text.as_ref().unwrap().task.vocabulary().encode(text).unwrap()
}

fn eos(world: &World) -> u32 {
    world.text.as_ref().unwrap().task.vocabulary().eos()
}

fn decode(world: &World, row: &[f32]) -> String {
    world.text.as_ref().unwrap().task.vocabulary().decode(&tokens(row).collect::<Vec<_>>())
}

fn scores(env: &dyn Env) -> Vec<(String, f64)> {
    let names = env.score_names();
    let mut scores = vec![f64::NAN; names.len()];
    env.scores(&mut scores);
    names.into_iter().zip(scores).collect()
}

/// Steps, and whether each ended a step of the solution.
type Played = Vec<(Step, bool)>;

/// Plays a prompt and what is said: the environment, the last row and the steps.
fn play(world: &World, prompt: &str, said: &[u32]) -> (Box<dyn Env>, Vec<f32>, Played) {
    let world = world.clone().with_prompt(&encode(world, prompt)).unwrap();
    let mut env = world.env();
    let mut row = vec![f32::NAN; env.observation_space().width()];
    env.reset(0, &mut row);
    let steps = said.iter().map(|token| (env.step(Action::Discrete(*token), &mut row), env.ends_step())).collect();
    (env, row, steps)
}

fn said(world: &World, text: &str, ends: bool) -> Vec<u32> {
    let mut said = encode(world, text);
    said.extend(ends.then(|| eos(world)));
    said
}

const GOES_ON: Step = Step { reward: 0.0, terminated: false, truncated: false };

fn ends_with(reward: f64) -> Step {
    Step { reward, terminated: true, truncated: false }
}

#[test]
fn a_text_grows_by_the_token_that_is_said_and_ends_with_eos() {
    let addition = world("addition");
    let (env, row, steps) = play(&addition, "37+45=", &said(&addition, "28", true));
    assert_eq!(steps, [(GOES_ON, false), (GOES_ON, false), (ends_with(1.0), true)]);
    assert_eq!(row.len(), 6 + 4 + 1); // the longest prompt, the most new tokens, and how many there are
    assert_eq!(row, [9.0, 3.0, 7.0, 10.0, 4.0, 5.0, 11.0, 2.0, 8.0, 12.0, 0.0]);
    assert_eq!(env.ansi().unwrap(), "37+45=28");
    assert_eq!(scores(&*env), [("exact".to_string(), 1.0), ("finish/length".to_string(), 0.0)]);
}

#[test]
fn a_text_is_cut_at_its_length() {
    let addition = world("addition");
    let (env, _, steps) = play(&addition, "37+45=", &said(&addition, "2855", false));
    assert_eq!(steps.last().unwrap().0, ends_with(2.0 / 5.0));
    assert_eq!(scores(&*env), [("exact".to_string(), 0.0), ("finish/length".to_string(), 1.0)]);
    // EOS as the last token that may be said is no cut
    let (env, _, steps) = play(&addition, "99+99=", &said(&addition, "891", true));
    assert_eq!((steps[3].0, scores(&*env)[1].1), (ends_with(1.0), 0.0));

    let options = TextOptions { length_bootstraps: true, ..TextOptions::default() };
    let bootstraps = world("addition").with_text_options(options).unwrap();
    assert_eq!((addition.max_episode_steps, bootstraps.max_episode_steps), (None, Some(4)));
    let (_, _, steps) = play(&bootstraps, "37+45=", &said(&addition, "2855", false));
    assert_eq!(steps[3].0, Step { reward: 2.0 / 5.0, terminated: false, truncated: true });
    let (_, _, steps) = play(&bootstraps, "99+99=", &said(&addition, "891", true));
    assert_eq!(steps[3].0, ends_with(1.0));
}

#[test]
fn options_change_length_and_reward_and_are_scores() {
    let options = TextOptions { max_new_tokens: Some(3), missing_eos_penalty: 0.5, length_penalty: 0.125, length_bootstraps: false };
    let addition = world("addition").with_text_options(options).unwrap();
    let named = |scores: [f64; 4]| {
        let names = ["exact", "finish/length", "penalty/missing-eos", "penalty/length"];
        names.into_iter().map(String::from).zip(scores).collect::<Vec<_>>()
    };
    let (env, row, steps) = play(&addition, "37+45=", &said(&addition, "28", true));
    assert_eq!((steps[2].0, scores(&*env)), (ends_with(1.0 - 0.375), named([1.0, 0.0, 0.0, 0.375])));
    assert_eq!(row.len(), 6 + 3 + 1);
    let (env, _, steps) = play(&addition, "37+45=", &said(&addition, "288", false));
    assert_eq!((steps[2].0, scores(&*env)), (ends_with(2.0 / 4.0 - 0.5 - 0.375), named([0.0, 1.0, 0.5, 0.375])));
    assert_eq!(addition.about, world("addition").about);
}

/// Whoever has a text and no environment asks the world.
#[test]
fn a_world_judges_whole_texts() {
    let addition = world("addition");
    let text = addition.text.as_ref().unwrap();
    let judge = |answer: &str, ends| text.verify(&encode(&addition, "37+45="), &said(&addition, answer, ends)).unwrap();
    assert_eq!(judge("28", true), (1.0, vec![1.0, 0.0]));
    assert_eq!(judge("28", false), (2.0 / 3.0, vec![0.0, 1.0]), "what has not ended counts as cut");
    assert_eq!(judge("2855", false), (2.0 / 5.0, vec![0.0, 1.0]));
    let finish = |answer: &str, ends| text.finish(&said(&addition, answer, ends));
    assert_eq!((finish("", false), finish("285", false), finish("28", true)), (None, None, Some(Finish::Eos)));
    assert_eq!((finish("2855", false), finish("285", true)), (Some(Finish::Length), Some(Finish::Eos)));
}

/// Totals pay when they end, the sum at the end; penalties belong to the last token.
#[test]
fn steps_are_paid_when_they_end() {
    let chain = world("chain-sum");
    let rewards = |text: &str, ends| {
        let (env, _, steps) = play(&chain, "3+4+2=", &said(&chain, text, ends));
        let paid: Vec<(f64, bool)> = steps.iter().map(|(step, ends)| (step.reward, *ends)).collect();
        (paid, scores(&*env)[1].1)
    };
    let [no, one, nothing] = [(0.0, false), (1.0, true), (0.0, true)];
    assert_eq!(rewards("7;9#9", true), (vec![no, one, no, one, no, one], 1.0));
    assert_eq!(rewards("7;8#8", true), (vec![no, one, no, nothing, no, nothing], 0.5));
    assert_eq!(rewards("7;9", true), (vec![no, one, no, nothing], 0.5)); // EOS ends no total: who stops early is paid nothing
    assert_eq!(rewards("7;9;9;9;9", false).0, [no, one, no, one, no, nothing, no, nothing, nothing]);
    let options = TextOptions { length_penalty: 0.25, ..TextOptions::default() };
    let (_, _, steps) = play(&chain.clone().with_text_options(options).unwrap(), "3+4+2=", &said(&chain, "7;9#9", true));
    assert_eq!(steps.iter().map(|(step, _)| step.reward).collect::<Vec<_>>(), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0 - 1.5]);
}

#[test]
fn a_saved_text_goes_on() {
    for name in ["addition", "chain-sum", "program-3", "preference"] {
        let world = world(name).on_split(Split::Test);
        for seed in 0..20 {
            let (mut env, mut other) = (world.env(), world.env());
            let mut row = vec![0.0; env.observation_space().width()];
            let mut other_row = row.clone();
            let text = world.text.as_ref().unwrap();
            let stream = &mut Stream::new(seed, Purpose::Environment, 0);
            let answer = text.task.problem(Split::Test, stream).answer;
            env.reset(seed, &mut row);
            other.reset(seed + 1, &mut other_row);
            for token in answer {
                other.load(&env.save()).unwrap();
                let step = env.step(Action::Discrete(token), &mut row);
                assert_eq!(other.step(Action::Discrete(token), &mut other_row), step, "{name} {seed}");
                assert_eq!((&row, env.ends_step(), scores(&*env)), (&other_row, other.ends_step(), scores(&*other)), "{name} {seed}");
            }
        }
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let world = world("addition");
    let mut env = world.env();
    let mut row = vec![0.0; env.observation_space().width()];
    env.reset(3, &mut row);
    env.step(Action::Discrete(4), &mut row);
    let saved = env.save();
    let changed = |place: usize, word: u64| {
        let mut state = saved.clone();
        state[place] = word;
        state
    };
    let states = [
        saved[..saved.len() - 1].to_vec(),
        saved[..2].to_vec(),
        [saved.clone(), vec![1]].concat(),
        changed(0, 0),
        changed(0, 8),
        changed(0, u64::MAX),
        changed(1, f64::NAN.to_bits()),
        changed(4, 13),
        [vec![6, 0, 11], vec![1; 11]].concat(),
        [vec![7, 0, 8], vec![1; 8]].concat(),
    ];
    for state in states {
        let error = env.load(&state).unwrap_err().to_string();
        assert!(error.contains("expected") && error.contains("got"), "{state:?}: {error}");
    }
    assert_eq!(env.save(), saved, "what is refused changes nothing");
}

#[test]
fn a_group_shares_its_prompt_and_a_finished_slot_takes_the_next() {
    let world = world("addition");
    let starts = Starts { seed: 5, group: 3 };
    let mut envs = world.vec_env_with(0..6, starts, Autoreset::SameStep).unwrap();
    let prompt_of = |group, episode| {
        let mut env = world.env();
        let mut row = vec![0.0; envs.observation_space().width()];
        env.reset(episode_seed(5, group, episode), &mut row);
        decode(&world, &row)
    };
    let expected: Vec<Vec<String>> = (0..2).map(|group| (0..3).map(|episode| prompt_of(group, episode)).collect()).collect();
    let texts =
        |envs: &VecEnv| -> Vec<String> { envs.observations().outer_iter().map(|row| decode(&world, row.as_slice().unwrap())).collect() };
    let at_start = texts(&envs);
    assert!(at_start[..3].iter().all(|text| *text == expected[0][0]) && at_start[3..].iter().all(|text| *text == expected[1][0]));
    assert_ne!(expected[0][0], expected[1][0]);
    // number 1 says nothing and number 5 two digits: each goes on with its group's next prompt at once, and nobody waits
    let end = eos(&world);
    let ended = envs.step(Actions::Discrete(&[1, end, 2, 3, 4, 5])).unwrap();
    assert_eq!(ended.finished.len(), 1);
    assert_eq!((ended.finished[0].env, ended.finished[0].length, ended.finished[0].ending), (1, 1, Ending::Terminated));
    assert_eq!(ended.finished[0].scores, [0.0, 0.0]);
    assert_eq!(texts(&envs)[1], expected[0][1]);
    envs.step(Actions::Discrete(&[1, end, 2, 3, 4, end])).unwrap();
    let texts = texts(&envs);
    assert_eq!((&texts[1], &texts[5]), (&expected[0][2], &expected[1][1]));
    assert_eq!(texts[0], format!("{}11", expected[0][0]));
    assert_eq!(envs.score_names(), ["exact", "finish/length"]);
}

#[test]
fn worlds_can_be_given_a_prompt_and_another_split() {
    let world = world("addition");
    let test = world.clone().on_split(Split::Test);
    let mut rows = vec![vec![0.0; 11]; 2];
    for seed in 0..50 {
        for (world, row) in [&world, &test].into_iter().zip(&mut rows) {
            world.env().reset(seed, row);
        }
        assert_ne!(rows[0], rows[1]);
        test.clone().with_prompt(&encode(&world, "1+2=")).unwrap().env().reset(seed, &mut rows[0]);
        assert_eq!(decode(&world, &rows[0]), "1+2=");
    }
    assert_eq!((test.name.as_str(), test.text.as_ref().unwrap().split), ("addition", Split::Test));
    let cartpole = registry::find("cartpole").unwrap();
    assert_eq!(cartpole.clone().on_split(Split::Test).name, "cartpole");
    assert_eq!(text_of(cartpole.clone().with_prompt(&[1])), "text: prompt: expected a world of text, got `cartpole`");
    assert_eq!(
        text_of(cartpole.with_text_options(TextOptions::default())),
        "text: options of texts: expected a world of text, got `cartpole`"
    );
}

/// What was wrapped around a world is around the worlds that are made of it: once, in the same order.
#[test]
fn worlds_keep_their_wrappers() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let wrap = |world: World, name: &'static str, (low, high)| {
        let made = made.clone();
        world.wrapped(move |env| {
            made.lock().unwrap().push(name);
            ClipReward::new(env, low, high)
        })
    };
    let wrapped = wrap(wrap(world("addition"), "inside", (0.5, 1.0)), "outside", (0.0, 0.25));
    let prompt = encode(&wrapped, "1+2=");
    let options = TextOptions { missing_eos_penalty: 1.0, ..TextOptions::default() };
    for world in [
        wrapped.clone(),
        wrapped.clone().on_split(Split::Validation).on_split(Split::Test),
        wrapped.clone().with_text_options(options.clone()).unwrap(),
        wrapped.on_split(Split::Test).with_prompt(&prompt).unwrap().with_text_options(options).unwrap(),
    ] {
        made.lock().unwrap().clear();
        let mut env = world.env();
        assert_eq!(*made.lock().unwrap(), ["inside", "outside"]);
        let mut row = vec![0.0; env.observation_space().width()];
        env.reset(1, &mut row);
        // an empty answer is worth nothing: a half inside at least, a quarter outside at most
        assert_eq!(env.step(Action::Discrete(eos(&world)), &mut row).reward, 0.25);
    }
}

#[test]
fn rules_of_one_name_are_numbered() {
    let rule = |name: &str| Rule::new(name, 1.0, |_| Ok(0.5));
    let rules = Rules(vec![rule("format"), rule("tests"), rule("format"), rule("format-2"), rule("format")]);
    let expected = ["exact", "reward/format", "reward/tests", "reward/format-2", "reward/format-2-2", "reward/format-3"];
    assert_eq!(rules.score_names(), expected);
}

fn text_of<T>(result: Result<T, EnvError>) -> String {
    let text = result.err().expect("an error").to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_in_a_line() {
    let addition = || world("addition");
    let ask = |prompt: &str| text_of(addition().with_prompt(&encode(&addition(), prompt)));
    assert_eq!(ask("137+245="), "text: prompt `137+245=`: expected at most 6 tokens, got 8");
    assert_eq!(ask(""), "text: prompt: expected 1 to 6 tokens, got none");
    assert_eq!(ask("37+4"), "text: prompt `37+4`, completion ``: expected a prompt such as `37+45=`, got `37+4`");
    assert_eq!(text_of(addition().with_prompt(&[3, 13])), "text: expected tokens of 0 to 12, got 13");
    let vocabulary = addition().text.unwrap();
    let error = text_of(vocabulary.task.vocabulary().encode("37-45="));
    assert_eq!(error, "text: character `-` of `37-45=`: expected one of the symbols 0 1 2 3 4 5 6 7 8 9 + =");
    let options = |options| text_of(addition().with_text_options(options));
    assert_eq!(
        options(TextOptions { max_new_tokens: Some(0), ..TextOptions::default() }),
        "text: `addition`: max_new_tokens: expected 1 to 65536, got 0"
    );
    assert_eq!(
        options(TextOptions { length_penalty: f64::NAN, ..TextOptions::default() }),
        "text: `addition`: length_penalty: expected a finite number of at least 0, got NaN"
    );
    assert_eq!(
        options(TextOptions { missing_eos_penalty: -1.0, ..TextOptions::default() }),
        "text: `addition`: missing_eos_penalty: expected a finite number of at least 0, got -1"
    );
}

#[test]
fn levels_have_names() {
    assert_eq!(world("addition-3").name, "addition-3");
    let space = |name| world(name).env().observation_space();
    assert!(space("addition") == space("addition-2") && space("addition") != space("addition-3"));
    assert_eq!(text_of(registry::find("addition-7")), "unknown environment `addition-7`; levels go from `addition-1` to `addition-4`");
    assert_eq!(text_of(registry::find("chain-sums")), "unknown environment `chain-sums`; did you mean `chain-sum`?");
    assert!(registry::all().iter().filter(|world| world.text.is_some()).all(|world| world.about.contains("-1 to -")));
}

/// A task of one's own, with something wrong with it or not.
#[derive(Clone)]
struct Own {
    vocabulary: Vocabulary,
    prompt: fn(u32) -> Vec<u32>,
    verdict: fn() -> Result<Verdict, String>,
    step: Option<f64>,
}

impl Own {
    fn right() -> Self {
        let vocabulary = Vocabulary::of_characters("ab.").unwrap();
        Self { vocabulary, prompt: |rng| vec![rng % 2], verdict: || Ok(Verdict::new(0.5, false)), step: None }
    }

    /// What a run says when an episode of one `a` and one EOS is played.
    fn fault(self) -> String {
        let mut envs = match World::text("own", self).unwrap().vec_env(0..1, 1) {
            Ok(envs) => envs,
            Err(error) => return text_of::<()>(Err(error)),
        };
        for token in [0, 3] {
            if let Err(error) = envs.step(Actions::Discrete(&[token])) {
                assert!(matches!(error, EnvError::Fault { .. }));
                return text_of::<()>(Err(error));
            }
        }
        "nothing".into()
    }
}

impl Task for Own {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }
    fn max_new_tokens(&self) -> usize {
        3
    }
    fn division(&self) -> Division {
        Division::OneSet { problems: 2 }
    }
    fn problem(&self, _: Split, stream: &mut Stream) -> Problem {
        Problem { prompt: (self.prompt)(stream.word()), answer: Vec::new() }
    }
    fn verify(&self, _: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        assert_eq!(finish == Finish::Stop, completion.last() == Some(&2), "a stop token is part of the completion");
        assert!(!completion.contains(&3), "EOS is not");
        (self.verdict)()
    }
    fn is_stop(&self, token: u32) -> bool {
        token == 2
    }
    fn step_reward(&self, _: &[u32], _: &[u32]) -> Option<f64> {
        self.step
    }
}

#[test]
fn a_task_of_ones_own_passes_and_may_have_stop_tokens() {
    let world = World::text("own", Own::right()).unwrap();
    assert_eq!(checker::check_world(&world), []);
    let (env, row, steps) = play(&world, "b", &[0, 2]);
    assert_eq!(steps, [(GOES_ON, false), (ends_with(0.5), true)]);
    assert_eq!((row, scores(&*env)[1].1), (vec![3.0, 1.0, 0.0, 2.0, 0.0], 0.0));
    assert_eq!(Own::right().fault(), "nothing");
}

#[test]
fn a_verifier_that_fails_ends_the_run_with_a_line() {
    let with = |verdict| Own { verdict, prompt: |_| vec![1, 0], ..Own::right() }.fault();
    let line = |what: &str| {
        let seed = episode_seed(1, 0, 0);
        format!("environment 0: task `own`: prompt `ba`, completion `a`: {what} (step 2 of the episode with seed {seed})")
    };
    assert_eq!(with(|| Err("no compiler\nfound".into())), line("no compiler found"));
    assert_eq!(with(|| Ok(Verdict::new(f64::NAN, false))), line("expected a finite reward and finite scores, got NaN"));
    assert_eq!(with(|| Ok(Verdict::new(f64::INFINITY, false))), line("expected a finite reward and finite scores, got inf"));
    assert_eq!(with(|| Ok(Verdict { reward: 1.0, scores: vec![f64::NAN] })), line("expected a finite reward and finite scores, got NaN"));
    assert_eq!(with(|| Ok(Verdict { reward: 1.0, scores: Vec::new() })), line("expected 1 scores (exact), got 0"));
    let step = Own { step: Some(f64::NAN), ..Own::right() }.fault();
    assert!(step.contains("completion `a`: expected a finite reward of the step, got NaN (step 1 of"), "{step}");
}

#[test]
fn a_task_without_problems_or_with_wrong_ones_is_refused() {
    let make = |prompt| text_of(World::text("own", Own { prompt, ..Own::right() }));
    assert_eq!(make(|_| Vec::new()), "text: task `own`: expected problems of the train split, got none (an empty prompt)");
    assert_eq!(make(|_| vec![1, 9]), "text: task `own`: expected tokens of 0 to 3, got 9");
    let mut stream = Stream::new(0, Purpose::Problem, 0);
    assert_eq!(Split::Train.draw_where(&mut stream, |_| Problem::default(), |_| false), Problem::default());
}

/// A task that ignores the split, and does not say that it knows none, would be tested on what it has learned from.
#[test]
fn a_task_that_ignores_the_split_is_refused() {
    struct Careless(Own);
    impl Task for Careless {
        fn vocabulary(&self) -> &Vocabulary {
            self.0.vocabulary()
        }
        fn max_new_tokens(&self) -> usize {
            self.0.max_new_tokens()
        }
        fn problem(&self, split: Split, stream: &mut Stream) -> Problem {
            self.0.problem(split, stream)
        }
        fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
            self.0.verify(prompt, completion, finish)
        }
    }
    let own = Own { prompt: |rng| vec![rng % 2, 1], ..Own::right() };
    assert!(World::text("own", own.clone()).is_ok());
    let error = text_of(World::text("own", Careless(own)));
    let (start, end) = error.split_once("the prompt `").unwrap();
    assert_eq!(start, "text: task `own`: expected disjoint splits, got ");
    assert!(end.ends_with("` in two of them; a task whose problems are one set says so by `Task::division`"), "{error}");
}

/// A prompt that turns up in the midst of a run and does not fit.
#[test]
fn a_wrong_problem_ends_the_run_with_a_line() {
    #[derive(Clone)]
    struct Growing;
    impl Task for Growing {
        fn vocabulary(&self) -> &Vocabulary {
            static VOCABULARY: std::sync::LazyLock<Vocabulary> = std::sync::LazyLock::new(|| Vocabulary::of_characters("ab").unwrap());
            &VOCABULARY
        }
        fn max_new_tokens(&self) -> usize {
            1
        }
        fn longest_prompt(&self) -> usize {
            2
        }
        fn division(&self) -> Division {
            Division::OneSet { problems: 2 }
        }
        fn problem(&self, _: Split, stream: &mut Stream) -> Problem {
            let first = Stream::new(0, Purpose::Environment, 0).word();
            let prompt = if stream.word() == first { vec![0] } else { vec![0, 1, 1] };
            Problem { prompt, answer: Vec::new() }
        }
        fn verify(&self, _: &[u32], _: &[u32], _: Finish) -> Result<Verdict, String> {
            Ok(Verdict::new(0.0, false))
        }
    }
    let error = text_of(World::text("growing", Growing).unwrap().vec_env(0..1, 1));
    let seed = episode_seed(1, 0, 0);
    assert_eq!(
        error,
        format!("environment 0: task `growing`: prompt `abb`: expected at most 2 tokens, got 3 (step 0 of the episode with seed {seed})")
    );
}

#[test]
fn rules_add_up_and_are_reported_one_by_one() {
    let right = |prompt: &str| Ok(prompt.to_uppercase());
    let rules = Rules(vec![
        Rule::format(0.5, "^[A-Z]+$").unwrap(),
        Rule::equality(2.0, right),
        Rule::tests(1.0, |answer| Ok(answer.completion.chars().map(|letter| letter == 'A').collect())).named("all-a"),
        Rule::new("length", -0.25, |answer| Ok(answer.completion.len() as f64)),
    ]);
    assert_eq!(rules.score_names(), ["exact", "reward/format", "reward/equality", "reward/all-a", "reward/length"]);
    let vocabulary = Vocabulary::of_characters("abAB").unwrap();
    let verdict = |text: &str, finish| rules.verdict(&vocabulary, &[0, 1], &vocabulary.encode(text).unwrap(), finish);
    assert_eq!(verdict("AB", Finish::Eos), Ok(Verdict { reward: 0.5 + 2.0 + 0.5 - 0.5, scores: vec![0.0, 1.0, 1.0, 0.5, 2.0] }));
    assert_eq!(verdict("AB", Finish::Length), Ok(Verdict { reward: 0.5 + 0.5 - 0.5, scores: vec![0.0, 1.0, 0.0, 0.5, 2.0] }));
    assert_eq!(verdict("Aa", Finish::Stop), Ok(Verdict { reward: 0.5 - 0.5, scores: vec![0.0, 0.0, 0.0, 0.5, 2.0] }));
    assert_eq!(verdict("", Finish::Eos), Err("all-a: expected at least 1 unit test, got 0".into()));
}

#[test]
fn a_format_that_is_no_regular_expression_is_refused_in_a_line() {
    assert_eq!(text_of(Rule::format(1.0, r"^\d+(;\d+$")), r"text: format: expected a regular expression, got `^\d+(;\d+$`: unclosed group");
    assert!(Rule::format(1.0, r"^\d+(;\d+)*$").is_ok());
    let large = text_of(Rule::format(1.0, "(a{1000}){1000}{1000}"));
    assert!(large.starts_with("text: format: expected a regular expression, got `(a{1000}){1000}{1000}`: "), "{large}");
}

#[test]
fn vocabularies_are_checked() {
    let wrong = |symbols: &[&str]| text_of(Vocabulary::new(symbols.iter().copied()));
    assert_eq!(wrong(&[]), "text: vocabulary: expected at least 1 symbol, got 0");
    assert_eq!(wrong(&["a", ""]), "text: vocabulary: symbol 1: expected at least 1 character, and not <eos>, got ``");
    assert_eq!(wrong(&["a", "b", "a"]), "text: vocabulary: expected every symbol once, got `a` as symbols 0 and 2");
    let vocabulary = Vocabulary::new(["a", "ab", "é", " -> "]).unwrap();
    assert_eq!(vocabulary.encode("aab é -> a").unwrap(), [0, 1, 2, 3, 0]);
    assert_eq!((vocabulary.symbol(1), vocabulary.symbol(4), vocabulary.symbol(7)), ("ab".into(), "<eos>".into(), "<7>".into()));
}
