//! Progress in the terminal.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Show;
use crate::numbers;

/// On a terminal with fewer columns there is no bar.
const NARROW: u16 = 90;

/// Time between two lines of a log.
const LINES: Duration = Duration::from_secs(60);

/// A progress bar with the return, the speed and the time left. If standard error is not a terminal, a line every minute.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When the last line was written, if standard error is a file or a pipe.
    logged: Option<Cell<Instant>>,
    /// What the numbers count.
    unit: &'static str,
}

impl Progress {
    pub fn new(show: Show, is_text: bool, done: u64, total: u64) -> Self {
        // hidden until everything is set, so that the first line that is drawn is the right one
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let is_narrow = console::Term::stderr().size().1 < NARROW;
        let template = if is_narrow {
            "{percent} % | {msg} | {eta} left"
        } else {
            "{wide_bar:.cyan/dim} {human_pos} of {human_len} {prefix} | {msg} | {eta} left"
        };
        let unit = if is_text { "tokens" } else { "steps" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_prefix(unit);
        bar.set_message(message(None, 0.0, unit));
        bar.set_position(done);
        bar.reset_eta();
        if show == Show::Progress {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let is_log = show == Show::Progress && !console::Term::stderr().is_term();
        Self { bar, logged: is_log.then(|| Cell::new(Instant::now())), unit }
    }

    /// Updates the bar. `recent_return` is the mean return of the latest episodes, or `None` if no episode has ended.
    pub fn update(&self, steps: u64, recent_return: Option<String>, rate: f64) {
        if !self.bar.is_hidden() {
            self.bar.set_position(steps);
            self.bar.set_message(message(recent_return, rate, self.unit));
        } else if let Some(logged) = self.logged.as_ref().filter(|logged| logged.get().elapsed() >= LINES) {
            logged.set(Instant::now());
            let (steps, total) = (HumanCount(steps), HumanCount(self.bar.length().unwrap_or(steps)));
            // standard error may be closed
            let _ = writeln!(io::stderr(), "{steps} of {total} {} | {}", self.unit, message(recent_return, rate, self.unit));
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn message(recent_return: Option<String>, rate: f64, unit: &str) -> String {
    let about = recent_return.map_or_else(|| "no episode has ended yet".into(), |mean| format!("return {mean}"));
    format!("{about} | {} {unit}/s", numbers::rate(rate))
}

/// How long a piece of work lasts before its steps are shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does a piece of work that calls its argument with the name of each step. If it lasts longer than a second and standard error is a
/// terminal, the name of the current step is shown.
pub fn with_steps<T>(show: Show, work: impl FnOnce(&dyn Fn(&str)) -> T) -> T {
    if show == Show::Nothing {
        return work(&|_| {});
    }
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} | {elapsed}") {
        line.set_style(style);
    }
    let result = thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        let line = &line;
        let show = move || {
            let mut wait = PATIENCE;
            while is_done.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if wait == PATIENCE {
                    line.set_draw_target(ProgressDrawTarget::stderr());
                    wait = Duration::from_millis(100);
                }
                line.tick();
            }
        };
        // without a thread, nothing is shown
        let _ = thread::Builder::new().spawn_scoped(scope, show);
        let result = work(&|step| line.set_message(step.to_owned()));
        drop(done);
        result
    });
    line.finish_and_clear();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_says_when_there_is_no_return_yet() {
        assert_eq!(message(None, 512_345.6, "steps"), "no episode has ended yet | 512.3k steps/s");
        assert_eq!(message(Some("0.74".into()), 900.0, "tokens"), "return 0.74 | 900 tokens/s");
    }
}
