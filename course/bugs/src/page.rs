//! The page of the bugs, `docs/course/bugs.md`.

use std::fmt::Write;

use crate::bug::Bug;

const HEAD: &str = "\
<!-- unchecked: numbers of symptoms, and settings -->
# The failure set

**Twenty-four agents with a bug each.** Reinforcement learning fails silently: nothing crashes, and a curve is a little lower than it should be. To find out why is most of the work. Each agent here is one file, everything in it is right but for one place, and each bug is one that was found in public code.

```sh
gradus course bug list          # in the folder of your course
gradus course bug 3             # opens bug 3: what one sees, and with which commands to look
gradus course bug 3 --hint      # a hint; each call says more
gradus course bug 3 --check     # compares the first updates of your agent with those of the right one
```

The first call builds the agents once, in one to four minutes. They are in `bugs/src`, and in the folder `bugs` all commands of `gradus` know them: `cargo run -- train bug-3 cartpole`, `probe`, `explain`, `inspect`, `plot`. The right agents are there as well, as `course-ppo`, `course-dqn` and so on: `gradus course bug 3` says how to train the one beside bug 3, and `cargo run -- plot runs/3 runs/3-right` draws both in one figure.

Do not read the file from top to bottom first, and do not compare the files of two bugs. Look at what the agent does, say what that could come from, and find the command that would tell; then read the place.
The check compares the first updates with those of the right agent, in several environments and with several settings, and names the first number that differs. So a fix that only hides the symptom is not accepted, and neither is one that puts a number where a setting belongs. All opened agents are one program: a file that does not compile stops the checks of the others.

## How far they are from right

Twenty seeds of each agent, with and without its bug. The number is the mean return over the whole training, or the mean of a metric in the last fifth of it. The last column is the probability that a run *without* the bug has the higher number, with the interval of 95 % that the bootstrap gives. Where all twenty runs of one agent are above all of the other, that interval has no width; the twenty pairs of seeds alone say that the probability is above 0.83.

<!-- checked -->

";

const AFTER: &str = "\
<!--1-->

Some are far from right and some hardly, and a few have a return that nobody would doubt. `scripts/bugs.sh results/bugs` trains them again, and `scripts/bugs.sh` checks that every bug and at least three wrong fixes of each are refused, and two right forms accepted.

<!-- unchecked: numbers of symptoms, and settings -->

";

/// Returns the page; `separation` is the table of the trainings, `separation.csv`.
pub(crate) fn page(separation: &str) -> String {
    let mut text = HEAD.to_owned();
    text += "| bug | agent | number | without the bug | with it | without is higher |\n| --- | --- | --- | --- | --- | --- |\n";
    for bug in Bug::all() {
        let cells = cells(separation, bug);
        let number = |place: usize| number(&cells, place);
        let [better, low, high] = [3, 4, 5].map(|place| format!("{:.2}", number(place)));
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {better} [{low}, {high}] |",
            bug.number,
            bug.agent_name(),
            cells.first().unwrap_or(&""),
            short(number(1)),
            short(number(2))
        );
    }
    text += AFTER;
    for bug in Bug::all() {
        let [right, wrong] = [1, 2].map(|place| number(&cells(separation, bug), place));
        let tool = bug.tool.replace("{}", &bug.name()).replace(", then ", "\n");
        _ = write!(
            text,
            "## {}: {}\n\n*{}.* {}\n\n```sh\n{tool}\n```\n\n![{} without and with bug {}: {}, {} without the bug and {} with it](../../results/bugs/bug-{}.svg)\n\n",
            bug.number,
            bug.title,
            bug.agent_name(),
            bug.symptom.split_whitespace().collect::<Vec<_>>().join(" "),
            bug.agent_name(),
            bug.number,
            bug.metric.as_ref().map_or("return over the training, on average".into(), |metric| format!("{metric}, in the last fifth")),
            short(right),
            short(wrong),
            bug.number
        );
    }
    text + "<!-- checked -->\n"
}

/// The row of a bug in the table.
fn cells<'a>(separation: &'a str, bug: &Bug) -> Vec<&'a str> {
    let row = separation.lines().find_map(|line| line.strip_prefix(&format!("{},", bug.number)));
    row.unwrap_or_default().split(',').collect()
}

fn number(cells: &[&str], place: usize) -> f64 {
    cells.get(place).and_then(|cell| cell.parse().ok()).unwrap_or(f64::NAN)
}

/// Three digits of a number.
fn short(number: f64) -> String {
    let text = match number.abs() {
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    /// Write it again: `GRADUS_WRITE=1 cargo test -p gradus-bugs`.
    #[test]
    fn the_page_has_the_words_of_the_bugs() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let Ok(separation) = std::fs::read_to_string(format!("{root}/results/bugs/separation.csv")) else { return };
        let (path, text) = (format!("{root}/docs/course/bugs.md"), super::page(&separation));
        if std::env::var_os("GRADUS_WRITE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text);
    }
}
