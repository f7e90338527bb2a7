//! Time limits truncate, nest, continue where they were saved and refuse an invalid state.

use gradus_envs::{Action, Env, TimeLimit};

use super::Count;

/// An episode that an inner limit truncates is also truncated under an outer limit.
#[test]
fn time_limits_nest() {
    let mut env = TimeLimit::new(TimeLimit::new(Count::new(9), 2), 5);
    let mut row = [0.0; 2];
    env.reset(0, &mut row);
    assert!(!env.step(Action::Discrete(0), &mut row).done());
    let step = env.step(Action::Discrete(0), &mut row);
    assert_eq!((step.terminated, step.truncated), (false, true));
}

#[test]
fn a_time_limit_continues_where_it_was_saved() {
    let (mut env, mut row) = (TimeLimit::new(Count::new(100), 5), [0.0; 2]);
    env.reset(1, &mut row);
    for _ in 0..3 {
        env.step(Action::Discrete(0), &mut row);
    }
    let words = env.save();
    let mut later = TimeLimit::new(Count::new(100), 5);
    later.load(&words).unwrap();
    assert_eq!(later.save(), words);
    for truncated in [false, true] {
        let expected = env.step(Action::Discrete(2), &mut row);
        assert_eq!(expected.truncated, truncated);
        let mut later_row = [0.0; 2];
        assert_eq!((later.step(Action::Discrete(2), &mut later_row), later_row), (expected, row));
    }
    later.reset(2, &mut row);
    for truncated in [false, false, false, false, true] {
        assert_eq!(later.step(Action::Discrete(0), &mut row).truncated, truncated, "a reset restarts the count");
    }
}

#[test]
fn an_invalid_state_of_a_time_limit_is_an_error() {
    let mut env = TimeLimit::new(Count::new(100), 5);
    let error = |words: &[u64], env: &mut TimeLimit<Count>| env.load(words).unwrap_err().to_string();
    assert_eq!(error(&[], &mut env), "state of the environment: elapsed steps: expected 1 word, got none");
    assert_eq!(error(&[0, 1, 6], &mut env), "state of the environment: elapsed steps: expected at most 5, got 6");
    assert_eq!(
        error(&[0, 1, u64::MAX], &mut env),
        format!("state of the environment: elapsed steps: expected at most 5, got {}", u64::MAX)
    );
    assert_eq!(error(&[0, 3], &mut env), "state of the environment: expected 2 words, got 1");
}
