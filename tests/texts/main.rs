//! Text tasks and their presets.

mod copycat;
mod text;
mod text_presets;
