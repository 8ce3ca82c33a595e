//! Presentation of the results of a run: files, terminal tables, plots and the data of
//! `report.html`.
//!
//! All functions depend on plain data only. [`RunAnalysis`] has the results that were computed from
//! the events of a run, [`AccuracyContext`] the inputs of its certificate that are not in the
//! record, and [`RunDescription`] the facts that are known before the first event. [`write_files`]
//! writes the run folder, [`summary`] returns the closing table, and [`page`] builds the page of a
//! finished run or of one that is in progress.
#![forbid(unsafe_code)]

mod accuracy;
mod cache_section;
mod certificate_section;
mod compat_export;
mod description;
mod divergence_section;
mod exit_code;
mod files;
mod group_columns;
mod listed;
pub mod page;
mod plots;
mod plugin_usage;
mod replay_section;
mod rows;
mod run_analysis;
mod session_section;
mod summary;
mod table;
pub mod terminal;
mod thread_settings;
mod units;
mod verdict;

pub use accuracy::{AccuracyContext, Clock, SelfTestOutcome, conditions, thresholds};
pub use compat_export::CompatExport;
pub use description::RunDescription;
pub use exit_code::exit_code;
pub use files::write_files;
pub use run_analysis::{FailureClass, RunAnalysis};
pub use summary::{WIDTH, summary};
pub use thread_settings::{CoreSetting, RealtimePriority, RefusedSettings, ThreadSettings};
pub use verdict::{certificate, messages};
