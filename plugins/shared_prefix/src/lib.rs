//! The trace flavor `shared_prefix`.
#![forbid(unsafe_code)]
