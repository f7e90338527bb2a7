//! Draws scenes in the terminal and as animated GIFs.

#[cfg(feature = "gif")]
pub use gradus_drawing::{Animation, AnimationError};
pub use gradus_drawing::{Frame, still, terminal};

#[cfg(feature = "terminal")]
pub use in_terminal::{columns, has_colours, play_in_terminal, play_with_notes, show};

#[cfg(feature = "terminal")]
mod in_terminal;

/// Writes the animation to `path`, which must end in `.gif`. The file is written atomically.
#[cfg(feature = "gif")]
pub fn write_gif(animation: &Animation, path: &std::path::Path) -> Result<(), crate::Error> {
    use crate::Error;
    use crate::files::{create_parents, remove_leftovers_of, replace};
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gif")) {
        return Err(Error::folder(path, "expected a name ending in .gif"));
    }
    let bytes = animation.encode().map_err(|source| Error::Animation { path: path.into(), source })?;
    remove_leftovers_of(path);
    create_parents(path).and_then(|()| replace(path, &bytes)).map_err(Error::io("write", path))
}

#[cfg(all(test, feature = "gif"))]
mod tests {
    use super::*;
    use gradus_envs::{Ink, Scene, Shape};
    use gradus_testing::tempdir;

    #[test]
    fn errors_are_one_line_and_name_the_file() {
        let folder = tempdir().expect("a temporary folder");
        let shapes = vec![Shape::Disc { centre: [0.0, 0.5], radius: 0.3, ink: Ink::Body }];
        let frames = [Frame { scene: Scene { x: [-2.0, 2.0], y: [-0.5, 1.5], shapes }, step: 0, return_so_far: 0.0 }];
        let message = |frames: &[Frame], name: &str| {
            let animation = Animation { title: String::new(), chapters: &[], frames, frames_per_second: 25 };
            let error = write_gif(&animation, &folder.path().join(name)).expect_err("an error").to_string();
            error.replace(&format!("{}/", folder.path().display()), "")
        };
        assert_eq!(message(&frames, "a.mp4"), "a.mp4: expected a name ending in .gif");
        assert_eq!(message(&[], "a.gif"), "a.gif: expected at least one frame, got none");
        std::fs::write(folder.path().join("file"), "").expect("a file");
        assert!(message(&frames, "file/a.gif").starts_with("cannot write file/a.gif: file is not a folder"));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing was written");
    }
}
