//! Statistics against rliable, and the experiments of the textbook.

mod rliable;
mod tabular;
mod testbed;
