//! Tasks from files.

use gradus_base::random::{Purpose, Stream};
use gradus_envs::text::{Division, FileTask, Finish, Split, Task};

/// Returns the task with these lines.
fn task(lines: &[&str]) -> FileTask {
    FileTask::parse(lines.join("\n").as_bytes()).unwrap()
}

fn error(lines: &[&str]) -> String {
    FileTask::parse(lines.join("\n").as_bytes()).unwrap_err().to_string()
}

/// Returns the prompts of all problems of a split.
fn prompts(task: &FileTask, split: Split) -> Vec<String> {
    let draw = |seed| task.problem(split, &mut Stream::new(seed, Purpose::Environment, 0));
    let mut all: Vec<String> = (0..500).map(|seed| task.vocabulary().decode(&draw(seed).prompt)).collect();
    all.sort();
    all.dedup();
    all
}

/// Every verifier, with right and wrong completions. A completion that was cut is wrong.
#[test]
fn verifiers_accept_the_right_completions() {
    let task = task(&[
        r#"{"prompt": "a", "answer": "xyz"}"#,
        r#"{"prompt": "b", "answer": "-1.50", "verifier": "number"}"#,
        r#"{"prompt": "c", "answer": "^x+$", "verifier": "regex"}"#,
        r#"{"prompt": "d", "answer": "3/2", "verifier": "expression"}"#,
        r#"{"prompt": "e", "answer": [[0, 1], [1, 3], [2, 5], [3, 8]], "verifier": "program"}"#,
    ]);
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    for (prompt, completion, reward) in [
        ("a", "xyz", 1.0),
        ("a", "xy", 0.0),
        ("b", "-1.5", 1.0),
        ("b", "-1.500", 1.0),
        ("b", "1.5", 0.0),
        ("b", "-1.5-", 0.0),
        ("b", "", 0.0),
        ("c", "xxx", 1.0),
        ("c", "xyx", 0.0),
        ("d", "3/2", 1.0),
        ("d", "6/(5-1)", 1.0),
        ("d", "1.5", 0.0),
        ("d", "6/0", 0.0),
        ("e", "x2*1+", 0.75),
        ("e", "x", 0.0),
        ("e", "]", 0.0),
    ] {
        let verdict = |finish| task.verify(&encode(prompt), &encode(completion), finish).unwrap();
        assert_eq!(verdict(Finish::Eos).reward, reward, "{prompt} {completion}");
        assert_eq!(verdict(Finish::Eos).scores, [f64::from(u8::from(reward == 1.0))]);
        assert_eq!(verdict(Finish::Length).reward, 0.0, "{prompt} {completion}, cut");
    }
    assert_eq!(task.verify(&encode("ab"), &[], Finish::Eos), Err("expected a prompt of the file, got another one".into()));
    // the longest answer is `-1.50`; regular expressions and programs have no example
    assert_eq!((task.max_new_tokens(), task.longest_prompt()), (6, 1));
}

