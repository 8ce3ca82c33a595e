//! The target's tokenizer. Only the host has one: in a native test these functions panic.

pub use crate::bindings::capabilities::veeksha::plugin::tokens::{count, encode, vocabulary};
