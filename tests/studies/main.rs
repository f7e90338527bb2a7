//! The experiments of the textbook.

mod tabular;
mod testbed;
