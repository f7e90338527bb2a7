//! The settings that a study varies, their values, and the points that a design chooses from them.

use gradus_base::math;
use gradus_base::random::{Purpose, Stream};
use toml::{Table, Value};

/// The values of some settings, in the order of the space. A setting whose condition does not hold is missing.
pub(crate) type Settings = Vec<(String, Value)>;

/// The values that a setting may have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Domain {
    /// One of a list.
    List(Vec<Value>),
    /// A number between two bounds, which are included.
    Range {
        low: f64,
        high: f64,
        /// Whether the logarithm is uniform.
        is_log: bool,
        /// Whether only whole numbers.
        is_whole: bool,
        /// Number of values in a grid.
        points: Option<usize>,
    },
}

/// A setting with its values, and when it is varied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dimension {
    /// The setting, as with `--set`.
    pub(crate) key: String,
    pub(crate) domain: Domain,
    /// A setting before this one in the space, and its values with which this one is varied.
    pub(crate) condition: Option<(String, Vec<Value>)>,
}

/// The settings that are varied. A setting whose condition names another one comes after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Space(pub(crate) Vec<Dimension>);

/// Keys of a table that describes a range.
const RANGES: [&str; 4] = ["uniform", "log_uniform", "integers", "log_integers"];

/// What a setting of a space may be, for messages.
const EXPECTED: &str = "a list of values, or a table with one of values, uniform, log_uniform, integers and log_integers";

/// Largest number of values of one setting, and of points of one agent.
const MOST: usize = 100_000;

impl Space {
    /// Reads the table `space`. Keys may be quoted, such as `"ppo.clip"`, or dotted.
    pub(crate) fn parse(table: &Table) -> Result<Self, String> {
        let mut dimensions = Vec::new();
        collect("", table, &mut dimensions)?;
        if dimensions.is_empty() {
            return Err("space: expected at least one setting, got none".into());
        }
        // a setting comes after the one that its condition names
        let mut space = Self::default();
        while !dimensions.is_empty() {
            let is_known = |dimension: &Dimension| dimension.condition.as_ref().is_none_or(|(key, _)| space.dimension(key).is_some());
            let Some(next) = dimensions.iter().position(is_known) else {
                let Dimension { key, condition, .. } = &dimensions[0];
                let of = condition.as_ref().map_or("", |(key, _)| key);
                return Err(format!("space.{key}: if: expected another setting of the space, got `{of}`"));
            };
            let mut dimension = dimensions.remove(next);
            if let Some((of, _)) = &mut dimension.condition {
                *of = space.dimension(of).map_or_else(|| of.clone(), |dimension| dimension.key.clone());
            }
            if let Some((of, wanted)) = &dimension.condition {
                let is_listed = |value: &Value| match space.dimension(of).map(|of| &of.domain) {
                    Some(Domain::List(known)) => known.contains(value),
                    _ => false,
                };
                if let Some(other) = wanted.iter().find(|value| !is_listed(value)) {
                    return Err(format!("space.{}: if: expected values that the space lists for {of}, got {other}", dimension.key));
                }
            }
            space.0.push(dimension);
        }
        Ok(space)
    }

    pub(crate) fn dimension(&self, key: &str) -> Option<&Dimension> {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        // either may lack the section
        let is_short = |other: &str| other.contains('.') != key.contains('.') && last(other) == last(key);
        let exact = self.0.iter().find(|dimension| dimension.key == key);
        exact.or_else(|| self.0.iter().find(|dimension| is_short(&dimension.key)))
    }

    /// Every combination of the values.
    pub(crate) fn grid(&self) -> Result<Vec<Settings>, String> {
        let mut points: Vec<Settings> = vec![Vec::new()];
        for dimension in &self.0 {
            let values = dimension.values()?;
            let (open, all) = (points.iter().filter(|point| dimension.holds(point)).count(), points.len());
            if all - open + open.saturating_mul(values.len()) > MOST {
                return Err(format!("space: expected a grid of at most {MOST} points, got more; a random design takes a sample"));
            }
            let with = |point: Settings| -> Vec<Settings> {
                if !dimension.holds(&point) {
                    return vec![point];
                }
                values.iter().map(|value| [&point[..], &[(dimension.key.clone(), value.clone())]].concat()).collect()
            };
            points = points.into_iter().flat_map(with).collect();
        }
        Ok(points)
    }

