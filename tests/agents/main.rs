//! Agents: in loops by hand, in trainings, with tables, on probes of every kind.

mod agent;
mod every_agent;
mod gaps;
mod memory;
mod off_policy;
mod tabular_agents;
