//! Draws scenes in the terminal and as animated GIFs.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

pub use gradus_drawing::{Animation, AnimationError, Frame, terminal};
use gradus_envs::{Scene, SingleEnv};

use crate::Error;
use crate::files::replace;
use crate::numbers::short;

/// Writes the animation to `path`, which must end in `.gif`. The file is written atomically.
pub fn write_gif(animation: &Animation, path: &Path) -> Result<(), Error> {
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gif")) {
        return Err(Error::folder(path, "expected a name ending in .gif"));
    }
    let bytes = animation.encode().map_err(|source| Error::Animation { path: path.into(), source })?;
    replace(path, &bytes).map_err(Error::io("write", path))
}

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
        sleep(STEP);
    }
    Ok(())
}

/// Plays the frames of an episode in the terminal, at fifty frames per second. If standard output is not a terminal, prints only the last one.
pub fn play_in_terminal(frames: &[Frame]) -> io::Result<()> {
    let mut out = io::stdout();
    if !out.is_terminal() {
        return frames.last().map_or(Ok(()), |frame| writeln!(out, "{}", picture(&frame.scene).join("\n")));
    }
    for frame in frames {
        let start = if frame.step == 0 { "\x1b[2J\x1b[H" } else { "\x1b[H" };
        let (picture, shown) = (picture(&frame.scene).join("\x1b[K\n"), short(frame.return_so_far));
        // a closed terminal ends the program by a signal
        let _ = writeln!(out, "{start}{picture}\x1b[K\nstep {}, return {shown}\x1b[K", frame.step);
        sleep(STEP);
    }
    Ok(())
}

/// The time between two frames in the terminal.
const STEP: Duration = Duration::from_millis(20);

/// Draws a scene in the size of the terminal, with room for the line that shows step and return, and for the cursor.
fn picture(scene: &Scene) -> Vec<String> {
    let (lines, columns) = console::Term::stdout().size();
    terminal::draw(scene, usize::from(columns).min(78), usize::from(lines).saturating_sub(3).clamp(1, 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary::tempdir;
    use gradus_envs::{Ink, Scene, Shape};

    #[test]
    fn errors_are_one_line_and_name_the_file() {
        let folder = tempdir().expect("a temporary folder");
        let shapes = vec![Shape::Disc { centre: [0.0, 0.5], radius: 0.3, ink: Ink::Body }];
        let frames = [Frame { scene: Scene { x: [-2.0, 2.0], y: [-0.5, 1.5], shapes }, step: 0, return_so_far: 0.0 }];
        let message = |frames: &[Frame], name: &str| {
            let animation = Animation { title: String::new(), frames, frames_per_second: 25 };
            let error = write_gif(&animation, &folder.path().join(name)).expect_err("an error").to_string();
            error.replace(&format!("{}/", folder.path().display()), "")
        };
        assert_eq!(message(&frames, "a.mp4"), "a.mp4: expected a name ending in .gif");
        assert_eq!(message(&[], "a.gif"), "a.gif: expected at least one frame, got none");
        assert!(message(&frames, "missing/a.gif").starts_with("cannot write missing/a.gif: "));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing was written");
    }
}
