//! The parser of the task countdown, and the stack machine of the task program.

use gradus_envs::text::expression::{Expression, Fraction};
use gradus_envs::text::machine::{Halt, Machine, STEPS};

fn value(text: &str) -> Option<Fraction> {
    Expression::parse(text).unwrap_or_else(|| panic!("{text} is an expression")).value
}

#[test]
fn expressions_have_exact_values() {
    let fraction = |numerator, denominator| Some(Fraction::new(numerator, denominator).unwrap());
    assert_eq!(value("2+3*4"), fraction(14, 1));
    assert_eq!(value("(2+3)*4"), fraction(20, 1));
    assert_eq!(value("9-4-3"), fraction(2, 1));
    assert_eq!(value("9-(4-3)"), fraction(8, 1));
    assert_eq!(value("8/4/2"), fraction(1, 1));
    assert_eq!(value("8/(4/2)"), fraction(4, 1));
    assert_eq!(value("1/3+1/6"), fraction(1, 2));
    assert_eq!(value("1/3*3"), fraction(1, 1));
    assert_eq!(value("2/(3-5)"), fraction(-1, 1));
    assert_eq!(value("((7))"), fraction(7, 1));
    assert_eq!(value("0*5/3"), fraction(0, 9));
}

#[test]
fn fractions_are_in_lowest_terms() {
    assert_eq!(Fraction::new(6, -4), Fraction::new(-3, 2));
    assert_ne!(Fraction::new(6, -4), Fraction::new(3, 2));
    assert_eq!((Fraction::new(1, 0), Fraction::new(0, 0), Fraction::new(1, i64::MIN)), (None, None, None));
}

#[test]
fn some_expressions_have_no_value() {
    assert_eq!((value("1/0"), value("1/(2-2)"), value("5+1/(3-3)")), (None, None, None));
    assert_eq!(value("4000000000*4000000000*4000000000"), None);
    assert_eq!(Expression::parse("3*7+5").unwrap().numbers, [3, 7, 5]);
}

#[test]
fn invalid_expressions_are_none() {
    for text in ["", "+", "3+", "+3", "-3", "3**4", "()", "(3", "3)", "3 4", "3(4)", "03", "00", "3.5", "x", "99999999999"] {
        assert_eq!(Expression::parse(text), None, "{text}");
    }
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Expression::parse(&nested(64)).is_some() && Expression::parse(&nested(65)).is_none());
    assert!(Expression::parse(&nested(1_000_000)).is_none(), "the stack must not overflow");
    assert!(Expression::parse(&vec!["(1)"; 100].join("+")).is_some(), "parentheses in sequence are not nested");
}

#[test]
fn instructions_have_their_documented_effects() {
    let run = |program: &str, input| Machine::new(program).unwrap_or_else(|| panic!("{program} is a program")).run(input);
    assert_eq!((run("7", 3), run("x", 3), run("x", -3)), (Ok(7), Ok(3), Ok(-3)));
    assert_eq!((run("95+", 0), run("95-", 0), run("95*", 0)), (Ok(14), Ok(4), Ok(45)));
    assert_eq!((run("xd*", 3), run("x5s-", 3), run("x5p", 3)), (Ok(9), Ok(2), Ok(3)));
    // the loop adds 5 as many times as the input says, with the counter on top of the stack
    assert_eq!(run("0x[s5+s1-]p", 4), Ok(20));
    assert_eq!(run("0x[s5+s1-]p", 0), Ok(0), "a loop may have no iterations");
    assert_eq!(run("x[2[1-]p1-]5+", 3), Ok(5), "brackets nest");
    assert_eq!(run("2[d1-[1-]+1-]", 0), Ok(0), "brackets nest");
}

#[test]
fn runs_are_bounded() {
    let run = |program: &str| Machine::new(program).unwrap().run(1);
    let of_steps = |steps: usize| format!("x{}{}", "dp".repeat((steps - 1) / 2), "d".repeat((steps - 1) % 2));
    assert_eq!((run(&of_steps(STEPS)), run(&of_steps(STEPS + 1))), (Ok(1), Err(Halt::Steps)));
    assert_eq!((run("1[]"), run("1[d]")), (Err(Halt::Steps), Err(Halt::Full)));
    assert_eq!((run(&"1".repeat(64)), run(&"1".repeat(65))), (Ok(1), Err(Halt::Full)));
    assert_eq!(run(&format!("9{}", "d*".repeat(6))), Err(Halt::Large));
    for program in ["", "+", "x+", "d", "s", "xs", "p", "xp", "[1]", "x[p]"] {
        assert_eq!(run(program), Err(Halt::Empty), "{program}");
    }
}

#[test]
fn invalid_programs_are_none() {
    for text in ["[", "]", "][", "1[2]]", "y", "1 2", ">"] {
        assert_eq!(Machine::new(text), None, "{text}");
    }
}
