//! The files of grades.

use serde_json::{Value as Json, json};

use super::Graded;
use crate::lessons::{Sheets, is_homework, of_lesson};
use crate::run::NAMED;

/// The points of each function of a homework.
const HOMEWORK_POINTS: u32 = 15;

fn right(graded: &Graded) -> usize {
    graded.marks.iter().filter(|mark| mark.is_right).count()
}

/// Returns what was found of a student, in a line for the terminal.
pub(super) fn line(graded: &Graded) -> String {
    let wrong = graded.marks.iter().filter(|mark| !mark.is_right).map(|mark| format!("{} {}", mark.about.number, mark.says));
    let shown = |text: String| if text.chars().count() > 300 { text.chars().take(297).collect::<String>() + "..." } else { text };
    match &graded.problem {
        Some(problem) => format!("{}: {}", graded.name, shown(problem.clone())),
        None => {
            format!("{}: {} of {} right", graded.name, right(graded), graded.marks.len())
                + &wrong.map(|text| format!("\n  {}", shown(text))).collect::<String>()
        }
    }
}

/// Returns everything that was found.
pub(super) fn json(sheets: &Sheets, all: &[Graded]) -> String {
    let students: Vec<Json> = all
        .iter()
        .map(|graded| {
            let marks: Vec<Json> = graded
                .marks
                .iter()
                .map(|mark| json!({ "exercise": mark.about.number, "name": mark.about.name, "right": mark.is_right, "says": mark.says }))
                .collect();
            json!({
                "student": graded.name, "seed": graded.seed, "right": right(graded), "problem": graded.problem, "exercises": marks,
                "isolated": graded.is_isolated,
            })
        })
        .collect();
    let whole = json!({ "lesson": sheets.number.parse::<u32>().map_or_else(|_| json!(sheets.number), |number| json!(number)), "title": sheets.title, "exercises": of_lesson(sheets.number).len(), "students": students });
    format!("{whole:#}\n")
}

/// Returns a row for each student, with 1 for an exercise that is right.
pub(super) fn csv(sheets: &Sheets, all: &[Graded]) -> String {
    let quoted = |text: &str| {
        let needs = text.contains([',', '"', '\n']);
        if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let abouts = of_lesson(sheets.number);
    let mut text = format!("student,right,{},problem\n", abouts.iter().map(|about| about.number).collect::<Vec<_>>().join(","));
    for graded in all {
        let mark = |number: &str| u8::from(graded.marks.iter().any(|mark| mark.about.number == number && mark.is_right)).to_string();
        let marks: Vec<String> = abouts.iter().map(|about| mark(about.number)).collect();
        let problem = graded.problem.as_deref().unwrap_or_default();
        text += &format!("{},{},{},{}\n", quoted(&graded.name), right(graded), marks.join(","), quoted(problem));
    }
    text
}

/// Returns the results of a student as Gradescope reads them: `results.json` of its autograder. Students read it, so a homework's mistakes have
/// no names there.
pub(super) fn gradescope(sheets: &Sheets, graded: &Graded) -> String {
    let points = if is_homework(sheets.number) { HOMEWORK_POINTS } else { 1 };
    let tests: Vec<Json> = of_lesson(sheets.number)
        .iter()
        .map(|about| {
            let mark = graded.marks.iter().find(|mark| mark.about.number == about.number);
            let says = mark.map(|mark| mark.says.as_str()).or(graded.problem.as_deref()).unwrap_or_default();
            let says = if is_homework(sheets.number) { says.split(NAMED).next().unwrap_or_default() } else { says };
            json!({
                "name": format!("{} {}", about.number, about.name), "max_score": points,
                "score": if mark.is_some_and(|mark| mark.is_right) { points } else { 0 }, "output": says,
            })
        })
        .collect();
    format!("{:#}\n", json!({ "output": graded.problem.clone().unwrap_or_default(), "tests": tests }))
}
