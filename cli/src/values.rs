//! `gradus values`: draws the values and the greedy actions of a policy.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use gradus::config::Network;
use gradus::draw::{self, Animation, Frame};
use gradus::envs::tabular::StateMap;
use gradus::envs::{EnvSpec, Ink, Scene, Shape, Space, registry};
use gradus::figure::{self, Arrow, Chart, Figure, Format, Grid, Lines, Panel, Series};
use gradus::nets::Inspection;
use gradus::numbers::short;
use gradus::{Config, Error, Policy, Trainer};

use crate::output::say;
use crate::signals::Signals;

#[derive(Args)]
pub(crate) struct Values {
    /// Run folder.
    dir: PathBuf,
    /// Figure to write, .svg, .png or .pdf [default: values.svg and values.png in the run folder]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Instead, train the run again from its settings and write how the values grow as an animation; needs an environment with a map.
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    gif: Option<PathBuf>,
}

/// Observations that a policy looks at together.
const ROWS: usize = 64;
/// Cells of a map over two observed numbers, in each direction.
const CELLS: usize = 24;

/// States on a page: what the policy computes in each of them.
struct Map {
    map: StateMap,
    /// Of every cell; `None` where the map has no state.
    looks: Vec<Option<Inspection>>,
}

/// What is drawn of a policy.
enum Drawn {
    Maps(Vec<Map>),
    /// States without a layout: the looks, in the order of the states.
    Line(Vec<Inspection>),
    /// Two numbers: what they are, and the looks, row by row from the largest second number.
    Plane(Plane, Vec<Inspection>),
}

/// A plane of states: two numbers that vary, and those that do not.
#[derive(Clone)]
struct Plane {
    /// Of the columns, then of the rows.
    names: [String; 2],
    bounds: [(f32, f32); 2],
    /// What the other numbers are; empty: there are none.
    others: &'static str,
    /// The observation of a pair of numbers.
    observation: fn(f32, f32) -> Vec<f32>,
}

/// Planes through environments whose observations are no plane, or that have names.
fn known_plane(name: &str) -> Option<Plane> {
    use std::f32::consts::PI;
    let plane = |names: [&str; 2], bounds, others, observation| Some(Plane { names: names.map(String::from), bounds, others, observation });
    match name {
        "mountain-car" | "mountain-car-continuous" => plane(["position", "velocity"], [(-1.2, 0.6), (-0.07, 0.07)], "", |x, v| vec![x, v]),
        "cartpole" => plane(
            ["pole angle in rad", "angular velocity in rad/s"],
            [(-0.21, 0.21), (-2.0, 2.0)],
            "cart in the middle, at rest",
            |angle, speed| vec![0.0, 0.0, angle, speed],
        ),
        "pendulum" => plane(["angle in rad, 0 is upright", "angular velocity in rad/s"], [(-PI, PI), (-8.0, 8.0)], "", |angle, speed| {
            vec![angle.cos(), angle.sin(), speed]
        }),
        "acrobot" => plane(["angle of the first link in rad", "of the second"], [(-PI, PI), (-PI, PI)], "at rest", |first, second| {
            vec![first.cos(), first.sin(), second.cos(), second.sin(), 0.0, 0.0]
        }),
        _ => None,
    }
}

