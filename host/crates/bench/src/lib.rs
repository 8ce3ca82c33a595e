//! The project's own performance figures, beside the least that a client can cost.
#![forbid(unsafe_code)]
