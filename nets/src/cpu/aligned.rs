//! Numbers aligned to cache lines. Loading a vector of 64 bytes takes twice as long if the vector crosses a line.

use std::ops::{Deref, DerefMut};

const LINE: usize = 64;

/// A slice of f32 of fixed length, aligned to 64 bytes.
pub(super) struct Aligned {
    numbers: Vec<f32>,
    start: usize,
    len: usize,
}

impl Aligned {
    /// Returns `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let numbers = vec![0.0_f32; len + LINE / size_of::<f32>()];
        let start = numbers.as_ptr().align_offset(LINE);
        // `align_offset` may fail; then the numbers are not aligned, which affects only the speed
        Self { start: if start + len <= numbers.len() { start } else { 0 }, numbers, len }
    }
}

impl Default for Aligned {
    fn default() -> Self {
        Self::zeros(0)
    }
}

impl Deref for Aligned {
    type Target = [f32];
    #[inline]
    fn deref(&self) -> &[f32] {
        &self.numbers[self.start..self.start + self.len]
    }
}

impl DerefMut for Aligned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers[self.start..self.start + self.len]
    }
}

impl From<&[f32]> for Aligned {
    fn from(numbers: &[f32]) -> Self {
        let mut aligned = Self::zeros(numbers.len());
        aligned.copy_from_slice(numbers);
        aligned
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}
