//! `gradus train --watch`: a dashboard in the terminal, with the learning curve, an episode of the current policy and the metrics.
//!
//! The training thread hands every update to [`Watch::update`]. Another thread draws, twenty times a second, and reads the keys.

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, Gauge, GraphType, Paragraph, Wrap};
use ratatui::{DefaultTerminal, Frame};

use crate::signals::Signals;
use gradus::draw::{Frame as Moment, terminal};
use gradus::envs::random::episode_seed;
use gradus::evaluate::play::play;
use gradus::numbers::short;
use gradus::run::Update;
use gradus::{Run, Trainer};

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
/// From this width on, the curve is beside the rest; below it, above the rest.
const WIDE: u16 = 100;
/// Below this width, there is no episode.
const NARROW: u16 = 56;
/// Below this height, there is only the line of progress.
const LOW: u16 = 10;

/// What the dashboard shows.
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
    /// Whether the training has ended.
    is_finished: bool,
    /// Whether a key or a signal asked the training to stop.
    is_stopping: bool,
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

/// A dashboard. Dropping it restores the terminal.
pub(crate) struct Watch {
    state: Arc<Mutex<State>>,
    screen: Option<JoinHandle<()>>,
    /// When the last episode was played, and how long that took.
    played: Option<(Instant, Duration)>,
    began: Instant,
    steps_before: u64,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    /// Starts a dashboard; `None` if standard output is not a terminal, or not one that can be controlled.
    pub(crate) fn start(run: &Run, signals: &Signals) -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        let (trainer, config) = (run.trainer(), run.trainer().config());
        let state = State {
            title: format!("{} on {}, seed {}", config.agent, trainer.world().title(), config.seed),
            folder: run.dir().display().to_string(),
            unit: if trainer.is_text() { "tokens" } else { "steps" },
            solved_at: trainer.world().solved_at,
            steps: trainer.steps(),
            total: trainer.total_steps(),
            seconds: run.seconds(),
            stride: 1,
            episode: Episode { is_over: true, ..Episode::default() },
            ..State::default()
        };
        let state = Arc::new(Mutex::new(state));
        let terminal = ratatui::try_init().ok()?;
        let (shared, signals) = (state.clone(), signals.clone());
        let Ok(screen) = thread::Builder::new().spawn(move || show(terminal, &shared, &signals)) else {
            ratatui::restore();
            return None;
        };
        let mut watch = Self { state, screen: Some(screen), played: None, began: Instant::now(), steps_before: trainer.steps() };
        watch.play(trainer);
        Some(watch)
    }

    /// Shows an update. Plays an episode from time to time.
    pub(crate) fn update(&mut self, update: &Update<'_>) {
        let (iteration, trainer) = (update.iteration, update.trainer);
        let wants_episode = {
            let mut state = lock(&self.state);
            let steps = iteration.steps as f64;
            (state.steps, state.seconds, state.recent) = (iteration.steps, update.seconds, trainer.recent_return_shown());
            state.recent_episodes = trainer.recent_episodes();
            state.updated = Some(Instant::now());
            state.rate = (iteration.steps - self.steps_before) as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
            if trainer.recent_episodes() > 0 {
                state.add(steps, trainer.recent_return());
            }
            state.evaluations.extend(iteration.evaluation.map(|mean| (steps, mean)));
            for (name, value) in iteration.metrics.iter().filter(|(_, value)| value.is_finite()) {
                state.measure(name, *value);
            }
            state.episode.is_over
        };
        let is_due = self.played.is_none_or(|(when, cost)| when.elapsed() >= SHARE * cost);
        if wants_episode && is_due {
            self.play(trainer);
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
                result: format!("return {} in {} {}", short(played.episode_return), played.steps, lock(&self.state).unit),
                ..Episode::default()
            },
            Err(error) => Episode { text: error.to_string(), ..Episode::default() },
        };
        lock(&self.state).episode = episode;
        self.played = Some((Instant::now(), began.elapsed()));
    }

    /// Shows the end of the training until a key is pressed, and restores the terminal.
    pub(crate) fn finish(mut self, trainer: &Trainer) {
        self.play(trainer);
        lock(&self.state).is_finished = true;
        while self.screen.as_ref().is_some_and(|screen| !screen.is_finished()) {
            thread::sleep(TICK);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // empty: the thread of the screen ends
        lock(&self.state).total = 0;
        if let Some(screen) = self.screen.take() {
            let _ = screen.join();
        }
    }
}

