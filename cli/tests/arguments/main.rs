//! What people type: short forms, other words, and wrong inputs.

mod bad_input;
mod forgiving;
mod typed;
mod wrong_inputs;
