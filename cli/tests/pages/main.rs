//! Numbers in pages, and tables with flipped bits.

mod mutations;
mod published;
