//! The verdicts of each task equal hand-computed verdicts, and each problem's reference answer has the largest reward.

use Finish::{Eos, Length};
use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::{Finish, Split, Task, Verdict, tokens};
use gradus_envs::{Action, Env, Step};

use super::{levels, task};

fn verify(task: &dyn Task, prompt: &str, completion: &str, finish: Finish) -> Verdict {
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    task.verify(&encode(prompt), &encode(completion), finish).unwrap()
}

/// Checks rewards to 12 decimal places, whether completions are exact, and the number of scores.
fn table(name: &str, prompt: &str, rows: &[(&str, Finish, f64, bool)]) {
    let task = task(name);
    for (completion, finish, reward, exact) in rows {
        let verdict = verify(&*task, prompt, completion, *finish);
        assert!((verdict.reward - reward).abs() < 1e-12, "{name} `{prompt}` `{completion}`: expected {reward}, got {verdict:?}");
        assert_eq!(verdict.scores[0] == 1.0, *exact, "{name} `{prompt}` `{completion}`: {verdict:?}");
        assert_eq!(verdict.scores.len(), task.score_names().len());
    }
}

#[test]
fn target_sum_rewards_by_the_distance() {
    table(
        "target-sum",
        "7 >",
        &[
            ("43", Eos, 1.0, true),
            ("403", Eos, 1.0, true),
            ("4", Eos, 4.0 / 7.0, false),
            ("444", Eos, 7.0 / 12.0, false),
            ("44", Eos, 7.0 / 8.0, false),
            ("", Eos, 0.0, false),
            ("0", Eos, 0.0, false),
            ("43", Length, 0.0, false),
            ("7", Eos, 0.0, false),
            ("43>", Eos, 0.0, false),
        ],
    );
    table("target-sum-3", "12>", &[("444", Eos, 1.0, true), ("4444", Eos, 0.75, false), ("0", Eos, 0.0, false)]);
}

#[test]
fn sequences_reward_places_and_the_whole_equally() {
    table(
        "reverse",
        "R a b c d >",
        &[
            ("dcba", Eos, 1.0, true),
            ("dcb", Eos, 0.375, false),
            ("dbca", Eos, 0.25, false),
            ("dcbaa", Eos, 0.4, false),
            ("abcd", Eos, 0.0, false),
            ("dcba", Length, 0.4, false),
            ("", Eos, 0.0, false),
        ],
    );
    table("copy", "Caab>", &[("aab", Eos, 1.0, true), ("aaa", Eos, 1.0 / 3.0, false), ("aab>", Eos, 0.375, false), ("C", Eos, 0.0, false)]);
    // half of the partial reward is for the right letters, and half for letters that do not precede their left neighbour in the alphabet
    table(
        "sort",
        "S d a c a >",
        &[
            ("aacd", Eos, 1.0, true),
            ("daca", Eos, 0.25 + 0.25 * 2.0 / 4.0, false), // all letters; d and c are in order
            ("aaaa", Eos, 0.25 * 0.5 + 0.25, false),       // two of the letters; all in order
            ("aac", Eos, 0.25 * 0.75 + 0.25 * 0.75, false),
            ("aacd", Length, 0.25 * 0.8 + 0.25 * 0.8, false),
            (">>>>", Eos, 0.0, false),
            ("", Eos, 0.0, false),
        ],
    );
}

#[test]
fn addition_rewards_digits_up_to_the_first_error() {
    table(
        "addition",
        "37+45=",
        &[
            ("28", Eos, 1.0, true),
            ("29", Eos, 0.5, false),
            ("38", Eos, 0.0, false), // the second digit is right, but follows an error
            ("2", Eos, 0.5, false),
            ("", Eos, 0.0, false),
            ("285", Eos, 2.0 / 3.0, false),
            ("28", Length, 2.0 / 3.0, false),
            ("2+", Eos, 0.5, false),
        ],
    );
    table("addition", "99+99=", &[("891", Eos, 1.0, true), ("89", Eos, 2.0 / 3.0, false)]);
}

#[test]
fn chain_sum_rewards_totals_and_the_sum() {
    table(
        "chain-sum",
        "3+4+2=",
        &[
            ("7;9#9", Eos, 3.0, true),
            ("7;9#8", Eos, 2.0, false),
            ("7;8#9", Eos, 2.0, false),
            ("9;7#9", Eos, 1.0, false), // right totals in wrong places
            ("7#9", Eos, 2.0, false),
            ("#9", Eos, 1.0, false),
            ("9", Eos, 0.0, false),
            ("7;9;9#9", Eos, 3.0, false), // an extra step has no reward and is not exact
            ("7;9", Eos, 1.0, false),     // the second total is not ended
            ("7;9", Length, 1.0, false),
            ("7;9#9", Length, 2.0, false),
            ("7;9#9;", Eos, 2.0, false),
            ("07;9#9", Eos, 2.0, false),
            ("", Eos, 0.0, false),
        ],
    );
    assert_eq!(verify(&*task("chain-sum"), "3+4+2=", "7;8#9", Eos).scores, [0.0, 0.5, 1.0]);
}

/// The step reward of each token.
#[test]
fn chain_sum_rewards_a_step_where_it_ends() {
    let task = task("chain-sum");
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    let steps =
        |text: &str| -> Vec<Option<f64>> { (1..=text.len()).map(|n| task.step_reward(&encode("3+4+2="), &encode(&text[..n]))).collect() };
    assert_eq!(steps("7;9#9"), [None, Some(1.0), None, Some(1.0), None]);
    assert_eq!(steps("7;8;9#"), [None, Some(1.0), None, Some(0.0), None, Some(0.0)]);
    assert_eq!(steps("9;#9#;"), [None, Some(0.0), Some(0.0), None, None, None]);
}

