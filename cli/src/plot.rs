//! `gradus plot`: draws run folders, or a table of results.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gradus::figure::{Format, missing_letters};
use gradus::{Error, Show};
use gradus_compare::runs::{Plot, Seeds, plot_runs};
use gradus_compare::{Statistic, plot_results, table_of};

use crate::arguments::number;
use crate::folder::with_runs_inside;
use crate::output::{complain, say, warn};

#[derive(Args)]
pub(crate) struct Draw {
    /// Run folders, folders of runs such as `runs`, or one comparison: its folder or its results.csv.
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Column of metrics.csv to draw instead of the return, such as train/approx_kl; may be repeated, for one panel per column.
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Name in the legend; repeated for each line, in the order of the folders [default: the folders' names]
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// Length of the trailing mean, in episodes or, with --metric, in updates [default: 100 episodes, or a fiftieth of the updates]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    window: Option<String>,
    /// The x axis: environment steps, seconds of training, or steps on a logarithmic axis.
    #[arg(long, value_enum, default_value_t = X::Steps)]
    x: X,
    /// The ends of the y axis, such as -100,0 [default: those of the lines, without extremes]
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    y: Option<String>,
    /// Show the mean over seeds instead of the interquartile mean.
    #[arg(long)]
    mean: bool,
    /// Draw one line per run instead of a band over seeds.
    #[arg(long, conflicts_with = "mean")]
    each: bool,
    /// Figure to write, .svg, .png or .pdf [default: curve.svg and curve.png, or with --metric metrics.svg and metrics.png; these are in
    /// the run folder if only one run folder is given, otherwise in the current folder]. For a table: folder of the figures [default: the
    /// table's folder]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Formats of the figures, such as pdf or svg,pdf [default: svg,png, or the ending of --out]
    #[arg(long = "format", value_name = "FORMAT", value_parser = format, value_delimiter = ',')]
    formats: Vec<Format>,
}

fn format(text: &str) -> Result<Format, String> {
    let named = Format::ALL.into_iter().find(|format| format.ending() == text.to_lowercase());
    named.ok_or_else(|| "expected svg, png or pdf".to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum X {
    Steps,
    Time,
    Log,
}

pub(crate) fn run(mut arguments: Draw) -> Result<u8, Error> {
    for dir in &mut arguments.dirs {
        *dir = table_of(dir).unwrap_or_else(|| dir.clone());
    }
    let is_table = |path: &&PathBuf| path.is_file() || path.extension().is_some_and(|ending| ending == "csv");
    if let Some(table) = arguments.dirs.iter().find(is_table) {
        return draw_table(&arguments, table);
    }
    // of the runs in a folder, those that have what is drawn; `gradus sft` writes no episodes
    let named = arguments.dirs.clone();
    let table = if arguments.metrics.is_empty() { "episodes.csv" } else { "metrics.csv" };
    let (shown, left): (Vec<PathBuf>, Vec<PathBuf>) =
        with_runs_inside(arguments.dirs).into_iter().partition(|dir| named.contains(dir) || dir.join(table).exists());
    left.iter().for_each(|dir| warn(&format!("{}: not drawn, because it has no {table}", dir.display())));
    arguments.dirs = if shown.is_empty() { named } else { shown };
    let window = arguments.window.as_deref().map(|text| number("--window", text, 1)).transpose()?;
    let seeds = match (arguments.mean, arguments.each) {
        (true, _) => Seeds::Mean,
        (_, true) => Seeds::Each,
        _ => Seeds::Iqm,
    };
    if let (Some(out), [_, ..]) = (&arguments.out, &arguments.formats[..]) {
        let expected = "--format or --out for run folders, because the ending of --out is the format".into();
        return Err(Error::Parse { what: "plot".into(), expected, got: format!("both, with --out {}", out.display()) });
    }
    let stem = if arguments.metrics.is_empty() { "curve" } else { "metrics" };
    let folder = if let [dir] = &arguments.dirs[..] { dir } else { Path::new("") };
    let files: Vec<PathBuf> = match &arguments.out {
        Some(out) => vec![out.clone()],
        None => arguments.formats().iter().map(|format| folder.join(format!("{stem}.{}", format.ending()))).collect(),
    };
    let Draw { metrics, labels, dirs, x, y, .. } = arguments;
    let names = dirs.iter().map(|dir| dir.display().to_string()).collect::<String>();
    let names = if labels.is_empty() && dirs.len() > 1 { names } else { labels.concat() };
    let y_range = y.as_deref().map(range).transpose()?;
    let window = window.map(|window| window as usize);
    let plot = Plot { metrics, labels, window, over_seconds: x == X::Time, log_x: x == X::Log, y_range, seeds };
    let replaced: Vec<bool> = files.iter().map(|file| file.exists()).collect();
    for missing in plot_runs(&dirs, &plot, &files)? {
        complain(format!("warning: {missing}"));
    }
    for (file, was_there) in files.iter().zip(replaced) {
        say(format!("{}{}", file.display(), if was_there { ", in place of the one that was there" } else { "" }));
    }
    warn_of_letters(&names, &files);
    Ok(0)
}

/// Reads two numbers, the second above the first.
fn range(text: &str) -> Result<(f64, f64), Error> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|part| part.trim().parse().ok().filter(|number: &f64| number.is_finite())).collect();
    match numbers.as_deref() {
        Some([low, high]) if low < high => Ok((*low, *high)),
        _ => Err(Error::Parse {
            what: "--y".into(),
            expected: "two numbers, the second above the first, such as -100,0".into(),
            got: text.into(),
        }),
    }
}

impl Draw {
    fn formats(&self) -> &[Format] {
        if self.formats.is_empty() { &Format::USUAL } else { &self.formats }
    }
}

/// Warns of letters in `text` that the bundled font lacks, if a file among `files` shows a box instead.
pub(crate) fn warn_of_letters(text: &str, files: &[PathBuf]) {
    let missing = missing_letters(text);
    let boxed = files.iter().find(|file| file.extension().is_some_and(|ending| !ending.eq_ignore_ascii_case("svg")));
    if let (false, Some(file)) = (missing.is_empty(), boxed) {
        let advice = "an SVG shows them in the fonts of its viewer";
        complain(format!("warning: {}: the bundled font lacks `{missing}` and shows boxes instead; {advice}", file.display()));
    }
}

/// Draws the figures of a table of results.
fn draw_table(arguments: &Draw, table: &Path) -> Result<u8, Error> {
    let Draw { dirs, metrics, labels, window, x, y, each, .. } = arguments;
    let got = table.display().to_string();
    let wrong = |what: &str, expected: &str| Err(Error::Parse { what: what.into(), expected: expected.into(), got: got.clone() });
    if dirs.len() > 1 {
        let expected = "one table of results, or only run folders".into();
        return Err(Error::Parse { what: "plot".into(), expected, got: format!("{got} and others") });
    }
    if !metrics.is_empty() {
        return wrong("--metric", "run folders, because a table of results has no metrics");
    }
    for (option, is_given) in
        [("--label", !labels.is_empty()), ("--window", window.is_some()), ("--x", *x != X::Steps), ("--y", y.is_some()), ("--each", *each)]
    {
        if is_given {
            return wrong(option, "run folders, because the comparison's file determines its figures");
        }
    }
    let is_figure = |path: &Path| Format::ALL.iter().any(|format| path.extension().is_some_and(|ending| ending == format.ending()));
    if let Some(out) = arguments.out.as_deref().filter(|out| is_figure(out)) {
        let expected = "a folder for all figures of a table; their format is given with --format, such as --format pdf".into();
        return Err(Error::Parse { what: "--out".into(), expected, got: out.display().to_string() });
    }
    let folder = table.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let statistic = arguments.mean.then_some(Statistic::Mean);
    let files = plot_results(table, arguments.out.as_deref().unwrap_or(folder), statistic, arguments.formats(), Show::Progress)?;
    files.iter().for_each(|file| say(file.display().to_string()));
    // the names of agents are the only words in a table that may not be English
    warn_of_letters(&String::from_utf8_lossy(&std::fs::read(table).unwrap_or_default()), &files);
    Ok(0)
}
