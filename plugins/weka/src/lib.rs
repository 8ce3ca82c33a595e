//! The trace flavor `weka`.
#![forbid(unsafe_code)]
