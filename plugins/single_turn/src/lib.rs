//! The trace flavor `single_turn`.
#![forbid(unsafe_code)]