impl State {
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

/// Draws until the dashboard is dropped or, after the end of the training, a key is pressed.
fn show(mut terminal: DefaultTerminal, state: &Mutex<State>, signals: &Signals) {
    let mut last = Instant::now();
    loop {
        let now = {
            let mut state = lock(state);
            let is_finished = state.is_finished;
            state.is_stopping = signals.stop.load(Ordering::Relaxed);
            let episode = &mut state.episode;
            let begun = *episode.begun.get_or_insert_with(Instant::now);
            episode.is_over |= begun.elapsed() > STEP * episode.frames.len().min(FRAMES) as u32 + REST;
            if is_finished && episode.is_over {
                (episode.begun, episode.is_over) = (None, false);
            }
            state.clone()
        };
        // a closed terminal: the training goes on without it
        if now.total == 0 || terminal.draw(|frame| draw(frame, &now)).is_err() {
            break;
        }
        let left = TICK.saturating_sub(last.elapsed());
        last = Instant::now();
        let key = match event::poll(left.max(Duration::from_millis(1))).and_then(|is_ready| is_ready.then(event::read).transpose()) {
            Ok(Some(Event::Key(key))) if key.kind == KeyEventKind::Press => key,
            _ => continue,
        };
        if now.is_finished {
            break;
        }
        let is_interrupt = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if is_interrupt || key.code == KeyCode::Char('q') {
            // the second one ends the program at once, as without a dashboard
            if signals.stop.load(Ordering::Relaxed) && is_interrupt {
                let _ = ratatui::try_restore();
                std::process::exit(signals.exit_code().into());
            }
            signals.interrupt();
        }
    }
    let _ = ratatui::try_restore();
}

fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    draw_head(frame, head, state);
    if area.height < LOW {
        return;
    }
    if area.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(body);
        let [top, bottom] = Layout::vertical([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(right);
        draw_curve(frame, left, state);
        draw_episode(frame, top, state);
        draw_metrics(frame, bottom, state);
    } else {
        let [top, bottom] = Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(body);
        draw_curve(frame, top, state);
        let share = if area.width < NARROW { 0 } else { 45 };
        let [left, right] = Layout::horizontal([Constraint::Percentage(share), Constraint::Fill(1)]).areas(bottom);
        if share > 0 {
            draw_episode(frame, left, state);
        }
        draw_metrics(frame, right, state);
    }
}

fn draw_head(frame: &mut Frame, area: Rect, state: &State) {
    let [line, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let keys = match (state.is_finished, state.is_stopping) {
        (true, _) => " any key: leave ",
        (false, true) => " stopping after this update ",
        (false, false) => " q: stop and save ",
    };
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(keys.len() as u16)]).areas(line);
    frame.render_widget(Line::from(vec![state.title.as_str().bold(), format!("  {}", state.folder).dim()]), left);
    frame.render_widget(Line::from(keys.reversed()).alignment(Alignment::Right), right);
    let part = (state.steps as f64 / state.total.max(1) as f64).clamp(0.0, 1.0);
    let remaining = (state.total.saturating_sub(state.steps)) as f64 / state.rate.max(1e-9);
    // a long update moves nothing else
    let waited = state.updated.map_or(0.0, |updated| updated.elapsed().as_secs_f64());
    let updating = if waited >= 3.0 { format!(", {} in this update", clock(waited)) } else { String::new() };
    let end = match (state.is_finished, state.rate > 0.0) {
        (true, _) => format!("finished in {}", clock(state.seconds)),
        (false, true) => format!("{} left{updating}", clock((remaining - waited).max(0.0))),
        (false, false) => "starting".to_owned(),
    };
    let speed = format!("{} {}/s", count(state.rate), state.unit);
    let whole = format!("{} of {} {} | {speed} | {end}", count(state.steps as f64), count(state.total as f64), state.unit);
    let label = if whole.len() + 4 > usize::from(bar.width) { format!("{:.0} % | {end}", 100.0 * part) } else { whole };
    frame.render_widget(Gauge::default().ratio(part).label(label).gauge_style(Style::new().fg(Color::Blue).bg(Color::DarkGray)), bar);
}

fn panel(title: String) -> Block<'static> {
    Block::new().borders(Borders::ALL).border_style(Style::new().fg(Color::DarkGray)).title(Span::from(title).fg(Color::Reset))
}

