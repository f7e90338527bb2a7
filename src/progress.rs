//! What a training shows while it runs.

use indicatif::{ProgressBar, ProgressStyle};

/// Whether a training shows how it gets on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A progress bar, where there is a terminal.
    Progress,
    /// Nothing.
    Nothing,
}

/// A progress bar with the return, the speed and the time left. Silent where standard error is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn new(show: Show, done: u64, total: u64) -> Self {
        let bar = if show == Show::Progress { ProgressBar::new(total) } else { ProgressBar::hidden() };
        let template = "{wide_bar:.cyan/dim} {human_pos} of {human_len} steps | {msg} | {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        bar.set_position(done);
        bar.reset_eta();
        Self { bar }
    }

    pub fn update(&self, steps: u64, recent_return: f64, rate: f64) {
        if !self.bar.is_hidden() {
            let episode_return = if recent_return.is_nan() { "-".into() } else { format!("{recent_return:.1}") };
            self.bar.set_message(format!("return {episode_return} | {:.0}k steps/s", rate / 1e3));
            self.bar.set_position(steps);
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
