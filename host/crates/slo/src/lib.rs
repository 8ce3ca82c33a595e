//! Service-level objectives as text, such as `p99(ttfc) < 500ms`: parsed, checked, printed. Pure.
#![forbid(unsafe_code)]

mod objective;

pub use objective::{Aggregate, Bound, BoundUnit, Comparison, Objective, Quantity};
