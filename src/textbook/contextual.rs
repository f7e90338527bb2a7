//! Contextual bandits: the regret of rules for linear values, over many problems.

use gradus_agents::bandit::{LinearLearner, LinearRule};
use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_base::threads;
use gradus_envs::bandits::ContextualBandit;
use gradus_envs::{Action, Env};

/// The settings of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experiment {
    /// Number of problems.
    pub problems: usize,
    /// Pulls per problem.
    pub steps: usize,
    /// Number of arms.
    pub arms: usize,
    /// Numbers in a context.
    pub width: usize,
    /// Seed of the problems, of contexts and noise, and of the choices.
    pub seed: u64,
}

/// The results of a rule in one problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Reward at each step.
    pub rewards: Vec<f64>,
    /// Whether a best arm was pulled at each step: 1 or 0.
    pub optimal: Vec<f64>,
    /// Regret until each step: the sum of the differences between the value of the best arm for the context and that of the pulled one.
    pub regret: Vec<f64>,
}

/// Runs a rule on all problems of an experiment, with the threads set by [`threads::with`] or one per core. Every rule meets the same problems, contexts and noise.
pub fn try_rule(rule: LinearRule, experiment: &Experiment) -> Vec<Outcome> {
    let mut problems: Vec<usize> = (0..experiment.problems).collect();
    threads::with_default(|| threads::map(&mut problems, |_, problem| try_problem(rule, experiment, *problem as u64)))
}

fn try_problem(rule: LinearRule, experiment: &Experiment, problem: u64) -> Outcome {
    let &Experiment { steps, arms, width, seed, .. } = experiment;
    let mut bandit = ContextualBandit::new(arms, width, episode_seed(seed, problem, 0));
    let (mut learner, mut choices) = (LinearLearner::new(rule, arms, width), Stream::new(seed, Purpose::Action, problem));
    let (mut context, mut regret, mut outcome) = (vec![0.0; width], 0.0, Outcome::default());
    for step in 1..=steps as u64 {
        bandit.reset(episode_seed(seed, problem, step), &mut context);
        let (_, value) = bandit.best(&context);
        let x: Vec<f64> = context.iter().map(|number| f64::from(*number)).collect();
        let arm = learner.choose(&x, &mut choices);
        let gap = value - bandit.values(&context)[arm];
        regret += gap;
        let reward = bandit.step(Action::Discrete(arm as u32), &mut context).reward;
        learner.learn(&x, arm, reward);
        outcome.rewards.push(reward);
        outcome.optimal.push(f64::from(u8::from(gap == 0.0)));
        outcome.regret.push(regret);
    }
    outcome
}
