//! The numbers of a sweep, and its tables.

use gradus_statistics::csv::{push_row, quoted};
use gradus_statistics::{Aggregate, Bootstrap, Estimate};

use super::effects::{Effect, Level, effect, levels, responses, seed_deviation};
use super::space::{Dimension, Settings, short_keys, shown};
use super::{ALL, Design, Measure, Scores, Sweep};
use crate::Statistic;
use crate::figures::title;
use crate::report;
use crate::summary::{Sheet, markdown, plural, short};

/// A setting of an agent in one world.
pub(super) struct Response {
    pub(super) levels: Vec<Level>,
    /// The statistic at every level.
    pub(super) estimates: Vec<Estimate>,
    pub(super) effect: Effect,
}

/// An agent in one world.
pub(super) struct Part {
    /// Number of the agent, and of the world among those of the scores.
    pub(super) agent: usize,
    pub(super) world: usize,
    /// The points of the agent that were run in the world.
    pub(super) points: Vec<usize>,
    /// The statistic of every one of these points.
    pub(super) estimates: Vec<Estimate>,
    /// Each setting of the agent's space.
    pub(super) responses: Vec<Response>,
    /// The standard deviation between runs that differ in the seed only.
    pub(super) seeds: f64,
}

/// The numbers of a sweep.
pub(super) struct Tables<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) scores: &'a Scores,
    pub(super) parts: Vec<Part>,
}

impl<'a> Tables<'a> {
    pub(super) fn new(sweep: &'a Sweep, scores: &'a Scores) -> Self {
        let aggregate = match sweep.comparison.statistic {
            Statistic::Iqm => Aggregate::InterquartileMean,
            Statistic::Mean => Aggregate::Mean,
        };
        let (mut parts, is_random) = (Vec::new(), sweep.design == Design::Random);
        for agent in 0..sweep.agents.len() {
            for (world, (_, rows)) in scores.worlds.iter().enumerate() {
                let is_run = |point: &usize| sweep.points[*point].agent == agent && rows[*point].is_some();
                let points: Vec<usize> = (0..sweep.points.len()).filter(is_run).collect();
                if points.is_empty() {
                    continue;
                }
                // rows of this part, by place
                let own: Vec<Vec<f64>> = points.iter().filter_map(|point| rows[*point].clone()).collect();
                let placed: Vec<(usize, &Settings)> = points.iter().map(|point| &sweep.points[*point].settings).enumerate().collect();
                let is_whole: Vec<bool> = points.iter().map(|point| scores.failed[world][*point] == 0).collect();
                // without a whole point, there is nothing better than the lowest scores
                let of_noise = if is_whole.contains(&true) { is_whole.clone() } else { vec![true; points.len()] };
                let response = |dimension: &Dimension| {
                    let levels = levels(dimension, &placed, is_random);
                    let estimates = responses(&levels, &own, aggregate, is_random);
                    Response { effect: effect(&levels, &own, &of_noise, is_random), estimates, levels }
                };
                let each: Vec<gradus_statistics::Scores> =
                    own.iter().map(|row| gradus_statistics::Scores::new(vec![row.clone()]).expect("every row has finite scores")).collect();
                let bootstrap = Bootstrap { resamples: 2_000, ..Bootstrap::default() };
                let estimates = bootstrap.aggregates(&each.iter().collect::<Vec<_>>(), &[aggregate]);
                parts.push(Part {
                    agent,
                    world,
                    estimates: estimates.into_iter().map(|estimates| estimates[0]).collect(),
                    responses: sweep.agents[agent].space.0.iter().map(response).collect(),
                    seeds: seed_deviation(&own, &is_whole),
                    points,
                });
            }
        }
        Self { sweep, scores, parts }
    }

