//! The composition root of `veeksha-host`.
#![forbid(unsafe_code)]
