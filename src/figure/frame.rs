//! The rectangle that a chart draws in, with its axes.

use gradus_drawing::fonts;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::brush::{Brush, Text};
use super::style::{AXIS_EM, FRAME, GRID, SLACK, TEXT, TICK_EM, crisp};

/// A rectangle of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rect {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) fn middle(&self) -> [f64; 2] {
        [(self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0]
    }
}

/// The space that a chart needs to the left and right of its rectangle and below it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Margins {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) below: f64,
}

/// Returns the number of ticks that fit into `pixels` if each needs `each` pixels, from 2 to `limit`.
pub(super) fn most_ticks(pixels: f64, each: f64, limit: usize) -> usize {
    ((pixels / each) as usize).clamp(2, limit)
}

/// Returns the axis with the most ticks for which the labels do not touch on `width` pixels; `make(2)` if there is none.
pub(super) fn roomy(width: f64, make: impl Fn(usize) -> Axis) -> Axis {
    let fits = |axis: &Axis| {
        let labels = axis.ticks.iter().map(|tick| (axis.part(tick.value) * width, SLACK * fonts::width(&tick.label, TICK_EM)));
        let labels: Vec<_> = labels.collect();
        labels.windows(2).all(|pair| pair[1].0 - pair[0].0 > (pair[0].1 + pair[1].1) / 2.0 + 12.0)
    };
    (2..=10).rev().map(&make).find(fits).unwrap_or_else(|| make(2))
}

/// Space for the label of a vertical axis.
pub(super) const NAME: f64 = 1.5 * AXIS_EM;

/// Returns the space to the left of a vertical axis, including its label.
pub(super) fn left_of(y: &Axis) -> f64 {
    let widest = y.ticks.iter().map(|tick| fonts::width(&tick.label, TICK_EM)).fold(0.0, f64::max);
    NAME + SLACK * widest + 16.0
}

/// The space below a horizontal axis with ticks and a label.
pub(super) const BELOW: f64 = 8.0 + 1.5 * TICK_EM + 1.5 * AXIS_EM;