fn look(policy: &mut Policy) -> Result<Drawn, Error> {
    let world = policy.world().clone();
    let mut look = |rows: &[f32]| policy.inspect(rows);
    let got = match world.env().observation_space() {
        Space::Text { .. } => "texts".to_owned(),
        space => format!("{} numbers", space.width()),
    };
    let unsuited = |expected: &str| Error::Parse { what: world.name.clone(), expected: expected.into(), got: got.clone() };
    let space = world.env().observation_space();
    // a wrapper may change what the numbers mean
    let is_plain = registry::find(&world.name).is_ok_and(|plain| plain.env().observation_space() == space);
    let plane = match &space {
        Space::Box { .. } if is_plain && known_plane(&world.name).is_some() => known_plane(&world.name),
        Space::Box { low, high } if low.len() == 2 && low.iter().chain(high).all(|bound| bound.is_finite()) => Some(Plane {
            names: ["first number", "second number"].map(String::from),
            bounds: [(low[0], high[0]), (low[1], high[1])],
            others: "",
            observation: |x, y| vec![x, y],
        }),
        _ => None,
    };
    let looked = if let Some(states) = world.one_hot_states() {
        // some at a time, because every row is as long as there are states
        let mut looks = Vec::new();
        for first in (0..states).step_by(ROWS) {
            let n = ROWS.min(states - first);
            let mut rows = vec![0.0; n * states];
            (0..n).for_each(|row| rows[row * states + first + row] = 1.0);
            looks.extend(look(&rows)?);
        }
        let maps = world.model().map_or(Vec::new(), |model| model.maps());
        if maps.is_empty() || looks.is_empty() {
            Drawn::Line(looks)
        } else {
            let map = |map: StateMap| {
                let looks = map.states.iter().map(|state| state.map(|state| looks[state as usize].clone())).collect();
                Map { map, looks }
            };
            Drawn::Maps(maps.into_iter().map(map).collect())
        }
    } else if let Some(plane) = plane {
        let centre = |(low, high): (f32, f32), cell: usize| low + (high - low) * (cell as f32 + 0.5) / CELLS as f32;
        let of = |x: usize, y: usize| (plane.observation)(centre(plane.bounds[0], x), centre(plane.bounds[1], y));
        let rows: Vec<f32> = (0..CELLS).rev().flat_map(|y| (0..CELLS).flat_map(move |x| of(x, y))).collect();
        let looks = look(&rows)?;
        Drawn::Plane(plane, looks)
    } else {
        return Err(unsuited("discrete observations, two bounded numbers, or a classic control task of ours, without wrappers"));
    };
    let has_values = match &looked {
        Drawn::Maps(maps) => maps.iter().flat_map(|map| map.looks.iter().flatten()).any(|look| look.best_value().is_some()),
        Drawn::Line(looks) | Drawn::Plane(_, looks) => looks.iter().any(|look| look.best_value().is_some()),
    };
    if has_values {
        Ok(looked)
    } else {
        Err(Error::Parse { what: "policy".into(), expected: "one with values".into(), got: "one without".into() })
    }
}

/// Returns the arrow of a step that is not diagonal.
fn arrow([down, right]: [isize; 2]) -> Option<Arrow> {
    match (down, right) {
        (-1, 0) => Some(Arrow::Up),
        (1, 0) => Some(Arrow::Down),
        (0, -1) => Some(Arrow::Left),
        (0, 1) => Some(Arrow::Right),
        _ => None,
    }
}

fn panel(Map { map, looks }: &Map) -> Panel {
    let is_small = map.states.len() <= 150;
    let cell = |look: &Option<Inspection>| {
        let Some(look) = look else { return figure::Cell::default() };
        let best = look.best_actions();
        let value = look.best_value();
        let text = match value {
            _ if !map.letters.is_empty() => {
                best.first().and_then(|action| map.letters.get(*action)).map_or_else(String::new, char::to_string)
            }
            Some(value) if is_small => format!("{value:.2}").replace('-', "−"),
            _ => String::new(),
        };
        figure::Cell {
            value,
            text,
            arrows: best.iter().filter_map(|action| arrow(*map.steps.get(*action)?)).collect(),
            ..figure::Cell::default()
        }
    };
    let ([row_names, column_names], cells) = (map.names.clone(), looks.iter().map(cell).collect());
    let grid = Grid { columns: map.columns, cells, value_label: "value".into(), row_names, column_names, ..Grid::default() };
    Panel { title: map.title.clone(), chart: Chart::Grid(grid) }
}

