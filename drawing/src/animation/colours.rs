//! The colours that represent pictures best.

use gradus_envs::Picture;

/// Bits of each channel by which colours are told apart.
const BITS: u32 = 5;
const CELLS: usize = 1 << (3 * BITS);

/// Most pictures that are looked at.
const LOOKED_AT: usize = 32;

/// A table of colours, and the nearest of them to any colour.
pub(super) struct Colours {
    palette: Vec<[u8; 3]>,
    /// The index of the nearest colour of each cell, once it has been asked for.
    nearest: Vec<Option<u8>>,
}

/// A box of cells that becomes one colour.
struct Group {
    /// The cells and how many pixels they have.
    cells: Vec<(usize, u64)>,
}

fn channels(cell: usize) -> [u64; 3] {
    [cell >> (2 * BITS), cell >> BITS, cell].map(|channel| (channel & ((1 << BITS) - 1)) as u64)
}

fn cell(colour: [u8; 3]) -> usize {
    colour.iter().fold(0, |cell, channel| (cell << BITS) | usize::from(channel >> (8 - BITS)))
}

impl Group {
    /// The channel in which the pixels differ most, and how much: the sum of the squares of the distances from the mean.
    fn spread(&self) -> (usize, f64) {
        let pixels: u64 = self.cells.iter().map(|(_, n)| n).sum();
        let of = |channel: usize| {
            let sum = |power: u32| self.cells.iter().map(|(cell, n)| (n * channels(*cell)[channel].pow(power)) as f64).sum::<f64>();
            sum(2) - sum(1) * sum(1) / pixels as f64
        };
        (0..3).map(|channel| (channel, of(channel))).fold((0, -1.0), |most, own| if own.1 > most.1 { own } else { most })
    }

    /// Divides the cells at the mean of the channel in which they differ most.
    fn split(mut self) -> [Self; 2] {
        let (channel, _) = self.spread();
        let pixels: u64 = self.cells.iter().map(|(_, n)| n).sum();
        let sum: u64 = self.cells.iter().map(|(cell, n)| n * channels(*cell)[channel]).sum();
        let above = self.cells.extract_if(.., |(cell, _)| channels(*cell)[channel] * pixels > sum).collect();
        [self, Self { cells: above }]
    }
}

impl Colours {
    /// Returns at most `most` colours for these pictures, by dividing the most different colours again and again.
    pub(super) fn of(pictures: &[&Picture], most: usize) -> Self {
        let (mut counts, mut sums) = (vec![0_u64; CELLS], vec![[0_u64; 3]; CELLS]);
        for picture in pictures.iter().step_by(pictures.len().div_ceil(LOOKED_AT).max(1)) {
            for colour in picture.rgb.chunks_exact(3) {
                let cell = cell([colour[0], colour[1], colour[2]]);
                counts[cell] += 1;
                (0..3).for_each(|i| sums[cell][i] += u64::from(colour[i]));
            }
        }
        let cells = counts.iter().copied().enumerate().filter(|(_, n)| *n > 0).collect();
        let mut groups = vec![Group { cells }];
        while groups.len() < most {
            let spreads = groups.iter().map(|group| group.spread().1).enumerate();
            let (widest, spread) = spreads.fold((0, 0.0), |most, own| if own.1 > most.1 { own } else { most });
            if spread <= 0.0 {
                break;
            }
            let parts = groups.swap_remove(widest).split();
            groups.extend(parts);
        }
        let mean = |group: &Group| {
            let n = group.cells.iter().map(|(_, n)| n).sum::<u64>().max(1);
            [0, 1, 2].map(|i| (group.cells.iter().map(|(cell, _)| sums[*cell][i]).sum::<u64>() / n) as u8)
        };
        Self { palette: groups.iter().map(mean).collect(), nearest: vec![None; CELLS] }
    }

    pub(super) fn palette(&self) -> &[[u8; 3]] {
        &self.palette
    }

    /// Returns the index of the nearest colour.
    pub(super) fn nearest(&mut self, colour: [u8; 3]) -> usize {
        let distance = |other: &[u8; 3]| (0..3).map(|i| i32::from(other[i].abs_diff(colour[i])).pow(2)).sum::<i32>();
        let found = self.nearest[cell(colour)].get_or_insert_with(|| {
            let all = self.palette.iter().enumerate();
            all.min_by_key(|(_, other)| distance(other)).map_or(0, |(index, _)| index as u8)
        });
        usize::from(*found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_are_kept_and_many_are_represented() {
        let colours = [[0, 0, 0], [255, 255, 255], [200, 30, 40], [10, 200, 90]];
        let picture = Picture { width: 4, height: 1, rgb: colours.concat() };
        let mut few = Colours::of(&[&picture], 200);
        assert_eq!(few.palette().len(), 4);
        assert!(colours.iter().all(|colour| {
            let found = few.nearest(*colour);
            few.palette()[found] == *colour
        }));
        // a ramp of 256 greys in 16 colours is nowhere more than a sixteenth away
        let ramp = Picture { width: 256, height: 1, rgb: (0..=255).flat_map(|grey| [grey; 3]).collect() };
        let mut some = Colours::of(&[&ramp], 16);
        assert_eq!(some.palette().len(), 16);
        for grey in 0..=255_u8 {
            let found = some.nearest([grey; 3]);
            assert!(some.palette()[found][0].abs_diff(grey) <= 16, "{grey}: {:?}", some.palette()[found]);
        }
    }
}
