//! `gradus train --watch`: a dashboard in the terminal, with the learning curve, an episode of the current policy or the values of a map, and
//! the metrics. Two trainings stand side by side.
//!
//! Each training thread hands every update to its [`Watch`], which waits as long as the [`Pace`] says. Another thread draws, twenty times a
//! second, and reads the keys.

mod draw;
mod grid;
mod pace;

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use crate::signals::Signals;
use gradus::base::threads;
use gradus::draw::Frame as Moment;
use gradus::envs::random::episode_seed;
use gradus::evaluate::play::play;
use gradus::numbers::short;
use gradus::run::Update;
use gradus::{Error, Run, Show, Trainer};
use grid::Grid;
use pace::Pace;

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(50);
/// Time of one frame of an episode, which is the duration of CartPole's steps.
const STEP: Duration = Duration::from_millis(20);
/// Largest number of frames that are shown of an episode; longer ones skip some.
const FRAMES: usize = 400;
/// How long the end of an episode is shown.
const REST: Duration = Duration::from_millis(800);
/// Episodes take at most this part of the training time.
const SHARE: u32 = 20;
/// The curve has at most this many points.
const POINTS: usize = 800;
/// Values of a metric that its trend shows at most.
const TREND: usize = 40;

/// What the dashboard shows of a training.
#[derive(Clone, Default)]
struct State {
    title: String,
    folder: String,
    /// What is counted: steps or tokens.
    unit: &'static str,
    solved_at: Option<f64>,
    steps: u64,
    total: u64,
    seconds: f64,
    /// When the last update ended.
    updated: Option<Instant>,
    /// Steps per second since the start of this process.
    rate: f64,
    /// The mean return of the latest episodes with its standard error.
    recent: Option<String>,
    /// The number of these episodes.
    recent_episodes: usize,
    /// Mean returns of the latest episodes over steps.
    curve: Vec<(f64, f64)>,
    /// Every how many updates a point is added to the curve.
    stride: usize,
    updates: usize,
    evaluations: Vec<(f64, f64)>,
    /// Names and latest values of the metrics.
    metrics: Vec<(String, Vec<f64>)>,
    episode: Episode,
    /// The values, if the world has a map and the policy values.
    grid: Option<Grid>,
    /// Whether the training has ended.
    is_finished: bool,
}

/// An episode of the current policy.
#[derive(Clone, Default)]
struct Episode {
    frames: Arc<Vec<Moment>>,
    text: String,
    result: String,
    /// When its first frame was shown.
    begun: Option<Instant>,
    /// Whether the next one may be played.
    is_over: bool,
}

/// What stands above all trainings of a screen.
#[derive(Clone, Copy)]
struct Controls {
    pace: Pace,
    /// Whether values are shown where there are some, instead of an episode.
    shows_values: bool,
    /// Whether a key or a signal asked the trainings to stop.
    is_stopping: bool,
}

