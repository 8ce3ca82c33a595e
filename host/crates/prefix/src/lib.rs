//! The ideal prefix cache.
#![forbid(unsafe_code)]
