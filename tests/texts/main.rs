//! Text tasks and their presets.

mod copycat;
mod rewards;
mod text;
mod text_presets;