fn figure_of(config: &Config, world: &EnvSpec, drawn: &Drawn) -> Figure {
    let (columns, note, panels) = match drawn {
        Drawn::Maps(maps) => {
            let has_gaps = maps.iter().any(|map| map.looks.iter().any(Option::is_none));
            let gaps = if has_gaps { "grey: no decision there, such as a goal, a hole or a wall" } else { "" };
            let note = [maps[0].map.axes.as_str(), gaps].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
            (if maps.len() > 4 { 4 } else { maps.len().min(2) }, note, maps.iter().map(panel).collect())
        }
        Drawn::Line(looks) => {
            let values = looks.iter().enumerate().filter_map(|(state, look)| Some((state as f64, look.best_value()?)));
            let actions = looks.iter().enumerate().filter_map(|(state, look)| Some((state as f64, *look.best_actions().first()? as f64)));
            let lines = |y_label: &str, points: Vec<(f64, f64)>| {
                let series = vec![Series { style: Some(figure::solid(0)), ..Series::new("", points) }];
                let lines = Lines { x_label: "state".into(), y_label: y_label.into(), series, ..Lines::default() };
                Panel { title: String::new(), chart: Chart::Lines(lines) }
            };
            (1, String::new(), vec![lines("value", values.collect()), lines("first of the best actions", actions.collect())])
        }
        Drawn::Plane(Plane { names: [of_columns, of_rows], bounds: [x, y], others, .. }, looks) => {
            let cell = |look: &Inspection| figure::Cell { value: look.best_value(), ..figure::Cell::default() };
            let grid = Grid { columns: CELLS, cells: looks.iter().map(cell).collect(), value_label: "value".into(), ..Grid::default() };
            let action = |look: &Inspection| {
                let value = look.best_actions().first().map(|action| *action as f64);
                figure::Cell { value, ..figure::Cell::default() }
            };
            let actions =
                Grid { columns: CELLS, cells: looks.iter().map(action).collect(), value_label: "best action".into(), ..Grid::default() };
            let names = ["value", "best action"].into_iter().zip([grid, actions]);
            let panels: Vec<Panel> = names.map(|(title, grid)| Panel { title: title.into(), chart: Chart::Grid(grid) }).collect();
            let has_actions = looks.iter().any(|look| !look.best_actions().is_empty());
            let others = if others.is_empty() { String::new() } else { format!("; {others}") };
            let end = |number: f32| short(f64::from(number)).replace('-', "−");
            let note =
                format!("columns: {of_columns}, {} to {}; rows: {of_rows}, {} up to {}{others}", end(x.0), end(x.1), end(y.0), end(y.1));
            let panels: Vec<Panel> = panels.into_iter().take(1 + usize::from(has_actions)).collect();
            (2, note, panels)
        }
    };
    let scaled = if config.wrappers.normalise_rewards { "values are of normalised rewards" } else { "" };
    let remembers = matches!(&config.network, Network::Perceptron(network) if network.cell != gradus::nets::Cell::None);
    let first = if remembers { "each state as if it were the first of an episode" } else { "" };
    let note = [note.as_str(), scaled, first].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    Figure { title: format!("{} on {}", config.agent, world.title()), note, columns, panels }
}

/// Returns the sign of an action: an arrow or a letter.
fn symbol(map: &StateMap, action: usize) -> char {
    const ARROWS: [([isize; 2], char); 8] =
        [([-1, 0], '↑'), ([1, 0], '↓'), ([0, -1], '←'), ([0, 1], '→'), ([-1, 1], '↗'), ([1, 1], '↘'), ([1, -1], '↙'), ([-1, -1], '↖')];
    match (map.letters.get(action), map.steps.get(action)) {
        (Some(letter), None) => *letter,
        (_, Some(step)) => ARROWS.iter().find(|(own, _)| own == step).map_or('?', |(_, arrow)| *arrow),
        (None, None) => '?',
    }
}

/// A state of a map: the sign of the first of the best actions, and its value.
#[cfg(feature = "watch")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) symbol: char,
    pub(crate) value: f64,
}

