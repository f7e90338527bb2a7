//! Queries on tables.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gradus::envs::registry;

use gradus::Error;
use gradus::files::read_to_string;
use gradus_compare::statistics::csv::cells;
use gradus_compare::statistics::{Scores, interquartile_mean};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Number(f64),
    Text(String),
    List(Vec<f64>),
}

struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The tables that a page quotes, each read once.
pub(super) struct Tables {
    folder: PathBuf,
    known: BTreeMap<String, Rc<Table>>,
}

impl Tables {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.into(), known: BTreeMap::new() }
    }

    fn get(&mut self, name: &str) -> Result<Rc<Table>, String> {
        if let Some(table) = self.known.get(name) {
            return Ok(table.clone());
        }
        let text = read_to_string(&self.folder.join(name)).map_err(|error| match error {
            Error::Io { source, .. } => format!("cannot read {name}: {source}"),
            other => other.to_string(),
        })?;
        let row = |(number, line): (usize, &str)| {
            let row = cells(line).ok_or(format!("{name}: line {}: a quotation mark is not closed", number + 1))?;
            Ok::<_, String>(row.into_iter().map(Cow::into_owned).collect())
        };
        let mut rows: Vec<Vec<String>> = text.lines().enumerate().map(row).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Err(format!("{name}: expected a table, got an empty file"));
        }
        let header = rows.remove(0);
        if let Some(number) = rows.iter().position(|row| row.len() != header.len()) {
            return Err(format!("{name}: line {}: expected {} cells, got {}", number + 2, header.len(), rows[number].len()));
        }
        let table = Rc::new(Table { header, rows });
        self.known.insert(name.into(), table.clone());
        Ok(table)
    }

    /// Evaluates an expression.
    pub(super) fn answer(&mut self, text: &str) -> Result<Answer, String> {
        let mut reader = Reader { text, at: 0, depth: 0, tables: self };
        let answer = reader.sum()?;
        reader.end()?;
        Ok(answer)
    }

    /// Returns whether a claim holds.
    pub(super) fn holds(&mut self, text: &str) -> Result<bool, String> {
        let mut reader = Reader { text, at: 0, depth: 0, tables: self };
        let mut all = true;
        loop {
            let left = reader.sum()?;
            let Some(sign) = ["<=", ">=", "!=", "<", ">", "="].into_iter().find(|sign| reader.takes(sign)) else {
                return Err(format!("expected one of < > <= >= = != in a claim, got `{}`", reader.rest()));
            };
            let right = reader.sum()?;
            let holds = match (&left, &right) {
                (Answer::Number(left), Answer::Number(right)) => fits(left.partial_cmp(right), sign),
                (Answer::Text(left), Answer::Text(right)) if sign == "=" || sign == "!=" => same(left, right) == (sign == "="),
                (Answer::List(left), Answer::List(right)) if sign == "=" || sign == "!=" => (left == right) == (sign == "="),
                _ => return Err(format!("expected two numbers, or two texts with = or !=, got {left:?} {sign} {right:?}")),
            };
            all &= holds;
            if !reader.takes("and ") {
                reader.end()?;
                return Ok(all);
            }
        }
    }
}

fn fits(order: Option<Ordering>, sign: &str) -> bool {
    let Some(order) = order else { return false };
    match sign {
        "<=" => order != Ordering::Greater,
        ">=" => order != Ordering::Less,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        ">" => order == Ordering::Greater,
        _ => order == Ordering::Equal,
    }
}

/// Returns whether two texts are the same apart from case, or the same number.
fn same(a: &str, b: &str) -> bool {
    let numbers = || Some(a.parse::<f64>().ok()? == b.parse::<f64>().ok()?);
    a.to_lowercase() == b.to_lowercase() || numbers() == Some(true)
}

/// Returns for each distinct cell of a column whether it matches `wanted`. An environment matches any of its names.
fn matching<'a>(column: &str, cells: impl Iterator<Item = &'a str>, wanted: &str) -> BTreeMap<&'a str, bool> {
    let world = |name: &str| registry::find(name).ok().filter(|_| column == "env").map(|world| world.name);
    let (distinct, wanted_world) = (cells.collect::<BTreeSet<_>>(), world(wanted));
    distinct.into_iter().map(|cell| (cell, same(cell, wanted) || wanted_world.is_some() && world(cell) == wanted_world)).collect()
}

const KINDS: [&str; 12] = ["value", "mean", "median", "iqm", "std", "min", "max", "sum", "count", "distinct", "text", "list"];

