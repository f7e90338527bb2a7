//! Every answer passes, three differently written correct forms of each pass, every template fails, and every known mistake is named.

mod forms {
    pub mod homework_1;
    pub mod homework_2;
    pub mod homework_3;
    pub mod lesson_1;
    pub mod lesson_10;
    pub mod lesson_11;
    pub mod lesson_12;
    pub mod lesson_2;
    pub mod lesson_3;
    pub mod lesson_4;
    pub mod lesson_5;
    pub mod lesson_6;
    pub mod lesson_7;
    pub mod lesson_8;
    pub mod lesson_9;
}
#[path = "../answers/lesson_1.rs"]
mod answers_1;
#[path = "../answers/lesson_10.rs"]
mod answers_10;
#[path = "../answers/lesson_11.rs"]
mod answers_11;
#[path = "../answers/lesson_12.rs"]
mod answers_12;
#[path = "../answers/lesson_2.rs"]
mod answers_2;
#[path = "../answers/lesson_3.rs"]
mod answers_3;
#[path = "../answers/lesson_4.rs"]
mod answers_4;
#[path = "../answers/lesson_5.rs"]
mod answers_5;
#[path = "../answers/lesson_6.rs"]
mod answers_6;
#[path = "../answers/lesson_7.rs"]
mod answers_7;
#[path = "../answers/lesson_8.rs"]
mod answers_8;
#[path = "../answers/lesson_9.rs"]
mod answers_9;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_1.rs"]
mod templates_1;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_10.rs"]
mod templates_10;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_11.rs"]
mod templates_11;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_12.rs"]
mod templates_12;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_2.rs"]
mod templates_2;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_3.rs"]
mod templates_3;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_4.rs"]
mod templates_4;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_5.rs"]
mod templates_5;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_6.rs"]
mod templates_6;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_7.rs"]
mod templates_7;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_8.rs"]
mod templates_8;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_9.rs"]
mod templates_9;

#[path = "../answers/homework_1.rs"]
mod answers_h1;
#[path = "../answers/homework_2.rs"]
mod answers_h2;
#[path = "../answers/homework_3.rs"]
mod answers_h3;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/homework_1.rs"]
mod templates_h1;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/homework_2.rs"]
mod templates_h2;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/homework_3.rs"]
mod templates_h3;

use gradus_course::{
    Lesson, Verdict, homework_1, homework_2, homework_3, lesson_1, lesson_2, lesson_3, lesson_4, lesson_5, lesson_6, lesson_7, lesson_8,
    lesson_9, lesson_10, lesson_11, lesson_12,
};

/// Seeds of students.
const SEEDS: [u64; 4] = [1, 2, 3, 0xfeed_beef];

macro_rules! lessons {
    ($($module:ident $lesson:ident: $($function:ident)+;)+) => {
        vec![$($lesson::lesson($lesson::Answers { $($function: $module::$function),+ })),+]
    };
}

fn answers() -> Vec<Lesson> {
    lessons! {
        answers_1 lesson_1: sample_average epsilon_greedy upper_confidence_bound softmax gradient_bandit regret;
        answers_2 lesson_2: discounted_return action_value evaluation_sweep greedy_action value_iteration;
        answers_3 lesson_3: returns first_visit td_error n_step_return lambda_returns weighted_importance;
        answers_4 lesson_4: sarsa_target expected_sarsa_target q_learning double_q_learning;
        answers_5 lesson_5: semi_gradient_td dqn_targets double_dqn_target huber_slope moved_target;
        answers_6 lesson_6: log_softmax_gradient returns_to_go policy_gradient leave_one_out whitened entropy_gradient;
        answers_7 lesson_7: visits advantages exact_gradient bias_and_variance;
        answers_8 lesson_8: gae explained_variance loss loss_slopes gaussian_log_prob;
        answers_9 lesson_9: surrogate surrogate_slope kl_divergence approx_kl natural_step;
        answers_10 lesson_10: interquartile_mean bootstrap_interval improvement_probability holm seeds_needed;
        answers_11 lesson_11: token_log_prob completion_log_prob group_advantages grpo_objective token_advantages;
        answers_12 lesson_12: preference_loss penalised_rewards best_policy dpo_loss best_of_n;
        answers_h1 homework_1: gaussian_posterior kl_ucb policy_iteration td_lambda;
        answers_h2 homework_2: squashed_log_prob v_trace conjugate_gradient masked_whitened;
        answers_h3 homework_3: top_p ranking_loss adaptive_beta process_advantages;
    }
}

fn templates() -> Vec<Lesson> {
    lessons! {
        templates_1 lesson_1: sample_average epsilon_greedy upper_confidence_bound softmax gradient_bandit regret;
        templates_2 lesson_2: discounted_return action_value evaluation_sweep greedy_action value_iteration;
        templates_3 lesson_3: returns first_visit td_error n_step_return lambda_returns weighted_importance;
        templates_4 lesson_4: sarsa_target expected_sarsa_target q_learning double_q_learning;
        templates_5 lesson_5: semi_gradient_td dqn_targets double_dqn_target huber_slope moved_target;
        templates_6 lesson_6: log_softmax_gradient returns_to_go policy_gradient leave_one_out whitened entropy_gradient;
        templates_7 lesson_7: visits advantages exact_gradient bias_and_variance;
        templates_8 lesson_8: gae explained_variance loss loss_slopes gaussian_log_prob;
        templates_9 lesson_9: surrogate surrogate_slope kl_divergence approx_kl natural_step;
        templates_10 lesson_10: interquartile_mean bootstrap_interval improvement_probability holm seeds_needed;
        templates_11 lesson_11: token_log_prob completion_log_prob group_advantages grpo_objective token_advantages;
        templates_12 lesson_12: preference_loss penalised_rewards best_policy dpo_loss best_of_n;
        templates_h1 homework_1: gaussian_posterior kl_ucb policy_iteration td_lambda;
        templates_h2 homework_2: squashed_log_prob v_trace conjugate_gradient masked_whitened;
        templates_h3 homework_3: top_p ranking_loss adaptive_beta process_advantages;
    }
}

