//! The radar of bsuite (Osband et al., 2020).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use super::draw::{figure, mean_of};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use gradus::envs::random::{Purpose, Stream, episode_seed};
use gradus::envs::{Action, Space, registry};
use gradus::figure::{Chart, Panel, Radar, Series, dashed, solid};
use gradus::{Config, Error, Trainer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    episodes: usize,
    sweeps: u64,
    /// For each score its sizes, or the numbers of its problems.
    sizes: BTreeMap<String, Vec<u32>>,
    agents: Vec<Contender>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contender {
    name: String,
    agent: String,
    changes: Vec<String>,
}

/// An experiment of the package, which gives one score.
struct Score {
    name: &'static str,
    environment: fn(u32) -> String,
    /// Steps of an episode.
    steps: fn(u32) -> u64,
    /// What is known of a training with this size, from the returns of all its episodes.
    outcome: fn(u32, &[f64]) -> f64,
    /// The score, from the mean of the outcomes of all sizes.
    score: fn(f64) -> f64,
    /// What bsuite's random, dqn and actor_critic_rnn reach.
    published: [f64; 3],
}

const RANDOM: &str = "random actions";
const MEMORY: [usize; 2] = [5, 6];
/// Mean regret of the umbrella chain below which a size counts as solved.
const REGRET: f64 = 0.5;
/// Wrong answers below which a memory counts, as a part of those of chance.
const WRONG: f64 = 0.75;

const SCORES: [Score; 7] = [
    Score {
        name: "catch",
        environment: |_| "catch".into(),
        steps: |_| 9,
        outcome: |_, returns| 1.0 - average(returns),
        score: |regret| ((1.6 - regret) / 1.6).clamp(0.0, 1.0),
        published: [0.0, 0.91, 0.86],
    },
    Score {
        name: "deep sea",
        environment: |size| format!("deep-sea-{size}"),
        steps: u64::from,
        outcome: |size, returns| is_found(size, returns).into(),
        score: |found| found,
        published: [0.0, 0.0, 0.0],
    },
    Score {
        name: "umbrella length",
        environment: |size| format!("umbrella-length-{size}"),
        steps: u64::from,
        outcome: |_, returns| f64::from(1.0 - average(returns) < REGRET),
        score: |solved| solved,
        published: [0.0, 0.48, 0.35],
    },
    Score {
        name: "umbrella distract",
        environment: |size| format!("umbrella-distract-{size}"),
        steps: |_| 20,
        outcome: |_, returns| f64::from(1.0 - average(returns) < REGRET),
        score: |solved| solved,
        published: [0.0, 0.48, 0.17],
    },
    Score {
        name: "discounting chain",
        environment: |number| format!("discounting-chain-{}", number % 5),
        steps: |_| 100,
        outcome: |_, returns| average(returns),
        score: |reached| (1.0 - 10.0 * (1.1 - reached)).clamp(0.0, 1.0),
        published: [0.20, 0.25, 0.38],
    },
    Score {
        name: "memory length",
        environment: |size| format!("memory-len-{size}"),
        steps: |size| u64::from(size) + 1,
        outcome: |_, returns| f64::from(wrong(returns) / 0.5 < WRONG),
        score: |solved| solved,
        published: [0.0, 0.04, 0.65],
    },
    Score {
        name: "memory size",
        environment: |size| format!("memory-size-{size}"),
        steps: |_| 3,
        outcome: |_, returns| f64::from(wrong(returns) / 0.5 < WRONG),
        score: |solved| solved,
        published: [0.0, 0.0, 0.35],
    },
];

/// The episodes of the discounting chain are a tenth of the others'.
fn episodes_of(score: &Score, episodes: usize) -> usize {
    if score.name == "discounting chain" { episodes.div_ceil(10) } else { episodes }
}

fn average(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Returns the part of wrong answers.
fn wrong(returns: &[f64]) -> f64 {
    returns.iter().filter(|answer| **answer < 0.0).count() as f64 / returns.len() as f64
}

/// Whether one of ten dives found the treasure, after one of the episodes that the package logs, and sooner than by chance.
fn is_found(size: u32, returns: &[f64]) -> bool {
    let most = 2f64.powi(size as i32) + 100.0;
    let mut bad = 0.0;
    returns.iter().zip(1_u64..).any(|(value, episode)| {
        bad += f64::from(*value < 0.5);
        is_logged(episode) && bad / (episode as f64) < 0.9 && (episode as f64) < most
    })
}

/// Whether the package writes a row after this episode.
fn is_logged(mut episode: u64) -> bool {
    while episode > 100 && episode.is_multiple_of(10) {
        episode /= 10;
    }
    episode <= 10 || [12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100].contains(&episode)
}

/// Returns the returns of the first episodes of a training, in the order in which they end.
fn train(contender: &Contender, environment: &str, steps: u64, episodes: usize, seed: u64) -> Result<Vec<f64>, Error> {
    let config = Config { steps: steps * episodes as u64, seed, ..Config::preset(&contender.agent, environment, None)? };
    let mut trainer = Trainer::new(contender.changes.iter().try_fold(config, |config, change| config.with_setting(change))?)?;
    let mut returns = Vec::with_capacity(episodes);
    while !trainer.is_finished() {
        returns.extend(trainer.iterate()?.episodes.iter().map(|episode| episode.episode_return));
    }
    returns.truncate(episodes);
    Ok(returns)
}

/// Returns the returns of episodes with random actions.
fn play(environment: &str, episodes: usize, seed: u64) -> Result<Vec<f64>, Error> {
    let mut env = registry::find(environment)?.env();
    let Space::Discrete(actions) = env.action_space() else { unreachable!("bsuite's actions are discrete") };
    let mut observation = vec![0.0; env.observation_space().width()];
    let mut stream = Stream::new(seed, Purpose::Action, 0);
    let mut one = |episode: usize| {
        env.reset(episode_seed(seed, 0, episode as u64), &mut observation);
        let mut total = 0.0;
        loop {
            let step = env.step(Action::Discrete(stream.below(actions)), &mut observation);
            total += step.reward;
            if step.terminated || step.truncated {
                return total;
            }
        }
    };
    Ok((0..episodes).map(&mut one).collect())
}

/// All scores of five agents.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let Settings { episodes, sweeps, sizes, agents } = experiment.settings()?;
    let names: Vec<&str> = [RANDOM].into_iter().chain(agents.iter().map(|agent| agent.name.as_str())).collect();
    let mut jobs: Vec<(usize, u64, usize, u32)> = Vec::new();
    for agent in 0..names.len() {
        for sweep in 1..=sweeps {
            for (place, score) in SCORES.iter().enumerate() {
                jobs.extend(sizes[score.name].iter().map(|size| (agent, sweep, place, *size)));
            }
        }
    }
    let name = |(agent, sweep, place, size): &(usize, u64, usize, u32)| format!("{},{sweep},{},{size}", names[*agent], SCORES[*place].name);
    let outcomes = experiment.each(&jobs, name, |(agent, sweep, place, size)| {
        let score = &SCORES[*place];
        let (environment, episodes) = ((score.environment)(*size), episodes_of(score, episodes));
        // a seed for every size: some experiments are one world with several seeds
        let seed = 1000 * sweep + u64::from(*size);
        let returns = match agent.checked_sub(1) {
            None => play(&environment, episodes, seed)?,
            Some(agent) => train(&agents[agent], &environment, (score.steps)(*size), episodes, seed)?,
        };
        Ok((score.outcome)(*size, &returns))
    })?;
    // scores[agent][sweep][score]
    let score_of = |agent: usize, sweep: u64, place: usize| {
        let own = jobs.iter().zip(&outcomes).filter(|(job, _)| (job.0, job.1, job.2) == (agent, sweep, place));
        (SCORES[place].score)(average(&own.map(|(_, outcome)| *outcome).collect::<Vec<_>>()))
    };
    let scores: Vec<Vec<Vec<f64>>> = (0..names.len())
        .map(|agent| (1..=sweeps).map(|sweep| (0..SCORES.len()).map(|place| score_of(agent, sweep, place)).collect()).collect())
        .collect();

    let numbers = |agent: usize, of: &dyn Fn(&[f64]) -> f64| scores[agent].iter().map(|sweep| of(sweep)).collect::<Vec<f64>>();
    let memory = |scores: &[f64]| average(&MEMORY.map(|place| scores[place]));
    let elsewhere = |scores: &[f64]| average(&scores[..MEMORY[0]]);
    let [random, dqn, a2c, lstm, gru] = [0, 1, 2, 3, 4];
    let bootstrap = bootstrap(8);
    let claims = vec![
        Claim::new(
            "mean of both scores of memory: A2C with an LSTM minus DQN",
            difference(bootstrap, &numbers(lstm, &memory), &numbers(dqn, &memory)),
            Test::Above(0.0),
        ),
        Claim::new(
            "mean of the five other scores: DQN minus A2C with an LSTM",
            difference(bootstrap, &numbers(dqn, &elsewhere), &numbers(lstm, &elsewhere)),
            Test::Above(0.0),
        ),
        Claim::new(
            "random actions perform poorly: their best score, other than that of the discounting chain",
            mean(bootstrap, &numbers(random, &|scores| [0, 1, 2, 3, 5, 6].iter().map(|place| scores[*place]).fold(0.0, f64::max))),
            Test::Below(0.1),
        ),
        Claim::new(
            "DQN performs well on the basic task: its score on catch",
            mean(bootstrap, &numbers(dqn, &|scores| scores[0])),
            Test::Above(0.75),
        ),
        Claim::new(
            "DQN performs extremely poorly on exploration: its score on the deep sea",
            mean(bootstrap, &numbers(dqn, &|scores| scores[1])),
            Test::Below(0.1),
        ),
        Claim::new(
            "DQN performs extremely poorly on memory: mean of both scores",
            mean(bootstrap, &numbers(dqn, &memory)),
            Test::Below(0.1),
        ),
        Claim::new(
            "the cell makes the difference: mean of both scores of memory, A2C with an LSTM minus A2C",
            difference(bootstrap, &numbers(lstm, &memory), &numbers(a2c, &memory)),
            Test::Above(0.0),
        ),
        Claim::new(
            "PPO with a GRU is better than A2C with an LSTM: difference of the means of all seven scores",
            difference(bootstrap, &numbers(gru, &average), &numbers(lstm, &average)),
            Test::Above(0.0),
        ),
    ];

    let mut outcomes_csv = String::from("agent,score,sweep,size,outcome\n");
    for ((agent, sweep, place, size), outcome) in jobs.iter().zip(&outcomes) {
        writeln!(outcomes_csv, "{},{},{sweep},{size},{outcome}", names[*agent], SCORES[*place].name).expect("a string");
    }
    let ours: Vec<Vec<f64>> = scores.iter().map(|sweeps| mean_of(sweeps)).collect();
    let published = [(RANDOM, 0), ("DQN", 1), ("A2C with an LSTM", 2)];
    let mut scores_csv = String::from("agent,score,published,ours,least,most\n");
    for (agent, name) in names.iter().enumerate() {
        let column = published.iter().find(|(known, _)| known == name).map(|(_, column)| *column);
        for (place, score) in SCORES.iter().enumerate() {
            let all = scores[agent].iter().map(|sweep| sweep[place]);
            let (least, most) = (all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max));
            let read = column.map(|column| format!("{:.2}", score.published[column])).unwrap_or_default();
            writeln!(scores_csv, "{name},{},{read},{:.3},{least:.3},{most:.3}", score.name, ours[agent][place]).expect("a string");
        }
    }
    let shape = |name: &str, numbers: &[f64]| {
        let place = names.iter().position(|known| *known == name).unwrap_or(0);
        let style = if place == 0 { dashed(10, 1) } else { solid([3, 1, 2, 0, 5][place]) };
        let points = numbers.iter().enumerate().map(|(spoke, score)| (spoke as f64, *score)).collect();
        Series { style: Some(style), ..Series::new(name, points) }
    };
    let spokes: Vec<String> = SCORES.iter().map(|score| score.name.to_owned()).collect();
    let radar = |title: &str, series| Panel { title: title.into(), chart: Chart::Radar(Radar { spokes: spokes.clone(), series }) };
    let read = published.map(|(name, column)| shape(name, &SCORES.each_ref().map(|score| score.published[column])));
    let panels =
        vec![radar("published", read.into()), radar("ours", names.iter().zip(&ours).map(|(name, numbers)| shape(name, numbers)).collect())];
    let note = format!("scores from 0 in the centre to 1; ours: mean of {sweeps} sweeps");
    let figures = vec![("figure", figure(&experiment.title, &note, 2, panels))];
    Ok(Findings { claims, figures, tables: vec![("scores.csv", scores_csv), ("outcomes.csv", outcomes_csv)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `find_solution` of the package's `deep_sea/analysis.py`: after the first 20 bad dives, all are good.
    #[test]
    fn a_treasure_is_found_when_one_dive_of_ten_was_good() {
        let mut returns = vec![-0.01; 20];
        returns.extend([0.99; 3]);
        assert!(!is_found(10, &returns[..22]), "2 of 22");
        assert!(!is_found(10, &returns), "3 of 23, but no row is written after 23 episodes");
        returns.extend([0.99; 2]);
        assert!(is_found(10, &returns), "5 of 25");
        let late: Vec<f64> = [vec![-0.01; 1000], vec![0.99; 1000]].concat();
        assert!(!is_found(10, &late), "a random diver needs 1024 episodes");
        assert!(is_found(12, &late), "and 4096");
    }

    #[test]
    fn rows_are_written_after_episodes_as_in_the_package() {
        let logged: Vec<u64> = (1..=1000).filter(|episode| is_logged(*episode)).collect();
        let mut expected: Vec<u64> = (1..=10).collect();
        for power in [1, 10] {
            expected.extend([12, 14, 17, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100].map(|number| number * power));
        }
        assert_eq!(logged, expected);
    }
}
