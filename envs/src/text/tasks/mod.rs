//! The built-in tasks, one file each.

mod addition;
mod chain_sum;
mod countdown;
pub(super) mod expression;
mod file;
mod ladder;
pub(super) mod machine;
mod preference;
mod program;
mod sequence;
mod target_sum;

pub use addition::Addition;
pub use chain_sum::ChainSum;
pub use countdown::Countdown;
pub use file::FileTask;
pub(crate) use ladder::{find, worlds};
pub use preference::Preference;
pub use program::Program;
pub use sequence::{Order, Sequence};
pub use target_sum::TargetSum;
