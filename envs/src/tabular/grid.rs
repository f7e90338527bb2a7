//! Rectangles of cells: neighbours and pictures.

use crate::scene::{Ink, Scene, Shape};

/// Rows and columns, counted from the upper left corner; states are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Grid {
    pub(super) fn cells(self) -> usize {
        self.rows * self.columns
    }

    /// Row and column of a cell.
    pub(super) fn place(self, cell: usize) -> [usize; 2] {
        [cell / self.columns, cell % self.columns]
    }

    /// The cell that lies `down` rows and `right` columns away; the edge stops who would leave.
    pub(super) fn moved(self, cell: usize, [down, right]: [isize; 2]) -> usize {
        let [row, column] = self.place(cell);
        let row = row.saturating_add_signed(down).min(self.rows - 1);
        let column = column.saturating_add_signed(right).min(self.columns - 1);
        row * self.columns + column
    }

    /// The middle of a cell in a scene, where cells have side 1 and the lowest row touches 0.
    pub(super) fn middle(self, [row, column]: [usize; 2]) -> [f64; 2] {
        [column as f64 + 0.5, (self.rows - row) as f64 - 0.5]
    }

    /// A filled square in the middle of a cell, `side` of a cell wide.
    pub(super) fn square(self, place: [usize; 2], side: f64, ink: Ink) -> Shape {
        let ([x, y], half) = (self.middle(place), side / 2.0);
        Shape::Polygon { corners: vec![[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]], ink }
    }

    /// A filled circle in the middle of a cell.
    pub(super) fn disc(self, place: [usize; 2], radius: f64, ink: Ink) -> Shape {
        Shape::Disc { centre: self.middle(place), radius, ink }
    }

    /// The shapes that lie in it, and the lines between its cells.
    pub(super) fn scene(self, above: Vec<Shape>) -> Scene {
        let (width, height) = (self.columns as f64, self.rows as f64);
        let line = |from, to| Shape::Line { from, to, width: 0.02, ink: Ink::Ground };
        let mut shapes: Vec<Shape> = (0..=self.columns).map(|i| line([i as f64, 0.0], [i as f64, height])).collect();
        shapes.extend((0..=self.rows).map(|i| line([0.0, i as f64], [width, i as f64])));
        shapes.extend(above);
        Scene { x: [-0.2, width + 0.2], y: [-0.2, height + 0.2], shapes }
    }
}
