//! A synthetic run for inspection of its page: two phases of load, a stall, failures, sessions with
//! branches, a custom metric.

pub(crate) mod page_data;
pub(crate) mod run;