/// A rectangle and its axes.
pub(super) struct Frame {
    pub(super) rect: Rect,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Frame {
    pub(super) fn place(&self, (x, y): (f64, f64)) -> [f64; 2] {
        [self.rect.left + self.x.part(x) * self.rect.width(), self.rect.bottom - self.y.part(y) * self.rect.height()]
    }

    pub(super) fn column(&self, x: f64) -> f64 {
        self.rect.left + self.x.part(x) * self.rect.width()
    }

    pub(super) fn row(&self, y: f64) -> f64 {
        self.rect.bottom - self.y.part(y) * self.rect.height()
    }

    /// Draws the lines behind the data, and the horizontal axis.
    pub(super) fn draw_grid(&self, brush: &mut impl Brush) -> Result<(), String> {
        let Rect { left, top, right, bottom } = self.rect;
        for x in self.x.ticks.iter().map(|tick| crisp(self.column(tick.value))) {
            brush.line(&[[x, top], [x, bottom]], 1.0, GRID)?;
            brush.line(&[[x, bottom], [x, bottom + 6.0]], 1.5, FRAME)?;
        }
        for y in self.y.ticks.iter().map(|tick| crisp(self.row(tick.value))) {
            brush.line(&[[left, y], [right, y]], 1.0, GRID)?;
        }
        brush.line(&[[left, bottom], [right, bottom]], 1.5, FRAME)
    }

    /// Draws the labels of ticks and axes; an empty label is left out.
    pub(super) fn draw_labels(&self, x_label: &str, y_label: &str, brush: &mut impl Brush) -> Result<(), String> {
        for tick in &self.x.ticks {
            brush.write(&tick.label, TICK_EM, [self.column(tick.value), self.rect.bottom + 8.0 + TICK_EM], HPos::Center, TEXT)?;
        }
        for tick in &self.y.ticks {
            let at = [self.rect.left - 12.0, self.row(tick.value) + 0.36 * TICK_EM];
            brush.write(&tick.label, TICK_EM, at, HPos::Right, TEXT)?;
        }
        let [x, y] = self.rect.middle();
        if !x_label.is_empty() {
            let below = self.rect.bottom + 8.0 + 1.5 * TICK_EM + 1.1 * AXIS_EM;
            let (text, em) = fonts::fitted(x_label, AXIS_EM, (self.rect.width() + 60.0) / SLACK);
            brush.write(text, em, [x, below], HPos::Center, TEXT)?;
        }
        if !y_label.is_empty() {
            let (text, em) = fonts::fitted(y_label, AXIS_EM, (self.rect.height() + 60.0) / SLACK);
            let at = [self.rect.left - left_of(&self.y) + AXIS_EM, y];
            brush.text(&Text { text, em, at, anchor: HPos::Center, colour: TEXT, upwards: true })?;
        }
        Ok(())
    }
}

/// Returns the smallest and the largest number; `None` if there is no number.
pub(super) fn extremes(numbers: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    numbers.fold(None, |range, number| {
        let (low, high) = range.unwrap_or((number, number));
        Some((low.min(number), high.max(number)))
    })
}

/// Returns the parts of a line that lie in `rect` (Liang and Barsky's algorithm, segment by segment).
pub(super) fn clip(points: &[[f64; 2]], rect: &Rect) -> Vec<Vec<[f64; 2]>> {
    let inside = |[x, y]: [f64; 2]| x >= rect.left && x <= rect.right && y >= rect.top && y <= rect.bottom;
    // slightly wider, so that rounding does not lose points on the border
    let rect = Rect { left: rect.left - 0.01, top: rect.top - 0.01, right: rect.right + 0.01, bottom: rect.bottom + 0.01 };
    if let [point] = points {
        return if inside(*point) { vec![vec![*point]] } else { Vec::new() };
    }
    let mut lines: Vec<Vec<[f64; 2]>> = Vec::new();
    for (a, b) in points.iter().zip(points.iter().skip(1)) {
        let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
        let sides = [(-dx, a[0] - rect.left), (dx, rect.right - a[0]), (-dy, a[1] - rect.top), (dy, rect.bottom - a[1])];
        let (mut from, mut to) = (0.0_f64, 1.0_f64);
        for (towards, room) in sides {
            if towards == 0.0 {
                to = if room < 0.0 { -1.0 } else { to };
            } else if towards < 0.0 {
                from = from.max(room / towards);
            } else {
                to = to.min(room / towards);
            }
        }
        if from > to {
            continue;
        }
        let at = |part: f64| {
            if part == 0.0 {
                *a
            } else if part == 1.0 {
                *b
            } else {
                [a[0] + part * dx, a[1] + part * dy]
            }
        };
        match lines.last_mut().filter(|line| line.last() == Some(&at(from))) {
            Some(line) => line.push(at(to)),
            None => lines.push(vec![at(from), at(to)]),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_border() {
        let rect = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        let cut = |points: &[[f64; 2]]| {
            let rounded = |line: Vec<[f64; 2]>| line.into_iter().map(|point| point.map(f64::round)).collect::<Vec<_>>();
            clip(points, &rect).into_iter().map(rounded).collect::<Vec<_>>()
        };
        let up_and_out = [[0.0, 5.0], [4.0, 5.0], [8.0, -15.0], [9.0, 5.0], [10.0, 10.0]];
        assert_eq!(cut(&up_and_out), [vec![[0.0, 5.0], [4.0, 5.0], [5.0, -0.0]], vec![[9.0, -0.0], [9.0, 5.0], [10.0, 10.0]]]);
        assert!(cut(&[[-5.0, 20.0], [20.0, 20.0]]).is_empty() && cut(&[[-1.0, 3.0]]).is_empty());
        assert_eq!(cut(&[[3.0, 3.0]]), [[[3.0, 3.0]]]);
        assert_eq!(cut(&[[-5.0, 5.0], [15.0, 5.0]]), [[[-0.0, 5.0], [10.0, 5.0]]]);
    }

    #[test]
    fn labels_of_a_narrow_axis_do_not_touch() {
        for width in [60.0, 120.0, 300.0, 1200.0] {
            let axis = roomy(width, |most| Axis::new(0.0, 1_000_000.0, most));
            assert!(axis.ticks.len() >= 2, "{width}: {axis:?}");
            let space = (axis.part(axis.ticks[1].value) - axis.part(axis.ticks[0].value)) * width;
            assert!(space > fonts::width("500k", TICK_EM) || axis.ticks.len() == 3, "{width}: {axis:?}");
        }
    }
}