fn assert_all(lessons: &[Lesson], expected: &Verdict, what: &str) {
    for exercise in lessons.iter().flat_map(|lesson| &lesson.exercises) {
        for seed in SEEDS {
            assert_eq!(exercise.verdict(seed), *expected, "{what}: {}, seed {seed}", exercise.about().name);
        }
    }
}

#[test]
fn every_answer_passes() {
    assert_all(&answers(), &Verdict::Right, "answer");
}

/// A student's seed is any number.
#[test]
fn every_answer_passes_for_all_seeds() {
    let seeds = std::env::var("GRADUS_SEEDS").map_or(100, |count| count.parse().unwrap());
    for exercise in answers().iter().flat_map(|lesson| &lesson.exercises) {
        for seed in 1000..1000 + seeds {
            assert_eq!(exercise.verdict(seed), Verdict::Right, "{}, seed {seed}", exercise.about().name);
        }
    }
}

#[test]
fn three_other_correct_forms_of_each_pass() {
    macro_rules! check {
        ($($lesson:ident)+) => {
            $(for (number, form) in (1..).zip(forms::$lesson::forms()) {
                assert_all(&[$lesson::lesson(form)], &Verdict::Right, &format!("form {number}"));
            })+
        };
    }
    check!(lesson_1 lesson_2 lesson_3 lesson_4 lesson_5 lesson_6 lesson_7 lesson_8 lesson_9 lesson_10 lesson_11 lesson_12 homework_1 homework_2 homework_3);
}

#[test]
fn every_template_is_not_written_yet() {
    std::panic::set_hook(Box::new(|_| ()));
    assert_all(&templates(), &Verdict::NotWritten, "template");
}

/// `gradus guide lesson-1#exploration` finds the sections that messages name.
#[test]
fn sections_are_those_of_the_pages() {
    for lesson in answers() {
        let name = lesson.number.strip_prefix('h').map_or(format!("lesson-{}", lesson.number), |number| format!("homework-{number}"));
        let path = format!("{}/../docs/course/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path).unwrap();
        let slug = |line: &str| line.to_lowercase().replace(' ', "-").replace(['?', '\'', ','], "");
        let headings: Vec<String> = page.lines().filter_map(|line| line.strip_prefix("## ")).map(slug).collect();
        for section in lesson.exercises.iter().flat_map(|exercise| exercise.sections()) {
            assert!(headings.iter().any(|heading| heading == section), "lesson {}: {section}", lesson.number);
        }
    }
}

#[test]
fn the_readme_counts_the_exercises() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let count: usize = answers().iter().filter(|lesson| !lesson.number.starts_with('h')).map(|lesson| lesson.exercises.len()).sum();
    assert!(text.contains(&format!("{count} exercises")), "there are {count} exercises");
}

/// The list fits into 80 columns.
#[test]
fn titles_are_short() {
    for about in answers().iter().flat_map(|lesson| &lesson.exercises).map(|exercise| exercise.about()) {
        assert!(about.title.len() <= 40 && about.name.len() <= 23, "{}", about.number);
    }
}

/// A mistake is named where another detail differs, too: here the case without episodes.
#[test]
fn a_mistake_is_named_if_most_calls_agree() {
    let mut functions = forms::lesson_3::forms()[0];
    functions.weighted_importance = |returns, ratios| {
        let sum: f64 = returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum();
        sum / returns.len() as f64
    };
    let lesson = lesson_3::lesson(functions);
    let exercise = lesson.exercises.iter().find(|exercise| exercise.about().name == "weighted_importance").unwrap();
    let verdict = exercise.verdict(1);
    let Verdict::Wrong { mistake: Some([named, _]), everywhere, .. } = verdict else { panic!("{verdict:?}") };
    assert!(named.contains("divided by the number of episodes") && !everywhere, "{named}");
}

/// Each mistake is named, with the section to read, for every seed.
#[test]
fn every_known_mistake_is_named() {
    let mut known = 0;
    for exercise in answers().iter().flat_map(|lesson| &lesson.exercises) {
        let mistakes = exercise.with_mistakes();
        assert!((3..=12).contains(&mistakes.len()), "{}: {} mistakes", exercise.about().name, mistakes.len());
        for (says, wrong) in mistakes {
            for seed in SEEDS {
                let verdict = wrong.verdict(seed);
                let Verdict::Wrong { mistake: Some([named, _]), .. } = verdict else {
                    panic!("{}: {says}: {verdict:?}", exercise.about().name)
                };
                assert_eq!(named, says, "{}", exercise.about().name);
            }
            known += 1;
        }
    }
    assert!(known >= 30, "{known}");
}
