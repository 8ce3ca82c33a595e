//! The `veeksha-host` binary.
#![forbid(unsafe_code)]

fn main() {}
