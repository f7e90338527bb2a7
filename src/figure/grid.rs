//! Grids: values of a gridworld as shades, best actions as arrows; matrices with names of rows and columns.

use gradus_drawing::fonts;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::{Brush, Text};
use super::frame::{Margins, Rect, extremes, left_of};
use super::style::{AXIS_EM, FRAME, SLACK, TEXT, TICK_EM, WHITE};

/// Colours from low to high values: light to dark, so that the figure can be read without colour.
pub(super) const SHADES: [[f64; 3]; 3] = [[247.0, 251.0, 255.0], [107.0, 174.0, 214.0], [8.0, 48.0, 107.0]];
const BLANK: RGBColor = RGBColor(205, 205, 205);
/// Colours from low to high values around a middle: orange, white, blue.
const AROUND: [[f64; 3]; 3] = [[213.0, 94.0, 0.0], [255.0, 255.0, 255.0], [0.0, 114.0, 178.0]];

const MOST_HEIGHT: f64 = 600.0;
const MOST_SIDE: f64 = 130.0;

/// A direction on the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    /// To the left.
    Left,
    /// Downwards.
    Down,
    /// To the right.
    Right,
    /// Upwards.
    Up,
}

/// One cell of a grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Value shown as a shade; `None`: grey.
    pub value: Option<f64>,
    /// Text in the cell.
    pub text: String,
    /// Smaller text below it.
    pub note: String,
    /// The best actions.
    pub arrows: Vec<Arrow>,
}

/// A rectangle of cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Number of cells in a row.
    pub columns: usize,
    /// The cells, row by row from the top.
    pub cells: Vec<Cell>,
    /// Label of the values, with their unit.
    pub value_label: String,
    /// The values of the lightest and the darkest shade, if they are not those of the cells.
    pub range: Option<(f64, f64)>,
    /// Names of the rows, from the top; empty: none.
    pub row_names: Vec<String>,
    /// Names of the columns, written below them; empty: none.
    pub column_names: Vec<String>,
    /// Whether shades go from orange over white to blue, white in the middle of the range. Cells without a value are then white.
    pub around: bool,
}

impl Grid {
    pub(super) fn numbers(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        self.cells.iter().filter_map(|cell| cell.value).map(|value| (self.value_label.as_str(), value, value))
    }

    fn shape(&self) -> [f64; 2] {
        let columns = self.columns.max(1);
        [columns as f64, self.cells.len().div_ceil(columns).max(1) as f64]
    }

    /// Returns the width and height of the grid if `width` pixels are available.
    pub(super) fn size(&self, width: f64) -> [f64; 2] {
        let [columns, rows] = self.shape();
        let side = (width / columns).min(MOST_HEIGHT / rows).min(MOST_SIDE);
        [columns * side, rows * side]
    }

    fn axis(&self) -> Axis {
        let of_cells = || extremes(self.numbers().map(|(_, value, _)| value));
        let (low, high) = self.range.or_else(of_cells).unwrap_or((0.0, 1.0));
        // counts and actions have no halves
        let are_whole = [low, high].into_iter().chain(self.cells.iter().filter_map(|cell| cell.value)).all(|value| value.fract() == 0.0);
        let most = if are_whole { (high - low).min(5.0) as usize } else { 5 };
        if high > low { Axis::new(low, high, most) } else { Axis::new(low - 0.5, low + 0.5, 2) }
    }

    pub(super) fn margins(&self, width: f64) -> Margins {
        let left = if self.row_names.is_empty() { 4.0 } else { widest(&self.row_names) + 14.0 };
        let below = match self.column_names.is_empty() {
            true => 8.0,
            false if self.columns_lie(self.size(width - left)[0] / self.shape()[0]) => 1.6 * TICK_EM,
            false => widest(&self.column_names) + 14.0,
        };
        Margins { left, right: 34.0 + left_of(&self.axis()), below }
    }

    /// Whether the names of columns fit next to each other below columns of this width. Otherwise they are written upwards.
    fn columns_lie(&self, side: f64) -> bool {
        widest(&self.column_names) + 8.0 <= side
    }