    /// Every value of every setting, the other settings as the agent has them.
    pub(crate) fn one_at_a_time(&self) -> Result<Vec<Settings>, String> {
        let mut points = Vec::new();
        for dimension in &self.0 {
            if dimension.condition.is_some() {
                return Err(format!("space.{}: if: expected no condition where one setting at a time is varied", dimension.key));
            }
            points.extend(dimension.values()?.into_iter().map(|value| vec![(dimension.key.clone(), value)]));
        }
        Ok(points)
    }

    /// `count` independent points. The first points of a larger number are the same.
    pub(crate) fn samples(&self, count: usize, seed: u64) -> Vec<Settings> {
        (0..count as u64).map(|number| self.sample(&mut Stream::new(seed, Purpose::Design, number))).collect()
    }

    pub(crate) fn sample(&self, stream: &mut Stream) -> Settings {
        let mut point = Settings::new();
        for dimension in &self.0 {
            // every setting draws a number, so that one setting's condition does not change the others
            let unit = stream.unit_f64();
            if dimension.holds(&point) {
                point.push((dimension.key.clone(), dimension.domain.at(unit)));
            }
        }
        point
    }
}

fn collect(before: &str, table: &Table, dimensions: &mut Vec<Dimension>) -> Result<(), String> {
    for (name, value) in table {
        let key = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        match value {
            Value::Array(values) => {
                let domain = list(&key, values)?;
                dimensions.push(Dimension { key, domain, condition: None });
            }
            Value::Table(table) if table.contains_key("values") || RANGES.iter().any(|range| table.contains_key(*range)) => {
                dimensions.push(described(key, table)?);
            }
            // part of a dotted key
            Value::Table(table) if !table.is_empty() && table.values().all(|value| matches!(value, Value::Table(_) | Value::Array(_))) => {
                collect(&key, table, dimensions)?;
            }
            other => return Err(format!("space.{key}: expected {EXPECTED}, got {other}")),
        }
    }
    Ok(())
}

fn list(key: &str, values: &[Value]) -> Result<Domain, String> {
    if values.is_empty() {
        return Err(format!("space.{key}: expected at least one value, got an empty list"));
    }
    for (number, value) in values.iter().enumerate() {
        if values[..number].contains(value) {
            return Err(format!("space.{key}: expected each value once, got {value} twice"));
        }
        if matches!(value, Value::Datetime(_)) {
            return Err(format!("space.{key}: expected values of settings, got the date {value}"));
        }
    }
    Ok(Domain::List(values.to_vec()))
}

/// Reads a table such as `{ log_uniform = [1e-4, 1e-2], if = { rule = "adam" } }`.
fn described(key: String, table: &Table) -> Result<Dimension, String> {
    let kinds: Vec<&str> = RANGES.into_iter().chain(["values"]).filter(|kind| table.contains_key(*kind)).collect();
    let &[kind] = kinds.as_slice() else {
        return Err(format!("space.{key}: expected one of values, {}, got {}", RANGES.join(", "), kinds.join(" and ")));
    };
    if let Some(unknown) = table.keys().find(|name| ![kind, "if", "points"].contains(&name.as_str())) {
        let known = if kind == "values" { "values and if" } else { "points and if" };
        return Err(format!("space.{key}: expected {known} beside {kind}, got `{unknown}`"));
    }
    let points = match table.get("points") {
        None => None,
        Some(value) => {
            let count = value.as_integer().and_then(|count| usize::try_from(count).ok()).filter(|count| (2..=MOST).contains(count));
            let count = count.filter(|_| kind != "values");
            Some(count.ok_or(format!("space.{key}: points: expected 2 to {MOST} values of a range, got {value}"))?)
        }
    };
    let domain = match (kind, &table[kind]) {
        ("values", Value::Array(values)) => list(&key, values)?,
        ("values", other) => return Err(format!("space.{key}: values: expected a list, got {other}")),
        (_, bounds) => {
            let number = |value: &Value| value.as_float().or(value.as_integer().map(|number| number as f64)).filter(|x| x.is_finite());
            let ends: Option<Vec<f64>> = bounds.as_array().and_then(|ends| ends.iter().map(number).collect());
            let (is_log, is_whole) = (kind.starts_with("log"), kind.ends_with("integers"));
            match ends.as_deref() {
                Some(&[low, high]) if low < high && (!is_log || low > 0.0) && (!is_whole || low.fract() == 0.0 && high.fract() == 0.0) => {
                    Domain::Range { low, high, is_log, is_whole, points }
                }
                _ => {
                    let (whole, above) = (if is_whole { "whole " } else { "" }, if is_log { " above 0" } else { "" });
                    return Err(format!(
                        "space.{key}: {kind}: expected two {whole}numbers{above}, the second above the first, got {bounds}"
                    ));
                }
            }
        }
    };
    let condition = match table.get("if") {
        None => None,
        Some(given @ Value::Table(_)) => {
            // a dotted key is a table of one key
            let (mut of, mut wanted) = (String::new(), given);
            while let Value::Table(inner) = wanted {
                let Some((name, value)) = inner.iter().next().filter(|_| inner.len() == 1) else {
                    return Err(format!("space.{key}: if: expected one setting and its values, got {given}"));
                };
                (of, wanted) = (if of.is_empty() { name.clone() } else { format!("{of}.{name}") }, value);
            }
            Some((of, wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()])))
        }
        Some(other) => return Err(format!("space.{key}: if: expected one setting and its values, got {other}")),
    };
    Ok(Dimension { key, domain, condition })
}

