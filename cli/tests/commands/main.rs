//! The commands.

mod bench;
mod check;
mod compare;
mod explain;
mod export;
mod folders;
mod inputs;
mod learned_reward;
mod new_crate;
mod plot;
mod policy_file;
mod preferences;
mod probe;
mod record;
mod reproduce;
mod shown;
mod studies;
mod text_evaluation;
mod values;
mod verify;
