//! The trace flavor `multi_turn`.
#![forbid(unsafe_code)]