impl Dimension {
    /// Whether the setting is varied at `point`, which has the settings before it.
    pub(crate) fn holds(&self, point: &Settings) -> bool {
        let Some((of, wanted)) = &self.condition else { return true };
        point.iter().any(|(key, value)| key == of && wanted.contains(value))
    }

    /// The values of the setting in a grid.
    fn values(&self) -> Result<Vec<Value>, String> {
        match &self.domain {
            Domain::List(values) => Ok(values.clone()),
            Domain::Range { points: None, .. } => Err(format!(
                "space.{}: expected a list of values, or `points = N` beside the range, where the design is not random",
                self.key
            )),
            Domain::Range { points: Some(count), .. } => {
                let mut values: Vec<Value> = (0..*count).map(|i| self.domain.spaced(i as f64 / (count - 1) as f64)).collect();
                values.dedup();
                let (n, key) = (values.len(), &self.key);
                if n < *count {
                    return Err(format!(
                        "space.{key}: points: expected at most the number of different values of the range, {n}, got {count}"
                    ));
                }
                Ok(values)
            }
        }
    }
}

impl Domain {
    /// The value at `unit`, 0 to 1, of the domain. Numbers have four digits, so that the value that is used is the one that is printed.
    pub(crate) fn at(&self, unit: f64) -> Value {
        match *self {
            Self::List(ref values) => values[((unit * values.len() as f64) as usize).min(values.len() - 1)].clone(),
            Self::Range { low, high, is_log, is_whole: true, .. } => {
                // every whole number has an equal share of the line, or of its logarithm
                let (from, to) = (low - 0.5, high + 0.5);
                let number = if is_log { from * math::pow(to / from, unit) } else { from + unit * (to - from) };
                Value::Integer(number.round().clamp(low, high) as i64)
            }
            Self::Range { low, high, is_log, .. } => {
                let number = if is_log { low * math::pow(high / low, unit) } else { low + unit * (high - low) };
                Value::Float(four_digits(number).clamp(low, high))
            }
        }
    }

    /// The value at `unit`, 0 to 1, of evenly spaced ones, the first and the last of which are the ends.
    fn spaced(&self, unit: f64) -> Value {
        match *self {
            Self::Range { low, high, is_log, is_whole: true, .. } => {
                let number = if is_log { low * math::pow(high / low, unit) } else { low + unit * (high - low) };
                Value::Integer(number.round() as i64)
            }
            _ => self.at(unit),
        }
    }

    /// Where a value lies in the domain, from 0 to 1: the inverse of [`at`](Domain::at).
    pub(crate) fn position(&self, value: &Value) -> f64 {
        let number = value.as_float().or(value.as_integer().map(|number| number as f64));
        match (self, number) {
            (Self::List(values), _) => {
                let place = values.iter().position(|other| other == value).unwrap_or(0);
                place as f64 / (values.len() - 1).max(1) as f64
            }
            (Self::Range { low, high, is_log, is_whole, .. }, Some(number)) => {
                let (from, to) = if *is_whole { (low - 0.5, high + 0.5) } else { (*low, *high) };
                let scaled = |x: f64| if *is_log { math::ln_f64(x) } else { x };
                (scaled(number) - scaled(from)) / (scaled(to) - scaled(from))
            }
            (Self::Range { .. }, None) => 0.0,
        }
    }

