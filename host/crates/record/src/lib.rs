//! The record of a run as columns: Parquet files that hold every event, written while the run lasts
//! and read again years later. The only user of `parquet`.
//!
//! A run folder's `record/` holds two tables: `requests.parquet`, one row for each request that was
//! sent, and `events.parquet`, one row for each other event. Both have a column `position`, the
//! place of the event in the run's sequence, so that merging the two restores the order exactly.
//! Every integer is `int64` (differences of unsigned columns wrap round in some readers), every
//! time is in nanoseconds since the run's zero, and what was not observed is null.
//!
//! A version of the format keeps the meaning of its columns, codes and kinds of events. It may gain
//! kinds of events, and columns at the end of a table that no row needs; a file from before is read
//! as if they were empty there.
//!
//! Parquet keeps its index at the end of a file, so a file that is being written is useless after a
//! crash. While the run lasts, small complete files (*parts*) are written instead; at the end they
//! are joined into one file per table without being decoded. Each file carries the run's name,
//! drawn when the record is created, so that files of two runs in one folder are recognized.
//! [`Recorder`] writes, [`Record`] reads; a record that was cut short is read as far as it goes,
//! and [`RecordInfo`] reports it.
#![forbid(unsafe_code)]

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
pub use record::Record;
pub use recorder::Recorder;
