//! The pictures of Atari games.

use crate::Image;

/// What an episode of an Atari game is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtariEpisodes {
    /// A whole game.
    Games,
    /// A life. The next episode goes on with the game, until it is over. Evaluations play whole games.
    Lives,
}

/// How two grey screens become a picture: the larger number at each point, averaged over the part of the screen that a pixel covers (OpenCV's `INTER_AREA`, which rounds ties differently).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Screens {
    rows: Vec<Cover>,
    columns: Vec<Cover>,
    size: [usize; 2],
}

/// What a pixel covers in one direction: some pixels of the screen, with the shares that add up to the same whole number for each.
#[derive(Clone, Debug, PartialEq)]
struct Cover {
    first: usize,
    shares: Vec<u32>,
}

impl Cover {
    /// What each of `n` pixels covers of `of` on the screen.
    fn all(of: usize, n: usize) -> Vec<Self> {
        // in units of 1/n of a pixel of the screen, a pixel covers the interval [i of, (i + 1) of)
        let share = |i: usize, j: usize| ((i + 1) * of).min((j + 1) * n) - (i * of).max(j * n);
        let part = |i: usize| i * of / n..((i + 1) * of).div_ceil(n);
        (0..n).map(|i| Self { first: part(i).start, shares: part(i).map(|j| share(i, j) as u32).collect() }).collect()
    }
}

impl Screens {
    /// The picture that they become.
    pub(super) const IMAGE: Image = Image { frames: 1, height: 84, width: 84, channels: 1, largest: u8::MAX };

    /// Screens of this shape: two, rows, columns.
    pub(super) fn of(shape: &[usize], width: usize) -> Option<Self> {
        // a share of a picture must fit into 32 bits
        let range = Self::IMAGE.height..=1024;
        match *shape {
            [2, height, across] if range.contains(&height) && range.contains(&across) && 2 * height * across == width => {
                let Image { height: rows, width: columns, .. } = Self::IMAGE;
                Some(Self { rows: Cover::all(height, rows), columns: Cover::all(across, columns), size: [height, across] })
            }
            _ => None,
        }
    }

    /// Bytes of both screens.
    pub(super) fn len(&self) -> usize {
        2 * self.size[0] * self.size[1]
    }

    /// Writes the picture of two screens.
    pub(super) fn observe(&self, screens: &[u8], picture: &mut [f32]) {
        let [height, across] = self.size;
        let (first, second) = screens.split_at(height * across);
        let area = (height * across) as u32;
        let mut sums = vec![0_u32; across];
        for (cover, row) in self.rows.iter().zip(picture.chunks_exact_mut(self.columns.len())) {
            sums.fill(0);
            for (share, y) in cover.shares.iter().zip(cover.first..) {
                let part = y * across..(y + 1) * across;
                let both = first[part.clone()].iter().zip(&second[part]);
                sums.iter_mut().zip(both).for_each(|(sum, (a, b))| *sum += share * u32::from(*a.max(b)));
            }
            for (cover, pixel) in self.columns.iter().zip(row) {
                let sum: u32 = cover.shares.iter().zip(&sums[cover.first..]).map(|(share, sum)| share * sum).sum();
                *pixel = ((sum + area / 2) / area) as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pixel_is_the_mean_of_what_it_covers() {
        let screens = Screens::of(&[2, 210, 160], 2 * 210 * 160).unwrap();
        assert!(screens.rows.iter().all(|cover| cover.shares.iter().sum::<u32>() == 210));
        assert!(screens.columns.iter().all(|cover| cover.shares.iter().sum::<u32>() == 160));
        // the first pixel covers 2.5 rows of 1.905 columns
        assert_eq!(screens.rows[0], Cover { first: 0, shares: vec![84, 84, 42] });
        assert_eq!(screens.columns[0], Cover { first: 0, shares: vec![84, 76] });
        let mut bytes = vec![0; screens.len()];
        bytes[0] = 250; // of the first screen
        bytes[210 * 160 + 1] = 100; // of the second one
        bytes[210 * 160] = 249; // darker than in the first
        let mut picture = vec![0.0; 84 * 84];
        screens.observe(&bytes, &mut picture);
        let area = 2.5 * 160.0 / 84.0;
        assert_eq!(picture[0], ((250.0 + 100.0 * 76.0 / 84.0) / area as f32).round());
        assert_eq!(picture[1], ((100.0 * 8.0 / 84.0) / area as f32).round());
        assert!(picture[2..].iter().all(|pixel| *pixel == 0.0));
        screens.observe(&vec![255; screens.len()], &mut picture);
        assert!(picture.iter().all(|pixel| *pixel == 255.0));
    }

    #[test]
    fn wrong_shapes_are_refused() {
        for shape in [&[2, 210, 160][..], &[1, 210, 160], &[2, 10, 160], &[2, 5000, 160], &[210, 160], &[]] {
            let width = shape.iter().product();
            assert_eq!(Screens::of(shape, width).is_some(), shape == [2, 210, 160], "{shape:?}");
        }
        assert!(Screens::of(&[2, 210, 160], 5).is_none());
    }
}
