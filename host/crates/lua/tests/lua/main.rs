//! Tests of the crate from outside, in one binary.

mod agents;
mod common;
mod load;
mod planned;
mod sandbox;