/// What the threads of the trainings and the one that draws share.
struct Shared {
    panes: Vec<Mutex<State>>,
    controls: Mutex<Controls>,
    /// Whether nothing is to be drawn any more.
    is_over: AtomicBool,
    signals: Signals,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a training showed its last frame.
#[derive(Clone, Copy)]
struct Shown {
    at: Instant,
    /// Single frames that were asked for and shown.
    singles: u64,
}

impl Shared {
    /// Waits until the pace allows another frame.
    fn wait(&self, shown: &mut Shown) {
        while !self.signals.stop.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed) {
            let pace = lock(&self.controls).pace;
            if pace.allows(shown.at, shown.singles) {
                let singles = if pace.is_paused { shown.singles + 1 } else { pace.singles };
                *shown = Shown { at: Instant::now(), singles };
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Trains runs with a dashboard, all at once, and shows their end until a key is pressed. Returns the result of each; `None`, without any
/// training, if standard output is not a terminal, or not one that can be controlled.
pub(crate) fn train(runs: &mut [Run], signals: &Signals, is_slow: bool) -> Option<Vec<Result<(), Error>>> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let terminal = ratatui::try_init().ok()?;
    let controls = Controls { pace: Pace::new(is_slow), shows_values: true, is_stopping: false };
    let panes = runs.iter().map(|run| Mutex::new(state_of(run))).collect();
    let shared = Arc::new(Shared { panes, controls: Mutex::new(controls), is_over: AtomicBool::new(false), signals: signals.clone() });
    let share = (threads::count() / runs.len()).max(1);
    let results = thread::scope(|scope| {
        let screen = scope.spawn(|| show(terminal, &shared));
        let shared = &shared;
        let trainings: Vec<_> = runs
            .iter_mut()
            .enumerate()
            .map(|(pane, run)| scope.spawn(move || threads::with(share, || Watch::new(shared.clone(), pane, run).train(run))))
            .collect();
        let results: Vec<_> = trainings.into_iter().map(|training| training.join()).collect();
        if results.iter().all(|result| matches!(result, Ok(Ok(())))) {
            while !screen.is_finished() {
                thread::sleep(TICK);
            }
        }
        shared.is_over.store(true, Ordering::Relaxed);
        let _ = screen.join();
        results
    });
    Some(results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect())
}

fn state_of(run: &Run) -> State {
    let (trainer, config) = (run.trainer(), run.trainer().config());
    State {
        title: format!("{} on {}, seed {}", config.agent, trainer.world().title(), config.seed),
        folder: run.dir().display().to_string(),
        unit: if trainer.is_text() { "tokens" } else { "steps" },
        solved_at: trainer.world().solved_at,
        steps: trainer.steps(),
        total: trainer.total_steps(),
        seconds: run.seconds(),
        stride: 1,
        episode: Episode { is_over: true, ..Episode::default() },
        grid: Grid::of(trainer),
        ..State::default()
    }
}

/// The pane of a training.
struct Watch {
    shared: Arc<Shared>,
    pane: usize,
    shown: Shown,
    /// When the last episode was played, and how long that took.
    played: Option<(Instant, Duration)>,
    since: Since,
}

/// When the training began, and with which step.
#[derive(Clone, Copy)]
struct Since {
    began: Instant,
    steps: u64,
}

impl Watch {
    fn new(shared: Arc<Shared>, pane: usize, run: &mut Run) -> Self {
        let now = Instant::now();
        let shown = Shown { at: now, singles: 0 };
        let since = Since { began: now, steps: run.trainer().steps() };
        if lock(&shared.panes[pane]).grid.is_some() {
            let mut values = ValuesWatch { shared: shared.clone(), pane, shown, looked: now, since };
            run.after_rollouts(move |trainer| values.follow(trainer));
        }
        Self { shared, pane, shown, played: None, since }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.panes[self.pane])
    }

    fn train(mut self, run: &mut Run) -> Result<(), Error> {
        self.play(run.trainer());
        run.train_with(Show::Nothing, |update| {
            self.update(update);
            ControlFlow::Continue(())
        })?;
        self.play(run.trainer());
        self.state().is_finished = true;
        Ok(())
    }

    /// Shows an update, and waits. Plays an episode from time to time.
    fn update(&mut self, update: &Update<'_>) {
        let (iteration, trainer) = (update.iteration, update.trainer);
        let (wants_episode, has_values) = {
            let mut state = lock(&self.shared.panes[self.pane]);
            state.seconds = update.seconds;
            state.follow(trainer, self.since);
            state.evaluations.extend(iteration.evaluation.map(|mean| (iteration.steps as f64, mean)));
            for (name, value) in iteration.metrics.iter().filter(|(_, value)| value.is_finite()) {
                state.measure(name, *value);
            }
            (state.episode.is_over, state.grid.is_some())
        };
        let is_due = self.played.is_none_or(|(when, cost)| when.elapsed() >= SHARE * cost);
        if wants_episode && is_due {
            self.play(trainer);
        }
        // the frames of a map are those of its values
        if !has_values {
            self.shared.wait(&mut self.shown);
        }
    }

    fn play(&mut self, trainer: &Trainer) {
        let began = Instant::now();
        // an episode that no training or evaluation of this run uses
        let seed = episode_seed(1, u64::from(u32::MAX), trainer.steps());
        let episode = match play(trainer.policy(), &trainer.world(), seed) {
            Ok(played) => Episode {
                frames: Arc::new(played.frames),
                text: played.texts.last().cloned().unwrap_or_default(),
                result: format!("return {} in {} {}", short(played.episode_return), played.steps, self.state().unit),
                ..Episode::default()
            },
            Err(error) => Episode { text: error.to_string(), ..Episode::default() },
        };
        self.state().episode = episode;
        self.played = Some((Instant::now(), began.elapsed()));
    }
}

/// Shows the values of a map after each rollout that changed them, and waits.
struct ValuesWatch {
    shared: Arc<Shared>,
    pane: usize,
    shown: Shown,
    looked: Instant,
    since: Since,
}

impl ValuesWatch {
    fn follow(&mut self, trainer: &Trainer) {
        let is_slow = lock(&self.shared.controls).pace.is_slow();
        if !is_slow && self.looked.elapsed() < TICK {
            return;
        }
        self.looked = Instant::now();
        let Some(new) = Grid::of(trainer) else { return };
        let has_changed = {
            let mut state = lock(&self.shared.panes[self.pane]);
            state.follow(trainer, self.since);
            state.grid.as_mut().is_some_and(|grid| grid.follow(new, is_slow))
        };
        if has_changed && is_slow {
            self.shared.wait(&mut self.shown);
        }
    }
}

impl State {
    /// Takes over how far the training is.
    fn follow(&mut self, trainer: &Trainer, since: Since) {
        (self.steps, self.recent, self.recent_episodes) = (trainer.steps(), trainer.recent_return_shown(), trainer.recent_episodes());
        self.updated = Some(Instant::now());
        self.rate = (self.steps - since.steps) as f64 / since.began.elapsed().as_secs_f64().max(1e-3);
        if self.recent_episodes > 0 {
            self.add(self.steps as f64, trainer.recent_return());
        }
    }

