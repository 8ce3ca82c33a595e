//! Whether a run did what its scenario asked for: checks over the events. Pure.
#![forbid(unsafe_code)]
