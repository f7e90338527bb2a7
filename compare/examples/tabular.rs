//! Runs tabular methods on small classic environments: `cargo run --example tabular` writes into `results/tabular/`.
//!
//! Compares Q-learning and Sarsa with value iteration on FrozenLake, CliffWalking and Taxi, twenty seeds each. Also repeats the textbook's
//! random walk (Sutton and Barto, example 6.2) and cliff (example 6.6).

use std::any::Any;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::agents::bandit::moved_towards;
use gradus::agents::tabular::{
    ActionValues, Transition, ValueTable, best_actions, deterministic, evaluate_within, mean_over_starts, policy_evaluation, td0,
    value_iteration,
};
use gradus::envs::SingleEnv;
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{CliffWalking, FrozenLake, Outcome, Table, Tabular, Taxi, random_walk};
use gradus::figure::{self, Arrow, Cell, Chart, Figure, Grid, Lines, Panel, Series, Threshold};
use gradus::nets::threads;
use gradus::{Agent, Config, Error};
use gradus_compare::statistics::{Bootstrap, Estimate, Scores, mean};

const OUT: &str = "results/tabular";
const SEEDS: u64 = 20;
/// Number of evaluations of a policy during training.
const LOOKS: u64 = 50;
/// The agents, and their names in tables and figures.
const METHODS: [(&str, &str); 2] = [("q-learning", "Q-learning"), ("sarsa", "Sarsa")];
/// The settings of the textbook's cliff.
const CLIFF: &[&str] = &["gamma=1.0", "alpha=0.5", "epsilon=0.1"];

/// An agent in its environment.
struct Learner {
    agent: Agent,
    env: SingleEnv,
    returns: Vec<f64>,
}

impl Learner {
    /// `settings` are settings of the agent, without its name.
    fn new(method: &str, world: &str, settings: &[&str], steps: u64, seed: u64) -> Result<Self, Error> {
        let config = Config { seed, steps, envs: 1, ..Config::preset(method, world, None)? };
        let config = settings.iter().try_fold(config, |config, setting| config.with_setting(&format!("{method}.{setting}")))?;
        let agent = Agent::new(config)?;
        let env = agent.world().single(seed)?;
        Ok(Self { agent, env, returns: Vec::new() })
    }

    fn step(&mut self) -> Result<(), Error> {
        let action = self.agent.act(self.env.observation(), self.env.action_mask())?;
        self.env.step(action.get(0))?;
        self.agent.observe(&self.env.outcome())?;
        self.agent.update()?;
        self.returns.extend(self.agent.episodes().iter().map(|episode| episode.episode_return));
        Ok(())
    }

    /// Learns until `steps` steps are done in total.
    fn advance_to(&mut self, steps: u64) -> Result<(), Error> {
        while self.agent.steps() < steps {
            self.step()?;
        }
        Ok(())
    }

    /// Returns the current Q.
    fn values(&self) -> &ActionValues {
        let table: &dyn Any = self.agent.behaviour();
        &table.downcast_ref::<ValueTable>().expect("these agents learn a table").q
    }
}

/// An environment, the settings for learning in it, and the range of returns in the figure.
struct Task {
    name: &'static str,
    table: Table,
    limit: usize,
    gamma: f64,
    settings: &'static [&'static str],
    steps: u64,
    shown: (f64, f64),
}

fn tasks() -> Result<[Task; 4], Error> {
    const SLOW: &[&str] = &["alpha=1.0", "alpha_decay=0.6", "first_epsilon=1.0", "epsilon=0.1", "epsilon_fraction=1.0"];
    const FADING: &[&str] = &["alpha=0.1", "first_epsilon=0.1", "epsilon=0.0", "epsilon_fraction=1.0"];
    let lake = |map: &[&str]| Ok::<_, Error>(FrozenLake::slippery(map, FrozenLake::SUCCESS_RATE)?.table().clone());
    let task = |name, table, limit, (gamma, settings), steps, shown| Task { name, table, limit, gamma, settings, steps, shown };
    let cliff = CliffWalking::deterministic().table().clone();
    Ok([
        task("frozen-lake", lake(&FrozenLake::MAP_4X4)?, 100, (0.99, SLOW), 200_000, (0.0, 0.8)),
        task("frozen-lake-8x8", lake(&FrozenLake::MAP_8X8)?, 200, (0.99, SLOW), 2_000_000, (0.0, 1.0)),
        task("cliff-walking", cliff, 1000, (1.0, FADING), 20_000, (-1050.0, 50.0)),
        task("taxi", Taxi::dry().table().clone(), 200, (0.99, FADING), 500_000, (-320.0, 25.0)),
    ])
}

