//! The layout of a page: title, note, legend, and rows of panels.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::brush::Brush;
use super::frame::{Margins, Rect};
use super::lines::look_of;
use super::style::{
    HEIGHT, LEGEND_EM, LEGEND_ROW, Look, MARGIN, NOTE_EM, PANEL_EM, QUIET, SAMPLE, SLACK, TEXT, TITLE_EM, WIDTH, crisp, look,
};
use super::{Chart, Figure, Lines, Panel, Radar};

const SAMPLE_DOT: f64 = 4.0;
const SAMPLE_GAP: f64 = 10.0;
const ENTRY_GAP: f64 = 32.0;
/// Smallest height of a chart that is alone on its page.
const LEAST_HEIGHT: f64 = 480.0;
/// Ratio of height to width of a chart on a page with several charts.
const ASPECT: f64 = 0.66;
const GAP: f64 = 26.0;
/// Smallest width of a page, so that a title has room.
const LEAST_WIDTH: f64 = 560.0;

enum Sample {
    Line(Look),
    Dot(Look),
}

impl Sample {
    fn width(&self) -> f64 {
        match self {
            Sample::Line(_) => SAMPLE,
            Sample::Dot(_) => 2.0 * SAMPLE_DOT,
        }
    }
}

struct Entry {
    sample: Sample,
    label: String,
    at: [f64; 2],
}

struct Placed<'a> {
    panel: &'a Panel,
    rect: Rect,
    looks: Vec<Look>,
    named: bool,
}

/// The positions of everything in a figure, in pixels.
pub(super) struct Page<'a> {
    pub(super) size: [u32; 2],
    figure: &'a Figure,
    entries: Vec<Entry>,
    note_at: f64,
    placed: Vec<Placed<'a>>,
}

impl<'a> Page<'a> {
    pub(super) fn new(figure: &'a Figure) -> Self {
        let columns = figure.columns.clamp(1, figure.panels.len().max(1));
        let width = WIDTH + 320.0 * columns.saturating_sub(2) as f64;
        let names = names(figure);
        let below_title = if figure.title.is_empty() { MARGIN } else { MARGIN + 1.6 * TITLE_EM };
        let note_at = below_title + NOTE_EM;
        let below_note = if figure.note.is_empty() { below_title } else { below_title + 1.8 * NOTE_EM };
        let mut page = Page { size: [width as u32, 0], figure, entries: Vec::new(), note_at, placed: Vec::new() };
        let rows = page.legend(&names, width, below_note);
        let bottom = page.place_panels(&names, columns, width, below_note + rows as f64 * LEGEND_ROW + 10.0);
        page.size[1] = (bottom + MARGIN / 2.0).ceil() as u32;
        page
    }

    /// Places the legend's entries row by row and returns the number of rows.
    fn legend(&mut self, names: &[&str], width: f64, top: f64) -> usize {
        let left = MARGIN;
        let mut entries: Vec<(Sample, &str)> = Vec::new();
        for (series, place) in legend_series(self.figure, names) {
            let look = look_of(series, place);
            if !series.dots_label.is_empty() {
                entries.push((Sample::Dot(look), &series.dots_label));
            }
            entries.push((Sample::Line(look), &series.label));
        }
        if entries.is_empty() {
            return 0;
        }
        let space = width - MARGIN - left;
        let limit = space - SAMPLE - SAMPLE_GAP; // a long name has a row of its own
        let entries: Vec<_> =
            entries.into_iter().map(|(sample, label)| (sample, fonts::shorten(label, LEGEND_EM, limit / SLACK))).collect();
        let wide = |(sample, label): &(Sample, String)| sample.width() + SAMPLE_GAP + SLACK * fonts::width(label, LEGEND_EM) + ENTRY_GAP;
        let widths: Vec<_> = entries.iter().map(wide).collect();
        let column = widths.iter().copied().fold(0.0, f64::max);
        let fits = widths.iter().sum::<f64>() <= space + ENTRY_GAP;
        let columns = if fits { entries.len() } else { ((space + ENTRY_GAP).div_euclid(column) as usize).max(1) };
        let rows = entries.len().div_ceil(columns);
        for (number, (sample, label)) in entries.into_iter().enumerate() {
            let (row, before) = (number / columns, number % columns);
            // The entries of a single row follow closely; the entries of several rows are aligned in columns.
            let x = left + if rows == 1 { widths[..before].iter().sum() } else { before as f64 * column };
            self.entries.push(Entry { sample, label, at: [x, top + (row as f64 + 0.5) * LEGEND_ROW] });
        }
        rows
    }

