//! The record of a run as columns: Parquet files with every event, written during the run. The only
//! user of `parquet`.
//!
//! `record/` in a run folder contains two tables: `requests.parquet` with one row per request that
//! was sent, and `events.parquet` with one row per other event. Both have a column `position`, the
//! index of the event in the run's sequence, so that merging the two restores the order exactly.
//! Every integer is `int64` (differences of unsigned columns wrap around in some readers), every
//! time is in nanoseconds since the start of the run, and a value that was not observed is null.
//!
//! A version of the format keeps the meaning of its columns, codes and kinds of events. It may gain
//! kinds of events, and optional columns at the end of a table; in older files these read as empty.
//!
//! Parquet keeps its index at the end of a file, so an unfinished file is useless after a crash.
//! During the run, small complete files (*parts*) are written instead; at the end they are joined
//! into one file per table without being decoded. Each file contains the run's id, so that
//! files of two runs in one folder are distinguished. [`RunRecorder`] writes, [`RunRecord`] reads.
//! An incomplete record is read as far as it goes, and [`RecordInfo`] reports it.
#![forbid(unsafe_code)]

mod cells;
mod checked_pages;
mod codes;
mod element;
mod error;
mod event_rows;
mod folder;
mod group;
mod info;
mod join;
mod metadata;
mod nested_cells;
mod read;
mod record;
mod recorder;
mod request_rows;
mod stream;
mod table;
mod tables;
mod unpacked;
mod write;

pub use error::RecordError;
pub use folder::open_plain;
pub use info::RecordInfo;
pub use record::RunRecord;
pub use recorder::{RunRecorder, new_run_id};
