//! Files that the library reads and writes, and its calls.

mod formats;
mod library;
