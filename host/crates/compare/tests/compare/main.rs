//! Comparisons, through the crate's door.

mod coverage;
mod synthetic;
