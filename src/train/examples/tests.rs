use gradus_agents::process_reward::StepLabel;
use gradus_base::tensors::Tensor;
use gradus_envs::EnvSpec;
use gradus_envs::text::{Division, Finish, Problem, Task, TextOptions, Verdict, Vocabulary};
use gradus_nets::{ActionRows, Observations, Store, Texts};

use super::rankings::{draw, load, preferences, ranked, save};
use super::*;
use crate::Config;
use crate::config::StepLabels;

/// Returns rankings of an untrained policy's completions on target sum with penalties, and the text environment.
fn drawn(completions: usize) -> (Vec<RankedTexts>, TextWorld) {
    let config = Config::preset("grpo", "target-sum", None).unwrap();
    let options = TextOptions { missing_eos_penalty: 0.7, length_penalty: 0.1, ..TextOptions::default() };
    let world = config.world().unwrap().with_text_options(options).unwrap();
    let policy = config.network.policy(&world, 3).unwrap();
    let world = world.text.unwrap();
    let mut verifier = Verifier::new(&world);
    (draw(policy.as_ref(), &world, Split::Train, Questions { problems: 600, completions }, &mut verifier, 5).unwrap(), world)
}

/// Returns the task's reward of a text with a prompt of two tokens, without penalties.
fn worth(world: &TextWorld, text: &[u32]) -> f64 {
    let (prompt, completion) = text.split_at(2);
    let answer = completion.strip_suffix(&[world.task.vocabulary().eos()]).unwrap_or(completion);
    world.task.verify(prompt, answer, world.finish(completion).unwrap()).unwrap().reward
}

#[test]
fn equal_rewards_are_ranked_once() {
    assert_eq!(ranked(&[0.5, 1.0, 0.5, 0.0, 1.0], 10), [11, 10, 13]);
    assert_eq!(ranked(&[0.2, 0.2], 4), [4]);
    assert_eq!(ranked(&[-0.0, 0.0, -1.0], 0).len(), 2);
}

/// The texts of a ranking belong to one problem. The task's reward, without penalties, falls from each text to the next.
#[test]
fn completions_of_a_problem_become_one_ranking() {
    for completions in [2, 5] {
        let (rankings, world) = drawn(completions);
        assert!(rankings.len() > 30 && rankings.len() <= 600, "{}", rankings.len());
        for RankedTexts { prompt, texts } in &rankings {
            assert!(prompt == &texts[0][..2], "a prompt has two tokens");
            assert!((2..=completions).contains(&texts.len()));
            assert!(texts.iter().all(|text| text[..2] == texts[0][..2]), "different prompts");
            assert!(texts.windows(2).all(|two| worth(&world, &two[0]) > worth(&world, &two[1])), "{texts:?}");
        }
        assert!(rankings.iter().any(|ranking| ranking.texts.len() == completions.min(3)), "no ranking is long");
    }
}

