//! Text environments: the Markov decision process, the tasks and their verdicts, the splits of problems, and the errors.

mod episodes;
mod file;
mod machines;
mod own_task;
mod splits;
mod verdicts;
mod worlds;

use std::sync::Arc;

use gradus_envs::text::{Task, tokens};
use gradus_envs::{Action, Env, EnvError, EnvSpec, Step, registry};

fn world(name: &str) -> EnvSpec {
    registry::find(name).unwrap()
}

fn encode(world: &EnvSpec, text: &str) -> Vec<u32> {
    world.text.as_ref().unwrap().task.vocabulary().encode(text).unwrap()
}

fn eos(world: &EnvSpec) -> u32 {
    world.text.as_ref().unwrap().task.vocabulary().eos()
}

fn decode(world: &EnvSpec, row: &[f32]) -> String {
    world.text.as_ref().unwrap().task.vocabulary().decode(&tokens(row).collect::<Vec<_>>())
}

fn scores(env: &dyn Env) -> Vec<(String, f64)> {
    let names = env.score_names();
    let mut scores = vec![f64::NAN; names.len()];
    env.scores(&mut scores);
    names.into_iter().zip(scores).collect()
}

fn text_of<T>(result: Result<T, EnvError>) -> String {
    let text = result.err().expect("an error").to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

const TASKS: [&str; 9] = ["target-sum", "copy", "reverse", "sort", "addition", "chain-sum", "countdown", "program", "preference"];

fn task(name: &str) -> Arc<dyn Task> {
    registry::find(name).unwrap().text.unwrap().task
}

/// Every level of every task.
fn levels() -> impl Iterator<Item = EnvSpec> {
    let level = |name: &'static str| (1..10).map_while(move |level| registry::find(&format!("{name}-{level}")).ok());
    TASKS.into_iter().flat_map(level)
}

/// For each token of an episode: the result of its step, and whether it completed a step of the solution.
type Played = Vec<(Step, bool)>;

/// Begins an episode with a prompt and takes the tokens `said` as actions. Returns the environment, the last observation and the steps.
fn play(world: &EnvSpec, prompt: &str, said: &[u32]) -> (Box<dyn Env>, Vec<f32>, Played) {
    let world = world.clone().with_prompt(&encode(world, prompt)).unwrap();
    let mut env = world.env();
    let mut row = vec![f32::NAN; env.observation_space().width()];
    env.reset(0, &mut row);
    let steps = said.iter().map(|token| (env.step(Action::Discrete(*token), &mut row), env.ends_step())).collect();
    (env, row, steps)
}

const GOES_ON: Step = Step { reward: 0.0, terminated: false, truncated: false };

fn ends_with(reward: f64) -> Step {
    Step { reward, terminated: true, truncated: false }
}
