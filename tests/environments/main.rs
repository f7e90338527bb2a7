//! Environments: against Gymnasium, registered by users, failing.

#[path = "../common/failing.rs"]
mod failing;
mod failing_environments;
mod file_task;
mod gymnasium;
mod registry;