#[test]
fn rankings_are_saved_and_loaded() {
    let (rankings, world) = drawn(4);
    let (vocabulary, context) = (world.task.vocabulary().len() as u32, world.space().width() - 1);
    let words = |rankings: &[RankedTexts]| match save(rankings).remove("rankings").unwrap() {
        Tensor { data: gradus_base::tensors::Data::U64(words), .. } => words,
        other => panic!("expected whole numbers, got {other:?}"),
    };
    let of = |words: &[u64], prompts: Option<&[u64]>| {
        let mut tensors = Tensors::from([("rankings".to_string(), Tensor::u64(words.to_vec()))]);
        tensors.extend(prompts.map(|prompts| ("prompts".to_string(), Tensor::u64(prompts.to_vec()))));
        load(&tensors, vocabulary, context)
    };
    let saved = words(&rankings);
    assert_eq!(load(&save(&rankings), vocabulary, context).unwrap(), rankings);
    let without_prompt = |ranking: &RankedTexts| RankedTexts { prompt: Vec::new(), ..ranking.clone() };
    assert_eq!(of(&saved, None).unwrap(), rankings.iter().map(without_prompt).collect::<Vec<_>>(), "of an older version");
    assert_eq!(of(&[], None).unwrap(), []);
    let pair = words(&[RankedTexts { prompt: Vec::new(), texts: vec![vec![1, 2, 3], vec![4]] }]);
    assert_eq!(pair, [2, 3, 1, 1, 2, 3, 4]);
    for damaged in [
        &saved[..saved.len() - 1],
        &[1, 1, 3],                           // one text
        &[2, 1, 1, 0, u64::from(vocabulary)], // a token outside of the vocabulary
        &[2, 1, u64::MAX, 0, 0],
        &[u64::MAX, 1, 1, 0, 0],
        &[2, 3, 2, 1, 2, 3, 4, 5, 6], // a token too many
    ] {
        assert!(of(damaged, None).is_err(), "{damaged:?}");
    }
    let two = [2, 3, 2, 1, 2, 3, 1, 2]; // the texts 1 2 3 and 1 2
    assert_eq!(of(&two, Some(&[2])).unwrap()[0].completions().collect::<Vec<_>>(), [&[3][..], &[]]);
    for damaged in [&[3][..], &[4], &[u64::MAX], &[], &[2, 2]] {
        assert!(of(&two, Some(damaged)).is_err(), "prompts {damaged:?}");
    }
    let long: Vec<u64> = [2, context as u64 + 1, 1].into_iter().chain(vec![0; context + 2]).collect();
    assert!(of(&long, None).is_err());
}

/// The rankings have different lengths.
#[test]
fn rows_of_rankings_refer_to_their_texts() {
    let rankings = [vec![vec![1], vec![2, 3], vec![4]], vec![vec![5, 6], vec![7]]];
    let rankings = rankings.map(|texts| RankedTexts { prompt: Vec::new(), texts });
    let preferences = preferences(&rankings, 4);
    assert_eq!(preferences.rankings.len(), 2);
    for (ranking, RankedTexts { texts, .. }) in preferences.rankings.iter().zip(&rankings) {
        let named: Vec<Vec<u32>> = ranking.rows.iter().map(|row| preferences.store.texts().prefix(*row as usize).to_vec()).collect();
        assert_eq!(&named, texts);
    }
}

/// A task with steps: the answer to the prompt `1` is `1;1`, and a step is right if it is the prompt's digit.
struct Twice(Vocabulary);

impl Task for Twice {
    fn vocabulary(&self) -> &Vocabulary {
        &self.0
    }

    fn max_new_tokens(&self) -> usize {
        4
    }

    fn problem(&self, _: Split, stream: &mut Stream) -> Problem {
        let digit = stream.below(2);
        Problem::of(&self.0, &digit.to_string(), &format!("{digit};{digit}"))
    }

    fn division(&self) -> Division {
        Division::OneSet { problems: 2 }
    }

    fn verify(&self, prompt: &[u32], completion: &[u32], finish: Finish) -> Result<Verdict, String> {
        let is_right = finish == Finish::Eos && *completion == [prompt[0], 2, prompt[0]];
        let first = completion.iter().position(|token| *token == 2).is_some_and(|end| completion[..end] == *prompt);
        Ok(Verdict::new(f64::from(u8::from(first)) + f64::from(u8::from(is_right)), is_right))
    }

    fn step_reward(&self, prompt: &[u32], completion: &[u32]) -> Option<f64> {
        (completion.last() == Some(&2)).then(|| f64::from(u8::from(*completion == [prompt[0], 2])))
    }
}

/// Returns labelled completions of a policy that chooses all four tokens with the same probability.
fn labelled(labels: StepLabels, rollouts: usize) -> Vec<LabelledText> {
    let world = EnvSpec::text("twice", Twice(Vocabulary::of_characters("01;").unwrap())).unwrap();
    let config = Config::preset("grpo", "target-sum", None).unwrap();
    let mut policy = config.network.policy(&world, 3).unwrap();
    policy.set_parameters(&vec![0.0; policy.parameters().len()]);
    let labelling = Labelling { labels, rollouts, success: "exact".into() };
    let questions = Questions { problems: 150, completions: 2 };
    steps::draw(policy.as_ref(), &world.text.unwrap(), Split::Train, questions, &labelling, 5).unwrap()
}

