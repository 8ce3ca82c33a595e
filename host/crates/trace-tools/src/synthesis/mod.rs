//! Synthesis of traces from a statistical model of another.

mod error;
mod generate;
mod model;
mod quantiles;
mod random_order;
mod tree;

pub use error::SynthesisError;
pub use generate::{GeneratedRows, Synthesis};
pub use model::{TraceModel, TraceModelFit};

#[cfg(test)]
mod tests;
