//! What a submission must not have: code that is not its own, and code that no check of types confines.

/// Returns what a submission has that it must not have, in words; `None` if there is nothing.
pub(super) fn refused(source: &str) -> Option<String> {
    let words = words(source);
    let at = |i: usize| words.get(i).map_or("", |(word, _)| word.as_str());
    let mut is_use = false;
    for (i, (word, line)) in words.iter().enumerate() {
        match word.as_str() {
            "use" => is_use = true,
            ";" => is_use = false,
            _ => {}
        }
        // also by another name: `use std::include as i`
        let is_macro = at(i + 1) == "!" || is_use || i > 1 && at(i - 1) == ":" && at(i - 2) == ":";
        let what = match word.as_str() {
            "include" | "include_str" | "include_bytes" if is_macro => format!("{word}!, which reads another file"),
            "env" | "option_env" if is_macro => format!("{word}!, which reads the environment"),
            "asm" | "global_asm" | "naked_asm" if is_macro => format!("{word}!"),
            "macro_rules" | "macro" if is_macro || word == "macro" => "a macro of its own".into(),
            // the checks themselves would tell what they expect
            "gradus_course" if !is_type_of_the_course(&words[i + 1..]) => {
                "gradus_course, of which only Table, Outcome, End and Step are allowed".into()
            }
            "unsafe" => "unsafe code".into(),
            // no path to a socket leads past these
            "net" if is_use || at(i + 1) == ":" && at(i + 2) == ":" => {
                "a path through `net`, such as std::net, which reaches other computers".into()
            }
            "UdpSocket" | "TcpStream" | "TcpListener" | "UnixStream" | "UnixListener" | "UnixDatagram" => format!("{word}, a socket"),
            "extern" => "extern".into(),
            "mod" if at(i + 2) == ";" => format!("mod {};, a file of its own", at(i + 1)),
            "path" if i > 1 && at(i - 1) == "[" && at(i - 2) == "#" => "#[path], a file of its own".into(),
            "feature" if i > 2 && at(i - 1) == "[" && at(i - 2) == "!" => "#![feature]".into(),
            _ => continue,
        };
        return Some(format!("line {line}: expected the functions of the template, got {what}"));
    }
    None
}

/// Returns whether what follows `gradus_course` names types that the templates use.
fn is_type_of_the_course(following: &[(String, usize)]) -> bool {
    let mut words = following.iter().map(|(word, _)| word.as_str());
    let is_type = |word: &str| ["Table", "Outcome", "End", "Step"].contains(&word);
    if [words.next(), words.next()] != [Some(":"); 2] {
        return false;
    }
    match words.next() {
        Some("{") => words.take_while(|word| *word != "}").all(|word| word == "," || is_type(word)),
        Some(word) => is_type(word),
        None => false,
    }
}