    /// Places the panels below `top` and returns the y at which they end.
    fn place_panels(&mut self, names: &[&str], columns: usize, width: f64, top: f64) -> f64 {
        let panels = &self.figure.panels;
        let alone = panels.len() == 1;
        // Margins and sizes depend on each other: a first guess is good enough for the number of ticks.
        let guess = (width - 2.0 * MARGIN) / columns as f64 - 90.0;
        let rough = |panel: &Panel| panel.chart.height(guess).unwrap_or(if alone { LEAST_HEIGHT } else { ASPECT * guess });
        let named = |number: usize| number.is_multiple_of(columns) || !same_names(&panels[number - 1].chart, &panels[number].chart);
        let margins: Vec<Margins> =
            panels.iter().enumerate().map(|(number, panel)| panel.chart.margins([guess, rough(panel)], named(number))).collect();
        let widest = |of: fn(&Margins) -> f64, column: usize| margins.iter().skip(column).step_by(columns).map(of).fold(0.0, f64::max);
        let (lefts, rights): (Vec<f64>, Vec<f64>) =
            (0..columns).map(|column| (widest(|m| m.left, column), widest(|m| m.right, column))).unzip();
        let taken = lefts.iter().sum::<f64>() + rights.iter().sum::<f64>() + GAP * (columns - 1) as f64;
        let each = ((width - 1.5 * MARGIN - taken) / columns as f64).max(60.0);
        // a page of grids is only as wide as the grids
        let widths: Option<Vec<f64>> = panels.iter().map(|panel| panel.chart.most_width(each)).collect();
        let each = widths.map_or(each, |widths| widths.into_iter().fold(0.0, f64::max).min(each));
        let texts =
            [(&self.figure.title, TITLE_EM), (&self.figure.note, NOTE_EM)].map(|(text, em)| SLACK * fonts::width(text, em) + 2.0 * MARGIN);
        let needed = (taken + columns as f64 * each + 1.5 * MARGIN).max(LEAST_WIDTH).max(texts[0]).max(texts[1]);
        self.size[0] = (needed.ceil() as u32).min(self.size[0]);

        let mut y = top;
        for (row, in_row) in panels.chunks(columns).enumerate() {
            let above = if in_row.iter().any(|panel| !panel.title.is_empty()) { 1.7 * PANEL_EM } else { 0.0 };
            let below = in_row.iter().enumerate().map(|(column, _)| margins[row * columns + column].below).fold(0.0, f64::max);
            let flexible = if alone { (HEIGHT - y - above - below - MARGIN / 2.0).max(LEAST_HEIGHT) } else { ASPECT * each };
            let natural = in_row.iter().filter_map(|panel| panel.chart.height(each)).reduce(f64::max);
            let height = natural.unwrap_or(flexible);
            let mut x = MARGIN / 2.0;
            for (column, panel) in in_row.iter().enumerate() {
                x += lefts[column];
                let number = row * columns + column;
                let rect = Rect { left: x, top: y + above, right: x + each, bottom: crisp(y + above + height) };
                let looks = panel.chart.looks(names);
                self.placed.push(Placed { panel, rect, looks, named: named(number) });
                x += each + rights[column] + GAP;
            }
            y += above + height + below + if (row + 1) * columns < panels.len() { GAP } else { 0.0 };
        }
        y
    }

