//! The page of a reproduction, and the gallery of all.

use std::fmt::Write;
use std::path::Path;

use super::experiment::Experiment;
use super::findings::{Answer, Claim, counted, counts, verdict};
use super::{Reproduction, pages};
use gradus::Error;

/// Returns the queries of a claim's numbers for `gradus pages`.
fn queries(claim: &Claim, number: usize, folder: &str) -> String {
    let columns: &[&str] = if claim.estimate.low == claim.estimate.high { &["point"] } else { &["point", "low", "high"] };
    let query = |column: &&str| format!("value {column} in {folder}verdict.csv where claim={number}");
    columns.iter().map(query).collect::<Vec<_>>().join("; ")
}

/// Returns the main sentence of the publication, and how many of its claims hold, in words with queries.
fn summary(main: &str, found: &[Claim]) -> String {
    let [hold, open, fail] = counts(found);
    let of = "in verdict.csv where evidence=main";
    let exempt = main.trim_end_matches('.').replace([';', '|'], ",");
    if hold + open + fail == 0 {
        return format!("> {main}<!-- not data: {exempt} -->\n\nNo claim about our data tests this sentence.");
    }
    format!(
        "> {main}<!-- not data: {exempt} -->\n\nOf {} of this sentence, {}.<!--= count {of}; sum holds {of}; sum undecided {of}; sum fails {of} -->",
        match hold + open + fail {
            1 => "1 claim".into(),
            n => format!("{n} claims"),
        },
        counted(found)
    )
}

/// Returns one line for each claim, with its number and the queries that give it.
fn claims(claims: &[Claim], folder: &str) -> String {
    let mut text = String::new();
    for (claim, number) in claims.iter().zip(1..) {
        // the sign of a difference needs no words
        let bound = match claim.test.condition() {
            condition if condition.ends_with(" 0") => String::new(),
            condition => format!("holds {condition}").replace('-', "−"),
        };
        let answer = match claim.answer() {
            Answer::Holds => "",
            other => other.word(),
        };
        let remark = [bound.as_str(), answer].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let (answer, bound) = match remark.is_empty() {
            true => (String::new(), String::new()),
            false => (format!(" ({remark})"), format!("; {remark}")),
        };
        let evidence = claim.evidence.shown();
        // a phrase ends at a semicolon
        let exempt: String = claim.text.replace([';', '|'], ",");
        writeln!(
            text,
            "- {exempt}{answer}: {}<!--= {} --> *({evidence})*<!-- not data: {exempt}{bound}; ({evidence}) -->",
            claim.number().replace('-', "−"),
            queries(claim, number, folder)
        )
        .expect("writing to a string does not fail");
    }
    text
}

/// Returns the page of a reproduction. `figures` are the names of its figures.
pub(super) fn page(reproduction: &Reproduction, experiment: &Experiment, found: &[Claim], figures: &[&str], is_quick: bool) -> String {
    let Experiment { title, source, says, main, published, differs, .. } = experiment;
    let images: String = figures.iter().map(|name| format!("![{title}]({name}.svg)\n\n")).collect();
    let told = |heading: &str, text: &str| {
        let text = text.trim();
        format!("**{heading}.** {text}\n\n")
    };
    let told: String = [("The publication says, in our words", says), ("In the figure", published), ("What differs", differs)]
        .iter()
        .map(|(h, t)| told(h, t))
        .collect();
    let quick = "The numbers of runs and steps above are those of the whole experiment; this quick version has fewer, which are in the section `[quick]` of experiment.toml.";
    let told = if is_quick { told + &format!("**Quick version.** {quick}\n\n") } else { told };
    format!(
        "<!-- unchecked: the publication's numbers and the settings -->\n\n# {title}\n\n{source}\n\n    gradus reproduce {}\n\n{told}<!-- checked -->\n\n## {}\n\n{}\n\n{}\n{images}\
         The intervals are over runs, by the bootstrap and widened for small numbers of runs, unless the text above says otherwise. Together they have a confidence of about 95 %. A number \
         without an interval is exact, or the same in all runs.<!-- not data: confidence of about 95 % -->\n",
        reproduction.name,
        if is_quick { "Quick version, which decides nothing" } else { verdict(found) },
        summary(main, found),
        claims(found, ""),
    )
}

/// Returns the row of a reproduction in the gallery: a thumbnail, the verdict and the command. `folder` has the results of all.
pub(super) fn row(reproduction: &Reproduction, experiment: &Experiment, folder: &Path) -> Result<String, Error> {
    let name = reproduction.name;
    let path = folder.join(name).join("README.md");
    let (page, _) = pages::read(&path)?;
    let start = page.find("\n## ").map_or(page.len(), |at| at + 4);
    let (verdict, rest) = page[start..].split_once('\n').unwrap_or_default();
    let claims: String = rest.lines().filter(|line| line.starts_with("- ")).map(|line| format!("{line}\n")).collect();
    let exceptions = rest.lines().last().filter(|line| line.starts_with("<!-- not data:")).unwrap_or_default();
    let main = rest.lines().find_map(|line| line.strip_prefix("> ")).unwrap_or_default();
    let claims = claims.replace(" in verdict.csv", &format!(" in {name}/verdict.csv"));
    Ok(format!(
        "<!-- unchecked: the publication -->\n\n### [{}]({name}/README.md)\n\n{}\n\n<a href=\"{name}/README.md\"><img src=\"{name}/figure.svg\" width=\"480\" alt=\"{}\"></a>\n\n<!-- checked -->\n\n\
         **{verdict}:** {main} `gradus reproduce {name}`\n\n{exceptions}\n{claims}\n",
        experiment.title, experiment.source, experiment.title
    ))
}

/// Returns the page of the gallery from its rows.
pub(super) fn gallery(rows: &[String]) -> String {
    format!(
        "# Published figures, redrawn\n\nEach figure below is made by one command, which trains, computes and draws it again, with the published numbers laid over ours where there are any. A verdict \
         is about the main sentence of the publication, which is given in our words, and follows from intervals alone: a claim *holds* if its whole interval is on the claim's side, *does not hold* if the whole interval is on the other \
         side, and is *undecided* otherwise. The sentence holds if all of its claims do, and partly if some do; if none does, it does not hold here if one is on the other side, and is undecided otherwise. \
         Behind every claim stands where it holds, if that is not the sign of a difference, and its place in the publication, or that it is ours, or true by construction; these have no say in the verdict. The intervals of one figure together have a confidence of about 95 %.<!-- not data: confidence of about 95 % -->\n\n```sh\ngradus reproduce list                # all figures\ngradus reproduce NAME --out DIR      # one of them\n```\n\n{}",
        rows.concat()
    )
}
