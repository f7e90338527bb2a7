//! The random numbers that an actor adds to its actions, and keeps from step to step.

use std::ops::Range;

use gradus_base::random::Stream;

/// As many numbers for each row of observations, such as gSDE's matrix (Raffin et al., arXiv 2005.05719).
///
/// The numbers of a row depend only on its stream, and on how often the row has acted since it was [released](RowNoise::release).
pub(crate) struct RowNoise {
    length: usize,
    /// Number of calls of [`draw`](RowNoise::draw) for which the numbers of a row stay; `None`: for ever.
    lasts: Option<usize>,
    /// For each row, the number of calls that have used its numbers; 0 if it has none.
    uses: Vec<usize>,
    numbers: Vec<f32>,
}

impl RowNoise {
    /// Creates the noise of rows of `length` numbers, which stay for `lasts` calls; 0: for ever.
    pub fn new(length: usize, lasts: usize) -> Self {
        Self { length, lasts: Some(lasts).filter(|lasts| *lasts > 0), uses: Vec::new(), numbers: Vec::new() }
    }

    /// Draws numbers with `fill` for the rows that have none, or whose numbers have been used as often as they last, each row from its own stream.
    pub fn draw(&mut self, streams: &mut [Stream], mut fill: impl FnMut(&mut Stream, &mut [f32])) {
        let rows = self.uses.len().max(streams.len());
        self.uses.resize(rows, 0);
        self.numbers.resize(rows * self.length, 0.0);
        for ((uses, numbers), stream) in self.uses.iter_mut().zip(self.numbers.chunks_exact_mut(self.length)).zip(streams) {
            if *uses == 0 || Some(*uses) == self.lasts {
                fill(stream, numbers);
                *uses = 0;
            }
            *uses += 1;
        }
    }

    /// The episode of `row` has ended. Another one takes the row if `is_taken`; otherwise the last row moves into it.
    pub fn release(&mut self, row: usize, is_taken: bool) {
        let Some(last) = self.uses.len().checked_sub(1).filter(|last| row <= *last) else { return };
        if is_taken {
            self.uses[row] = 0;
            return;
        }
        self.numbers.copy_within(last * self.length.., row * self.length);
        self.numbers.truncate(last * self.length);
        self.uses.swap_remove(row);
    }

    /// Takes the numbers out.
    pub fn take(&mut self) -> Self {
        let empty = Self::new(self.length, self.lasts.unwrap_or(0));
        std::mem::replace(self, empty)
    }

    /// The numbers of these rows.
    pub fn of(&self, rows: Range<usize>) -> &[f32] {
        &self.numbers[rows.start * self.length..rows.end * self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::Purpose;

    /// Three rows, in which five episodes are played: the numbers of an episode are those that it has when it is played alone.
    #[test]
    fn numbers_do_not_depend_on_other_rows() {
        let fill = |stream: &mut Stream, numbers: &mut [f32]| numbers.iter_mut().for_each(|number| *number = stream.normal());
        let stream = |episode: u64| Stream::new(1, Purpose::Evaluation, episode);
        let alone = |episode: u64, calls: usize| {
            let (mut noise, mut streams) = (RowNoise::new(2, 2), [stream(episode)]);
            (0..calls).for_each(|_| noise.draw(&mut streams, fill));
            noise.of(0..1).to_vec()
        };
        let (mut noise, mut streams) = (RowNoise::new(2, 2), [0, 1, 2].map(stream).to_vec());
        noise.draw(&mut streams, fill);
        // the episode of row 1 ends, and another one takes the row
        noise.release(1, true);
        streams[1] = stream(3);
        noise.draw(&mut streams, fill);
        noise.draw(&mut streams, fill);
        assert_eq!([0..1, 1..2, 2..3].map(|row| noise.of(row).to_vec()), [alone(0, 3), alone(3, 2), alone(2, 3)]);
        // the episode of row 0 ends, and the last row moves into it
        noise.release(0, false);
        streams.swap_remove(0);
        noise.draw(&mut streams, fill);
        assert_eq!([0..1, 1..2].map(|row| noise.of(row).to_vec()), [alone(2, 4), alone(3, 3)]);
    }
}