/// Steps end at each `;` and at the last token. The verifier's label is 1 if the step has the prompt's digit alone.
#[test]
fn the_verifier_labels_every_step() {
    let texts = labelled(StepLabels::Verifier, 1);
    assert_eq!(texts.len(), 300);
    let (mut right, mut wrong) = ([0, 0], [0, 0]);
    for LabelledText { text, steps } in &texts {
        let ends: Vec<usize> = (2..=text.len()).filter(|end| text[end - 1] == 2 || *end == text.len()).collect();
        assert_eq!(steps.iter().map(|step| step.tokens).collect::<Vec<_>>(), ends, "{text:?}");
        for StepLabel { tokens, label } in steps {
            let is_right = match tokens {
                3 => text[1..3] == [text[0], 2],
                5 => text[1..] == [text[0], 2, text[0], 3],
                _ => false,
            };
            assert_eq!(*label, f32::from(u8::from(is_right)), "{text:?}");
            let counts = if is_right { &mut right } else { &mut wrong };
            counts[usize::from(*tokens == text.len())] += 1;
        }
    }
    assert!(right.iter().chain(&wrong).all(|n| *n > 0), "right {right:?}, wrong {wrong:?}");
}

/// After a right first step, one of four tokens is the right digit, and one of four then ends the text: 1 of 16 completions succeeds. After a
/// wrong first step none does. The last step has the completion's own success.
#[test]
fn rollouts_label_steps_with_their_success() {
    const ROLLOUTS: usize = 500;
    let (soft, hard) = (labelled(StepLabels::Soft, ROLLOUTS), labelled(StepLabels::Hard, ROLLOUTS));
    assert!(soft.iter().zip(&hard).all(|(soft, hard)| soft.text == hard.text), "the labels change the completions");
    let (mut sum, mut n, mut different) = (0.0, 0.0, std::collections::BTreeSet::new());
    for (soft, hard) in soft.iter().zip(&hard) {
        for (step, hard) in soft.steps.iter().zip(&hard.steps) {
            assert_eq!((step.tokens, f32::from(u8::from(step.label > 0.0))), (hard.tokens, hard.label));
            let (text, succeeds) = (&soft.text, soft.text[1..] == [soft.text[0], 2, soft.text[0], 3]);
            if step.tokens == text.len() {
                assert_eq!(step.label, f32::from(u8::from(succeeds)), "{text:?}");
            } else if text[1..step.tokens] == [text[0], 2] {
                assert!((step.label - 1.0 / 16.0).abs() < 0.055, "{} of {text:?}", step.label); // five standard deviations
                (sum, n) = (sum + f64::from(step.label), n + 1.0);
                different.insert(step.label.to_bits());
            } else {
                assert_eq!(step.label, 0.0, "{text:?}");
            }
        }
    }
    let deviation = (15.0 / 256.0 / (n * ROLLOUTS as f64)).sqrt();
    assert!(n > 10.0 && (sum / n - 1.0 / 16.0).abs() < 4.0 * deviation, "{} over {n} steps", sum / n);
    assert!(different.len() > 3, "steps share their rollouts");
}

