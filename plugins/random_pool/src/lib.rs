//! The trace flavor `random_pool`.
#![forbid(unsafe_code)]
