//! REINFORCE in forty lines, with a linear policy on CartPole: `cargo run --example reinforce`. Lesson 6 of the course explains it.

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, EnvError};

/// The probability of pushing to the right: a sigmoid of the weighted observation.
fn probability(weights: &[f32; 4], observation: &[f32]) -> f32 {
    let logit: f32 = weights.iter().zip(observation).map(|(w, x)| w * x).sum();
    1.0 / (1.0 + (-logit).exp())
}

fn main() -> Result<(), EnvError> {
    let (gamma, alpha) = (0.99, 0.001);
    let mut env = gradus::make("CartPole-v1", 1)?;
    let mut random = Stream::new(1, Purpose::Action, 0);
    let mut weights = [0.0; 4];
    let mut lengths = Vec::new();
    for episode in 1..=500 {
        let mut steps: Vec<([f32; 4], f32, f32)> = Vec::new();
        loop {
            let mut observation = [0.0; 4];
            observation.copy_from_slice(env.observation());
            let action = u32::from(random.unit_f32() < probability(&weights, &observation));
            let step = env.step(Action::Discrete(action))?;
            steps.push((observation, action as f32, step.reward as f32));
            if step.done() {
                break;
            }
        }
        lengths.push(steps.len());
        let mut following = 0.0;
        for (observation, action, reward) in steps.into_iter().rev() {
            following = reward + gamma * following; // the return G of this step
            let slope = action - probability(&weights, &observation); // of log pi, for each unit of the logit
            weights.iter_mut().zip(observation).for_each(|(w, x)| *w += alpha * following * slope * x);
        }
        if episode % 50 == 0 {
            println!("episode {episode}: {:.1} steps on average", lengths.drain(..).sum::<usize>() as f32 / 50.0);
        }
    }
    Ok(())
}
