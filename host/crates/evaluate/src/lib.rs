//! Metrics, SLOs, summaries: functions of a run's record.
#![forbid(unsafe_code)]
