//! Draws the dashboard.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, Gauge, GraphType, Paragraph, Wrap};

use super::{Controls, FRAMES, STEP, State, TREND};
use gradus::draw::terminal;
use gradus::numbers::short;

/// From this width on, the curve is beside the rest; below it, above the rest.
const WIDE: u16 = 100;
/// Below this width, there is no episode.
const NARROW: u16 = 56;
/// Below this height, there is only the line of progress.
const LOW: u16 = 10;

/// Draws the trainings side by side, above the keys.
pub(super) fn draw(frame: &mut Frame, panes: &[State], controls: Controls) {
    let [body, keys] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
    draw_keys(frame, keys, panes, controls);
    let areas = Layout::horizontal(panes.iter().map(|_| Constraint::Fill(1))).spacing(1).split(body);
    areas.iter().zip(panes).for_each(|(area, state)| draw_pane(frame, *area, state, controls));
}

/// Draws the line with the keys: as many of them as fit.
fn draw_keys(frame: &mut Frame, area: Rect, panes: &[State], controls: Controls) {
    let has_values = panes.iter().any(|state| state.grid.is_some());
    let other = if controls.shows_values { "v: episode" } else { "v: values" };
    let keys = match (panes.iter().all(|state| state.is_finished), controls.is_stopping) {
        (true, _) => vec!["any key: leave"],
        (false, true) => vec!["stopping after this update"],
        (false, false) => vec!["q: stop and save", "space: pause", ".: one", "+ -: speed"],
    };
    let pace = controls.pace.in_words();
    let room = usize::from(area.width).saturating_sub(pace.len());
    let mut all = String::new();
    for key in keys.into_iter().chain(has_values.then_some(other)) {
        if all.len() + key.len() + 2 <= room {
            all += &format!(" {key} ");
        }
    }
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(all.len() as u16)]).areas(area);
    frame.render_widget(Line::from(pace.bold()), left);
    frame.render_widget(Line::from(all.reversed()).alignment(Alignment::Right), right);
}

fn draw_pane(frame: &mut Frame, area: Rect, state: &State, controls: Controls) {
    let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Fill(1)]).areas(area);
    draw_head(frame, head, state, controls);
    if area.height + 1 < LOW {
        return;
    }
    let shows_values = controls.shows_values && state.grid.is_some();
    let draw_picture =
        |frame: &mut Frame, area| if shows_values { draw_values(frame, area, state) } else { draw_episode(frame, area, state) };
    if area.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(58), Constraint::Percentage(42)]).areas(body);
        let [top, bottom] = Layout::vertical([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(right);
        // values need room for their numbers
        let (of_curve, of_picture) = if shows_values { (top, left) } else { (left, top) };
        draw_curve(frame, of_curve, state);
        draw_picture(frame, of_picture);
        draw_metrics(frame, bottom, state);
    } else {
        let [top, bottom] = Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(body);
        let share = if area.width < NARROW { 0 } else { 45 };
        let [left, right] = Layout::horizontal([Constraint::Percentage(share), Constraint::Fill(1)]).areas(bottom);
        if shows_values {
            draw_values(frame, top, state);
        } else {
            draw_curve(frame, top, state);
        }
        match (share > 0, shows_values) {
            (true, true) => draw_curve(frame, left, state),
            (true, false) => draw_episode(frame, left, state),
            (false, _) => {}
        }
        draw_metrics(frame, right, state);
    }
}

fn draw_values(frame: &mut Frame, area: Rect, state: &State) {
    let block = panel(" values and best actions ".into());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if let Some(grid) = &state.grid {
        grid.draw(frame, inner);
    }
}

fn draw_head(frame: &mut Frame, area: Rect, state: &State, controls: Controls) {
    let [line, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    frame.render_widget(Line::from(vec![state.title.as_str().bold(), format!("  {}", state.folder).dim()]), line);
    let part = (state.steps as f64 / state.total.max(1) as f64).clamp(0.0, 1.0);
    let remaining = (state.total.saturating_sub(state.steps)) as f64 / state.rate.max(1e-9);
    // a long update moves nothing else
    let waited = state.updated.map_or(0.0, |updated| updated.elapsed().as_secs_f64());
    let updating = if waited >= 3.0 && !controls.pace.is_slow() { format!(", {} in this update", clock(waited)) } else { String::new() };
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
    use crate::watch::pace::Pace;
    use crate::watch::{Episode, Moment};
    use gradus::envs::{Ink, Scene, Shape};
    use std::sync::Arc;

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
    fn screen(width: u16, height: u16, panes: &[State]) -> Vec<String> {
        let controls = Controls { pace: Pace::new(false), shows_values: true, is_stopping: false };
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, panes, controls)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(row).collect()
    }

    #[test]
    fn the_dashboard_adapts_to_the_terminal() {
        let has = |lines: &[String], what: &str| lines.iter().any(|line| line.contains(what));
        let wide = screen(120, 40, &[state()]);
        for part in [
            "ppo on CartPole-v1, seed 1",
            "25k of 100k steps | 50k steps/s | 0:02 left",
            "return 250 ± 10 (mean of the last 100 episodes)",
            "q: stop and save",
        ] {
            assert!(has(&wide, part), "{part}: {wide:#?}");
        }
        assert!(wide[2].contains("return 250") && wide[2].contains("episode of"), "the episode is beside the curve: {wide:#?}");
        let usual = screen(80, 24, &[state()]);
        assert!(usual[2].contains("return 250") && !usual[2].contains("episode of"), "the episode is below the curve: {usual:#?}");
        assert!(has(&usual, "step 0, return 0") && has(&usual, "train/approx_kl"), "{usual:#?}");
        let narrow = screen(44, 20, &[state()]);
        assert!(has(&narrow, "25 % | 0:02 left") && has(&narrow, "train/approx_kl") && !has(&narrow, "episode of"), "{narrow:#?}");
        assert!(!has(&screen(80, 6, &[state()]), "metrics"));
        for (width, height) in [(1, 1), (2, 3), (10, 10), (30, 12), (300, 5), (20, 100), (250, 90)] {
            screen(width, height, &[state()]);
            screen(width, height, &[State::default()]);
        }
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
