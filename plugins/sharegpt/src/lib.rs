//! The trace flavor `sharegpt`.
#![forbid(unsafe_code)]
