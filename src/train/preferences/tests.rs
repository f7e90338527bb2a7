use gradus_envs::text::TextOptions;

use super::*;
use crate::Config;

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