/// Returns the columns and the cells of the first map of a training's world; `None` if there is no map, or if the policy has no values.
#[cfg(feature = "watch")]
pub(crate) fn cells(trainer: &Trainer) -> Option<(usize, Vec<Option<Cell>>)> {
    let world = trainer.world();
    if world.model().is_none_or(|model| model.maps().is_empty()) {
        return None;
    }
    let Ok(Drawn::Maps(maps)) = trainer.to_policy().and_then(|mut policy| look(&mut policy)) else { return None };
    let Map { map, looks } = maps.into_iter().next()?;
    let cell = |look: &Inspection| {
        Some(Cell { symbol: look.best_actions().first().map_or('·', |action| symbol(&map, *action)), value: look.best_value()? })
    };
    Some((map.columns, looks.iter().map(|look| look.as_ref().and_then(cell)).collect()))
}

/// Returns a map as text: the best actions as arrows or letters, beside the values if they fit into 80 columns.
fn in_words(Map { map, looks }: &Map) -> String {
    let symbol = |action: usize| symbol(map, action);
    let shown: Vec<String> =
        looks.iter().map(|look| look.as_ref().and_then(Inspection::best_value).map_or_else(String::new, |x| format!("{x:.2}"))).collect();
    let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    let [of_rows, of_columns] = &map.names;
    let (width, margin) = (longest(&shown), if of_rows.is_empty() { 0 } else { longest(of_rows) + 2 });
    let has_room = margin + map.columns * (width + 3) <= 80;
    let cell = if has_room { width + 3 } else { 2 }.max(longest(of_columns) + 1);
    let mut text = if map.title.is_empty() { String::new() } else { format!("{}\n", map.title) };
    if !of_columns.is_empty() {
        let names: String = of_columns.iter().map(|name| format!("{name:<cell$}")).collect();
        writeln!(text, "{:margin$}{}", "", names.trim_end()).expect("a string");
    }
    for (number, (row, values)) in looks.chunks(map.columns).zip(shown.chunks(map.columns)).enumerate() {
        if let Some(name) = of_rows.get(number) {
            write!(text, "{name:<margin$}").expect("a string");
        }
        for (look, value) in row.iter().zip(values) {
            let best = look.as_ref().and_then(|look| look.best_actions().first().copied()).map_or('·', symbol);
            let value = if has_room { value.as_str() } else { "" };
            write!(text, "{:<cell$}", format!("{best} {value}")).expect("a string");
        }
        text = text.trim_end().to_owned() + "\n";
    }
    text
}

/// Draws the maps beside each other: values as the areas of discs, the first of the best actions as a line from the middle.
fn scene(maps: &[Map], low: f64, high: f64) -> Scene {
    let (mut shapes, mut left, mut height) = (Vec::new(), 0.0, 0.0_f64);
    for Map { map, looks } in maps {
        let rows = looks.len().div_ceil(map.columns);
        height = height.max(rows as f64);
        for (cell, look) in looks.iter().enumerate() {
            let centre = [left + (cell % map.columns) as f64 + 0.5, rows as f64 - (cell / map.columns) as f64 - 0.5];
            let [x, y] = centre;
            let Some(look) = look else {
                let corners = vec![[x - 0.5, y - 0.5], [x + 0.5, y - 0.5], [x + 0.5, y + 0.5], [x - 0.5, y + 0.5]];
                shapes.push(Shape::Polygon { corners, ink: Ink::Ground });
                continue;
            };
            let share = look.best_value().map_or(0.0, |value| ((value - low) / (high - low)).clamp(0.0, 1.0));
            shapes.push(Shape::Disc { centre, radius: 0.04 + 0.42 * share.sqrt(), ink: Ink::Body });
            // an arrow for each of the best actions, as in the figure
            for [down, right] in look.best_actions().iter().filter_map(|action| map.steps.get(*action)) {
                let (across, up) = (*right as f64, -(*down as f64));
                let at = |along: f64, aside: f64| [x + along * across - aside * up, y + along * up + aside * across];
                shapes.push(Shape::Line { from: centre, to: at(0.36, 0.0), width: 0.07, ink: Ink::Limb });
                shapes.push(Shape::Polygon { corners: vec![at(0.48, 0.0), at(0.3, 0.12), at(0.3, -0.12)], ink: Ink::Limb });
            }
        }
        left += map.columns as f64 + 1.0;
    }
    Scene { x: [-0.2, left - 0.8], y: [-0.2, height + 0.2], shapes }
}

