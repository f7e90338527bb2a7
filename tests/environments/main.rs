//! Environments: against Gymnasium, registered by users, failing.

#[path = "../../compare/tests/failing.rs"]
mod failing;
mod failing_environments;
mod file_task;
mod gymnasium;
mod registry;
