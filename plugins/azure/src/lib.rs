//! The trace flavor `azure`.
#![forbid(unsafe_code)]
