//! Whether runs differ, and by how much: effect sizes with bootstrap intervals, verdicts, reports for machines. Pure.
#![forbid(unsafe_code)]
