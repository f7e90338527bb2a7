//! Environments in the terminal.

use std::io::{self, IsTerminal, Write};
use std::thread::sleep;
use std::time::Duration;

use gradus_drawing::{Frame, terminal};
use gradus_envs::{Scene, SingleEnv};

use crate::Error;
use crate::numbers::short;

/// Shows the current state of an environment in the terminal for a fiftieth of a second, which is the duration of CartPole's steps. Does
/// nothing if standard output is not a terminal.
pub fn show(env: &mut SingleEnv) -> Result<(), Error> {
    let mut out = io::stdout();
    if out.is_terminal() {
        let picture = env.render()?.map_or_else(String::new, |scene| picture(&scene).join("\x1b[K\n"));
        let text = env.ansi()?.unwrap_or_default();
        // starts at the upper left corner, and clears the rest of each line and then the rest of the screen
        let line = format!("step {}, return {}", env.length(), short(env.episode_return()));
        let _ = write!(out, "\x1b[H{picture}{text}\x1b[K\n{line}\x1b[J\n");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Plays the frames of an episode in the terminal, at `per_second` frames per second. If standard output is not a terminal, prints only the last one.
pub fn play_in_terminal(frames: &[Frame], per_second: u32) -> io::Result<()> {
    play_with_notes(frames, &[], per_second)
}

/// As [`play_in_terminal`], with a line below the picture for each frame, at two frames per second so that it can be read.
pub fn play_with_notes(frames: &[Frame], notes: &[String], per_second: u32) -> io::Result<()> {
    let pause = Duration::from_secs(1) / if notes.is_empty() { per_second.max(1) } else { 2 };
    let mut out = io::stdout();
    // a terminal that cannot move its cursor shows the last frame, too
    if !out.is_terminal() || std::env::var_os("TERM").is_some_and(|kind| kind == "dumb") {
        return frames.last().map_or(Ok(()), |frame| writeln!(out, "{}", picture(&frame.scene).join("\n")));
    }
    for (i, frame) in frames.iter().enumerate() {
        let start = if frame.step == 0 { "\x1b[2J\x1b[H" } else { "\x1b[H" };
        let (picture, shown) = (picture(&frame.scene).join("\x1b[K\n"), short(frame.return_so_far));
        // a closed terminal ends the program by a signal
        let _ = writeln!(out, "{start}{picture}\x1b[K\nstep {}, return {shown}\x1b[K", frame.step);
        if !notes.is_empty() {
            let _ = writeln!(out, "{}\x1b[K", notes.get(i).map_or("", String::as_str));
        }
        sleep(pause);
    }
    Ok(())
}

/// Whether standard output shows colours: a terminal, unless the variables `NO_COLOR`, `CLICOLOR` or `TERM` say otherwise, or `CLICOLOR_FORCE` is set.
pub fn has_colours() -> bool {
    console::colors_enabled()
}

/// Returns the columns of the terminal that shows standard output; `None` if it is no terminal.
pub fn columns() -> Option<usize> {
    io::stdout().is_terminal().then(|| usize::from(console::Term::stdout().size().1))
}

/// Draws a scene in the size of the terminal, with room for the line that shows step and return, and for the cursor.
fn picture(scene: &Scene) -> Vec<String> {
    let (lines, columns) = console::Term::stdout().size();
    let (columns, lines) = (usize::from(columns).min(78), usize::from(lines).saturating_sub(3).clamp(1, 16));
    let draw = if has_colours() { terminal::draw_in_colour } else { terminal::draw };
    draw(scene, columns, lines)
}
