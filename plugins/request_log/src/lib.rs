//! The trace flavor `request_log`.
#![forbid(unsafe_code)]