/// The most parentheses in each other.
const DEEPEST: usize = 64;

/// Parses an expression from left to right and evaluates it at the same time.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Parentheses that are open.
    depth: usize,
    tables: &'a mut Tables,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text[self.at..].trim_start()
    }

    fn skip(&mut self) {
        self.at = self.text.len() - self.rest().len();
    }

    /// Skips `what` if the rest of the text begins with it, and returns whether it does.
    fn takes(&mut self, what: &str) -> bool {
        self.skip();
        let comes = self.rest().starts_with(what);
        self.at += if comes { what.len() } else { 0 };
        comes
    }

    fn end(&self) -> Result<(), String> {
        if self.rest().is_empty() { Ok(()) } else { Err(format!("expected the end, got `{}`", self.rest())) }
    }

    fn sum(&mut self) -> Result<Answer, String> {
        let mut left = self.product()?;
        while let Some(sign) = ["+", "-"].into_iter().find(|sign| self.takes(sign)) {
            let right = self.product()?;
            left = number_of(left, right, if sign == "+" { |a, b| a + b } else { |a, b| a - b })?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Answer, String> {
        let mut left = self.factor()?;
        while let Some(sign) = ["*", "/"].into_iter().find(|sign| self.takes(sign)) {
            let right = self.factor()?;
            left = number_of(left, right, if sign == "*" { |a, b| a * b } else { |a, b| a / b })?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Answer, String> {
        if self.takes("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("expected at most {DEEPEST} parentheses in each other, got more"));
            }
            let answer = self.sum()?;
            self.depth -= 1;
            return if self.takes(")") { Ok(answer) } else { Err(format!("expected `)`, got `{}`", self.rest())) };
        }
        self.skip();
        match self.rest().chars().next() {
            Some('"') => Ok(Answer::Text(self.word()?)),
            Some(first) if first.is_ascii_digit() || first == '-' => {
                let word = self.word()?;
                word.parse().map(Answer::Number).map_err(|_| format!("expected a number, got `{word}`"))
            }
            _ => self.query(),
        }
    }

    /// Reads a text in quotation marks, or everything up to a space or one of `,;()=<>!`.
    fn word(&mut self) -> Result<String, String> {
        self.skip();
        let rest = self.rest();
        if let Some(inside) = rest.strip_prefix('"') {
            let (word, _) = inside.split_once('"').ok_or("a quotation mark is not closed")?;
            self.at += word.len() + 2;
            return Ok(word.into());
        }
        let end = rest.find(|letter: char| letter.is_whitespace() || ",;()=<>!".contains(letter)).unwrap_or(rest.len());
        if end == 0 {
            return Err(format!("expected a word, got `{rest}`"));
        }
        self.at += end;
        Ok(rest[..end].into())
    }

    fn query(&mut self) -> Result<Answer, String> {
        let kind = self.word()?;
        if !KINDS.contains(&kind.as_str()) {
            return Err(format!("expected one of {}, got `{kind}`", KINDS.join(", ")));
        }
        let column = if kind == "count" { None } else { Some(self.word()?) };
        let by = if self.takes("by ") { Some(self.word()?) } else { None };
        if !self.takes("in ") {
            return Err(format!("expected `in FILE`, got `{}`", self.rest()));
        }
        let name = self.word()?;
        let table = self.tables.get(&name)?;
        let place = |column: &str| {
            let known = || table.header.join(", ");
            table
                .header
                .iter()
                .position(|other| other == column)
                .ok_or_else(|| format!("{name}: expected one of {}, got `{column}`", known()))
        };
        let mut rows: Vec<&Vec<String>> = table.rows.iter().collect();
        if self.takes("where ") {
            loop {
                let word = self.word()?;
                if word == "last" || word == "first" {
                    place("seed")?;
                    rows = ends(&table, rows, word == "last");
                } else {
                    let at = place(&word)?;
                    let signs = ["<=", ">=", "!=", "<", ">", "="];
                    let Some(sign) = signs.into_iter().find(|sign| self.takes(sign)) else {
                        return Err(format!("{word}: expected one of < > <= >= = !=, got `{}`", self.rest()));
                    };
                    let wanted = self.word()?;
                    let is_wanted = match sign {
                        "=" | "!=" => matching(&word, table.rows.iter().map(|row| row[at].as_str()), &wanted),
                        _ => BTreeMap::new(),
                    };
                    if sign == "=" && !is_wanted.values().any(|is| *is) {
                        return Err(format!("{name}: {word}: expected a value of the table, got `{wanted}`"));
                    }
                    if !matches!(sign, "=" | "!=") && wanted.parse::<f64>().is_err() {
                        return Err(format!("{word}: expected a number after {sign}, got `{wanted}`"));
                    }
                    let order = |cell: &str| cell.parse::<f64>().ok()?.partial_cmp(&wanted.parse::<f64>().ok()?);
                    rows.retain(|row| match sign {
                        "=" => is_wanted[row[at].as_str()],
                        "!=" => !is_wanted[row[at].as_str()],
                        sign => fits(order(&row[at]), sign),
                    });
                }
                if !self.takes(",") {
                    break;
                }
            }
        }
        if rows.is_empty() && kind != "count" {
            return Err(format!("{name}: no row matches"));
        }
        let column = column.map(|column| place(&column)).transpose()?;
        if let Some((by, column)) = by.zip(column) {
            let means = means_by(&name, &rows, (place(&by)?, column))?;
            return answer(&kind, &name, means.iter().map(String::as_str).collect());
        }
        answer(&kind, &name, rows.iter().map(|row| column.map_or("", |at| row[at].as_str())).collect())
    }
}

/// Returns the last or first row of each run, in the order of the table.
fn ends<'a>(table: &Table, rows: Vec<&'a Vec<String>>, last: bool) -> Vec<&'a Vec<String>> {
    let owners: Vec<usize> =
        ["agent", "env", "seed"].iter().filter_map(|name| table.header.iter().position(|column| column == name)).collect();
    let mut seen = BTreeSet::new();
    let mut is_new = |row: &&Vec<String>| seen.insert(owners.iter().map(|at| row[*at].clone()).collect::<Vec<_>>());
    if last {
        let mut kept: Vec<_> = rows.into_iter().rev().filter(&mut is_new).collect();
        kept.reverse();
        kept
    } else {
        rows.into_iter().filter(&mut is_new).collect()
    }
}