/// Right steps at their place share a reward of 1 beside that of the answer; a step's reward is that of the token that ends it.
#[test]
fn steps_are_rewarded_where_they_end() {
    let task = task(&[
        r#"{"step": "; ", "max_new_tokens": 20}"#,
        r##"{"prompt": "1+2+3=", "answer": "#6$", "verifier": "regex", "steps": ["3", " 6"], "example": "3; 6; #6"}"##,
        r##"{"prompt": "4=", "answer": "#4", "steps": []}"##,
    ]);
    let encode = |text: &str| task.vocabulary().encode(text).unwrap();
    for (completion, finish, scores) in [
        ("3; 6; #6", Finish::Eos, [1.0, 1.0, 1.0]),
        ("3; 4; #6", Finish::Eos, [1.0, 0.5, 1.0]),
        ("6; 3; #6", Finish::Eos, [1.0, 0.0, 1.0]),
        // the second step has no end, the third has no place
        ("3; 6", Finish::Eos, [0.0, 0.5, 0.0]),
        ("3; 6; 6; #4", Finish::Eos, [0.0, 1.0, 0.0]),
        ("3; 6; #6", Finish::Length, [0.0, 1.0, 0.0]),
    ] {
        let verdict = task.verify(&encode("1+2+3="), &encode(completion), finish).unwrap();
        assert_eq!((verdict.reward, &verdict.scores[..]), (scores[1] + scores[2], &scores[..]), "{completion}");
    }
    assert_eq!(task.score_names(), ["exact", "reward/steps", "reward/answer"]);
    let steps = |prompt: &str, completion: &str| {
        let (prompt, tokens) = (encode(prompt), encode(completion));
        (1..=tokens.len()).filter_map(|n| task.step_reward(&prompt, &tokens[..n]).map(|reward| (n, reward))).collect::<Vec<_>>()
    };
    assert_eq!(steps("1+2+3=", "3; 4; #6"), [(3, 0.5), (6, 0.0)]);
    assert_eq!(steps("1+2+3=", "4;3; 6; "), [(5, 0.0), (8, 0.5)]);
    assert_eq!(steps("4=", "#4; "), [(4, 0.0)]);

    let settings = r#"{"step": ";", "max_new_tokens": 9}"#;
    assert_eq!(
        error(&[r#"{"prompt": "a", "answer": "b", "steps": ["c"]}"#]),
        "text: line 1: steps: expected a first line with what ends them, such as {\"step\": \";\"}, got none"
    );
    assert_eq!(
        error(&[settings, r#"{"prompt": "a", "answer": "b", "steps": "c"}"#]),
        "text: line 2: steps: expected a list of texts, got \"c\""
    );
    for step in ["\"\"", "1"] {
        let line = format!(r#"{{"step": {step}, "max_new_tokens": 9}}"#);
        assert_eq!(
            error(&[&line, r#"{"prompt": "a", "answer": "b"}"#]),
            format!("text: line 1: step: expected a text that ends a step, got {step}")
        );
    }
    assert_eq!(FileTask::parse(r#"{"prompt": "a", "answer": "b"}"#.as_bytes()).unwrap().score_names(), ["exact"]);
}

/// Named splits are used as they are. Without a validation split, a part of the training split takes its place.
#[test]
fn splits_come_from_the_file_or_from_a_hash() {
    let line = |i: usize, split: &str| format!(r#"{{"prompt": "{i}", "answer": "x"{split}}}"#);
    let lines = |split: &dyn Fn(usize) -> &'static str| -> FileTask {
        let lines: Vec<String> = (0..200).map(|i| line(i, split(i))).collect();
        FileTask::parse(lines.join("\r\n").as_bytes()).unwrap()
    };
    let named = lines(&|i| [r#", "split": "train""#, r#", "split": "validation""#, r#", "split": "test""#][i % 3]);
    for (i, split) in Split::ALL.into_iter().enumerate() {
        let expected: Vec<String> = (0..200).filter(|n| n % 3 == i).map(|n| n.to_string()).collect();
        assert!(prompts(&named, split).iter().all(|prompt| expected.contains(prompt)), "{split:?}");
    }
    let hashed = lines(&|_| "");
    assert_eq!(hashed.division(), Division::Splits);
    let two = lines(&|i| if i < 100 { r#", "split": "train""# } else { r#", "split": "test""# });
    for task in [&hashed, &two] {
        let all: Vec<String> = Split::ALL.into_iter().flat_map(|split| prompts(task, split)).collect();
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "splits share no prompt");
        assert!(!prompts(task, Split::Validation).is_empty());
    }
    assert!(prompts(&two, Split::Test).iter().all(|prompt| prompt.parse::<usize>().unwrap() >= 100));
    assert!(prompts(&two, Split::Validation).iter().all(|prompt| prompt.parse::<usize>().unwrap() < 100));
    // too few problems for splits
    let few = task(&[&line(1, ""), &line(2, "")]);
    assert_eq!((few.division(), prompts(&few, Split::Test).len()), (Division::OneSet { problems: 2 }, 2));
}

#[test]
fn the_first_line_may_have_settings() {
    let task = task(&[r#"{"symbols": ["ab", "c"], "max_new_tokens": 9}"#, "", r#"{"prompt": "abc", "answer": "c"}"#]);
    assert_eq!((task.vocabulary().len(), task.max_new_tokens(), task.longest_prompt()), (3, 9, 2));
}

/// A byte order mark before the first line is not part of it. Blanks that are no symbols are no mistake where the verifier does not mind them.
#[test]
fn marks_and_blanks_are_read() {
    let line = r#"{"prompt": "a", "answer": "^2 ?3$", "verifier": "regex", "example": "2 3"}"#;
    let task = task(&["\u{feff}{\"symbols\": \"a23\"}", line]);
    assert_eq!((task.vocabulary().len(), task.max_new_tokens()), (4, 3));
}

/// The hash of a file changes with every byte of it.
#[test]
fn a_file_is_identified_by_its_hash() {
    let hash = |text: &str| FileTask::parse(text.as_bytes()).unwrap().fingerprint().unwrap();
    let line = r#"{"prompt": "a", "answer": "b"}"#;
    assert_eq!(hash(line), hash(line));
    assert_ne!(hash(line), hash(&line.replace('b', "c")));
    assert_ne!(hash(line), hash(&format!("{line}\n")));
}

#[test]
fn a_damaged_file_is_refused_with_its_line() {
    let good = r#"{"prompt": "a", "answer": "b"}"#;
    let train = r#"{"prompt": "a", "answer": "b", "split": "train"}"#;
    let of = |rest: &str| format!(r#"{{"prompt": "c", {rest}}}"#);
    for (lines, expected) in [
        (vec![String::new()], "expected at least one problem, got an empty file"),
        (vec![good.into(), "hello".into()], "line 2: expected JSON, got an error at column 1: expected value at line 1 column 1"),
        (vec!["[1]".into()], "line 1: expected an object in braces, got `[1]`"),
        (
            vec![r#"{"prompt": "a", "answer": "b", "answer": "c"}"#.into()],
            "line 1: expected JSON, got an error at column 39: the key `answer` occurs twice at line 1 column 39",
        ),
        (
            vec![r#"{"symbols": "a02"}"#.into(), r#"{"prompt": "a", "answer": "0 2"}"#.into()],
            "line 2: answer: expected one that the symbols can spell, got `0 2`, of which they make `02`",
        ),
        (vec![good.into(), r#"{"prompt": "c"}"#.into()], "line 2: expected an answer, got none"),
        (vec![r#"{"answer": "c"}"#.into()], "line 1: expected a prompt, got none"),
        (vec![r#"{"prompt": 1, "answer": "c"}"#.into()], "line 1: prompt: expected a text, got 1"),
        (vec![good.into(), good.into()], "line 2: prompt: expected every prompt once, got `a` again (line 1, train split)"),
        (
            vec![train.into(), train.replace("train", "test")],
            "line 2: prompt: expected every prompt once, got `a` again (line 1, train split)",
        ),
        (vec![train.into(), of(r#""answer": "b""#)], "line 2: expected a split, because other lines have one, got none"),
        (vec![of(r#""answer": "b", "split": "dev""#)], "line 1: split: expected train, validation or test, got `dev`"),
        (
            vec![of(r#""answer": "b", "verifier": "magic""#)],
            "line 1: verifier: expected equality, number, regex, expression, program or none, got `magic`",
        ),
        (vec![of(r#""answer": 3"#)], "line 1: answer: expected a text, got 3"),
        (
            vec![of(r#""answer": {"n": [123456789012345678901234567890]}, "verifier": "none""#)],
            "line 1: answer: expected numbers below 9.2e18, or texts, because larger ones may be rounded, got one that is read as 1.2345678901234568e+29",
        ),
        (vec![of(r#""answer": "three", "verifier": "number""#)], "line 1: answer: expected a decimal number, got \"three\""),
        (
            vec![of(r#""answer": "1/0", "verifier": "expression""#)],
            "line 1: answer: expected an arithmetic expression with a value, got \"1/0\"",
        ),
        (
            vec![of(r#""answer": [[1]], "verifier": "program""#)],
            "line 1: answer: expected pairs of an input and an output, such as [[1, 2], [5, 10]], got [[1]]",
        ),
        (
            vec![of(r#""answer": "b", "verifier": "regex""#)],
            "length of completions: expected an `example` in some line, or a first line such as {\"max_new_tokens\": 16}, got neither",
        ),
        (vec![of(r#""answer": "b", "verifier": "regex", "example": "c""#)], "line 1: example: expected a right completion, got `c`"),
        (
            vec![of(r#""answer": "b", "hint": "c""#)],
            "line 1: expected the keys prompt, messages, answer, verifier, example, split, steps, got `hint`",
        ),
        (vec![of(r#""answer": """#)], "line 1: answer: expected at least one symbol, got ``"),
        (vec![r#"{"max_new_tokens": 0}"#.into(), good.into()], "line 1: max_new_tokens: expected 1 to 65536, got 0"),
        (vec![r#"{"symbols": "b"}"#.into(), good.into()], "line 2: prompt: character `a` of `a`: expected one of the symbols b"),
        (vec!["x".repeat(2 << 20)], "line 1: expected at most 1048576 bytes, got more"),
    ] {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(error(&lines), format!("text: {expected}"));
    }
    let pattern = error(&[&of(r#""answer": "(b", "verifier": "regex""#)]);
    assert!(pattern.starts_with("text: line 1: answer: expected a regular expression, got \"(b\": "), "{pattern}");
}

/// Whole numbers are compared digit by digit, because a f64 has only 53 bits.
#[test]
fn large_numbers_are_exact() {
    let task = task(&[
        r#"{"prompt": "a", "answer": "9999999999", "verifier": "number"}"#,
        r#"{"prompt": "b", "answer": 0.5, "verifier": "number"}"#,
    ]);
    let score = |prompt: &str, answer: &str| {
        let encode = |text: &str| task.vocabulary().encode(text).unwrap();
        task.verify(&encode(prompt), &encode(answer), Finish::Eos).unwrap().reward
    };
    for (answer, expected) in
        [("9999999999", 1.0), ("09999999999.00", 1.0), ("10000000008", 0.0), ("-9999999999", 0.0), ("9999999999.5", 0.0)]
    {
        assert_eq!(score("a", answer), expected, "{answer}");
    }
    assert_eq!([".5", "0.50", "0.51", "1"].map(|answer| score("b", answer)), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn symbols_write_answers_that_only_a_reward_function_knows() {
    let lines = "{\"verifier\": \"none\", \"max_new_tokens\": 2}\n{\"prompt\": \"1+4=\", \"answer\": \"5\"}\n{\"prompt\": \"4+4=\", \"answer\": 8}\n{\"prompt\": \"=\", \"answer\": [9]}";
    let task = FileTask::parse(lines.as_bytes()).unwrap();
    assert!(task.vocabulary().encode("58").is_ok());
    assert!(task.vocabulary().encode("9").is_err(), "what is in an array is no text");
}
