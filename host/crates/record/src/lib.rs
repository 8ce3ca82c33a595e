//! The record of a run as columns: Parquet files that hold every event, written while the run lasts and read again years later.
//! The only user of `parquet`.
//!
//! A run folder's `record/` holds two tables: `requests.parquet`, one row for each request that was sent, and `events.parquet`, one
//! row for each other event. Both have a column `position`, the place of the event in the run's sequence, so that merging the two
//! restores the order exactly. Every integer is `int64` (differences of unsigned columns wrap round in some readers), every time is
//! in nanoseconds since the run's zero, and what was not observed is null.
//!
//! A version of the format keeps the meaning of its columns, codes and kinds of events. It may gain kinds of events, and columns at
//! the end of a table that no row needs; a file from before is read as if they were empty there.
//!
//! Parquet keeps its index at the end of a file, so a file that is being written is worth nothing after a crash. While the run
//! lasts, whole small files (*parts*) are therefore written; at the end they are joined into one file for each table, without being
//! decoded. Each file bears the name of its run, which is drawn when the record is begun: files of two runs in one folder are told.
//! [`Recorder`] writes, [`Record`] reads; a record that was cut short is read as far as it goes, and says so.
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
