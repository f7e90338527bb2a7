//! Decides which environments act when there are more environments than rows.

use std::ops::Range;

use gradus_base::random::Stream;

/// The environments that act, one per row; the others wait for a row or are done. Each row has the random stream of its environment.
///
/// A policy may keep state for each row, so rows are stable: when an environment is done, the next waiting environment takes its row. The
/// last row moves into the free place only if no environment waits.
///
/// ```text
/// rows [0, 1], waiting 2..3;   0 is done: rows [2, 1];   2 is done: rows [1]
/// ```
pub struct ActiveRows<'a> {
    rows: Vec<usize>,
    /// The stream of each row. When the environment of a row is done, its stream is copied to `streams`.
    row_streams: Vec<Stream>,
    waiting: Range<usize>,
    /// In lockstep: number of environments that are not done.
    unfinished: Option<usize>,
    streams: &'a mut [Stream],
}

impl<'a> ActiveRows<'a> {
    /// Creates the rows of as many environments as there are streams. At most `max_concurrent` environments act at once (0: all). When an
    /// environment is done, the next waiting environment takes its row.
    pub fn concurrent(streams: &'a mut [Stream], max_concurrent: usize) -> Self {
        let n = streams.len();
        let acting = if max_concurrent == 0 { n } else { max_concurrent.min(n) };
        Self { rows: (0..acting).collect(), row_streams: streams[..acting].to_vec(), waiting: acting..n, unfinished: None, streams }
    }

    /// Creates the rows of as many environments as there are streams. All environments act until the last one is done, and row i is
    /// environment i. An environment's stream keeps the position at which the environment was done; later draws are ignored.
    pub fn lockstep(streams: &'a mut [Stream]) -> Self {
        let n = streams.len();
        Self { unfinished: Some(n), ..Self::concurrent(streams, n) }
    }

    /// Returns the environment of each row.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// Returns the environment and the stream of each row.
    pub fn rows_and_streams(&mut self) -> (&[usize], &mut [Stream]) {
        (&self.rows, &mut self.row_streams)
    }

    /// Returns the environments that have not had a row yet.
    pub fn waiting(&self) -> Range<usize> {
        self.waiting.clone()
    }

    /// Releases `row`, whose environment is done. Returns the environment that takes the row. If no environment waits, the last row moves
    /// into `row`.
    ///
    /// If several environments are done at once, release the last row first, so that no row moves before it is released.
    pub fn release(&mut self, row: usize) -> Option<usize> {
        self.streams[self.rows[row]] = self.row_streams[row].clone();
        if let Some(unfinished) = &mut self.unfinished {
            *unfinished -= 1;
            if *unfinished == 0 {
                self.rows.clear();
            }
            return None;
        }
        let next = self.waiting.next();
        match next {
            Some(next) => (self.rows[row], self.row_streams[row]) = (next, self.streams[next].clone()),
            None => {
                self.rows.swap_remove(row);
                self.row_streams.swap_remove(row);
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use gradus_base::random::Purpose;

    use super::*;

    fn streams(n: u64) -> Vec<Stream> {
        (0..n).map(|i| Stream::new(7, Purpose::Action, i)).collect()
    }

    /// Draws a number in every row.
    fn draw(active: &mut ActiveRows<'_>) {
        active.rows_and_streams().1.iter_mut().for_each(|stream| stream.seek(stream.position() + 1));
    }

    #[test]
    fn rows_are_stable_while_environments_wait() {
        let (mut six, mut three, mut two) = (streams(6), streams(3), streams(2));
        let mut active = ActiveRows::concurrent(&mut six, 3);
        assert_eq!((active.rows(), active.waiting()), (&[0, 1, 2][..], 3..6));
        assert_eq!((active.release(2), active.release(0)), (Some(3), Some(4)));
        assert_eq!(active.rows(), [4, 1, 3]);
        assert_eq!((active.release(1), active.release(0)), (Some(5), None));
        assert_eq!((active.rows(), active.waiting().is_empty()), (&[3, 5][..], true));
        let (all, both) = (ActiveRows::concurrent(&mut three, 0), ActiveRows::concurrent(&mut two, 9));
        assert_eq!((all.rows(), both.rows()), (&[0, 1, 2][..], &[0, 1][..]));
    }

    #[test]
    fn every_environment_draws_from_its_own_stream_in_any_row() {
        let mut streams = streams(3);
        let mut active = ActiveRows::concurrent(&mut streams, 2);
        draw(&mut active); // 0 and 1
        active.release(0);
        draw(&mut active); // 2 and 1
        active.release(0);
        draw(&mut active); // 1
        active.release(0);
        assert!(active.rows().is_empty());
        assert_eq!(streams.iter().map(Stream::position).collect::<Vec<_>>(), [1, 3, 1]);
        streams.iter_mut().enumerate().for_each(|(i, stream)| {
            let mut own = Stream::new(7, Purpose::Action, i as u64);
            own.seek(stream.position());
            assert_eq!(stream.word(), own.word());
        });
    }

    #[test]
    fn in_lockstep_all_rows_act_until_the_last_environment_is_done() {
        let mut streams = streams(2);
        let mut active = ActiveRows::lockstep(&mut streams);
        draw(&mut active);
        assert_eq!((active.release(0), active.rows()), (None, &[0, 1][..]));
        draw(&mut active);
        assert_eq!((active.release(1), active.rows()), (None, &[][..]));
        assert_eq!(streams.iter().map(Stream::position).collect::<Vec<_>>(), [1, 2]);
    }
}
