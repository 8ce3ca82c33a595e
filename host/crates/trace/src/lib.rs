//! Trace files.
#![forbid(unsafe_code)]
