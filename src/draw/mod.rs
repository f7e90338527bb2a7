//! Drawing scenes, in the terminal and as animated GIFs.

pub mod animation;
pub(crate) mod fonts;
pub(crate) mod raster;
pub mod terminal;