/// Most pictures of an animation of the training.
const PICTURES: usize = 100;
/// Most cells of a map in an animation: more are smaller than a dot of the picture.
const MOST_CELLS: usize = 1 << 14;

/// Trains the run again and writes the values after each iteration as an animation.
fn animate(config: Config, path: &Path) -> Result<(), Error> {
    let mut trainer = Trainer::new(config.clone())?;
    let title = trainer.world().title();
    let mut stages: Vec<(usize, f64, Vec<Map>)> = Vec::new();
    // of a long training only every second, fourth, ... stage is kept
    let (mut number, mut stride) = (0, 1);
    loop {
        let steps = trainer.steps() as usize;
        let Drawn::Maps(maps) = look(&mut trainer.to_policy()?)? else {
            let (what, expected) = ("--gif".into(), "an environment with a map".into());
            return Err(Error::Parse { what, expected, got: config.environment });
        };
        let cells: usize = maps.iter().map(|map| map.looks.len()).sum();
        if cells > MOST_CELLS {
            let (what, expected) = ("--gif".into(), format!("a map of at most {MOST_CELLS} cells, which a picture can show"));
            return Err(Error::Parse { what, expected, got: cells.to_string() });
        }
        let recent = trainer.recent_return();
        stages.push((steps, if recent.is_finite() { recent } else { 0.0 }, maps));
        if stages.len() > 2 * PICTURES {
            let mut i = 0;
            stages.retain(|_| (i += 1, i % 2 == 1).1);
            stride *= 2;
        }
        while !trainer.is_finished() {
            trainer.iterate()?;
            number += 1;
            if number % stride == 0 {
                break;
            }
        }
        if stages.last().is_some_and(|(steps, ..)| *steps as u64 == trainer.steps()) {
            break;
        }
    }
    let values =
        || stages.iter().flat_map(|(_, _, maps)| maps).flat_map(|map| map.looks.iter().flatten()).filter_map(Inspection::best_value);
    let (low, high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let high = if high > low { high } else { low + 1.0 };
    let every = (stages.len() / PICTURES).max(1);
    let last = stages.len() - 1;
    let frames: Vec<Frame> = stages
        .iter()
        .enumerate()
        .filter(|(i, _)| i % every == 0 || *i == last)
        .map(|(_, (step, recent, maps))| Frame { scene: scene(maps, low, high), step: *step, return_so_far: *recent })
        .collect();
    draw::write_gif(
        &Animation { title: format!("{} on {title}", config.agent), chapters: &[], frames: &frames, frames_per_second: 10 },
        path,
    )
}

pub(crate) fn run(arguments: &Values) -> Result<u8, Error> {
    let mut policy = Policy::load(&arguments.dir)?;
    let config = policy.config().clone();
    if let Some(path) = &arguments.gif {
        Signals::end_at_once();
        animate(config, path)?;
        say(path.display().to_string());
        return Ok(0);
    }
    let drawn = look(&mut policy)?;
    let figure = figure_of(&config, policy.world(), &drawn);
    match &drawn {
        Drawn::Maps(maps) => {
            maps.iter().for_each(|map| say(in_words(map)));
            let about = &maps[0].map.axes;
            if !about.is_empty() {
                say(about);
            }
        }
        Drawn::Line(looks) | Drawn::Plane(_, looks) => {
            let values: Vec<f64> = looks.iter().filter_map(Inspection::best_value).collect();
            let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
            say(format!("values from {} to {}", short(low), short(high)));
        }
    }
    let folder = if arguments.dir.is_dir() { arguments.dir.as_path() } else { arguments.dir.parent().unwrap_or(Path::new(".")) };
    let paths: Vec<PathBuf> = match &arguments.out {
        Some(path) => vec![path.clone()],
        None => Format::USUAL.iter().map(|format| folder.join(format!("values.{}", format.ending()))).collect(),
    };
    for path in paths {
        figure::write(&figure, &path)?;
        say(path.display().to_string());
    }
    Ok(0)
}