    /// What the score of a run is, for labels.
    pub(super) fn score_label(&self, world: usize) -> &'static str {
        match (self.scores.worlds[world].0 == ALL, self.sweep.measure) {
            (true, _) => "normalised score",
            (false, Measure::Last) => "return after training",
            (false, Measure::Mean) => "mean return during training",
        }
    }

    pub(super) fn world_title(&self, world: usize) -> String {
        let name = &self.scores.worlds[world].0;
        if name == ALL { "all environments".into() } else { title(name) }
    }

    pub(super) fn statistic_name(&self) -> &'static str {
        match self.sweep.comparison.statistic {
            Statistic::Iqm => "interquartile mean",
            Statistic::Mean => "mean",
        }
    }

    /// The short names of an agent's settings.
    pub(super) fn keys(&self, agent: usize) -> Vec<&str> {
        let keys: Vec<&str> = self.sweep.agents[agent].space.0.iter().map(|dimension| dimension.key.as_str()).collect();
        short_keys(&keys)
    }

    /// Returns `of settings`, with the agent's name if there are several.
    pub(super) fn named(&self, agent: usize, text: &str) -> String {
        if self.sweep.agents.len() > 1 { format!("{}: {text}", self.sweep.agents[agent].name) } else { text.to_owned() }
    }

    pub(super) fn about(&self) -> String {
        let Sweep { comparison, design, points, .. } = self.sweep;
        let design = match design {
            Design::Grid => "a grid",
            Design::OneAtATime => "one setting at a time",
            Design::Random => "a random sample",
        };
        let (seeds, worlds) = (comparison.seeds.len(), comparison.environments.len());
        let failed = self.scores.failed[..worlds].iter().flatten().sum::<usize>();
        let is_alone = seeds == 1 && self.sweep.design != Design::Random;
        let alone = if is_alone { "; with one seed nothing tells an effect from chance, and intervals have no width" } else { "" };
        let failed = if failed > 0 { format!("; {failed} failed and count as the lowest score") } else { String::new() };
        format!(
            "{} ({design}) x {} x {} = {}{failed}{alone}; the score is the {}",
            plural(points.len(), "point"),
            plural(worlds, "environment"),
            plural(seeds, "seed"),
            plural(self.sweep.runs(), "run"),
            self.score_label(0)
        )
    }

    /// Returns `points.csv`: a row for each point and environment.
    pub(super) fn points_csv(&self) -> String {
        let mut keys: Vec<&str> = Vec::new();
        for dimension in self.sweep.agents.iter().flat_map(|agent| &agent.space.0) {
            if !keys.contains(&dimension.key.as_str()) {
                keys.push(&dimension.key);
            }
        }
        let mut text =
            format!("point,agent,{},env,runs,failed,value,low,high\n", keys.iter().map(|key| quoted(key)).collect::<Vec<_>>().join(","));
        for part in &self.parts {
            for (point, Estimate { point: value, low, high }) in part.points.iter().zip(&part.estimates) {
                let settings = &self.sweep.points[*point].settings;
                let value_of =
                    |key: &&str| settings.iter().find(|(name, _)| name == key).map_or_else(String::new, |(_, value)| quoted(&shown(value)));
                let row: Vec<String> = [(point + 1).to_string(), quoted(&self.sweep.agents[part.agent].name)]
                    .into_iter()
                    .chain(keys.iter().map(value_of))
                    .chain([
                        quoted(&self.scores.worlds[part.world].0),
                        self.sweep.comparison.seeds.len().to_string(),
                        self.scores.failed[part.world][*point].to_string(),
                    ])
                    .chain([value, low, high].map(f64::to_string))
                    .collect();
                push_row(&mut text, &row);
            }
        }
        text
    }

    /// Calls `row` for every setting of every part, with the agent's name, the world's, and the key.
    fn each_response(&self, mut row: impl FnMut([String; 3], &Response)) {
        for part in &self.parts {
            for (dimension, response) in self.sweep.agents[part.agent].space.0.iter().zip(&part.responses) {
                row(
                    [quoted(&self.sweep.agents[part.agent].name), quoted(&self.scores.worlds[part.world].0), quoted(&dimension.key)],
                    response,
                );
            }
        }
    }

    /// Returns `responses.csv`: a row for each value of each setting, with the statistic over all its runs.
    pub(super) fn responses_csv(&self) -> String {
        let mut text = String::from("agent,env,setting,level,points,value,low,high\n");
        self.each_response(|[agent, env, key], Response { levels, estimates, .. }| {
            for (level, Estimate { point, low, high }) in levels.iter().zip(estimates) {
                let numbers = [point, low, high].map(f64::to_string);
                let row = [agent.clone(), env.clone(), key.clone(), quoted(&level.label), level.points.len().to_string()];
                push_row(&mut text, &[row.as_slice(), &numbers].concat());
            }
        });
        text
    }

    /// Returns `effects.csv`: a row for each setting, and one for the seeds.
    pub(super) fn effects_csv(&self) -> String {
        let mut text = String::from("agent,env,setting,deviation,low,high,share\n");
        self.each_response(|names, Response { effect: Effect { deviation: Estimate { point, low, high }, share }, .. }| {
            let numbers = [point, low, high].map(f64::to_string);
            let share = if self.sweep.design == Design::OneAtATime { None } else { *share };
            push_row(&mut text, &[names.as_slice(), &numbers, &[share.map_or_else(String::new, |share| share.to_string())]].concat());
        });
        for part in self.parts.iter().filter(|part| part.seeds.is_finite()) {
            let names = [quoted(&self.sweep.agents[part.agent].name), quoted(&self.scores.worlds[part.world].0), "seed".into()];
            push_row(&mut text, &[names.as_slice(), &[part.seeds.to_string(), String::new(), String::new(), String::new()]].concat());
        }
        text
    }

    /// The tables of the report.
    fn sheets(&self) -> Vec<Sheet> {
        let interval = |Estimate { point, low, high }: &Estimate| format!("{} [{}, {}]", short(*point), short(*low), short(*high));
        let cells = |cells: &[&str]| cells.iter().map(|cell| cell.to_string()).collect::<Vec<_>>();
        let with_share = self.sweep.design != Design::OneAtATime;
        let (mut effects, mut best) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let (agent, world) = (self.sweep.agents[part.agent].name.clone(), self.world_title(part.world));
            let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
            for (key, Response { effect, .. }) in self.keys(part.agent).iter().zip(&part.responses) {
                let share = effect.share.filter(|_| with_share).map(|share| format!("{:.0} %", 100.0 * share));
                let row = [agent.clone(), world.clone(), key.to_string(), interval(&effect.deviation)];
                rows.push((effect.deviation.point, row.into_iter().chain(with_share.then(|| share.unwrap_or_default())).collect()));
            }
            rows.sort_by(|a, b| b.0.total_cmp(&a.0));
            if part.seeds.is_finite() {
                let row = [agent.clone(), world.clone(), "(the seed)".into(), short(part.seeds)];
                rows.push((0.0, row.into_iter().chain(with_share.then(String::new)).collect()));
            }
            effects.extend(rows.into_iter().map(|(_, row)| row));
            let mut order: Vec<usize> = (0..part.points.len()).collect();
            order.sort_by(|a, b| part.estimates[*b].point.total_cmp(&part.estimates[*a].point));
            for place in order.into_iter().take(5) {
                let contender = &self.sweep.comparison.agents[part.points[place]].name;
                best.push(vec![world.clone(), contender.clone(), interval(&part.estimates[place])]);
            }
        }
        let first = cells(&["agent", "environment", "setting", "deviation"]);
        vec![
            Sheet {
                heading: "Effects".into(),
                note: "The standard deviation of the mean score over the values of a setting, without what the seeds alone would cause, with a 95 % interval; (the seed): between runs \
                       that differ in the seed only."
                    .to_owned()
                    + if with_share { " Share: of the variance of all runs." } else { "" },
                columns: first.into_iter().chain(with_share.then(|| "share".to_owned())).collect(),
                rows: effects,
            },
            Sheet {
                heading: "The points with the highest scores".into(),
                note: format!(
                    "The best of {} points was chosen by the score that is shown here, so this score is too high (the winner's curse). Train it with other seeds before you \
                     believe it: gradus tune does that.",
                    self.sweep.points.len()
                ),
                columns: cells(&["environment", "point", self.statistic_name()]),
                rows: best,
            },
        ]
    }

    pub(super) fn html(&self) -> String {
        let tables: String = self.sheets().iter().map(report::table).collect();
        let text = report::escape(self.sweep.comparison.text.trim_end());
        format!("<h2>Numbers</h2>\n{tables}<h2>Configuration</h2>\n<pre>{text}</pre>\n")
    }

    pub(super) fn summary_md(&self) -> String {
        let head = format!("# {}\n\n{}.\n", markdown(&self.sweep.comparison.name), self.about());
        self.sheets().iter().fold(head, |text, sheet| text + &sheet.markdown())
    }
}
