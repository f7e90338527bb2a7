//! Who acts, where not all can at once.

use std::ops::Range;

/// So many of a list of environments act, a row each; the others wait, or are done.
///
/// A policy may keep what it knows of a row, so rows stay where they are: one that is done is followed by the next that waits, and only
/// when none is left does the last row move into its place.
///
/// ```text
/// rows [0, 1], waiting 2..3;   0 is done: rows [2, 1];   2 is done: rows [1]
/// ```
pub(crate) struct Slots {
    rows: Vec<usize>,
    waiting: Range<usize>,
}

impl Slots {
    /// `n` environments of which the first `slots` act; 0: all.
    pub fn new(n: usize, slots: usize) -> Self {
        let acting = if slots == 0 { n } else { slots.min(n) };
        Self { rows: (0..acting).collect(), waiting: acting..n }
    }

    /// Who acts, by row.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Who has not acted yet.
    pub fn waiting(&self) -> Range<usize> {
        self.waiting.clone()
    }

    /// The one in `row` is done. Returns who follows; where nobody waits, the last row moves there.
    ///
    /// Of several that are done at once the last row has to be named first, so that the others are still where they were.
    pub fn release(&mut self, row: usize) -> Option<usize> {
        let next = self.waiting.next();
        match next {
            Some(next) => self.rows[row] = next,
            None => drop(self.rows.swap_remove(row)),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are() {
        let mut slots = Slots::new(6, 3);
        assert_eq!((slots.rows(), slots.waiting()), (&[0, 1, 2][..], 3..6));
        assert_eq!((slots.release(2), slots.release(0)), (Some(3), Some(4)));
        assert_eq!(slots.rows(), [4, 1, 3]);
        assert_eq!((slots.release(1), slots.release(0)), (Some(5), None));
        assert_eq!((slots.rows(), slots.waiting().is_empty()), (&[3, 5][..], true));
        assert_eq!((Slots::new(3, 0).rows(), Slots::new(2, 9).rows()), (&[0, 1, 2][..], &[0, 1][..]));
    }
}