/// The exact value of a policy.
struct Worth {
    /// Mean discounted return, with the gamma of the training and without a time limit; the same as `episode` if gamma is 1.
    discounted: f64,
    /// Mean return of an episode with the time limit.
    episode: f64,
}

impl Task {
    fn episode(&self, actions: &[usize]) -> f64 {
        let policy = deterministic(actions, self.table.actions());
        mean_over_starts(&self.table, &evaluate_within(&self.table, &policy, 1.0, self.limit))
    }

    fn worth(&self, actions: &[usize]) -> Worth {
        let (policy, gamma) = (deterministic(actions, self.table.actions()), self.gamma);
        let episode = self.episode(actions);
        let lasting = || mean_over_starts(&self.table, &policy_evaluation(&self.table, &policy, gamma, 1e-10, 5000).values);
        Worth { discounted: if gamma < 1.0 { lasting() } else { episode }, episode }
    }

    /// Returns the mean return of an episode without a time limit.
    fn unlimited(&self, actions: &[usize]) -> f64 {
        let policy = deterministic(actions, self.table.actions());
        mean_over_starts(&self.table, &policy_evaluation(&self.table, &policy, 1.0, 1e-12, 100_000).values)
    }

    /// Returns the best mean return of an episode with the time limit, for a policy that observes the number of remaining steps.
    fn aware_optimum(&self) -> f64 {
        let states = 0..self.table.states();
        let one_step_earlier = |values: Vec<f64>, _| {
            let after = |outcome: &Outcome| if outcome.terminated { 0.0 } else { values[outcome.next as usize] };
            let of = |state, action| self.table.outcomes(state, action).iter().map(|o| o.probability * (o.reward + after(o))).sum();
            states
                .clone()
                .map(|state| (0..self.table.actions()).map(|action| of(state, action)).fold(f64::NEG_INFINITY, f64::max))
                .collect()
        };
        mean_over_starts(&self.table, &(0..self.limit).fold(vec![0.0; self.table.states()], one_step_earlier))
    }

    fn optimum(&self) -> Vec<usize> {
        let values = value_iteration(&self.table, self.gamma, 1e-11, 20_000).values;
        best_actions(&self.table, &values, self.gamma).iter().map(|best| best[0]).collect()
    }

    /// Returns for each seed the mean episode return of the greedy policy at each evaluation, and the value of the final greedy policy.
    fn learn(&self, method: &str) -> Result<Vec<(Vec<f64>, Worth)>, Error> {
        let gamma = format!("gamma={:?}", self.gamma);
        let settings: Vec<&str> = self.settings.iter().copied().chain([gamma.as_str()]).collect();
        let mut seeds: Vec<u64> = (0..SEEDS).collect();
        let outcomes = threads::map(&mut seeds, |_, seed| {
            let mut learner = Learner::new(method, self.name, &settings, self.steps, *seed)?;
            let mut look = |n: u64| {
                learner.advance_to(n * (self.steps / LOOKS))?;
                Ok::<_, Error>(self.episode(&learner.values().greedy()))
            };
            let looks = (1..=LOOKS).map(&mut look).collect::<Result<Vec<f64>, Error>>()?;
            Ok((looks, self.worth(&learner.values().greedy())))
        });
        outcomes.into_iter().collect()
    }
}

/// Returns the mean over the seeds, with a 95 % bootstrap interval.
fn interval(numbers: impl Iterator<Item = f64>) -> Estimate {
    let scores = Scores::new(vec![numbers.collect()]).expect("every seed has a finite return");
    Bootstrap { resamples: 5_000, ..Bootstrap::default() }.interval(&scores, mean)
}

fn draw(name: &str, figure: &Figure) -> Result<(), Error> {
    for extension in ["svg", "png"] {
        figure::write(figure, &Path::new(OUT).join(format!("{name}.{extension}")))?;
    }
    println!("{OUT}/{name}.svg and .png");
    Ok(())
}

