//! What takes several runs: sweeps, their manifest and their summary.
//!
//! [`Sweep::plan`] groups the scenarios of a sweep; [`Sweep::begin`] makes the folder of each group; [`Sweep::record`] takes what
//! came of a run and writes the group's files anew, so that a crash or Ctrl-C keeps everything up to the last run that ended.
//! [`Sweep::table`] is the overview for the terminal, [`Sweep::health`] what it warns of. The files have Veeksha's names, keys and columns, and further ones.
//!
//! Nothing here runs anything, reads the clock or knows what a request is: a [`CellOutcome`] is plain data.
#![forbid(unsafe_code)]

mod config;
mod csv_text;
mod decode;
mod error;
mod figures;
mod files;
mod folder;
mod health;
mod outcome;
mod sweep;
mod table;

pub use config::CellConfig;
pub use error::SweepError;
pub use figures::KeyFigures;
pub use outcome::CellOutcome;
pub use sweep::{Cell, Group, Sweep};
