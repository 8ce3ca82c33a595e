//! The trace flavor `bailian`.
#![forbid(unsafe_code)]
