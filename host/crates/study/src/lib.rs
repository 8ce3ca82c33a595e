//! What a trace is like.
#![forbid(unsafe_code)]
