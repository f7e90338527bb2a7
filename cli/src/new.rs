//! `gradus new`: writes a crate with an environment and an agent of its own.

use std::fs;
use std::path::{Path, PathBuf, absolute};

use clap::Args;
use gradus::Error;

use crate::folder::{self, io};
use crate::output::{quoted, say};

/// The files of the crate, which are those of `examples/own_crate`.
const FILES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("new/manifest.toml")),
    (".gitignore", include_str!("new/gitignore")),
    ("README.md", include_str!("new/README.md")),
    ("compare.toml", include_str!("new/compare.toml")),
    ("presets/awr/thermostat/default.toml", include_str!("new/preset.toml")),
    ("src/main.rs", include_str!("new/main.rs")),
    ("src/awr.rs", include_str!("new/awr.rs")),
    ("src/thermostat.rs", include_str!("new/thermostat.rs")),
];

/// The folder of this program's source, `cli/` in that of Gradus.
const SOURCE: &str = env!("CARGO_MANIFEST_DIR");

#[derive(Args)]
pub(crate) struct New {
    /// Folder of the crate, which must be new or empty.
    dir: PathBuf,
    /// Name of the crate [default: the folder's name]
    #[arg(long)]
    name: Option<String>,
    /// Folder of Gradus's source, for the dependency [default: the source that this program was built from]
    #[arg(long, value_name = "GRADUS")]
    path: Option<PathBuf>,
}

pub(crate) fn run(arguments: &New) -> Result<u8, Error> {
    let dir = absolute(&arguments.dir).map_err(|source| io("find", &arguments.dir, source))?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => dir.file_name().unwrap_or_default().display().to_string(),
    };
    check_name(&name)?;
    let dependencies = dependencies(arguments.path.as_deref(), [".", "cli"])?;
    folder::create(&arguments.dir, |temporary| write(temporary, &name, &dependencies))?;
    say(format!("{}: a crate with an environment (src/thermostat.rs) and an agent (src/awr.rs) of its own", arguments.dir.display()));
    say(format!("begin with: cd {} && cargo run -- train awr thermostat", quoted(&arguments.dir.display().to_string())));
    Ok(0)
}

/// Writes the files of the crate `name` to the new folder `dir`.
fn write(dir: &Path, name: &str, [library, command]: &[String; 2]) -> Result<(), Error> {
    for (file, text) in FILES {
        let path = dir.join(file);
        let folder = path.parent().unwrap_or(dir);
        fs::create_dir_all(folder).map_err(|source| io("create", folder, source))?;
        let text = text.replace("own_crate", name).replace(r#"path = "../..""#, library).replace(r#"path = "../../cli""#, command);
        fs::write(&path, text).map_err(|source| io("write", &path, source))?;
    }
    Ok(())
}

/// Returns the parts of the dependency lines that say where the crates in these folders of Gradus's source are: in the folder `path`, in
/// that of this program's source or, if this program was installed from a registry, at a version.
pub(crate) fn dependencies<const N: usize>(path: Option<&Path>, folders: [&str; N]) -> Result<[String; N], Error> {
    let Some(source) = source(path)? else {
        return Ok(folders.map(|_| concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"").into()));
    };
    // a string of TOML; Cargo reads forward slashes on every system
    let shown = |folder: &Path| if cfg!(windows) { folder.display().to_string().replace('\\', "/") } else { folder.display().to_string() };
    let quoted = |folder: &Path| shown(folder).replace('\\', "\\\\").replace('"', "\\\"");
    Ok(folders.map(|name| format!("path = \"{}\"", quoted(&if name == "." { source.clone() } else { source.join(name) }))))
}

/// Returns the folder of Gradus's source; `None` if this program was installed from a registry.
pub(crate) fn source(path: Option<&Path>) -> Result<Option<PathBuf>, Error> {
    let source = Path::new(SOURCE).parent().unwrap_or(Path::new(SOURCE));
    let is_source = |dir: &Path| {
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == r#"name = "gradus""#)
    };
    match path {
        Some(path) if !is_source(path) => {
            let problem = "expected the folder of Gradus's source, got one without its Cargo.toml".into();
            Err(Error::Folder { path: path.into(), problem })
        }
        Some(path) => absolute(path).map(Some).map_err(|source| io("find", path, source)),
        None if SOURCE.contains("registry") && SOURCE.contains("gradus-") => Ok(None),
        None if !is_source(source) => {
            let problem = "expected Gradus's source, from which this program was built, got none; name another folder with --path".into();
            Err(Error::Folder { path: source.into(), problem })
        }
        None => Ok(Some(source.into())),
    }
}

/// Checks that cargo accepts the name of a crate.
pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    const TAKEN: [&str; 10] = ["gradus", "gradus-cli", "gradus_cli", "test", "core", "std", "alloc", "proc_macro", "build", "deps"];
    const KEYWORDS: [&str; 20] = [
        "as", "async", "await", "const", "crate", "dyn", "else", "enum", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
        "move", "type", "use",
    ];
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_letter);
    if is_plain && !TAKEN.contains(&name) && !KEYWORDS.contains(&name) {
        return Ok(());
    }
    let expected = "letters, digits, - and _ after a first letter, and no reserved word; choose another name with --name";
    Err(Error::Parse { what: "name of the crate".into(), expected: expected.into(), got: format!("`{name}`") })
}
