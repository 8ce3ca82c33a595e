//! The trace flavor `rag`.
#![forbid(unsafe_code)]
