//! Files of a run, terminal summary, progress line.
#![forbid(unsafe_code)]