    /// Whether the values are numbers, so that between two of them are others.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::List(values) => values.iter().all(|value| number(value).is_some()),
            Self::Range { .. } => true,
        }
    }
}

/// A number as f64; `None` for another value.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|number| number as f64))
}

/// Rounds to four significant digits.
fn four_digits(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// A value as it is printed: texts without quotes.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) if *number != 0.0 && !(1e-3..1e6).contains(&number.abs()) => format!("{number:e}"),
        other => other.to_string(),
    }
}

/// The shortest ends of the keys that tell them apart: `clip` of `ppo.clip`.
pub(crate) fn short_keys<'a>(keys: &[&'a str]) -> Vec<&'a str> {
    let short = |key: &&'a str| {
        let last = key.rsplit('.').next().unwrap_or(key);
        if keys.iter().filter(|other| other.rsplit('.').next() == Some(last)).count() == 1 { last } else { key }
    };
    keys.iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(text: &str) -> Result<Space, String> {
        Space::parse(&text.parse().unwrap())
    }

    fn shown_all(points: &[Settings]) -> Vec<String> {
        points
            .iter()
            .map(|point| point.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn a_condition_has_one_setting_and_a_grid_the_values_that_were_asked_for() {
        for condition in ["{ x = { a = 1, b = 2 } }", "{ a = 1, b = 2 }", "{ x = {} }", "{}"] {
            let refused = space(&format!("b = {{ values = [1, 2], if = {condition} }}")).unwrap_err();
            assert!(refused.contains("if: expected one setting and its values"), "{refused}");
        }
        let points = |range: &str| space(&format!("b = {{ {range} }}")).unwrap().grid().map(|points| points.len());
        assert_eq!(points("integers = [1, 4], points = 4"), Ok(4));
        let refused = points("log_integers = [1, 8], points = 10").unwrap_err();
        assert!(refused.contains("points: expected at most the number of different values"), "{refused}");
    }

    #[test]
    fn a_grid_has_every_combination_and_conditions() {
        let space =
            space("a = [1, 2]\nrule = [\"adam\", \"sgd\"]\n\"x.momentum\" = { values = [0.0, 0.9], if = { rule = \"sgd\" } }").unwrap();
        assert_eq!(
            shown_all(&space.grid().unwrap()),
            [
                "a=1 rule=adam",
                "a=1 rule=sgd x.momentum=0.0",
                "a=1 rule=sgd x.momentum=0.9",
                "a=2 rule=adam",
                "a=2 rule=sgd x.momentum=0.0",
                "a=2 rule=sgd x.momentum=0.9"
            ]
        );
        assert!(space.one_at_a_time().unwrap_err().starts_with("space.x.momentum: if: expected no condition"));
    }

    #[test]
    fn one_at_a_time_varies_each_setting_alone() {
        let space = space("ppo.clip = [0.1, 0.2]\nlearning_rate = { log_uniform = [1e-4, 1e-2], points = 3 }").unwrap();
        assert_eq!(
            shown_all(&space.one_at_a_time().unwrap()),
            ["learning_rate=1e-4", "learning_rate=0.001", "learning_rate=0.01", "ppo.clip=0.1", "ppo.clip=0.2"]
        );
    }

    #[test]
    fn samples_have_their_distributions() {
        let text = "a = { uniform = [2, 4] }\nb = { log_uniform = [1e-4, 1] }\nc = { integers = [1, 3] }\nd = { log_integers = [1, 64] }\n\
                    e = { values = [1, 2], if = { f = true } }\nf = [true, false]";
        let points = space(text).unwrap().samples(4000, 1);
        let of = |key: &str| -> Vec<f64> {
            points.iter().filter_map(|point| point.iter().find(|(name, _)| name == key)).filter_map(|(_, value)| number(value)).collect()
        };
        let share = |key: &str, within: fn(f64) -> bool| of(key).iter().filter(|x| within(**x)).count() as f64 / of(key).len() as f64;
        for (key, share, expected) in [
            ("a", share("a", |x| x < 2.5), 0.25),
            ("b", share("b", |x| x < 1e-2), 0.5),
            ("c", share("c", |x| x == 1.0), 1.0 / 3.0),
            // from 0.5 to 1.5, of 0.5 to 64.5
            ("d", share("d", |x| x == 1.0), 3.0_f64.ln() / 129.0_f64.ln()),
        ] {
            assert!((share - expected).abs() < 0.03, "{key}: {share}, expected {expected}");
        }
        assert!(of("a").iter().all(|x| (2.0..=4.0).contains(x)) && of("d").iter().all(|x| (1.0..=64.0).contains(x)));
        let with_e = points.iter().filter(|point| point.iter().any(|(key, _)| key == "e")).count();
        assert!(points.iter().all(|point| (point.len() == 6) == (point[4].1.as_bool() == Some(true))) && (1900..2100).contains(&with_e));
        assert_eq!(space(text).unwrap().samples(10, 1), points[..10], "the first samples do not depend on their number");
        assert_ne!(space(text).unwrap().samples(10, 2), points[..10]);
    }

    #[test]
    fn positions_invert_values() {
        for text in ["a = { uniform = [2, 4] }", "a = { log_uniform = [1e-4, 1] }", "a = [1, 5, 9]"] {
            let domain = space(text).unwrap().0.remove(0).domain;
            for unit in [0.0, 0.5, 1.0] {
                assert!((domain.position(&domain.at(unit)) - unit).abs() < 1e-3, "{text} at {unit}");
            }
        }
    }

    #[test]
    fn whole_numbers_are_found_where_they_were_put_and_spaced_evenly() {
        let domain = |text: &str| space(text).unwrap().0.remove(0).domain;
        for text in ["a = { log_integers = [1, 64] }", "a = { log_integers = [1, 1000] }", "a = { integers = [3, 90] }"] {
            let domain = domain(text);
            for number in [3, 4, 8, 16, 32, 50, 64] {
                assert_eq!(domain.at(domain.position(&Value::Integer(number))), Value::Integer(number), "{text}");
            }
        }
        let space = space("a = { log_integers = [1, 64], points = 7 }").unwrap();
        assert_eq!(space.0[0].values().unwrap(), [1, 2, 4, 8, 16, 32, 64].map(Value::Integer));
    }

    #[test]
    fn wrong_spaces_are_named() {
        for (text, expected) in [
            ("", "space: expected at least one setting, got none"),
            ("a = []", "space.a: expected at least one value, got an empty list"),
            ("a = [1, 1]", "space.a: expected each value once, got 1 twice"),
            (
                "a = 1",
                "space.a: expected a list of values, or a table with one of values, uniform, log_uniform, integers and log_integers, got 1",
            ),
            ("a = { uniform = [1, 1] }", "space.a: uniform: expected two numbers, the second above the first, got [1, 1]"),
            ("a = { uniform = [1, nan] }", "space.a: uniform: expected two numbers, the second above the first, got [1, nan]"),
            ("a = { uniform = 1 }", "space.a: uniform: expected two numbers, the second above the first, got 1"),
            ("a = { log_uniform = [0, 1] }", "space.a: log_uniform: expected two numbers above 0, the second above the first, got [0, 1]"),
            ("a = { integers = [1.5, 2] }", "space.a: integers: expected two whole numbers, the second above the first, got [1.5, 2]"),
            (
                "a = { uniform = [1, 2], values = [1] }",
                "space.a: expected one of values, uniform, log_uniform, integers, log_integers, got uniform and values",
            ),
            ("a = { uniform = [1, 2], step = 1 }", "space.a: expected points and if beside uniform, got `step`"),
            ("a = { uniform = [1, 2], points = 1 }", "space.a: points: expected 2 to 100000 values of a range, got 1"),
            ("a = { values = [1], if = { b = 1 } }", "space.a: if: expected another setting of the space, got `b`"),
            ("b = [2]\na = { values = [1], if = { b = 1 } }", "space.a: if: expected values that the space lists for b, got 1"),
            (
                "b = { uniform = [1, 2] }\na = { values = [1], if = { b = 1 } }",
                "space.a: if: expected values that the space lists for b, got 1",
            ),
            ("a = { values = [1], if = 3 }", "space.a: if: expected one setting and its values, got 3"),
        ] {
            assert_eq!(space(text).unwrap_err(), expected, "{text}");
        }
        let range = space("a = { uniform = [1, 2] }").unwrap();
        assert_eq!(
            range.grid().unwrap_err(),
            "space.a: expected a list of values, or `points = N` beside the range, where the design is not random"
        );
    }

    #[test]
    fn keys_are_as_short_as_they_can_be() {
        assert_eq!(short_keys(&["ppo.clip", "optimiser.rule", "critic.rule", "envs"]), ["clip", "optimiser.rule", "critic.rule", "envs"]);
    }
}