    /// Draws everything.
    pub(super) fn draw(&self, brush: &mut impl Brush) -> Result<(), String> {
        let space = f64::from(self.size[0]) - 2.0 * MARGIN;
        // the title of a single chart begins at its vertical axis
        let fits = |left: f64, text: &str, em: f64| left + SLACK * fonts::width(text, em) < f64::from(self.size[0]) - MARGIN;
        let left = match self.placed.as_slice() {
            [only] if fits(only.rect.left, &self.figure.note, NOTE_EM) && fits(only.rect.left, &self.figure.title, TITLE_EM) => {
                only.rect.left
            }
            _ => MARGIN,
        };
        let (title, em) = fonts::fitted(&self.figure.title, TITLE_EM, (space + MARGIN - left) / SLACK);
        brush.write(title, em, [left, MARGIN + 0.8 * TITLE_EM], HPos::Left, TEXT)?;
        let (note, em) = fonts::fitted(&self.figure.note, NOTE_EM, (space + MARGIN - left) / SLACK);
        brush.write(note, em, [left, self.note_at], HPos::Left, QUIET)?;
        let end = |entry: &Entry| entry.at[0] + entry.sample.width() + SAMPLE_GAP + SLACK * fonts::width(&entry.label, LEGEND_EM);
        let room = f64::from(self.size[0]) - self.entries.iter().map(end).fold(0.0, f64::max) - 0.5 * MARGIN;
        let shift = if room > left - MARGIN { left - MARGIN } else { 0.0 };
        for Entry { sample, label, at: [x, y] } in &self.entries {
            let x = x + shift;
            match sample {
                Sample::Line(look) => brush.curve(&[[x + 2.0, *y], [x + SAMPLE - 2.0, *y]], 3.0, *look)?,
                Sample::Dot(look) => brush.dot([x + SAMPLE_DOT, *y], SAMPLE_DOT, look.colour, 0.4)?,
            }
            brush.write(label, LEGEND_EM, [x + sample.width() + SAMPLE_GAP, y + 0.3 * LEGEND_EM], HPos::Left, TEXT)?;
        }
        for Placed { panel, rect, looks, named } in &self.placed {
            let (title, em) = fonts::fitted(&panel.title, PANEL_EM, rect.width() / SLACK);
            brush.write(title, em, [rect.left, rect.top - 0.7 * PANEL_EM], HPos::Left, TEXT)?;
            match &panel.chart {
                Chart::Lines(lines) => lines.draw(*rect, looks, *named, brush)?,
                Chart::Intervals(intervals) => intervals.draw(*rect, looks, *named, brush)?,
                Chart::Violins(violins) => violins.draw(*rect, looks, brush)?,
                Chart::Grid(grid) => grid.draw(*rect, brush)?,
                Chart::Coordinates(coordinates) => coordinates.draw(*rect, brush)?,
                Chart::Episodes(episodes) => episodes.draw(*rect, brush)?,
                Chart::Radar(radar) => radar.draw(*rect, looks, brush)?,
            }
        }
        Ok(())
    }
}

