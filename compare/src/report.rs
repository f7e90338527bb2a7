//! The report: one self-contained HTML page with figures, tables, settings, command, version and machine.

use std::fmt::Write;
use std::path::Path;

use super::analysis::Analysis;
use super::code::versions;
use super::figures::Named;
use super::machine;
use super::summary::Sheet;
use super::{Comparison, Error};
use gradus::Config;
use gradus::envs::gym;

const STYLE: &str = "\
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, -apple-system, 'Segoe UI', 'Open Sans', sans-serif; color: #2d2d2d; background: #fff; max-width: 64rem; margin: 0 auto; padding: 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.6rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0.4rem; }
figure { margin: 1.4rem 0; }
.wide { overflow-x: auto; }
figure svg { display: block; width: 100%; height: auto; }
figcaption, .quiet { color: #5f5f5f; font-size: 0.9rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #e2e2e2; vertical-align: top; white-space: nowrap; }
.facts td { white-space: normal; }
.facts th { font-weight: normal; color: #5f5f5f; }
pre { background: #f6f6f4; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; line-height: 1.4; }
@media print {
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  figure, table, pre { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .wide { overflow: visible; }
  figure svg { min-width: 0 !important; }
  table { font-size: 8.5pt; }
  th, td { padding-right: 0.5rem; }
  pre { white-space: pre-wrap; }
}
";

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What the page shows besides the analysis.
pub(super) struct Facts<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) command: &'a str,
    pub(super) jobs: usize,
    pub(super) cores: usize,
    /// Total seconds of training of all runs.
    pub(super) seconds: f64,
    /// The agents without results, because runs of theirs failed.
    pub(super) left_out: &'a [String],
}

/// Returns the page of a comparison.
pub(super) fn html(facts: &Facts, analysis: &Analysis, figures: &[Named], name: &Path) -> Result<String, Error> {
    let body = numbers(analysis) + &settings(facts);
    page(&facts.comparison.name, &about(facts), (figures, name), &body)
}

/// Returns a page with a title, facts, figures and what follows them. Error messages call the page `name`.
pub(super) fn page(title: &str, facts: &[(&str, String)], (figures, name): (&[Named], &Path), body: &str) -> Result<String, Error> {
    let title = escape(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let row = |(name, text): &(&str, String)| {
        let text = if *name == "command" { format!("<code>{}</code>", escape(text)) } else { escape(text) };
        format!("<tr><th>{name}</th><td>{text}</td></tr>\n")
    };
    page.push_str(&format!("<table class=\"facts\">\n{}</table>\n", facts.iter().map(row).collect::<String>()));
    page.push_str("<h2>Figures</h2>\n");
    for Named { figure, caption, .. } in figures {
        let label = escape(&figure.title);
        let svg = figure.svg(name)?;
        // on narrow screens the figure scrolls, so that its letters do not become too small; on wide ones all figures have letters of one size
        let width: f64 = svg.split('"').nth(1).and_then(|width| width.parse().ok()).unwrap_or(1280.0);
        let head =
            format!("<svg role=\"img\" aria-label=\"{label}\" style=\"min-width: {}px; max-width: {}px\" ", width / 2.0, 0.8 * width);
        let svg = svg.replacen("<svg ", &head, 1);
        write!(page, "<figure>\n<div class=\"wide\">\n{svg}</div>\n<figcaption>{}</figcaption>\n</figure>\n", escape(caption))
            .expect("writing to a string does not fail");
    }
    page.push_str(body);
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// What steps the environments of Gymnasium, if there are any.
pub(super) fn pythons(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let of = |name: &String| versions(name).ok().map(|versions| ("environments", format!("{name}: {versions}")));
    comparison.environments.iter().filter(|name| gym::is_gym(name)).filter_map(of).collect()
}

/// The facts that every report has at its end.
pub(super) fn circumstances(command: &str, seconds: Option<f64>, (jobs, cores): (usize, usize)) -> Vec<(&'static str, String)> {
    let seconds = seconds.map_or_else(String::new, |seconds| format!("{seconds:.0} s in total, "));
    vec![
        ("training", format!("{seconds}one core per run, {jobs} runs at a time")),
        ("command", command.to_owned()),
        ("version", format!("gradus {}", env!("CARGO_PKG_VERSION"))),
        ("machine", format!("{}, {cores} cores, {}", machine::processor(), machine::system())),
        ("date", machine::now()),
    ]
}

pub(super) fn numbers(analysis: &Analysis) -> String {
    let head = format!("<h2>Numbers</h2>\n<p class=\"quiet\">{}</p>\n", analysis.brackets());
    analysis.sheets().iter().fold(head, |page, sheet| page + &table(sheet))
}

fn about(facts: &Facts) -> Vec<(&'static str, String)> {
    let Comparison { agents, environments, seeds, episodes, .. } = facts.comparison;
    let all_evaluations = || {
        let of = |(at, config): (&usize, &Config)| facts.comparison.evaluations_of(*at, config.steps);
        agents.iter().flat_map(|agent| &agent.configs).map(of)
    };
    let (least, most) = (all_evaluations().min().unwrap_or(0), all_evaluations().max().unwrap_or(0));
    let pairs: usize = agents.iter().map(|agent| agent.configs.len()).sum();
    let (runs, is_whole) = (pairs * seeds.len(), pairs == agents.len() * environments.len());
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let (agents, environments) = (count(agents.len(), "agent"), count(environments.len(), "environment"));
    let (seeds, all) = (count(seeds.len(), "seed"), count(runs, "run"));
    let (evaluations, episodes) = (count(most as usize, "greedy evaluation"), count(*episodes, "episode"));
    let evaluations = if least < most { format!("{least} to {evaluations}") } else { evaluations };
    let equals = if is_whole { " =" } else { ", not every agent in every environment:" };
    let what = format!("{agents} x {environments} x {seeds}{equals} {all}; {evaluations} of {episodes} each, and one before training");
    let more = circumstances(facts.command, Some(facts.seconds), (facts.jobs, facts.cores));
    let left_out = (!facts.left_out.is_empty()).then(|| ("left out, because runs failed", facts.left_out.join(", ")));
    std::iter::once(("compared", what)).chain(left_out).chain(pythons(facts.comparison)).chain(more).collect()
}

pub(super) fn table(Sheet { heading, note, columns, rows }: &Sheet) -> String {
    let cells = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(|row| cells("td", row)).collect();
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"quiet\">{}</p>\n", escape(note)) };
    format!("<h3>{}</h3>\n{note}<div class=\"wide\"><table>\n{}{rows}</table></div>\n", escape(heading), cells("th", columns))
}

fn settings(facts: &Facts) -> String {
    let mut text = format!("<h2>Configuration</h2>\n<pre>{}</pre>\n", escape(facts.comparison.text.trim_end()));
    text.push_str("<h2>All settings</h2>\n<p class=\"quiet\">Resolved from presets and the file; the seed is that of the first run.</p>\n");
    for agent in &facts.comparison.agents {
        for (at, config) in &agent.configs {
            let (name, environment) = (escape(&agent.name), escape(&facts.comparison.environments[*at]));
            write!(
                text,
                "<details><summary>{name} on {environment}</summary>\n<pre>{}</pre></details>\n",
                escape(config.to_toml().trim_end())
            )
            .expect("writing to a string does not fail");
        }
    }
    text
}
