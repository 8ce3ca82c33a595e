//! The trace flavor `timed_synthetic_session`.
#![forbid(unsafe_code)]
