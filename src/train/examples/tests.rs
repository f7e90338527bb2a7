use gradus_agents::process_reward::StepLabel;
use gradus_envs::World;
use gradus_envs::text::{Division, Finish, Problem, Task, TextOptions, Verdict, Vocabulary};
use gradus_nets::tensors::Tensor;

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
    (draw(policy.as_ref(), &world, Split::Train, Questions { problems: 600, completions }, 5).unwrap(), world)
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
        for RankedTexts(texts) in &rankings {
            assert!((2..=completions).contains(&texts.len()));
            assert!(texts.iter().all(|text| text[..2] == texts[0][..2]), "different prompts");
            assert!(texts.windows(2).all(|two| worth(&world, &two[0]) > worth(&world, &two[1])), "{texts:?}");
        }
        assert!(rankings.iter().any(|ranking| ranking.0.len() == completions.min(3)), "no ranking is long");
    }
}

#[test]
fn rankings_are_saved_and_loaded() {
    let (rankings, world) = drawn(4);
    let (vocabulary, context) = (world.task.vocabulary().len() as u32, world.space().width() - 1);
    let words = |rankings: &[RankedTexts]| match save(rankings) {
        Tensor { data: gradus_nets::tensors::Data::U64(words), .. } => words,
        other => panic!("expected whole numbers, got {other:?}"),
    };
    let saved = words(&rankings);
    assert_eq!(load(&saved, vocabulary, context).unwrap(), rankings);
    assert_eq!(load(&[], vocabulary, context).unwrap(), []);
    let pair = words(&[RankedTexts(vec![vec![1, 2, 3], vec![4]])]);
    assert_eq!(pair, [2, 3, 1, 1, 2, 3, 4]);
    for damaged in [
        &saved[..saved.len() - 1],
        &[1, 1, 3],                           // one text
        &[2, 1, 1, 0, u64::from(vocabulary)], // a token outside of the vocabulary
        &[2, 1, u64::MAX, 0, 0],
        &[u64::MAX, 1, 1, 0, 0],
        &[2, 3, 2, 1, 2, 3, 4, 5, 6], // a token too many
    ] {
        assert!(load(damaged, vocabulary, context).is_err(), "{damaged:?}");
    }
    let long: Vec<u64> = [2, context as u64 + 1, 1].into_iter().chain(vec![0; context + 2]).collect();
    assert!(load(&long, vocabulary, context).is_err());
}

/// The rankings have different lengths.
#[test]
fn rows_of_rankings_refer_to_their_texts() {
    let rankings = [vec![vec![1], vec![2, 3], vec![4]], vec![vec![5, 6], vec![7]]].map(RankedTexts);
    let preferences = preferences(&rankings, 4);
    assert_eq!(preferences.rankings.len(), 2);
    for (ranking, RankedTexts(texts)) in preferences.rankings.iter().zip(&rankings) {
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
    let world = World::text("twice", Twice(Vocabulary::of_characters("01;").unwrap())).unwrap();
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
        Tensor { data: gradus_nets::tensors::Data::U64(words), .. } => words,
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

/// A success that the task does not have is an error that names the task's scores.
#[test]
fn an_unknown_success_is_refused() {
    let config = Config::preset("grpo", "chain-sum", None).unwrap();
    let world = config.world().unwrap();
    let policy = config.network.policy(&world, 3).unwrap();
    let labelling = Labelling { success: "solved".into(), ..Labelling::default() };
    let questions = Questions { problems: 2, completions: 2 };
    let error = steps::draw(policy.as_ref(), &world.text.unwrap(), Split::Train, questions, &labelling, 5).unwrap_err();
    let expected = "reward_model.success: expected a score of the task (exact, reward/steps, reward/answer), got `solved`";
    assert!(error.to_string().ends_with(expected), "{error}");
}
