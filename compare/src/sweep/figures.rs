//! The figures of a sweep.

use gradus::figure::{Cell, Chart, Coordinate, Coordinates, Figure, Grid, Interval, Intervals, Lines, Panel, Scale, Series, solid};
use gradus_statistics::Estimate;

use super::Design;
use super::effects::Level;
use super::space::{Dimension, Domain, Settings, Space, short_keys, shown};
use super::tables::{Part, Response, Tables};
use crate::figures::Named;
use crate::summary::short;

pub(super) fn all(tables: &Tables) -> Vec<Named> {
    let mut figures = Vec::new();
    for agent in 0..tables.sweep.agents.len() {
        let parts: Vec<&Part> = tables.parts.iter().filter(|part| part.agent == agent).collect();
        for (name, drawn) in [
            ("response", response(tables, agent, &parts, true)),
            ("choices", response(tables, agent, &parts, false)),
            ("effects", Some(effects(tables, agent, &parts))),
            ("heat", heat(tables, agent, &parts)),
            ("coordinates", coordinates(tables, agent, &parts)),
        ] {
            let numbered = if agent == 0 { name.into() } else { format!("{name}-{}", agent + 1).into() };
            figures.extend(drawn.map(|(figure, caption)| Named { name: numbered, caption, figure }));
        }
    }
    figures
}

fn seeds(tables: &Tables) -> String {
    let n = tables.sweep.comparison.seeds.len();
    format!("{n} seed{}", if n == 1 { "" } else { "s" })
}

/// The scale on which the values are spread most evenly.
fn scale(places: &[f64]) -> Scale {
    let (low, high) = places.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| (low.min(*place), high.max(*place)));
    match high / low {
        ratio if low > 0.0 && ratio >= 8.0 && places.iter().all(|place| place.log2().fract() == 0.0) => Scale::Log2,
        ratio if low > 0.0 && ratio >= 30.0 => Scale::Log10,
        _ => Scale::Linear,
    }
}

/// The ends of an axis that all settings of an environment share.
fn range(part: &Part) -> (f64, f64) {
    let ends = part.responses.iter().flat_map(|response| &response.estimates).flat_map(|Estimate { low, high, .. }| [*low, *high]);
    let (low, high) = ends
        .chain(part.estimates.iter().map(|estimate| estimate.point))
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
    let air = 0.05 * (high - low).max(1e-9);
    (low - air, high + air)
}

