//! The commands that look into agents and runs: `values`, `play --values`, `explain`, `probe`; and `bandit`.

mod explain;
mod probe;
#[path = "../../src/temporary.rs"]
mod temporary;
mod values;
