//! The trace flavor `burstgpt`.
#![forbid(unsafe_code)]
