//! Every answer passes, three differently written correct forms of each pass, every template fails, and every known mistake is named.

mod forms {
    pub mod lesson_1;
    pub mod lesson_2;
    pub mod lesson_3;
}
#[path = "../answers/lesson_1.rs"]
mod answers_1;
#[path = "../answers/lesson_2.rs"]
mod answers_2;
#[path = "../answers/lesson_3.rs"]
mod answers_3;
#[allow(unused_variables)]
#[path = "../exercises/lesson_1.rs"]
mod templates_1;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_2.rs"]
mod templates_2;
#[allow(unused_imports, unused_variables)]
#[path = "../exercises/lesson_3.rs"]
mod templates_3;

use gradus_course::{Lesson, Verdict, lesson_1, lesson_2, lesson_3};

/// Seeds of students.
const SEEDS: [u64; 4] = [1, 2, 3, 0xfeed_beef];

macro_rules! lesson_1 {
    ($module:ident) => {
        lesson_1::lesson(lesson_1::Answers {
            sample_average: $module::sample_average,
            epsilon_greedy: $module::epsilon_greedy,
            upper_confidence_bound: $module::upper_confidence_bound,
            softmax: $module::softmax,
            gradient_bandit: $module::gradient_bandit,
            regret: $module::regret,
        })
    };
}

macro_rules! lesson_2 {
    ($module:ident) => {
        lesson_2::lesson(lesson_2::Answers {
            discounted_return: $module::discounted_return,
            action_value: $module::action_value,
            evaluation_sweep: $module::evaluation_sweep,
            greedy_action: $module::greedy_action,
            value_iteration: $module::value_iteration,
        })
    };
}

macro_rules! lesson_3 {
    ($module:ident) => {
        lesson_3::lesson(lesson_3::Answers {
            returns: $module::returns,
            first_visit: $module::first_visit,
            td_error: $module::td_error,
            n_step_return: $module::n_step_return,
            lambda_returns: $module::lambda_returns,
            weighted_importance: $module::weighted_importance,
        })
    };
}

fn answers() -> Vec<Lesson> {
    vec![lesson_1!(answers_1), lesson_2!(answers_2), lesson_3!(answers_3)]
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
    for (number, form) in (1..).zip(forms::lesson_1::forms()) {
        assert_all(&[lesson_1::lesson(form)], &Verdict::Right, &format!("form {number}"));
    }
    for (number, form) in (1..).zip(forms::lesson_2::forms()) {
        assert_all(&[lesson_2::lesson(form)], &Verdict::Right, &format!("form {number}"));
    }
    for (number, form) in (1..).zip(forms::lesson_3::forms()) {
        assert_all(&[lesson_3::lesson(form)], &Verdict::Right, &format!("form {number}"));
    }
}

#[test]
fn every_template_is_not_written_yet() {
    std::panic::set_hook(Box::new(|_| ()));
    assert_all(&[lesson_1!(templates_1), lesson_2!(templates_2), lesson_3!(templates_3)], &Verdict::NotWritten, "template");
}

/// `gradus guide lesson-1#exploration` finds the sections that messages name.
#[test]
fn sections_are_those_of_the_pages() {
    for lesson in answers() {
        let path = format!("{}/../docs/course/lesson-{}.md", env!("CARGO_MANIFEST_DIR"), lesson.number);
        let page = std::fs::read_to_string(path).unwrap();
        let headings: Vec<String> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).map(|line| line.to_lowercase().replace(' ', "-")).collect();
        for section in lesson.exercises.iter().flat_map(|exercise| exercise.sections()) {
            assert!(headings.iter().any(|heading| heading == section), "lesson {}: {section}", lesson.number);
        }
    }
}

#[test]
fn the_readme_counts_the_exercises() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let count: usize = answers().iter().map(|lesson| lesson.exercises.len()).sum();
    assert!(text.contains(&format!("{count} exercises")), "there are {count} exercises");
}

/// The list fits into 80 columns.
#[test]
fn titles_are_short() {
    for about in answers().iter().flat_map(|lesson| &lesson.exercises).map(|exercise| exercise.about()) {
        assert!(about.title.len() <= 40 && about.name.len() <= 23, "{}", about.number);
    }
}

/// Each mistake is named, with the section to read, for every seed.
#[test]
fn every_known_mistake_is_named() {
    let mut known = 0;
    for exercise in answers().iter().flat_map(|lesson| &lesson.exercises) {
        let mistakes = exercise.with_mistakes();
        assert!((3..=8).contains(&mistakes.len()), "{}: {} mistakes", exercise.about().name, mistakes.len());
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
