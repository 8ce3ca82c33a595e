//! A trace in the likeness of another.

mod deal;
mod error;
mod likeness;
mod make;
mod tree;
mod values;

pub use error::CannotSynthesize;
pub use likeness::{Likeness, LikenessFit};
pub use make::{Made, Synthesis};

#[cfg(test)]
mod tests;
