//! The trainings of an experiment that is a comparison of agents.

use std::collections::BTreeSet;

use super::draw::{banded, lines};
use super::experiment::Experiment;
use super::runs::{Run, results_csv, train};
use gradus::Error;
use gradus::envs::registry;
use gradus::figure::{Panel, Series};
use gradus_compare::Comparison;

/// A comparison and its runs.
pub(super) struct Study {
    pub(super) comparison: Comparison,
    pub(super) runs: Vec<Run>,
}

impl Study {
    /// Makes all runs.
    pub(super) fn make(experiment: &Experiment) -> Result<Self, Error> {
        let comparison = experiment.comparison()?;
        let runs = train(&comparison)?;
        Ok(Self { comparison, runs })
    }

    /// Returns the title of an environment.
    pub(super) fn title(&self, environment: usize) -> String {
        let name = &self.comparison.environments[environment];
        registry::find(name).map_or_else(|_| name.clone(), |world| world.title())
    }

    /// Returns a number of every run of an agent in an environment, in the order of the seeds.
    ///
    /// # Panics
    /// If no agent has this name.
    pub(super) fn numbers(&self, agent: &str, environment: usize, number: impl Fn(&Run) -> f64) -> Vec<f64> {
        let place = self.comparison.agents.iter().position(|other| other.name == agent);
        let place = place.unwrap_or_else(|| panic!("the experiment file has an agent called {agent}"));
        self.runs.iter().filter(|run| run.agent == place && run.environment == environment).map(number).collect()
    }

    /// Returns a curve of greedy returns for each of `agents`, with 95 % intervals. Runs that have no evaluation at some steps have the one before.
    pub(super) fn curves(&self, agents: &[&str], environment: usize) -> Panel {
        let curve = |(colour, name): (usize, &&str)| -> Series {
            let place = self.comparison.agents.iter().position(|agent| agent.name == **name).unwrap_or(0);
            let runs: Vec<&Run> = self.runs.iter().filter(|run| run.agent == place && run.environment == environment).collect();
            let steps: BTreeSet<u64> = runs.iter().flat_map(|run| run.evaluations.iter().map(|(step, _)| *step)).collect();
            let at = |run: &Run, step: u64| run.evaluations.iter().rev().find(|(other, _)| *other <= step).map_or(0.0, |(_, mean)| *mean);
            let returns: Vec<Vec<f64>> = runs.iter().map(|run| steps.iter().map(|step| at(run, *step)).collect()).collect();
            banded(*name, colour, &steps.iter().map(|step| *step as f64).collect::<Vec<f64>>(), &returns)
        };
        lines(&self.title(environment), "environment steps", "greedy return", agents.iter().enumerate().map(curve).collect())
    }

    /// Returns the names of the agents.
    pub(super) fn agents(&self) -> Vec<&str> {
        self.comparison.agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    /// Returns the table of all evaluations.
    pub(super) fn csv(&self) -> String {
        results_csv(&self.comparison, &self.runs)
    }
}