fn draw_curve(frame: &mut Frame, area: Rect, state: &State) {
    let recent = state
        .recent
        .as_ref()
        .map_or("(no episode has ended yet)".into(), |mean| format!("{mean} (mean of the last {} episodes)", state.recent_episodes));
    let title = panel(format!(" return {recent} "));
    let values = || state.curve.iter().chain(&state.evaluations).map(|(_, y)| *y).filter(|y| y.is_finite());
    let (mut low, mut high) = values().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    if low > high {
        (low, high) = (0.0, 1.0);
    }
    // the goal is shown as soon as it is not far above the curve
    let goal = state.solved_at.filter(|goal| *goal - high <= (high - low).max(1.0));
    if let Some(goal) = goal {
        (low, high) = (low.min(goal), high.max(goal));
    }
    let ((low, high), end) = (rounded(low, high), state.total.max(1) as f64);
    let goal_line = goal.map(|goal| [(0.0, goal), (end, goal)]);
    let mut lines = Vec::new();
    if let Some(line) = &goal_line {
        lines.push(Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).green().data(line));
    }
    let curve = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).data(&state.curve);
    lines.push(curve.style(Style::new().fg(Color::LightBlue)));
    if !state.evaluations.is_empty() {
        lines.push(
            Dataset::default().name("evaluation").marker(Marker::Dot).style(Style::new().fg(Color::LightRed)).data(&state.evaluations),
        );
    }
    let x = Axis::default().bounds([0.0, end]).labels(["0".to_owned(), count(end / 2.0), count(end)]);
    let y = Axis::default().bounds([low, high]).labels([low, (low + high) / 2.0, high].map(short));
    let dim = Style::new().fg(Color::DarkGray);
    frame.render_widget(Chart::new(lines).block(title).x_axis(x.style(dim)).y_axis(y.style(dim)), area);
}

fn draw_episode(frame: &mut Frame, area: Rect, state: &State) {
    let episode = &state.episode;
    let block = panel(" episode of the current policy ".into());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [picture, below] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    if episode.frames.is_empty() {
        frame.render_widget(Paragraph::new(episode.text.as_str()).wrap(Wrap { trim: false }), picture);
        return frame.render_widget(Line::from(episode.result.as_str().dim()), below);
    }
    let (count, passed) = (episode.frames.len(), episode.begun.map_or(Duration::ZERO, |begun| begun.elapsed()));
    let shown = (passed.as_millis() / STEP.as_millis()) as usize * count.div_ceil(FRAMES);
    let moment = &episode.frames[shown.min(count - 1)];
    let lines = terminal::draw(&moment.scene, usize::from(picture.width), usize::from(picture.height));
    frame.render_widget(Paragraph::new(lines.join("\n")).fg(Color::Yellow), picture);
    let step = format!("step {}, return {}", moment.step, short(moment.return_so_far));
    frame.render_widget(Line::from(if shown >= count { episode.result.clone() } else { step }.dim()), below);
}

fn draw_metrics(frame: &mut Frame, area: Rect, state: &State) {
    let block = panel(" metrics ".into());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let widest = state.metrics.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = usize::from(inner.width);
    let named = widest.min(width.saturating_sub(10));
    let trend = width.saturating_sub(named + 12).min(TREND);
    let line = |(name, values): &(String, Vec<f64>)| {
        let name: String = name.chars().take(named).collect();
        let value = values.last().map_or_else(String::new, |value| precise(*value));
        let recent = &values[values.len().saturating_sub(trend)..];
        Line::from(vec![format!("{name:<named$}").into(), format!(" {value:>9} ").bold(), sparkline(recent).fg(Color::LightBlue)])
    };
    frame.render_widget(Paragraph::new(state.metrics.iter().map(line).collect::<Vec<_>>()), inner);
}

/// Returns the ends of an axis from `low` to `high`, at multiples of a round number.
fn rounded(low: f64, high: f64) -> (f64, f64) {
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
    let power = 10f64.powf(((high - low) / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| (high - low) / step <= 5.0).unwrap_or(10.0 * power);
    ((low / step).floor() * step, (high / step).ceil() * step)
}

/// Returns the values as a line of bars, from the smallest to the largest.
fn sparkline(values: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)));
    let bar = |value: &f64| if high > low { BARS[(((value - low) / (high - low)) * 7.0).round() as usize] } else { BARS[3] };
    values.iter().map(bar).collect()
}

/// Returns a number with about four digits, also if it is tiny.
fn precise(number: f64) -> String {
    match number.abs() {
        0.0 => "0".into(),
        1e-2.. => short(number),
        1e-3.. => format!("{number:.4}"),
        _ => format!("{number:.2e}"),
    }
}

