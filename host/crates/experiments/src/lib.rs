//! Sweeps over several runs, with their manifest and summary.
//!
//! [`Sweep::plan`] groups the scenarios of a sweep; [`Sweep::begin`] creates the folder of each
//! group; [`Sweep::record`] adds a run's outcome and rewrites the group's files, so that a crash or
//! Ctrl-C keeps everything up to the last finished run. [`Sweep::table`] is the overview for the
//! terminal, [`Sweep::health`] its warnings. The files have Veeksha's names, keys and columns, and
//! additional ones.
//!
//! This crate neither executes runs nor reads the clock: a [`CellOutcome`] is plain data.
#![forbid(unsafe_code)]

mod config;
mod csv_text;
mod decode;
mod error;
mod failed_checks;
mod files;
mod folder;
mod health;
mod key_metrics;
mod outcome;
mod sweep;
mod sweep_run;
mod table;

pub use config::CellConfig;
pub use error::SweepError;
pub use key_metrics::KeyMetrics;
pub use outcome::CellOutcome;
pub use sweep::Sweep;
pub use sweep_run::{SweepGroup, SweepRun};
