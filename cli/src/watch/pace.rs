//! How fast a training goes that people watch.

use std::time::{Duration, Instant};

/// Frames a second, from the slowest on. After the last one, training goes as fast as it can.
const SPEEDS: [f64; 9] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
/// The speed of `--slow`.
const SLOW: usize = 3;

/// The pace of all trainings of a screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Index of the frames a second; past the end: as fast as it can.
    speed: usize,
    pub(super) is_paused: bool,
    /// How often a single frame was asked for.
    pub(super) singles: u64,
}

impl Pace {
    pub(super) fn new(is_slow: bool) -> Self {
        Self { speed: if is_slow { SLOW } else { SPEEDS.len() }, is_paused: false, singles: 0 }
    }

    /// Whether every frame is shown, and not only those that there is time for.
    pub(super) fn is_slow(&self) -> bool {
        self.is_paused || self.speed < SPEEDS.len()
    }

    /// Follows a key; returns whether it is one of the pace.
    pub(super) fn follow(&mut self, key: char) -> bool {
        match key {
            ' ' => self.is_paused = !self.is_paused,
            '.' => (self.is_paused, self.singles) = (true, self.singles + 1),
            '+' | '=' => self.speed = (self.speed + 1).min(SPEEDS.len()),
            '-' => self.speed = self.speed.saturating_sub(1),
            _ => return false,
        }
        true
    }

    /// Whether a training that showed a frame at `shown`, after `seen` single frames, may go on.
    pub(super) fn allows(&self, shown: Instant, seen: u64) -> bool {
        let is_due = || SPEEDS.get(self.speed).is_none_or(|speed| shown.elapsed() >= Duration::from_secs_f64(1.0 / speed));
        seen < self.singles || !self.is_paused && is_due()
    }

    /// Returns the pace in words; empty if training goes as fast as it can.
    pub(super) fn in_words(&self) -> String {
        match SPEEDS.get(self.speed) {
            _ if self.is_paused => "paused".into(),
            Some(speed) => format!("{speed} a second"),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_pace() {
        let mut pace = Pace::new(false);
        let ago = |seconds| Instant::now().checked_sub(Duration::from_secs_f64(seconds)).unwrap();
        assert!(pace.allows(Instant::now(), 0) && pace.in_words().is_empty() && !pace.is_slow());
        assert!(pace.follow('-') && pace.in_words() == "128 a second");
        assert!(!pace.allows(Instant::now(), 0) && pace.allows(ago(0.1), 0));
        (0..20).for_each(|_| assert!(pace.follow('-')));
        assert_eq!(pace.in_words(), "0.5 a second");
        assert!(pace.follow(' ') && !pace.allows(ago(60.0), 0) && pace.in_words() == "paused");
        assert!(pace.follow('.') && pace.allows(Instant::now(), 0) && !pace.allows(ago(60.0), 1), "one frame for each key");
        assert!(pace.follow(' ') && pace.allows(ago(2.1), 1));
        (0..20).for_each(|_| assert!(pace.follow('+')));
        assert!(!pace.is_slow() && !pace.follow('x'));
        assert_eq!(Pace::new(true).in_words(), "4 a second");
    }
}
