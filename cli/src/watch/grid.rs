//! The values of a world with a map, in the terminal: shades, numbers and arrows.

use gradus::Trainer;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::values::{self, Cell};

/// Shades from the smallest value to the largest, among the 256 colours of terminals.
const SHADES: [u8; 10] = [17, 18, 19, 20, 26, 32, 38, 44, 80, 122];
/// From this shade on, text is black.
const BRIGHT: usize = 6;
/// Widths of a cell with a number, with a short number, and with a sign only.
const WIDTHS: [usize; 3] = [8, 6, 3];

/// The map, and which of its cells changed last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grid {
    pub(super) columns: usize,
    pub(super) cells: Vec<Option<Cell>>,
    pub(super) has_changed: Vec<bool>,
}

impl Grid {
    /// Returns the values of the current policy; `None` if its world has no map, or the policy no values.
    pub(super) fn of(trainer: &Trainer) -> Option<Self> {
        let (columns, cells) = values::cells(trainer)?;
        Some(Self { columns, has_changed: vec![false; cells.len()], cells })
    }

    /// Takes new values; returns whether any of them differs. Only those that differ are marked, if they are to be.
    pub(super) fn follow(&mut self, new: Self, marks: bool) -> bool {
        let has_changed: Vec<bool> = self.cells.iter().zip(&new.cells).map(|(old, new)| old != new).collect();
        let is_other = has_changed.contains(&true) || self.cells.len() != new.cells.len();
        if is_other {
            *self = if marks { Self { has_changed, ..new } } else { new };
        }
        is_other
    }

    /// Draws the map: with numbers if they fit, and lines between rows if there is room.
    pub(super) fn draw(&self, frame: &mut Frame, area: Rect) {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        let cell = WIDTHS.into_iter().find(|cell| self.columns * cell <= width).unwrap_or(1);
        let rows = self.cells.len().div_ceil(self.columns.max(1));
        let tall = (height / rows.max(1)).clamp(1, if cell >= WIDTHS[1] { 3 } else { 1 + cell / 3 });
        let known = || self.cells.iter().flatten().map(|cell| cell.value);
        let (low, high) = known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let shade = |value: f64| if high > low { ((value - low) / (high - low) * (SHADES.len() - 1) as f64).round() as usize } else { 0 };
        let mut lines = Vec::new();
        for (row, changed) in self.cells.chunks(self.columns.max(1)).zip(self.has_changed.chunks(self.columns.max(1))) {
            for part in 0..tall {
                let span = |(content, is_new): (&Option<Cell>, &bool)| {
                    let Some(content) = content else { return Span::styled(" ".repeat(cell), Style::new().bg(Color::DarkGray)) };
                    let text = match (cell, part == tall / 2) {
                        (_, false) => String::new(),
                        (8, _) => format!("{} {}", content.symbol, fitting(content.value, 5)),
                        (6, _) => format!("{}{}", content.symbol, fitting(content.value, 4)),
                        _ => content.symbol.to_string(),
                    };
                    let at = shade(content.value);
                    let ink = if at >= BRIGHT { Color::Black } else { Color::White };
                    let style = Style::new().fg(ink).bg(Color::Indexed(SHADES[at]));
                    let style = if *is_new { style.add_modifier(Modifier::BOLD | Modifier::REVERSED) } else { style };
                    Span::styled(format!("{text:^cell$}"), style)
                };
                lines.push(Line::from(row.iter().zip(changed).map(span).collect::<Vec<_>>()));
            }
        }
        frame.render_widget(Paragraph::new(lines).centered(), area);
    }
}

/// Returns a value in at most `width` characters, if it is not too large for that.
fn fitting(value: f64, width: usize) -> String {
    let all = [2, 1, 0].map(|decimals| format!("{value:.decimals$}"));
    all.iter().find(|text| text.len() <= width).unwrap_or(&all[2]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn lines(grid: &Grid, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| grid.draw(frame, frame.area())).unwrap();
        let buffer = terminal.backend().buffer();
        (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
    }

    #[test]
    fn a_map_is_drawn_as_there_is_room() {
        let cell = |symbol, value| Some(Cell { symbol, value });
        let mut grid =
            Grid { columns: 2, cells: vec![cell('→', -12.25), cell('↓', 0.5), None, cell('·', 100.0)], has_changed: vec![false; 4] };
        assert_eq!(lines(&grid, 16, 2), ["→ -12.2  ↓ 0.50", "        · 100.0"]);
        assert_eq!(lines(&grid, 16, 6)[1], "→ -12.2  ↓ 0.50", "three lines for a row");
        assert_eq!(lines(&grid, 12, 2), [" →-12 ↓0.50", "       ·100"], "short numbers");
        assert_eq!(lines(&grid, 8, 2), ["  →  ↓", "     ·"]);
        assert_eq!(lines(&grid, 2, 2), ["→↓", " ·"]);
        let same = grid.clone();
        assert!(!grid.follow(same, true));
        let mut other = grid.clone();
        other.cells[1] = cell('←', 0.5);
        assert!(grid.follow(other, true) && grid.has_changed == [false, true, false, false]);
        for (width, height) in [(1, 1), (1, 9), (9, 1), (100, 50)] {
            lines(&grid, width, height);
            lines(&Grid::default(), width, height);
        }
    }
}