fn save(name: &str, csv: &str) -> Result<(), Error> {
    let path = Path::new(OUT).join(name);
    fs::write(&path, csv).map_err(|source| Error::Io { action: "write", path, source })
}

fn learning_curves() -> Result<(), Error> {
    let mut runs = String::from("world,method,seed,steps,discounted_value,shortfall,episode_return,episode_shortfall\n");
    let mut curves = String::from("world,method,step,mean_episode_return,low,high\n");
    let mut worlds =
        String::from("world,steps,limit,discounted_optimum,its_episode_return,its_return_without_limit,optimum_that_knows_the_time\n");
    let mut panels = Vec::new();
    for task in tasks()? {
        let best = task.worth(&task.optimum());
        let (unlimited, aware) = (task.unlimited(&task.optimum()), task.aware_optimum());
        let Worth { discounted, episode } = best;
        writeln!(worlds, "{},{},{},{discounted:.6},{episode:.6},{unlimited:.6},{aware:.6}", task.name, task.steps, task.limit)
            .expect("a string");
        println!("{}: optimum {:.4} discounted, {:.4} per episode", task.name, best.discounted, best.episode);
        let mut series = Vec::new();
        for (method, name) in METHODS {
            let outcomes = task.learn(method)?;
            let mut line = Series::new(name, Vec::new());
            for look in 0..LOOKS {
                let Estimate { point, low, high } = interval(outcomes.iter().map(|(looks, _)| looks[look as usize]));
                let step = (look + 1) * (task.steps / LOOKS);
                line.points.push((step as f64, point));
                line.band.push((step as f64, low, high));
                writeln!(curves, "{},{name},{step},{point:.4},{low:.4},{high:.4}", task.name).expect("a string");
            }
            series.push(line);
            let mut worst: (f64, f64) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
            for (seed, (_, Worth { discounted, episode })) in outcomes.iter().enumerate() {
                let short = |got: f64, best: f64| (best - got) / best.abs();
                let shortfalls = (short(*discounted, best.discounted), short(*episode, best.episode));
                worst = (worst.0.max(shortfalls.0), worst.1.max(shortfalls.1));
                let (a, b) = shortfalls;
                writeln!(runs, "{},{name},{seed},{},{discounted:.6},{a:.6},{episode:.6},{b:.6}", task.name, task.steps).expect("a string");
            }
            let mean = interval(outcomes.iter().map(|(_, worth)| worth.episode)).point;
            println!(
                "  {name}: {mean:.4} per episode; largest shortfall of a seed: {:.2} % discounted, {:.2} % per episode",
                100.0 * worst.0,
                100.0 * worst.1
            );
        }
        let lines = Lines {
            x_label: "environment steps".into(),
            y_label: "return of the greedy policy".into(),
            y_range: Some(task.shown),
            series,
            threshold: Some(Threshold { value: best.episode, label: format!("{:.2}", best.episode).replace('-', "−") }),
            ..Lines::default()
        };
        panels.push(Panel { title: task.name.into(), chart: Chart::Lines(lines) });
    }
    save("worlds.csv", &worlds)?;
    save("runs.csv", &runs)?;
    save("curves.csv", &curves)?;
    let note = format!("mean of {SEEDS} seeds with 95 % intervals, each policy evaluated exactly; broken line: value iteration's policy");
    draw("learning", &Figure { title: "Tabular control: what was learnt".into(), note, columns: 2, panels })
}

