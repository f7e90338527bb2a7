//! Reads text files up to a largest size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The byte order mark, with which some editors begin a file.
pub const MARK: char = '\u{feff}';

/// Reads the text file `path` of at most `most` bytes, without a byte order mark. A folder, a pipe or a device is an error. The error does not name
/// the file.
///
/// ```
/// let path = std::env::temp_dir().join(format!("gradus-{}", std::process::id()));
/// std::fs::write(&path, "\u{feff}S.G")?;
/// assert_eq!(gradus_base::files::read_text(&path, 10).as_deref(), Ok("S.G"));
/// assert_eq!(gradus_base::files::read_text(&path, 5).unwrap_err(), "expected at most 5 bytes, got more");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_text(path: &Path, most: u64) -> Result<String, String> {
    let io = |error: std::io::Error| error.to_string();
    expect_file(path)?;
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most {
        return Err(format!("expected at most {most} bytes, got more"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "expected UTF-8, got other bytes")?;
    Ok(match text.strip_prefix(MARK) {
        Some(rest) => rest.into(),
        None => text,
    })
}

/// Returns an error unless `path` is a file: a world is made more than once, and what a pipe has delivered is gone.
pub fn expect_file(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path).map_err(|error| error.to_string())? {
        data if data.is_file() => Ok(()),
        data if data.is_dir() => Err("expected a file, got a folder".into()),
        _ => Err("expected a file, got a pipe, a socket or a device".into()),
    }
}
