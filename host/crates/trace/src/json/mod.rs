//! JSON without a tree: values are validated and skipped in place.
//!
//! A trace of gigabytes is read once before the run begins, and only a few cells of each row
//! matter, so nothing is decoded here. The scanner accepts exactly what `serde_json` accepts (a
//! test compares the two), because the flavors parse rows with it.
//!
//! Why not `serde_json`: it has no positions of values, and its closest substitute, borrowed
//! `RawValue`s, takes 1.6 times (rows of numbers) to 2.2 times (rows of text) as long; indexing
//! would then miss its goal of 300 MB/s. `docs/performance.md` has the measurements.

mod scan;
mod stream;

pub(crate) use scan::{JsonKind, ScanFault, members, scan_value, skip_space};
pub(crate) use stream::{JsonStream, StreamFault, not_json};