/// Repeats example 6.6: draws the mean return of each training episode.
fn cliff_online() -> Result<(), Error> {
    const RUNS: u64 = 500;
    const EPISODES: usize = 500;
    let mut series = Vec::new();
    let mut csv = String::from("method,episode,mean_return\n");
    for (method, name) in METHODS {
        let mut seeds: Vec<u64> = (0..RUNS).collect();
        let returns: Result<Vec<Vec<f64>>, Error> = threads::map(&mut seeds, |_, seed| {
            let mut learner = Learner::new(method, "cliff-walking", CLIFF, u64::from(u32::MAX), *seed)?;
            while learner.returns.len() < EPISODES {
                learner.step()?;
            }
            Ok(learner.returns)
        })
        .into_iter()
        .collect();
        let returns = returns?;
        let mean = |episode: usize| returns.iter().map(|run| run[episode]).sum::<f64>() / RUNS as f64;
        let points: Vec<(f64, f64)> = (0..EPISODES).map(|episode| ((episode + 1) as f64, mean(episode))).collect();
        points.iter().for_each(|(episode, mean)| writeln!(csv, "{name},{episode},{mean:.3}").expect("a string"));
        let late = points[300..].iter().map(|point| point.1).sum::<f64>() / 200.0;
        println!("cliff-walking, {name}: mean return {late:.1} of the last 200 training episodes");
        series.push(Series { style: Some(figure::solid(series.len())), ..Series::new(name, points) });
    }
    save("cliff-online.csv", &csv)?;
    let lines = Lines {
        x_label: "episodes".into(),
        y_label: "sum of rewards during the episode".into(),
        y_range: Some((-100.0, 0.0)),
        series,
        direct: true,
        ..Lines::default()
    };
    let note = format!("ε = 0.1, α = 0.5, mean of {RUNS} runs");
    let figure = Figure { title: "Example 6.6: learning along the cliff".into(), note, ..Figure::of(Chart::Lines(lines)) };
    draw("cliff-online", &figure)
}

/// Formats a value for a figure: 0.54, −13, −8.9.
fn text(value: f64) -> String {
    let decimals = if value.abs() < 1.0 { 2 } else { usize::from((value - value.round()).abs() > 0.005) };
    format!("{value:.decimals$}").replace('-', "−")
}

/// Draws the values of a gridworld as shades and the best actions as arrows. `is_blank` returns whether a state has no value.
fn map(columns: usize, values: &[f64], best: &[Vec<usize>], arrows: [Arrow; 4], is_blank: impl Fn(usize) -> bool) -> Chart {
    let cell = |state: usize| match is_blank(state) {
        true => Cell::default(),
        false => {
            let value = values[state];
            Cell {
                value: Some(value),
                text: text(value),
                arrows: best[state].iter().map(|action| arrows[*action]).collect(),
                ..Cell::default()
            }
        }
    };
    Chart::Grid(Grid { columns, cells: (0..values.len()).map(cell).collect(), value_label: "value".into(), ..Grid::default() })
}

fn maps() -> Result<(), Error> {
    let lake_arrows = [Arrow::Left, Arrow::Down, Arrow::Right, Arrow::Up];
    let mut panels = Vec::new();
    for (rows, title) in [(&FrozenLake::MAP_4X4[..], "4x4"), (&FrozenLake::MAP_8X8[..], "8x8")] {
        let lake = FrozenLake::slippery(rows, FrozenLake::SUCCESS_RATE)?;
        let values = value_iteration(lake.table(), 0.99, 1e-11, 20_000).values;
        let best = best_actions(lake.table(), &values, 0.99);
        let letters = rows.concat().into_bytes();
        let chart = map(rows.len(), &values, &best, lake_arrows, |state| b"HG".contains(&letters[state]));
        panels.push(Panel { title: title.into(), chart });
    }
    let note = "value iteration, discount 0.99; grey: holes, and the goal in the lower right corner".into();
    draw("frozen-lake", &Figure { title: "FrozenLake: values and best actions".into(), note, columns: 2, panels })?;

    let cliff = CliffWalking::deterministic();
    let arrows = [Arrow::Up, Arrow::Right, Arrow::Down, Arrow::Left];
    let is_blank = |state: usize| state > 36;
    let values = value_iteration(cliff.table(), 1.0, 0.0, 1000).values;
    let best = best_actions(cliff.table(), &values, 1.0);
    let mut panels = vec![Panel { title: "value iteration".into(), chart: map(12, &values, &best, arrows, is_blank) }];
    for (method, name) in METHODS {
        let mut learner = Learner::new(method, "cliff-walking", CLIFF, 200_000, 0)?;
        learner.advance_to(200_000)?;
        let q = learner.values();
        let values: Vec<f64> = (0..q.states()).map(|state| q.best(state)).collect();
        let best: Vec<Vec<usize>> = q.greedy().into_iter().map(|action| vec![action]).collect();
        panels
            .push(Panel { title: format!("{name}, ε = 0.1, α = 0.5, 200 000 steps"), chart: map(12, &values, &best, arrows, is_blank) });
    }
    let note = "grey: the cliff, and the goal in the lower right corner".into();
    draw("cliff-walking", &Figure { title: "CliffWalking: values and best actions".into(), note, columns: 1, panels })
}

