//! A custom task passes the checker, and a task that violates its contract ends the run with an error that names the task.

use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_checker as checker;
use gradus_envs::text::{Division, Finish, Problem, Rule, Rules, Split, Task, Verdict, Vocabulary};
use gradus_envs::{Actions, EnvError, EnvSpec};

use super::{GOES_ON, ends_with, play, scores, text_of};

#[test]
fn rules_of_one_name_are_numbered() {
    let rule = |name: &str| Rule::new(name, 1.0, |_| Ok(0.5));
    let rules = Rules(vec![rule("format"), rule("tests"), rule("format"), rule("format-2"), rule("format")]);
    let expected = ["exact", "reward/format", "reward/tests", "reward/format-2", "reward/format-2-2", "reward/format-3"];
    assert_eq!(rules.score_names(), expected);
}

/// A custom task, possibly with a fault.
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

    /// Returns the error of a run that plays one episode with the tokens `a` and EOS, or `nothing` if there is no error.
    fn fault(self) -> String {
        let mut envs = match EnvSpec::text("own", self).unwrap().vec_env(0..1, 1) {
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
        assert!(!completion.contains(&3), "EOS is not part of the completion");
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
fn a_custom_task_passes_and_may_have_stop_tokens() {
    let world = EnvSpec::text("own", Own::right()).unwrap();
    assert_eq!(checker::check_world(&world), []);
    let (env, row, steps) = play(&world, "b", &[0, 2]);
    assert_eq!(steps, [(GOES_ON, false), (ends_with(0.5), true)]);
    assert_eq!((row, scores(&*env)[1].1), (vec![3.0, 1.0, 0.0, 2.0, 0.0], 0.0));
    assert_eq!(Own::right().fault(), "nothing");
}

#[test]
fn a_failing_verifier_ends_the_run_with_a_one_line_error() {
    let with = |verdict| Own { verdict, prompt: |_| vec![1, 0], ..Own::right() }.fault();
    let line = |what: &str| {
        let seed = episode_seed(1, 0, 0);
        format!("own, environment 0: task `own`: prompt `ba`, completion `a`: {what} (step 2 of the episode with seed {seed})")
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
fn a_task_without_problems_or_with_invalid_ones_is_an_error() {
    let make = |prompt| text_of(EnvSpec::text("own", Own { prompt, ..Own::right() }));
    assert_eq!(make(|_| Vec::new()), "text: task `own`: expected problems of the train split, got none (an empty prompt)");
    assert_eq!(make(|_| vec![1, 9]), "text: task `own`: expected tokens of 0 to 3, got 9");
    let mut stream = Stream::new(0, Purpose::Problem, 0);
    assert_eq!(Split::Train.draw_where(&mut stream, |_| Problem::default(), |_| false), Problem::default());
}

/// A task that ignores the split without declaring this would be tested on its training problems.
#[test]
fn a_task_that_ignores_the_split_is_an_error() {
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
    assert!(EnvSpec::text("own", own.clone()).is_ok());
    let error = text_of(EnvSpec::text("own", Careless(own)));
    let (start, end) = error.split_once("the prompt `").unwrap();
    assert_eq!(start, "text: task `own`: expected disjoint splits, got ");
    assert!(end.ends_with("` in two of them; a task without splits declares one set in `Task::division`"), "{error}");
}

/// The prompt that is too long occurs only during a run, not when the world is created.
#[test]
fn an_invalid_problem_ends_the_run_with_a_one_line_error() {
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
    let error = text_of(EnvSpec::text("growing", Growing).unwrap().vec_env(0..1, 1));
    let seed = episode_seed(1, 0, 0);
    assert_eq!(
        error,
        format!(
            "growing, environment 0: task `growing`: prompt `abb`: expected at most 2 tokens, got 3 (step 0 of the episode with seed {seed})"
        )
    );
}

#[test]
fn rules_are_summed_and_reported_separately() {
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
fn an_invalid_regular_expression_is_a_one_line_error() {
    assert_eq!(
        text_of(Rule::format(1.0, r"^\d+(;\d+$")),
        r"text: format: expected a regular expression, got `^\d+(;\d+$`: found open group without closing ')'"
    );
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
