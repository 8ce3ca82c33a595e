//! The trace flavor `wildchat`.
#![forbid(unsafe_code)]