#[test]
fn countdown_has_partial_rewards() {
    table(
        "countdown",
        "3 5 7 -> 26",
        &[
            ("3*7+5", Eos, 1.0, true),
            ("5+(7*3)", Eos, 1.0, true),
            ("3*5+7", Eos, 0.2, false),
            ("3*7", Eos, 0.1, false),
            ("3*7+5+5", Eos, 0.1, false),
            ("26", Eos, 0.1, false),
            ("3*7+", Eos, 0.0, false),
            ("3*-7", Eos, 0.0, false),
            ("(3*7+5", Eos, 0.0, false),
            ("3*7)+5", Eos, 0.0, false),
            ("3*7+05", Eos, 0.0, false),
            ("3 * 7", Eos, 0.0, false),
            ("3*7+5", Length, 0.0, false),
            ("", Eos, 0.0, false),
            ("5/(7-7)", Eos, 0.1, false),
        ],
    );
    table("countdown", "7 2 4 -> 14", &[("7/2*4", Eos, 1.0, true), ("7-2-4", Eos, 0.2, false), ("4/(7-2)", Eos, 0.2, false)]);
    table("countdown", "3 3 1 -> 1", &[("1/(3-3)", Eos, 0.2, false), ("3/3*1", Eos, 1.0, true), ("3/3/1", Eos, 1.0, true)]);
    table("countdown-4", "25 5 2 1 -> 10", &[("25/5*2*1", Eos, 1.0, true), ("2+5+5*2*1", Eos, 0.1, false)]);
}

/// f(x) = 2x + 1 has the values 1 3 5 7 9 at x = 0 to 4. The prompt shows the first three values.
#[test]
fn program_rewards_unit_tests() {
    table(
        "program",
        "0:1,1:3,2:5>",
        &[
            ("x2*1+", Eos, 1.0, true),
            ("1xd++", Eos, 1.0, true),
            ("1", Eos, 0.2, false),
            ("x3*", Eos, 0.2, false),   // right at x = 1
            ("xd*1+", Eos, 0.4, false), // values 1 2 5 10 17
            ("x2*1+", Length, 0.0, false),
            ("x2*1", Eos, 0.2, false), // always 1, right at x = 0
            ("x+", Eos, 0.0, false),   // stack underflow
            ("1[", Eos, 0.0, false),   // not a program
            ("", Eos, 0.0, false),
            ("1[]", Eos, 0.0, false),  // loops forever
            ("x[]1", Eos, 0.2, false), // loops forever except at x = 0
            (",", Eos, 0.0, false),
        ],
    );
    // x^2 + 1: the hidden values are 10 and 17
    table("program-3", "0:1,1:2,2:5>", &[("xd*1+", Eos, 1.0, true), ("x1+", Eos, 0.4, false)]);
}

/// The reward is the sum of topic, variety and closing. Four mentions of the topic have the largest topic reward.
#[test]
fn preference_rewards_topic_variety_and_closing() {
    table(
        "preference",
        "a b >",
        &[
            ("abcabd!", Eos, 1.0, true),
            ("a", Eos, 0.15, false),
            ("abab", Eos, 0.6, false),
            ("ababa", Eos, 0.45, false),
            ("aaaaaaaaaaaa", Eos, -0.6, false),
            ("cde", Eos, 0.2, false),
            ("!", Eos, 0.2, false),
            ("!!!", Eos, 0.0, false),
            ("!!!!!", Eos, -0.2, false),
            ("", Eos, 0.0, false),
            ("abcabd!", Length, 1.0, true),
        ],
    );
    assert_eq!(verify(&*task("preference"), "ab>", "aacc!!", Eos).scores, [0.0, 0.3, 0.1, 0.1]);
}

/// Played token by token, the answer of every problem has the largest possible reward and ends the episode.
#[test]
fn the_reference_answers_have_the_largest_reward() {
    for world in levels() {
        let text = world.text.clone().unwrap();
        let most = match world.name.as_str() {
            "chain-sum-1" => 2.0,
            "chain-sum-2" => 3.0,
            "chain-sum-3" => 4.0,
            "chain-sum-4" => 6.0,
            _ => 1.0,
        };
        for split in Split::ALL {
            let world = world.clone().on_split(split);
            let (mut env, names) = (world.env(), text.score_names());
            let mut row = vec![0.0; env.observation_space().width()];
            for seed in 0..300 {
                let place = format!("{} {split:?} {seed}", world.name);
                let problem = text.task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0));
                env.reset(seed, &mut row);
                assert_eq!(tokens(&row).collect::<Vec<_>>(), problem.prompt, "{place}");
                let steps: Vec<Step> = problem.answer.iter().map(|token| env.step(Action::Discrete(*token), &mut row)).collect();
                assert_eq!(steps.iter().map(|step| step.reward).sum::<f64>(), most, "{place}");
                assert_eq!(steps.iter().position(|step| step.done()), Some(steps.len() - 1), "{place}");
                let mut scores = vec![f64::NAN; names.len()];
                env.scores(&mut scores);
                assert_eq!((names[0].as_str(), scores[0], scores[scores.len() - 1]), ("exact", 1.0, 0.0), "{place}");
            }
        }
    }
}