#[test]
fn labelled_texts_are_saved_and_loaded() {
    let texts = labelled(StepLabels::Soft, 8);
    let words = |texts: &[LabelledText]| match steps::save(texts) {
        Tensor { data: gradus_base::tensors::Data::U64(words), .. } => words,
        other => panic!("expected whole numbers, got {other:?}"),
    };
    let saved = words(&texts);
    assert_eq!(steps::load(&saved, 4, 5).unwrap(), texts);
    assert_eq!(steps::load(&[], 4, 5).unwrap(), []);
    let one = [LabelledText { text: vec![1, 2, 3], steps: vec![StepLabel { tokens: 2, label: 0.5 }, StepLabel { tokens: 3, label: 1.0 }] }];
    let half = u64::from(0.5_f32.to_bits());
    assert_eq!(words(&one), [3, 2, 1, 2, 3, 2, half, 3, u64::from(1.0_f32.to_bits())]);
    for damaged in [
        &saved[..saved.len() - 1],
        &[1, 1, 4, 1, half],                          // a token outside of the vocabulary
        &[6, 1, 0, 0, 0, 0, 0, 0, 6, half],           // longer than the context
        &[1, 1, 0, 2, half],                          // a step that ends after the text
        &[2, 2, 0, 0, 2, half, 2, half],              // two steps with the same end
        &[1, 1, 0, 1, u64::from(1.5_f32.to_bits())],  // not a label
        &[1, 1, 0, 1, u64::from(f32::NAN.to_bits())], // not a label
        &[1, 1, 0, 1, u64::MAX],                      // not a number
        &[u64::MAX, 1, 0, 1, half],
        &[1, u64::MAX, 0, 1, half],
        &[1, 1, 0, 1, half, 9], // a word too many
    ] {
        assert!(steps::load(damaged, 4, 5).is_err(), "{damaged:?}");
    }
}

