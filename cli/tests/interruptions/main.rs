//! Runs that are killed, interrupted, out of disk space, resumed, and repeated.

mod determinism;
mod lengthened;
mod resume;
mod signals;
mod survives;
