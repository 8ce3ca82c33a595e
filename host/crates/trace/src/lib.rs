//! Trace files: from bytes to checked rows, to groups of rows, to ordered and repeated sessions.
//!
//! [`open`] reads a trace once: it finds the rows (JSON Lines, JSON, CSV, plain or compressed, one
//! file or a folder), checks every cell against the flavor's layout, and remembers the position and
//! the group of each row. Rows are read again when their sessions are requested, so memory does not
//! grow with the length of rows.
//!
//! An [`OpenTrace`] is a workload: session `i` is group `order(i mod groups)` of epoch
//! `i / groups`, independent of caller, order and number of threads.
//!
//! Files are read by positional reads through bounded buffers, not through a memory map: see
//! `store`.
#![forbid(unsafe_code)]

mod cell;
mod columns;
mod decimal;
mod error;
mod gzip;
mod header;
mod index;
mod json;
mod options;
mod problem;
mod replay;
mod row;
mod rows;
mod sniff;
mod store;
mod text;
mod time;
mod window;

pub use error::{BadRow, RowPosition, SkippedRows, TraceError};
pub use options::{BadRowRule, CheckExtent, Order, TraceOptions};
pub use problem::RowProblem;
pub use replay::{OpenTrace, open};
pub use sniff::{Format, Sniffed, sniff};