    pub(super) fn draw(&self, rect: Rect, brush: &mut impl Brush) -> Result<(), String> {
        let ([columns, rows], axis) = (self.shape(), self.axis());
        let side = (rect.width() / columns).min(rect.height() / rows);
        let part_of = |cell: &Cell| cell.value.map(|value| axis.part(value).clamp(0.0, 1.0));
        for (row, cells) in self.cells.chunks(self.columns.max(1)).enumerate() {
            // neighbours of one shade are one area
            let mut column = 0;
            for same in cells.chunk_by(|a, b| part_of(a) == part_of(b)) {
                let (x, y, width) = (rect.left + column as f64 * side, rect.top + row as f64 * side, same.len() as f64 * side);
                let corners = [[x, y], [x + width, y], [x + width, y + side], [x, y + side]];
                brush.area(&corners, part_of(&same[0]).map_or(if self.around { WHITE } else { BLANK }, |part| self.shade(part)), 1.0)?;
                column += same.len();
            }
        }
        for (number, cell) in self.cells.iter().enumerate() {
            let (row, column) = (number / self.columns.max(1), number % self.columns.max(1));
            let [x, y] = [rect.left + column as f64 * side, rect.top + row as f64 * side];
            let part = part_of(cell);
            let dark = |part: f64| if self.around { (part - 0.5).abs() > 0.35 } else { part > 0.55 };
            let ink = if part.is_some_and(dark) { WHITE } else { TEXT };
            let middle = [x + side / 2.0, y + side / 2.0];
            // one arrow is centred; several point outwards from a point that leaves room for the text
            let (back, lift) = if cell.arrows.len() == 1 { (0.14, 0.08) } else { (0.0, 0.17) };
            let centre = [middle[0], middle[1] - lift * side];
            cell.arrows.iter().try_for_each(|arrow| draw_arrow(*arrow, back, centre, side, ink, brush))?;
            let em = (0.28 * side).min(TICK_EM);
            let text = fonts::shorten(&cell.text, em, (side - 4.0) / SLACK);
            let lift = if cell.note.is_empty() { 0.0 } else { 0.55 * em };
            let baseline = if cell.arrows.is_empty() { middle[1] + 0.36 * em - lift } else { y + side - 0.5 * em };
            if !text.is_empty() {
                brush.write(text, em, [middle[0], baseline], HPos::Center, ink)?;
            }
            if !cell.note.is_empty() {
                let fits = (side - 6.0) / (SLACK * fonts::width(&cell.note, 1.0)).max(1e-9);
                let em = (0.75 * em).min(fits);
                brush.write(cell.note.clone(), em, [middle[0], middle[1] + 1.4 * em], HPos::Center, ink)?;
            }
        }
        let (right, bottom) = (rect.left + columns * side, rect.top + rows * side);
        for column in 0..=columns as usize {
            let x = rect.left + column as f64 * side;
            brush.line(&[[x, rect.top], [x, bottom]], 1.0, FRAME)?;
        }
        for row in 0..=rows as usize {
            let y = rect.top + row as f64 * side;
            brush.line(&[[rect.left, y], [right, y]], 1.0, FRAME)?;
        }
        for (row, name) in self.row_names.iter().enumerate() {
            let y = rect.top + (row as f64 + 0.5) * side + 0.36 * TICK_EM;
            brush.write(shortened(name), TICK_EM, [rect.left - 10.0, y], HPos::Right, TEXT)?;
        }
        let lie = self.columns_lie(side);
        for (column, name) in self.column_names.iter().enumerate() {
            let x = rect.left + (column as f64 + 0.5) * side;
            let (at, anchor) = match lie {
                true => ([x, bottom + 1.25 * TICK_EM], HPos::Center),
                false => ([x + 0.36 * TICK_EM, bottom + 10.0], HPos::Right),
            };
            brush.text(&Text { text: shortened(name), em: TICK_EM, at, anchor, colour: TEXT, upwards: !lie })?;
        }
        self.draw_scale(&axis, [right + 18.0, rect.top, bottom], brush)
    }

    fn shade(&self, part: f64) -> RGBColor {
        shade(part, if self.around { AROUND } else { SHADES })
    }

    /// Draws the bar next to the grid that shows the value of each shade.
    fn draw_scale(&self, axis: &Axis, [left, top, bottom]: [f64; 3], brush: &mut impl Brush) -> Result<(), String> {
        if self.numbers().next().is_none() {
            return Ok(());
        }
        const STRIPES: usize = 64;
        let row = |part: f64| bottom - part * (bottom - top);
        for stripe in 0..STRIPES {
            // every stripe extends to the top, so that no seam shows
            let low = row(stripe as f64 / STRIPES as f64);
            let middle = (stripe as f64 + 0.5) / STRIPES as f64;
            brush.area(&[[left, top], [left + 18.0, top], [left + 18.0, low], [left, low]], self.shade(middle), 1.0)?;
        }
        for tick in &axis.ticks {
            let y = row(axis.part(tick.value));
            brush.line(&[[left + 18.0, y], [left + 24.0, y]], 1.5, FRAME)?;
            brush.write(&tick.label, TICK_EM, [left + 28.0, y + 0.36 * TICK_EM], HPos::Left, TEXT)?;
        }
        let (text, em) = fonts::fitted(&self.value_label, AXIS_EM, (bottom - top) / SLACK);
        let at = [left + 16.0 + left_of(axis) + 0.2 * AXIS_EM, (top + bottom) / 2.0];
        brush.text(&Text { text, em, at, anchor: HPos::Center, colour: TEXT, upwards: true })
    }
}

/// The width that the names need.
fn widest(names: &[String]) -> f64 {
    names.iter().map(|name| SLACK * fonts::width(&shortened(name), TICK_EM)).fold(0.0, f64::max)
}

fn shortened(name: &str) -> String {
    fonts::shorten(name, TICK_EM, 260.0)
}

pub(super) fn shade(part: f64, shades: [[f64; 3]; 3]) -> RGBColor {
    let place = part.clamp(0.0, 1.0) * (shades.len() - 1) as f64;
    let from = (place as usize).min(shades.len() - 2);
    let mix = |channel: usize| {
        let (a, b) = (shades[from][channel], shades[from + 1][channel]);
        (a + (place - from as f64) * (b - a)).round() as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
}

fn draw_arrow(arrow: Arrow, back: f64, [x, y]: [f64; 2], side: f64, ink: RGBColor, brush: &mut impl Brush) -> Result<(), String> {
    let [along, across] = match arrow {
        Arrow::Left => [[-1.0, 0.0], [0.0, 1.0]],
        Arrow::Down => [[0.0, 1.0], [1.0, 0.0]],
        Arrow::Right => [[1.0, 0.0], [0.0, 1.0]],
        Arrow::Up => [[0.0, -1.0], [1.0, 0.0]],
    };
    let at = |forward: f64, aside: f64| {
        let forward = forward - back;
        [x + side * (forward * along[0] + aside * across[0]), y + side * (forward * along[1] + aside * across[1])]
    };
    brush.line(&[at(0.0, 0.0), at(0.16, 0.0)], 0.045 * side, ink)?;
    brush.area(&[at(0.28, 0.0), at(0.14, 0.08), at(0.14, -0.08)], ink, 1.0)
}
