//! Rectangular grids: moves and pictures.

use crate::scene::{Ink, Scene, Shape};

/// A grid of cells. Rows and columns are counted from the upper left corner, and cells are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Grid {
    pub(super) fn cells(self) -> usize {
        self.rows * self.columns
    }

    /// Returns row and column of a cell.
    pub(super) fn place(self, cell: usize) -> [usize; 2] {
        [cell / self.columns, cell % self.columns]
    }

    /// Returns the cell `down` rows below and `right` columns to the right of `cell`. Moves stop at the edge.
    pub(super) fn moved(self, cell: usize, [down, right]: [isize; 2]) -> usize {
        let [row, column] = self.place(cell);
        let row = row.saturating_add_signed(down).min(self.rows - 1);
        let column = column.saturating_add_signed(right).min(self.columns - 1);
        row * self.columns + column
    }

    /// Returns the centre of a cell in a scene. Cells have side 1, and the left and bottom edges of the grid are at 0.
    pub(super) fn middle(self, [row, column]: [usize; 2]) -> [f64; 2] {
        [column as f64 + 0.5, (self.rows - row) as f64 - 0.5]
    }

    /// Returns a filled square in the centre of a cell, with side `side` in units of a cell.
    pub(super) fn square(self, place: [usize; 2], side: f64, ink: Ink) -> Shape {
        let ([x, y], half) = (self.middle(place), side / 2.0);
        Shape::Polygon { corners: vec![[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]], ink }
    }

    /// Returns a filled circle in the centre of a cell.
    pub(super) fn disc(self, place: [usize; 2], radius: f64, ink: Ink) -> Shape {
        Shape::Disc { centre: self.middle(place), radius, ink }
    }

    /// Most cells in a direction between which lines are drawn.
    const MOST_LINES: usize = 256;

    /// Returns a scene of the lines around the cells, with the shapes `above` on top. Between more cells than [`MOST_LINES`](Self::MOST_LINES) no lines would be
    /// seen, so there are only those at the edges.
    pub(super) fn scene(self, above: Vec<Shape>) -> Scene {
        let (width, height) = (self.columns as f64, self.rows as f64);
        let line = |from, to| Shape::Line { from, to, width: 0.02, ink: Ink::Ground };
        let every = |cells: usize| (0..=cells).step_by(if cells > Self::MOST_LINES { cells } else { 1 }).map(|i| i as f64);
        let mut shapes: Vec<Shape> = every(self.columns).map(|x| line([x, 0.0], [x, height])).collect();
        shapes.extend(every(self.rows).map(|y| line([0.0, y], [width, y])));
        shapes.extend(above);
        Scene { x: [-0.2, width + 0.2], y: [-0.2, height + 0.2], shapes }
    }
}