/// Preferences in a file: pairs and rankings, splits, and EOS.
#[test]
fn preferences_are_read_from_lines() {
    let world = gradus_envs::registry::find("chain-sum").unwrap().text.unwrap();
    let read = |lines: &str| file::parse(lines.as_bytes(), &world);
    let lines = r#"{"prompt": "3+4+2=", "chosen": "7;9#9", "rejected": "7;9#8", "split": "train"}

        {"prompt": "1+1+1=", "ranking": ["2;3#3", "2;3#4", "123456789"], "split": "test"}"#;
    let [training, held_out] = read(lines).unwrap();
    let encode = |text: &str| world.task.vocabulary().encode(text).unwrap();
    let eos = world.task.vocabulary().eos();
    let ended = |text: &str| [encode(text), vec![eos]].concat();
    assert_eq!(training, [RankedTexts::new(&encode("3+4+2="), &[ended("7;9#9"), ended("7;9#8")])]);
    // a completion of the maximum length is cut
    assert_eq!(held_out, [RankedTexts::new(&encode("1+1+1="), &[ended("2;3#3"), ended("2;3#4"), encode("123456789")])]);
    let pairs = file::pairs(&held_out).unwrap();
    let shown: Vec<_> = pairs.iter().map(|pair| (pair.chosen.clone(), pair.rejected.clone())).collect();
    let [a, b, c] = [ended("2;3#3"), ended("2;3#4"), encode("123456789")];
    assert_eq!(shown, [(a.clone(), b.clone()), (a, c.clone()), (b, c)]);
    assert!(pairs.iter().all(|pair| pair.prompt == encode("1+1+1=")));

    // without splits, a prompt is for training or for the evaluation by its hash
    let many: String =
        (0..100).map(|i| format!("{{\"prompt\": \"{}+{}+1=\", \"chosen\": \"1\", \"rejected\": \"2\"}}\n", i / 10, i % 10)).collect();
    let [training, held_out] = read(&many).unwrap();
    assert!(training.iter().all(|ranking| Split::Train.has(&ranking.prompt)) && training.len() > 60);
    assert!(held_out.iter().all(|ranking| !Split::Train.has(&ranking.prompt)) && held_out.len() > 6);

    let wrong = |line: &str, expected: &str| {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{line}: {error}");
    };
    wrong("", "expected at least one preference for training, got an empty file");
    wrong("[1]", "line 1: expected an object in braces, got `[1]`");
    wrong("{\"prompt\": 3}", "line 1: prompt: expected a text, got 3");
    wrong("{\"chosen\": \"1\", \"rejected\": \"2\"}", "line 1: expected a prompt, got none");
    let of = |rest: &str| format!("{{\"prompt\": \"3+4+2=\", {rest}}}");
    wrong(&of(r#""chosen": "1""#), "line 1: expected either chosen and rejected, or a ranking, got chosen");
    wrong(&of(r#""chosen": "1", "rejected": "2", "ranking": ["1", "2"]"#), "expected either chosen and rejected, or a ranking");
    wrong(&of(r#""ranking": ["1"]"#), "ranking: expected at least 2 texts, got 1");
    wrong(&of(r#""ranking": "1""#), "ranking: expected a list of texts, got \"1\"");
    wrong(&of(r#""ranking": ["1", 2]"#), "ranking: expected a text, got 2");
    wrong(&of(r#""chosen": "1", "rejected": "1""#), "expected different completions, got `1` twice");
    wrong(&of(r#""chosen": "1x", "rejected": "1""#), "completion `1x`: ");
    wrong(&of(r#""chosen": "1234567890", "rejected": "1""#), "expected at most 9 tokens, EOS included, got 10");
    wrong(&of(r#""chosen": "1", "rejected": "2", "score": 1"#), "expected the keys prompt, chosen, rejected, ranking, split, got `score`");
    wrong(&of(r#""chosen": "1", "rejected": "2", "split": "validation""#), "split: expected train or test, got `validation`");
    wrong(r#"{"prompt": "abc", "chosen": "1", "rejected": "2"}"#, "line 1: prompt: ");
    wrong(
        r#"{"prompt": "11111111", "chosen": "1", "rejected": "2"}"#,
        "expected at most 6 tokens, as many as the longest prompt of the problems has, got 8",
    );
    let without = format!("{}\n{}", of(r#""chosen": "1", "rejected": "2", "split": "train""#), of(r#""chosen": "1", "rejected": "2""#));
    wrong(&without, "line 2: expected a split, because other lines have one, got none");
}

/// The worth of a completion to a policy is the sum of its tokens' log-probabilities, for any number of completions at once.
#[test]
fn a_policy_judges_by_its_log_likelihood() {
    let dir = gradus_testing::tempdir().unwrap();
    let config = Config::preset("grpo", "chain-sum", None).unwrap();
    let world = config.world().unwrap();
    let text = world.text.clone().unwrap();
    let mut policy = config.network.policy(&world, 3).unwrap();
    let folder = crate::run::write_policy(Some(&dir.path().join("run")), "run", &config, &policy.save(), "a\n1\n", None).unwrap();
    let mut judge = judge_in(&folder, &config, &world).unwrap();
    let encode = |text: &str| world.text.as_ref().unwrap().task.vocabulary().encode(text).unwrap();
    let (prompt, completions) = (encode("3+4+2="), [encode("7;9#9"), encode("1"), encode("999999999")]);
    let all: Vec<(&[u32], &[u32])> = (0..1500).map(|i| (&prompt[..], &completions[i % 3][..])).collect();
    let worth = judge.worth(&all).unwrap();
    for (i, completion) in completions.iter().enumerate() {
        let mut sum = 0.0;
        for (t, token) in completion.iter().enumerate() {
            let mut texts = Texts::new(text.space().width() - 1);
            texts.push([&prompt[..], &completion[..t]].concat().into_iter());
            texts.end_text();
            let mut log_probs = Vec::new();
            policy.log_probs(&Store::of(Observations::Texts(texts), ActionRows::Discrete(vec![*token])), &mut log_probs);
            sum += f64::from(log_probs[0]);
        }
        assert!((worth[i] - sum).abs() < 1e-4, "expected {sum}, got {}", worth[i]);
        assert!((0..1500).all(|j| worth[j] == worth[j % 3]));
    }
    let other = Config::preset("grpo", "addition", None).unwrap();
    let error = judge_in(&folder, &other, &other.world().unwrap()).err().unwrap().to_string();
    assert!(error.contains("expected a judge with the vocabulary of addition, got one with another vocabulary"), "{error}");
}
