//! The trace flavor `mooncake`.
#![forbid(unsafe_code)]
