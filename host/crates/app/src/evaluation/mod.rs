//! Evaluation of the events of a run, and of a recorded run.

pub(crate) mod analysis;
pub mod builtin_evaluator;
pub(crate) mod compat_output;
pub(crate) mod conclusion;
pub(crate) mod evaluate;
pub(crate) mod excluded_metrics;
pub mod health_expectation;
pub mod objectives;
