//! The bandit experiments of Sutton and Barto, section 2.3: the mean reward of a rule at every step, over thousands of problems.
//!
//! `examples/bandit_testbed.rs` draws the book's figures with this module.

use gradus_agents::bandit::{Learner, Rule};
use gradus_base::random::{Purpose, Stream};
use gradus_base::threads;
use gradus_envs::bandits::Testbed;

/// Number of problems in a part, which one thread computes. The sums of the parts are added in a fixed order, so the result does not depend
/// on the number of threads.
const PART: usize = 50;

/// The kind of the problems of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Problems {
    /// Normal rewards with variance 1, and normal values: section 2.3.
    #[default]
    Gaussian,
    /// Rewards of 0 or 1.
    Bernoulli,
    /// Normal rewards, and values that begin at 0 and take normal steps with this standard deviation: exercise 2.5.
    Drifting(f64),
}

impl Problems {
    /// Returns some of the problems of an experiment.
    pub fn testbed(self, problems: std::ops::Range<usize>, experiment: &Experiment) -> Testbed {
        let &Experiment { arms, mean, seed, .. } = experiment;
        match self {
            Problems::Gaussian => Testbed::new(problems, arms, mean, seed),
            Problems::Bernoulli => Testbed::bernoulli(problems, arms, seed),
            Problems::Drifting(std) => Testbed::drifting(problems, arms, std, seed),
        }
    }
}

/// The settings of an experiment. The defaults are the textbook's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experiment {
    /// Kind of the problems.
    pub kind: Problems,
    /// Number of problems.
    pub problems: usize,
    /// Pulls per problem.
    pub steps: usize,
    /// Number of arms.
    pub arms: usize,
    /// Mean of the distribution of the arms' true values; used by Gaussian problems only.
    pub mean: f64,
    /// Seed of the problems, of the reward noise and of the choices.
    pub seed: u64,
}

impl Default for Experiment {
    fn default() -> Self {
        Self { kind: Problems::Gaussian, problems: 2000, steps: 1000, arms: 10, mean: 0.0, seed: 0 }
    }
}

/// A mean over problems and its standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    /// Mean.
    pub mean: f64,
    /// Standard error: the sample standard deviation over the problems, divided by the square root of their number.
    pub error: f64,
}

/// The results of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Reward at each step.
    pub rewards: Vec<Average>,
    /// Share of problems in which a best arm was pulled, at each step.
    pub optimal: Vec<Average>,
    /// Regret until each step: the sum of the differences between the highest value and that of the pulled arm.
    pub regret: Vec<Average>,
    /// Mean reward over all steps.
    pub overall: Average,
    /// Mean reward over all steps in each problem.
    pub of_problems: Vec<f64>,
}

/// A sum over problems and the sum of the squares.
#[derive(Clone, Copy, Default)]
struct Sums {
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, x: f64) {
        self.sum += x;
        self.squares += x * x;
    }

    fn merge(&mut self, other: &Sums) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn average(&self, n: usize) -> Average {
        let n = n as f64;
        let mean = self.sum / n;
        let variance = (self.squares - self.sum * mean).max(0.0) / (n - 1.0).max(1.0);
        Average { mean, error: (variance / n).sqrt() }
    }
}

struct Part {
    rewards: Vec<Sums>,
    optimal: Vec<Sums>,
    regret: Vec<Sums>,
    overall: Sums,
    of_problems: Vec<f64>,
}

impl Part {
    fn new(steps: usize) -> Self {
        Self {
            rewards: vec![Sums::default(); steps],
            optimal: vec![Sums::default(); steps],
            regret: vec![Sums::default(); steps],
            overall: Sums::default(),
            of_problems: Vec::new(),
        }
    }

    fn merge(mut self, other: &Part) -> Self {
        self.rewards.iter_mut().zip(&other.rewards).for_each(|(sums, other)| sums.merge(other));
        self.optimal.iter_mut().zip(&other.optimal).for_each(|(sums, other)| sums.merge(other));
        self.regret.iter_mut().zip(&other.regret).for_each(|(sums, other)| sums.merge(other));
        self.overall.merge(&other.overall);
        self.of_problems.extend(&other.of_problems);
        self
    }
}

/// Runs a rule on all problems of an experiment, with the threads set by [`threads::with`] or one per core.
///
/// # Panics
/// If the experiment has no problems, steps or arms.
pub fn try_rule(rule: Rule, experiment: &Experiment) -> Outcome {
    try_rule_on(rule, experiment, &|range| experiment.kind.testbed(range, experiment))
}

/// As [`try_rule`], on problems that `testbed` makes: those with the numbers of a range.
///
/// # Panics
/// If the experiment has no problems, steps or arms.
pub fn try_rule_on(rule: Rule, experiment: &Experiment, testbed: &(dyn Fn(std::ops::Range<usize>) -> Testbed + Sync)) -> Outcome {
    let Experiment { problems, steps, .. } = *experiment;
    assert!(problems > 0 && steps > 0, "bandit experiment: expected at least 1 problem and 1 step, got {problems} and {steps}");
    let mut firsts: Vec<usize> = (0..problems).step_by(PART).collect();
    let parts = threads::with_default(|| threads::map(&mut firsts, |_, first| try_part(rule, experiment, testbed, *first)));
    let all = parts.iter().fold(Part::new(steps), Part::merge);
    let averages = |sums: &[Sums]| sums.iter().map(|sums| sums.average(problems)).collect();
    Outcome {
        rewards: averages(&all.rewards),
        optimal: averages(&all.optimal),
        regret: averages(&all.regret),
        overall: all.overall.average(problems),
        of_problems: all.of_problems,
    }
}

fn try_part(rule: Rule, experiment: &Experiment, testbed: &dyn Fn(std::ops::Range<usize>) -> Testbed, first: usize) -> Part {
    let &Experiment { problems, steps, arms, seed, .. } = experiment;
    let range = first..problems.min(first + PART);
    let mut testbed = testbed(range.clone());
    let mut learners = vec![Learner::new(rule, arms); range.len()];
    let mut choices: Vec<Stream> = range.map(|problem| Stream::new(seed, Purpose::Action, problem as u64)).collect();
    let (mut actions, mut rewards) = (vec![0; learners.len()], vec![0.0; learners.len()]);
    let (mut part, mut earned, mut lost) = (Part::new(steps), vec![0.0; learners.len()], vec![0.0; learners.len()]);
    for step in 0..steps {
        for ((action, learner), stream) in actions.iter_mut().zip(&mut learners).zip(&mut choices) {
            *action = learner.choose(stream) as u32;
        }
        // before the pull, which may change the values
        let best: Vec<usize> = (0..learners.len()).map(|problem| testbed.best(problem)).collect();
        for (problem, (action, lost)) in actions.iter().zip(&mut lost).enumerate() {
            let values = testbed.values(problem);
            let gap = values[best[problem]] - values[*action as usize];
            *lost += gap;
            part.regret[step].add(*lost);
            // of several best arms each is optimal
            part.optimal[step].add(f64::from(u8::from(gap == 0.0)));
        }
        testbed.pull(&actions, &mut rewards);
        for (problem, (learner, (action, reward))) in learners.iter_mut().zip(actions.iter().zip(&rewards)).enumerate() {
            learner.learn(*action as usize, *reward);
            part.rewards[step].add(*reward);
            earned[problem] += reward;
        }
    }
    part.of_problems.extend(earned.iter().map(|earned| earned / steps as f64));
    part.of_problems.iter().for_each(|mean| part.overall.add(*mean));
    part
}