/// The curve of a setting whose values are numbers.
fn curve(tables: &Tables, key: &str, part: &Part, Response { levels, estimates, .. }: &Response) -> Chart {
    let (low, high) = range(part);
    let places: Vec<f64> = levels.iter().filter_map(|level| level.place).collect();
    let at = || places.iter().copied().zip(estimates);
    let of_level =
        |(level, place): (&Level, &f64)| level.points.iter().map(|point| (*place, part.estimates[*point].point)).collect::<Vec<_>>();
    // where one setting at a time is varied, the points are the curve
    let dots: Vec<(f64, f64)> = match tables.sweep.design {
        Design::OneAtATime => Vec::new(),
        _ => levels.iter().zip(&places).flat_map(of_level).collect(),
    };
    let series = Series {
        band: at().map(|(x, estimate)| (x, estimate.low, estimate.high)).collect(),
        dots,
        style: Some(solid(0)),
        ..Series::new("", at().map(|(x, estimate)| (x, estimate.point)).collect())
    };
    let ends = (places.iter().copied().fold(f64::INFINITY, f64::min), places.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    Chart::Lines(Lines {
        x_label: key.to_owned(),
        y_label: tables.score_label(part.world).into(),
        x_scale: scale(&places),
        x_range: Some(ends).filter(|(low, high)| low < high),
        y_range: Some((low, high)),
        series: vec![series],
        ..Lines::default()
    })
}

/// The intervals of a setting whose values are words.
fn intervals(tables: &Tables, part: &Part, Response { levels, estimates, .. }: &Response) -> Chart {
    let row = |(level, Estimate { point, low, high }): (&Level, &Estimate)| Interval {
        label: level.label.clone(),
        point: *point,
        low: *low,
        high: *high,
        dots: Vec::new(),
    };
    let (rows, x_label) = (levels.iter().zip(estimates).map(row).collect(), tables.score_label(part.world).into());
    Chart::Intervals(Intervals { x_label, x_range: Some(range(part)), rows, plain: true, ..Intervals::default() })
}

/// The response to every setting whose values are numbers, or to all others: a panel for every setting and environment.
fn response(tables: &Tables, agent: usize, parts: &[&Part], of_numbers: bool) -> Option<(Figure, String)> {
    let space = &tables.sweep.agents[agent].space;
    let mut panels = Vec::new();
    for (number, key) in tables.keys(agent).into_iter().enumerate().filter(|(number, _)| space.0[*number].domain.is_ordered() == of_numbers)
    {
        for part in parts {
            let response = &part.responses[number];
            let chart = if of_numbers { curve(tables, key, part, response) } else { intervals(tables, part, response) };
            let title = if parts.len() > 1 { format!("{key}, {}", tables.world_title(part.world)) } else { key.to_owned() };
            panels.push(Panel { title, chart });
        }
    }
    let others = match tables.sweep.design {
        Design::Grid => "over all values of the other settings",
        Design::OneAtATime => "the other settings as the agent has them",
        Design::Random if of_numbers => "over random values of the other settings, in bins of equally many points",
        Design::Random => "over random values of the other settings",
    };
    let what = if of_numbers { "bands" } else { "bars" };
    let note = format!("{} over {}, {others}; {what}: 95 % bootstrap intervals", tables.statistic_name(), seeds(tables));
    let columns = if parts.len() > 1 { parts.len().min(3) } else { panels.len().min(3) };
    let title = tables.named(agent, if of_numbers { "Response to each setting" } else { "Response to each choice" });
    let dots = if of_numbers && tables.sweep.design != Design::OneAtATime { " Dots: the points." } else { "" };
    let caption = format!("The {} at each value, {others}.{dots}", tables.score_label(parts[0].world));
    (!panels.is_empty()).then_some((Figure { title, note, columns, panels }, caption))
}

/// How much each setting does, beside the seed.
fn effects(tables: &Tables, agent: usize, parts: &[&Part]) -> (Figure, String) {
    let keys = tables.keys(agent);
    let panel = |part: &&Part| {
        let mut rows: Vec<Interval> = keys
            .iter()
            .zip(&part.responses)
            .map(|(key, response)| {
                let Estimate { point, low, high } = response.effect.deviation;
                Interval { label: key.to_string(), point, low, high, dots: Vec::new() }
            })
            .collect();
        if part.seeds.is_finite() {
            rows.push(Interval { label: "(the seed)".into(), point: part.seeds, low: part.seeds, high: part.seeds, dots: Vec::new() });
        }
        let x_label = "deviation of the mean score".into();
        let title = if parts.len() > 1 { tables.world_title(part.world) } else { String::new() };
        Panel { title, chart: Chart::Intervals(Intervals { x_label, rows, plain: true, ..Intervals::default() }) }
    };
    let panels: Vec<Panel> = parts.iter().map(panel).collect();
    let note =
        "standard deviation of the mean score over the values of a setting, without what the seeds alone would cause; 95 % intervals"
            .into();
    let caption = "How much each setting matters in the range that was tried, beside the standard deviation between runs that differ in the seed only. An effect whose interval \
                   begins at 0 may be none."
        .into();
    (Figure { title: tables.named(agent, "Effects of the settings"), note, columns: panels.len().min(3), panels }, caption)
}

/// A map of the two settings with the largest effects.
fn heat(tables: &Tables, agent: usize, parts: &[&Part]) -> Option<(Figure, String)> {
    if tables.sweep.design != Design::Grid {
        return None;
    }
    let keys = tables.keys(agent);
    let size = |setting: usize| parts.iter().map(|part| part.responses[setting].effect.deviation.point / part.seeds.max(1e-9)).sum::<f64>();
    let mut order: Vec<usize> =
        (0..keys.len()).filter(|setting| parts.iter().all(|part| part.responses[*setting].levels.len() > 1)).collect();
    order.sort_by(|a, b| size(*b).total_cmp(&size(*a)));
    let (&x, &y) = (order.first()?, order.get(1)?);
    let panel = |part: &&Part| {
        let (columns, rows) = (&part.responses[x].levels, &part.responses[y].levels);
        // the first row is at the bottom, as on an axis
        let cells = rows.iter().rev().flat_map(|row| columns.iter().map(move |column| (row, column))).map(|(row, column)| {
            let both: Vec<f64> =
                row.points.iter().filter(|point| column.points.contains(point)).map(|point| part.estimates[*point].point).collect();
            let value = (!both.is_empty()).then(|| both.iter().sum::<f64>() / both.len() as f64);
            Cell { value, text: value.map_or_else(String::new, short), ..Cell::default() }
        });
        let grid = Grid {
            columns: columns.len(),
            cells: cells.collect(),
            value_label: tables.score_label(part.world).into(),
            row_names: rows.iter().rev().map(|level| level.label.clone()).collect(),
            column_names: columns.iter().map(|level| level.label.clone()).collect(),
            ..Grid::default()
        };
        let title = if parts.len() > 1 { tables.world_title(part.world) } else { String::new() };
        Panel { title, chart: Chart::Grid(grid) }
    };
    let panels: Vec<Panel> = parts.iter().map(panel).collect();
    let rest = if keys.len() > 2 { ", the mean over the values of the other settings" } else { "" };
    let note = format!("{} over {}{rest}", tables.statistic_name(), seeds(tables));
    let caption = format!(
        "The two settings with the largest effects, {} and {}, together. If one column is best in every row, they can be chosen apart.",
        keys[x], keys[y]
    );
    Some((
        Figure {
            title: tables.named(agent, &format!("{} from left to right, {} from bottom to top", keys[x], keys[y])),
            note,
            columns: panels.len().min(2),
            panels,
        },
        caption,
    ))
}

/// Parallel coordinates: a line for each point.
fn coordinates(tables: &Tables, agent: usize, parts: &[&Part]) -> Option<(Figure, String)> {
    let space = &tables.sweep.agents[agent].space;
    if tables.sweep.design == Design::OneAtATime || space.0.len() < 2 {
        return None;
    }
    let axes = axes(space);
    let panel = |part: &&Part| {
        let line = |(place, point): (usize, &usize)| (places(space, &tables.sweep.points[*point].settings), part.estimates[place].point);
        let lines = part.points.iter().enumerate().map(line).collect();
        let title = if parts.len() > 1 { tables.world_title(part.world) } else { String::new() };
        Panel { title, chart: Chart::Coordinates(Coordinates { axes: axes.clone(), lines, value_label: "score".into() }) }
    };
    let panels: Vec<Panel> = parts.iter().map(panel).collect();
    let note = format!(
        "a line for each point; darker: a higher {}, {} over {}",
        tables.score_label(parts[0].world),
        tables.statistic_name(),
        seeds(tables)
    );
    let caption = "Each line is a point: its values, and on the right its score. Dark lines that meet at one value of a setting show that the good points share it.".into();
    Some((Figure { title: tables.named(agent, "All points"), note, columns: 1, panels }, caption))
}

/// The axes of a space.
pub(crate) fn axes(space: &Space) -> Vec<Coordinate> {
    let keys: Vec<&str> = space.0.iter().map(|dimension| dimension.key.as_str()).collect();
    let axis = |(key, dimension): (&str, &Dimension)| {
        let ticks = match &dimension.domain {
            Domain::List(values) => values.iter().map(|value| (dimension.domain.position(value), shown(value))).collect(),
            range => {
                let last = match range {
                    Domain::Range { points: Some(points @ 2..8), .. } => points - 1,
                    _ => 2,
                };
                let values = (0..=last).map(|place| range.at(place as f64 / last as f64));
                values.map(|value| (range.position(&value), shown(&value))).collect()
            }
        };
        Coordinate { name: key.to_owned(), ticks }
    };
    short_keys(&keys).into_iter().zip(&space.0).map(axis).collect()
}

/// The place of a point on every axis of its space.
pub(crate) fn places(space: &Space, point: &Settings) -> Vec<Option<f64>> {
    let at = |dimension: &Dimension| {
        let value = point.iter().find(|(key, _)| *key == dimension.key).map(|(_, value)| value);
        value.map(|value| dimension.domain.position(value))
    };
    space.0.iter().map(at).collect()
}
