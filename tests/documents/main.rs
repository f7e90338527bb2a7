//! The documentation and the packages say what is there.

mod guide;
mod metrics_page;
mod release;