/// Returns the words and signs of a source text with their lines, without comments, strings and lifetimes.
fn words(source: &str) -> Vec<(String, usize)> {
    let text: Vec<char> = source.chars().collect();
    let at = |i: usize| text.get(i).copied().unwrap_or('\0');
    let mut words = Vec::new();
    let (mut i, mut line) = (0, 1);
    // the end of a string whose closing quotation mark has `marks` signs # behind it
    let end_of_string = |mut i: usize, raw: Option<usize>| {
        while i < text.len() {
            match (at(i), raw) {
                ('\\', None) => i += 1,
                ('"', None) => return i + 1,
                ('"', Some(marks)) if (1..=marks).all(|k| at(i + k) == '#') => return i + 1 + marks,
                _ => {}
            }
            i += 1;
        }
        i
    };
    while i < text.len() {
        let from = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < text.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(i), at(i + 1)) {
                        ('/', '*') => (depth, i) = (depth + 1, i + 2),
                        ('*', '/') => (depth, i) = (depth - 1, i + 2),
                        _ => i += 1,
                    }
                    if depth == 0 || i >= text.len() {
                        break;
                    }
                }
            }
            '"' => i = end_of_string(i + 1, None),
            // a character, or a lifetime, which has no second quotation mark
            '\'' => match (at(i + 1), at(i + 2)) {
                ('\\', _) => {
                    i += 3;
                    while i < text.len() && at(i) != '\'' {
                        i += 1;
                    }
                    i += 1;
                }
                (_, '\'') => i += 3,
                _ => i += 1,
            },
            letter if letter.is_alphabetic() || letter == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                let word: String = text[from..i].iter().collect();
                let marks = (0..).take_while(|k| at(i + k) == '#').count();
                let is_prefix = ["b", "c", "r", "br", "cr"].contains(&word.as_str());
                if is_prefix && word.ends_with('r') && at(i + marks) == '"' {
                    i = end_of_string(i + marks + 1, Some(marks));
                } else if is_prefix && at(i) == '"' {
                    i = end_of_string(i + 1, None);
                } else if word == "r" && marks == 1 {
                    i += 1; // r#word is a word
                } else {
                    words.push((word, line));
                }
            }
            digit if digit.is_ascii_digit() => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
            }
            sign => {
                if !sign.is_whitespace() {
                    words.push((sign.into(), line));
                }
                i += 1;
            }
        }
        line += text[from..i.min(text.len())].iter().filter(|letter| **letter == '\n').count();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_others_is_refused_by_name() {
        for (source, what) in [
            (
                "fn a() {}\nconst A: &str = include_str!(\"../answers/lesson_1.rs\");",
                "line 2: expected the functions of the template, got include_str!",
            ),
            ("include ! (\"x\");", "include!"),
            ("macro_rules! a { () => {} }", "a macro of its own"),
            ("mod other;", "mod other;, a file of its own"),
            ("#[path = \"x.rs\"] mod a {}", "#[path], a file of its own"),
            ("pub fn f() { unsafe\n{ } }", "unsafe code"),
            ("use gradus_course::lesson_1::lesson;", "gradus_course"),
            ("use gradus_course as course;", "gradus_course"),
            ("use gradus_course::{End, Checked};", "gradus_course"),
            ("use gradus_course::*;", "gradus_course"),
            ("extern crate serde;", "extern"),
            ("const K: &str = env!(\"HOME\");", "env!"),
            ("use std::include as i; i!(\"x\");", "include!"),
            ("use std::{include_str as s};", "include_str!"),
            ("fn f() { core::include!(\"x\"); }", "include!"),
            ("fn f<'a>(x: &'a str) -> char { let _ = '\"'; std::arch::asm!(\"nop\"); 'b' }", "asm!"),
            (
                "fn f() { let _ = std::net::UdpSocket::bind(\"0:0\"); }",
                "a path through `net`, such as std::net, which reaches other computers",
            ),
            ("use std::{net as n, mem};", "a path through `net`"),
            ("use std::os::unix::net::*;", "a path through `net`"),
            ("fn f(x: UnixDatagram) {}", "UnixDatagram, a socket"),
            ("const A: &str = r##\"\"#\"##; include_bytes!(\"x\");", "include_bytes!"),
        ] {
            let found = refused(source).unwrap_or_default();
            assert!(found.contains(what), "{source}: {found}");
        }
    }

    #[test]
    fn words_in_comments_and_strings_are_none() {
        for source in [
            "use gradus_course::{Outcome, Table}; fn f(end: gradus_course::End) {}",
            "// include!(\"x\")\n/* unsafe /* extern */ macro_rules! */ fn f() {}",
            "const A: &str = \"unsafe \\\" include!(1)\"; const B: &str = r#\"extern \"mod\" a;\"#; const C: char = '\\'';",
            "mod inner { pub fn env() {} } fn path() { let include = 1; assert!(include == 1); }",
            "fn f(net: f64) -> f64 { let netto = net; netto }",
            "fn f<'unsafe_>(x: &'unsafe_ str) {}",
            "fn f() { let r#macro_ = 1; println!(\"{}\", b'\"'); vec![1; 2]; }",
        ] {
            assert_eq!(refused(source), None, "{source}");
        }
        for answers in [include_str!("../../exercises/lesson_1.rs"), include_str!("../../exercises/lesson_2.rs")] {
            assert_eq!(refused(answers), None);
        }
    }
}