/// Returns a number of steps, such as 250k.
fn count(number: f64) -> String {
    match number {
        _ if number >= 1e9 => format!("{}G", short(number / 1e9)),
        _ if number >= 1e6 => format!("{}M", short(number / 1e6)),
        _ if number >= 1e3 => format!("{}k", short(number / 1e3)),
        _ => format!("{number:.0}"),
    }
}

/// Returns a time, such as 1:05 or 2:01:05.
fn clock(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.round() as u64 } else { return "long".into() };
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::envs::{Ink, Scene, Shape};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn state() -> State {
        let shapes = vec![Shape::Line { from: [0.0, 0.0], to: [2.0, 1.0], width: 0.1, ink: Ink::Limb }];
        let scene = Scene { x: [0.0, 2.0], y: [0.0, 1.0], shapes };
        let frames = (0..50).map(|step| Moment { scene: scene.clone(), step, return_so_far: step as f64 }).collect();
        let mut state = State {
            title: "ppo on CartPole-v1, seed 1".into(),
            folder: "runs/ppo-cartpole-1".into(),
            unit: "steps",
            solved_at: Some(475.0),
            steps: 25_000,
            total: 100_000,
            rate: 50_000.0,
            recent_episodes: 100,
            recent: Some("250 ± 10".into()),
            stride: 1,
            episode: Episode { frames: Arc::new(frames), result: "return 49 in 49 steps".into(), ..Episode::default() },
            ..State::default()
        };
        for update in 0..100 {
            state.add(250.0 * f64::from(update), 2.5 * f64::from(update));
            state.measure("train/approx_kl", 0.01 + f64::from(update % 7));
        }
        state
    }

    /// Returns the lines of a terminal of this size.
    fn screen(width: u16, height: u16, state: &State) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(row).collect()
    }

    #[test]
    fn the_dashboard_adapts_to_the_terminal() {
        let has = |lines: &[String], what: &str| lines.iter().any(|line| line.contains(what));
        let wide = screen(120, 40, &state());
        for part in [
            "ppo on CartPole-v1, seed 1",
            "25k of 100k steps | 50k steps/s | 0:02 left",
            "return 250 ± 10 (mean of the last 100 episodes)",
            "q: stop and save",
        ] {
            assert!(has(&wide, part), "{part}: {wide:#?}");
        }
        assert!(wide[2].contains("return 250") && wide[2].contains("episode of"), "the episode is beside the curve: {wide:#?}");
        let usual = screen(80, 24, &state());
        assert!(usual[2].contains("return 250") && !usual[2].contains("episode of"), "the episode is below the curve: {usual:#?}");
        assert!(has(&usual, "step 0, return 0") && has(&usual, "train/approx_kl"), "{usual:#?}");
        let narrow = screen(44, 20, &state());
        assert!(has(&narrow, "25 % | 0:02 left") && has(&narrow, "train/approx_kl") && !has(&narrow, "episode of"), "{narrow:#?}");
        assert!(!has(&screen(80, 6, &state()), "metrics"));
        for (width, height) in [(1, 1), (2, 3), (10, 10), (30, 12), (300, 5), (20, 100), (250, 90)] {
            screen(width, height, &state());
            screen(width, height, &State::default());
        }
    }

    #[test]
    fn the_curve_keeps_its_ends_and_stays_short() {
        let mut state = State { stride: 1, ..State::default() };
        (0..100_000).for_each(|update| state.add(f64::from(update), 1.0));
        assert!(state.curve.len() < POINTS && state.curve.len() >= POINTS / 2 - 1, "{}", state.curve.len());
        assert!(state.curve[0].0 == 0.0 && state.curve[state.curve.len() - 1].0 > 99_000.0);
        let gaps: Vec<f64> = state.curve.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "points at equal distances");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((rounded(9.0, 475.0), rounded(-1400.3, -150.0), rounded(1.0, 1.0)), ((0.0, 500.0), (-1500.0, 0.0), (0.4, 1.6)));
        assert_eq!(sparkline(&[0.0, 1.0, 0.5]), "▁█▅");
        assert_eq!((precise(0.25), precise(-3e-4), precise(0.0)), ("0.25".into(), "-3.00e-4".into(), "0".into()));
        assert_eq!((count(999.0), count(250_000.0), count(1.5e6)), ("999".into(), "250k".into(), "1.5M".into()));
        assert_eq!((clock(65.2), clock(7265.0), clock(f64::INFINITY)), ("1:05".into(), "2:01:05".into(), "long".into()));
    }
}