/// Returns the distinct names of all series and rows, in the order of the panels.
fn names(figure: &Figure) -> Vec<&str> {
    let mut names = Vec::new();
    for name in figure.panels.iter().flat_map(|panel| panel.chart.names()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the series in the legend: one for each name, with the index of the name among all names.
fn legend_series<'a>(figure: &'a Figure, names: &[&str]) -> Vec<(&'a super::Series, usize)> {
    let charts = figure.panels.iter().filter_map(|panel| match &panel.chart {
        Chart::Lines(lines) if !lines.direct => Some(&lines.series),
        Chart::Radar(radar) => Some(&radar.series),
        _ => None,
    });
    let series: Vec<_> = charts.flatten().filter(|series| !series.label.is_empty()).collect();
    let first = |name: &&str| series.iter().find(|series| series.label == **name).copied();
    names.iter().enumerate().filter_map(|(place, name)| Some((first(name)?, place))).collect()
}

/// Returns whether two adjacent charts have the same row labels or the same label of the vertical axis, so that writing it once is enough.
fn same_names(a: &Chart, b: &Chart) -> bool {
    match (a, b) {
        (Chart::Lines(a), Chart::Lines(b)) => a.y_label == b.y_label && !a.direct,
        (Chart::Intervals(a), Chart::Intervals(b)) => a.rows.iter().map(|row| &row.label).eq(b.rows.iter().map(|row| &row.label)),
        _ => false,
    }
}

impl Chart {
    fn names(&self) -> Vec<&str> {
        match self {
            Chart::Lines(Lines { series, .. }) | Chart::Radar(Radar { series, .. }) => {
                series.iter().map(|series| series.label.as_str()).collect()
            }
            Chart::Intervals(intervals) => intervals.rows.iter().map(|row| row.label.as_str()).collect(),
            Chart::Violins(_) | Chart::Grid(_) | Chart::Coordinates(_) | Chart::Episodes(_) => Vec::new(),
        }
    }

    /// Returns the look of each series, row or distribution. Unless the chart sets it, the look of a series or row depends on the index of
    /// its name among all names of the figure, and the look of a distribution on its position.
    fn looks(&self, names: &[&str]) -> Vec<Look> {
        let place = |name: &str| names.iter().position(|known| *known == name).unwrap_or(0);
        match self {
            // if series of a chart share a name, their looks depend on the positions in the chart
            Chart::Lines(Lines { series, .. }) | Chart::Radar(Radar { series, .. }) => {
                let mut labels: Vec<&str> = series.iter().map(|series| series.label.as_str()).collect();
                labels.sort_unstable();
                labels.dedup();
                let unique = labels.len() == series.len();
                let places = series.iter().enumerate().map(|(number, series)| if unique { place(&series.label) } else { number });
                series.iter().zip(places).map(|(series, place)| look_of(series, place)).collect()
            }
            Chart::Intervals(intervals) => {
                intervals.rows.iter().map(|row| look(if intervals.plain { 0 } else { place(&row.label) })).collect()
            }
            Chart::Violins(violins) => (0..violins.violins.len()).map(look).collect(),
            Chart::Grid(_) | Chart::Coordinates(_) | Chart::Episodes(_) => Vec::new(),
        }
    }

    fn margins(&self, size: [f64; 2], named: bool) -> Margins {
        match self {
            Chart::Lines(lines) => lines.margins(size, named),
            Chart::Intervals(intervals) => intervals.margins(named),
            Chart::Violins(violins) => violins.margins(size),
            Chart::Grid(grid) => grid.margins(size[0]),
            Chart::Coordinates(coordinates) => coordinates.margins(),
            Chart::Episodes(episodes) => episodes.margins(),
            Chart::Radar(radar) => radar.margins(),
        }
    }

    /// Returns how much of `width` the chart can use, or `None` if it can have any width.
    fn most_width(&self, width: f64) -> Option<f64> {
        match self {
            Chart::Grid(grid) => Some(grid.size(width)[0]),
            _ => None,
        }
    }

    /// Returns the height of the chart at this width, or `None` if it can have any height.
    fn height(&self, width: f64) -> Option<f64> {
        match self {
            Chart::Lines(_) | Chart::Violins(_) | Chart::Coordinates(_) => None,
            Chart::Intervals(intervals) => Some(intervals.height()),
            Chart::Grid(grid) => Some(grid.size(width)[1]),
            Chart::Episodes(episodes) => Some(episodes.height(width)),
            Chart::Radar(radar) => Some(radar.height(width)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Interval, Intervals, Lines, Series};
    use super::*;

    #[test]
    fn looks_follow_the_name_across_panels() {
        let line = |label: &&str| Series::new(*label, vec![(0.0, 0.0)]);
        let lines = |labels: &[&str]| Chart::Lines(Lines { series: labels.iter().map(line).collect(), ..Lines::default() });
        let row = |label: &&str| Interval { label: label.to_string(), ..Interval::default() };
        let rows = |labels: &[&str]| Chart::Intervals(Intervals { rows: labels.iter().map(row).collect(), ..Intervals::default() });
        let charts = [lines(&["A2C", "PPO"]), lines(&["PPO", "TRPO", "A2C"]), rows(&["TRPO", "A2C"]), lines(&["run", "run"])];
        let panels = charts.map(|chart| Panel { title: String::new(), chart }).into();
        let figure = Figure { panels, ..Figure::default() };
        let names = names(&figure);
        let places: Vec<Vec<Look>> = figure.panels.iter().map(|panel| panel.chart.looks(&names)).collect();
        let expected = [vec![0, 1], vec![1, 2, 0], vec![2, 0], vec![0, 1]];
        assert_eq!(places, expected.map(|numbers| numbers.into_iter().map(look).collect::<Vec<_>>()));
    }
}