    /// Adds a point to the curve. If there are too many, every other one is dropped from then on.
    fn add(&mut self, steps: f64, value: f64) {
        if self.updates.is_multiple_of(self.stride) {
            self.curve.push((steps, value));
            if self.curve.len() >= POINTS {
                let halves = self.curve.iter().step_by(2).copied().collect();
                self.curve = halves;
                self.stride *= 2;
            }
        }
        self.updates += 1;
    }

    fn measure(&mut self, name: &str, value: f64) {
        match self.metrics.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => {
                values.push(value);
                if values.len() > TREND {
                    values.remove(0);
                }
            }
            None => self.metrics.push((name.to_owned(), vec![value])),
        }
    }
}

/// Draws until nothing is left to draw or, after the end of all trainings, a key is pressed.
fn show(mut terminal: DefaultTerminal, shared: &Shared) {
    let mut last = Instant::now();
    while !shared.is_over.load(Ordering::Relaxed) {
        let stop = &shared.signals.stop;
        let panes: Vec<State> = shared.panes.iter().map(|state| snapshot(&mut lock(state))).collect();
        let controls = {
            let mut controls = lock(&shared.controls);
            controls.is_stopping = stop.load(Ordering::Relaxed);
            *controls
        };
        // a closed terminal: the training goes on without it
        if terminal.draw(|frame| draw::draw(frame, &panes, controls)).is_err() {
            break;
        }
        let left = TICK.saturating_sub(last.elapsed());
        last = Instant::now();
        let key = match event::poll(left.max(Duration::from_millis(1))).and_then(|is_ready| is_ready.then(event::read).transpose()) {
            Ok(Some(Event::Key(key))) if key.kind == KeyEventKind::Press => key,
            _ => continue,
        };
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if panes.iter().all(|state| state.is_finished) {
            // what chooses between values and episode shows the end, too
            if key.code == KeyCode::Char('v') {
                lock(&shared.controls).shows_values ^= true;
                continue;
            }
            break;
        }
        match key.code {
            _ if is_interrupt && stop.load(Ordering::Relaxed) => {
                // the second one ends the program at once, as without a dashboard
                let _ = ratatui::try_restore();
                std::process::exit(shared.signals.exit_code().into());
            }
            KeyCode::Char('q') => shared.signals.interrupt(),
            _ if is_interrupt => shared.signals.interrupt(),
            KeyCode::Char('v') => lock(&shared.controls).shows_values ^= true,
            KeyCode::Char(key) => _ = lock(&shared.controls).pace.follow(key),
            _ => {}
        }
    }
    let _ = ratatui::try_restore();
}

/// Returns what is drawn now. After the end of a training its last episode begins again and again.
fn snapshot(state: &mut State) -> State {
    let is_finished = state.is_finished;
    let episode = &mut state.episode;
    let begun = *episode.begun.get_or_insert_with(Instant::now);
    episode.is_over |= begun.elapsed() > STEP * episode.frames.len().min(FRAMES) as u32 + REST;
    if is_finished && episode.is_over {
        (episode.begun, episode.is_over) = (None, false);
    }
    state.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_keeps_its_ends_and_stays_short() {
        let mut state = State { stride: 1, ..State::default() };
        (0..100_000).for_each(|update| state.add(f64::from(update), 1.0));
        assert!(state.curve.len() < POINTS && state.curve.len() >= POINTS / 2 - 1, "{}", state.curve.len());
        assert!(state.curve[0].0 == 0.0 && state.curve[state.curve.len() - 1].0 > 99_000.0);
        let gaps: Vec<f64> = state.curve.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "points at equal distances");
    }
}