/// Repeats example 6.2: predicts the values of the random walk by TD(0) and by constant-alpha Monte Carlo (equation 6.1).
fn random_walk_predictions() -> Result<(), Error> {
    const RUNS: u64 = 100;
    const EPISODES: usize = 100;
    let (table, truth) = (random_walk(5), [1.0, 2.0, 3.0, 4.0, 5.0].map(|i| i / 6.0));
    // returns the initial values, which are 1/2, and the values after each episode
    let predict = |td: bool, alpha: f64, seed: u64| {
        let (mut values, mut stream) = ([0.5; 5], Stream::new(seed, Purpose::Environment, 0));
        let mut history = vec![values];
        for _ in 0..EPISODES {
            let mut state = table.sample_start(&mut stream) as usize;
            let mut visited = Vec::new();
            loop {
                let step = table.sample(state, 0, &mut stream);
                visited.push(state);
                if td {
                    let (reward, next, terminated) = (step.reward, step.next as usize, step.terminated);
                    td0(&mut values, Transition { state, reward, next, terminated }, alpha, 1.0);
                }
                state = step.next as usize;
                if step.terminated {
                    // only the last reward can differ from 0, so it is the return from every state of the episode
                    let seen = visited.iter().filter(|_| !td);
                    seen.for_each(|state| values[*state] = moved_towards(values[*state], step.reward, alpha));
                    break;
                }
            }
            history.push(values);
        }
        history
    };
    let error = |values: &[f64; 5]| (values.iter().zip(&truth).map(|(v, t)| (v - t) * (v - t)).sum::<f64>() / 5.0).sqrt();
    let mut series = Vec::new();
    let mut csv = String::from("method,alpha,episode,root_mean_square_error\n");
    for (td, name, alphas) in [(true, "TD", &[0.05, 0.1, 0.15][..]), (false, "MC", &[0.01, 0.02, 0.03, 0.04])] {
        for alpha in alphas {
            let runs: Vec<_> = (0..RUNS).map(|seed| predict(td, *alpha, seed)).collect();
            let mean = |episode: usize| runs.iter().map(|run| error(&run[episode])).sum::<f64>() / RUNS as f64;
            let points: Vec<_> = (0..=EPISODES).map(|episode| (episode as f64, mean(episode))).collect();
            points.iter().for_each(|(episode, error)| writeln!(csv, "{name},{alpha},{episode},{error:.4}").expect("a string"));
            println!("random walk, {name}, alpha {alpha}: error {:.3} after {EPISODES} episodes", points[EPISODES].1);
            // TD has solid lines, MC dashed lines
            let style = Some([figure::solid(0), figure::solid(1), figure::solid(2), 3, 4, 5, 7][series.len()]);
            series.push(Series { style, ..Series::new(format!("{name}, α = {alpha}"), points) });
        }
    }
    save("random-walk.csv", &csv)?;
    let history = predict(true, 0.1, 0);
    let place = |values: [f64; 5]| values.iter().zip(1..).map(|(value, state)| (f64::from(state), *value)).collect();
    let mut estimates: Vec<_> =
        [0, 1, 10, 100].iter().map(|episode| Series::new(format!("after {episode}"), place(history[*episode]))).collect();
    estimates.push(Series { style: Some(6), ..Series::new("true values", place(truth)) });
    let lines = |x: &str, y: &str, series| Lines { x_label: x.into(), y_label: y.into(), series, direct: true, ..Lines::default() };
    let estimates = Lines { x_range: Some((0.0, 6.0)), ..lines("state", "estimated value", estimates) };
    let panels = vec![
        Panel { title: "TD(0), α = 0.1: estimates after 0 to 100 episodes of one run".into(), chart: Chart::Lines(estimates) },
        Panel {
            title: format!("error, mean of the states and of {RUNS} runs"),
            chart: Chart::Lines(lines("episodes", "root mean square error", series)),
        },
    ];
    draw("random-walk", &Figure { title: "Example 6.2: the random walk".into(), note: String::new(), columns: 1, panels })
}

fn main() -> Result<(), Error> {
    fs::create_dir_all(OUT).map_err(|source| Error::Io { action: "create", path: OUT.into(), source })?;
    threads::with_default(|| {
        random_walk_predictions()?;
        maps()?;
        cliff_online()?;
        learning_curves()
    })
}
