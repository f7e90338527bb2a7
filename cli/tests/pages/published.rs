//! The numbers on this repository's pages agree with the tables, and the tables of aggregates agree with the tables of evaluations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gradus_compare as compare;

fn root() -> &'static Path {
    gradus_testing::root()
}

/// Returns the README, the lessons and every page of results.
fn all_pages() -> Vec<PathBuf> {
    let in_folders_of =
        |folder: &str| fs::read_dir(root().join(folder)).into_iter().flatten().map(|entry| entry.unwrap().path().join("README.md"));
    let folders = in_folders_of("results").chain(in_folders_of("results/reproductions"));
    let lessons = fs::read_dir(root().join("docs/course")).unwrap().map(|entry| entry.unwrap().path());
    let lessons = lessons.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    std::iter::once(root().join("README.md")).chain(lessons).chain(folders).filter(|path| path.is_file()).collect()
}

#[test]
fn pages_agree_with_their_tables() {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).arg("pages").args(all_pages()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let holds: u32 = text.lines().last().and_then(|line| line.split(' ').next()).and_then(|count| count.parse().ok()).unwrap();
    assert!(holds > 200, "only {holds} numbers and claims were checked");
}

/// With `GRADUS_WRITE=1` the summaries are written instead, after a change of their text.
#[test]
fn aggregates_agree_with_the_evaluations() {
    let mut folders = vec![root().join("results")];
    let mut compared = 0;
    while let Some(folder) = folders.pop() {
        folders.extend(fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
        if !folder.join("comparison.toml").exists() {
            continue;
        }
        let [csv, md] = compare::summaries(&folder).unwrap();
        for (name, computed) in [("summary.csv", csv), ("summary.md", md)] {
            let path = folder.join(name);
            if std::env::var_os("GRADUS_WRITE").is_some() {
                fs::write(&path, &computed).unwrap();
            }
            assert!(fs::read_to_string(&path).unwrap() == computed, "{} differs from the summary of results.csv", path.display());
            compared += 1;
        }
    }
    assert!(compared >= 10, "only {compared} tables were compared");
}

/// A reader who runs `gradus verify` on a published folder finds every file as its list of hashes says.
#[test]
fn published_folders_are_intact() {
    let (mut folders, mut verified) = (vec![root().join("results")], 0);
    while let Some(folder) = folders.pop() {
        folders.extend(fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
        if folder.join("SHA256SUMS").exists() {
            let output = Command::new(env!("CARGO_BIN_EXE_gradus")).arg("verify").arg(&folder).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            verified += 1;
        }
    }
    assert!(verified >= 10, "only {verified} folders were verified");
}

/// No label of a published figure is cut.
#[test]
fn published_figures_have_whole_labels() {
    let (mut folders, mut figures) = (vec![root().join("results"), root().join("docs")], 0);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "svg") {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains('…'), "{}: a label is cut", path.display());
                figures += 1;
            }
        }
    }
    assert!(figures > 100, "only {figures} figures were looked at");
}

/// `gradus pages` fails on a planted wrong number, count and claim in a copy of a published page, and `--write` corrects wrong digits.
#[test]
fn planted_faults_are_found() {
    let dir = gradus_testing::tempdir().unwrap();
    let tables = |folder: &Path| -> Vec<PathBuf> {
        let files = fs::read_dir(root().join("results/cartpole").join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ["csv", "md", "sources"].iter().any(|known| ending == *known))).collect()
    };
    for folder in ["", "critic", "staleness", "values"] {
        let to = dir.path().join(folder);
        fs::create_dir_all(&to).unwrap();
        tables(Path::new(folder)).iter().for_each(|file| _ = fs::copy(file, to.join(file.file_name().unwrap())).unwrap());
    }
    let [page, sources] = ["README.md", "README.sources"].map(|name| dir.path().join(name));
    let [text, queries] = [&page, &sources].map(|path| fs::read_to_string(path).unwrap());
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir.path()).arg("pages").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["README.md"]).0, Some(0), "{}", run(&["README.md"]).1);
    let planted = |marker: &str, plant: &dyn Fn(&str) -> String| {
        let at = text.find(marker).unwrap();
        let start = text[..at].rfind(|c: char| c.is_whitespace() || "(|".contains(c)).unwrap() + 1;
        format!("{}{}{}", &text[..start], plant(&text[start..at]), &text[at..])
    };
    // a number with a decimal, a count, and a false claim
    let line = queries.lines().find(|line| line.contains(" = min mean_of_last_100")).unwrap();
    let marker = format!("<!--{}-->", line.split(' ').next().unwrap());
    let number = planted(&marker, &|old| format!("{:.1}", old.parse::<f64>().unwrap() + 0.1));
    let count = planted(" | 0 |\n| REINFORCE, mean |", &|old| (old.replace(' ', "").parse::<u32>().unwrap() + 1).to_string());
    let claim = queries.replacen(" ? ", " ? 0 > 1 and ", 1);
    for (page_now, queries_now, fault) in
        [(&number, &queries, "the tables say"), (&count, &queries, "the tables say"), (&text, &claim, "the claim does not hold")]
    {
        fs::write(&page, page_now).unwrap();
        fs::write(&sources, queries_now).unwrap();
        let (code, printed) = run(&["README.md"]);
        assert!(code == Some(1) && printed.lines().count() == 2 && printed.contains(fault), "{printed}");
    }
    // wrong digits are corrected
    fs::write(&page, planted(&marker, &|_| "7.0".into())).unwrap();
    fs::write(&sources, &queries).unwrap();
    assert_eq!(run(&["README.md", "--write"]).0, Some(0), "a corrected number is reported as wrong");
    assert!(fs::read_to_string(&page).unwrap() == text && fs::read_to_string(&sources).unwrap() == queries);
    let (code, printed) = run(&["none.md"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""));
}

/// The counts that the program states are those of the runs.
#[test]
fn what_defaults_reach_is_counted_from_their_runs() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let rows = |text: &str| -> Vec<Vec<String>> { text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect() };
    let runs = rows(&read("results/defaults/runs.csv"));
    let counted = rows(&read("agents/presets/reached.csv"));
    assert!(counted.len() >= 60, "{}", counted.len());
    for row in counted {
        let own: Vec<f64> = runs.iter().filter(|run| run[..3] == row[..3]).map(|run| run[5].parse().unwrap()).collect();
        let level: f64 = row[4].parse().unwrap();
        let reached = own.iter().filter(|value| **value >= level).count();
        assert_eq!((own.len().to_string(), reached.to_string()), (row[6].clone(), row[7].clone()), "{row:?}");
        let seeds: std::collections::BTreeSet<&String> = runs.iter().filter(|run| run[..3] == row[..3]).map(|run| &run[3]).collect();
        assert_eq!(seeds.len(), own.len(), "{row:?}: each seed once");
    }
}