/// Returns the mean of `column` for each group of rows that agree in the column `by`.
fn means_by(name: &str, rows: &[&Vec<String>], (by, column): (usize, usize)) -> Result<Vec<String>, String> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    rows.iter().for_each(|row| groups.entry(&row[by]).or_default().push(&row[column]));
    let mean = |cells: Vec<&str>| match answer("mean", name, cells)? {
        Answer::Number(mean) => Ok(mean.to_string()),
        other => Err(format!("{name}: expected a mean, got {other:?}")),
    };
    groups.into_values().map(mean).collect()
}

fn number_of(left: Answer, right: Answer, of: fn(f64, f64) -> f64) -> Result<Answer, String> {
    match (left, right) {
        (Answer::Number(left), Answer::Number(right)) => Ok(Answer::Number(of(left, right))),
        (left, right) => Err(format!("expected numbers to calculate with, got {left:?} and {right:?}")),
    }
}

fn answer(kind: &str, name: &str, cells: Vec<&str>) -> Result<Answer, String> {
    let number = |cell: &&str| -> Result<f64, String> {
        cell.trim().parse().ok().filter(|x: &f64| x.is_finite()).ok_or_else(|| format!("{name}: expected a number, got `{cell}`"))
    };
    let only = || match cells.as_slice() {
        [only] => Ok(*only),
        all => Err(format!("{name}: expected one row for `{kind}`, got {}", all.len())),
    };
    match kind {
        "count" => return Ok(Answer::Number(cells.len() as f64)),
        "distinct" => return Ok(Answer::Number(cells.iter().collect::<BTreeSet<_>>().len() as f64)),
        "text" => return Ok(Answer::Text(only()?.into())),
        "value" => return number(&only()?).map(Answer::Number),
        "list" => {
            let all: Vec<&str> = cells.iter().flat_map(|cell| cell.split_whitespace()).collect();
            return all.iter().map(number).collect::<Result<_, _>>().map(Answer::List);
        }
        _ => {}
    }
    let numbers: Vec<f64> = cells.iter().map(number).collect::<Result<_, _>>()?;
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let mut sorted = numbers.clone();
    sorted.sort_by(f64::total_cmp);
    Ok(Answer::Number(match kind {
        "mean" => mean,
        "median" => (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0,
        "iqm" => interquartile_mean(&Scores::new(vec![numbers]).map_err(|error| error.to_string())?),
        "std" => (numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (numbers.len() as f64 - 1.0)).sqrt(),
        "min" => sorted[0],
        "max" => sorted[sorted.len() - 1],
        _ => numbers.iter().sum(),
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TABLE: &str = "agent,env,seed,step,return,text\n\
        \"PPO, clip\",cartpole,1,0,9,\n\"PPO, clip\",cartpole,1,500,90,tie\n\
        \"PPO, clip\",cartpole,2,0,11,\n\"PPO, clip\",cartpole,2,500,70,1 3 4\n\
        A2C,cartpole,1,0,10,\nA2C,cartpole,1,500,50,\n";

    fn tables() -> (gradus_testing::TempDir, Tables) {
        let dir = gradus_testing::tempdir().unwrap();
        fs::write(dir.path().join("t.csv"), TABLE).unwrap();
        let tables = Tables::new(dir.path());
        (dir, tables)
    }

    #[test]
    fn queries_are_answered() {
        let (_dir, mut tables) = tables();
        for (question, expected) in [
            ("mean return in t.csv where agent=\"ppo, clip\", last", 80.0),
            ("min return in t.csv where last", 50.0),
            ("max return in t.csv where first", 11.0),
            ("value return in t.csv where agent=A2C, step=500.0", 50.0),
            ("count in t.csv where return>=50", 3.0),
            ("count in t.csv where return > 500", 0.0),
            ("distinct seed in t.csv where env=CartPole-v1", 2.0),
            ("std return in t.csv where agent != A2C, last", 200f64.sqrt()),
            ("median return in t.csv", 30.5),
            ("(sum return in t.csv where last - 10) / 2 * 3", 300.0),
            // the mean of two means: of A2C over two rows, and of PPO over four rows
            ("mean return by agent in t.csv", (30.0 + 45.0) / 2.0),
            ("max return by agent in t.csv", 45.0),
            ("2 + 3 * 4", 14.0),
        ] {
            let Ok(Answer::Number(answer)) = tables.answer(question) else { panic!("{question}: {:?}", tables.answer(question)) };
            assert!((answer - expected).abs() < 1e-12, "{question}: {answer}");
        }
        assert_eq!(tables.answer("list text in t.csv where seed=2, last"), Ok(Answer::List(vec![1.0, 3.0, 4.0])));
        for (claim, holds) in [
            ("mean return in t.csv where agent=A2C, last < mean return in t.csv where agent=\"PPO, clip\", last", true),
            ("text text in t.csv where agent=\"PPO, clip\", seed=1, last = \"Tie\" and 1 < 0", false),
            ("text text in t.csv where agent=\"PPO, clip\", seed=1, last != \"tie\"", false),
            ("1 <= 1 and 2 >= 3 - 1 and 1 != 2", true),
        ] {
            assert_eq!(tables.holds(claim), Ok(holds), "{claim}");
        }
    }

    #[test]
    fn errors_name_the_mistake() {
        let (_dir, mut tables) = tables();
        for (question, expected) in [
            ("men return in t.csv", "expected one of value, mean, median, iqm, std, min, max, sum, count, distinct, text, list, got `men`"),
            ("mean reward in t.csv", "t.csv: expected one of agent, env, seed, step, return, text, got `reward`"),
            ("mean return of t.csv", "expected `in FILE`, got `of t.csv`"),
            ("count in t.csv where agent=PP0", "t.csv: agent: expected a value of the table, got `PP0`"),
            ("count in t.csv where step > 50k", "step: expected a number after >, got `50k`"),
            ("mean return in t.csv where step>900", "t.csv: no row matches"),
            ("value return in t.csv where agent=A2C", "t.csv: expected one row for `value`, got 2"),
            ("mean text in t.csv", "t.csv: expected a number, got ``"),
            ("mean return in t.csv where seed", "seed: expected one of < > <= >= = !=, got ``"),
            ("mean return in t.csv )", "expected the end, got `)`"),
            ("1 + \"a\"", "expected numbers to calculate with, got Number(1.0) and Text(\"a\")"),
        ] {
            assert_eq!(tables.answer(question), Err(expected.into()), "{question}");
        }
        let deep = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
        assert_eq!(tables.answer(&deep(64)), Ok(Answer::Number(1.0)));
        assert_eq!(tables.answer(&deep(20_000)), Err("expected at most 64 parentheses in each other, got more".into()));
        assert!(tables.answer("mean x in none.csv").unwrap_err().starts_with("cannot read none.csv: "));
        assert!(tables.holds("1").unwrap_err().starts_with("expected one of < > <= >= = != in a claim"));
    }
}
