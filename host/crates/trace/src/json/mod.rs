//! JSON without a tree: values are validated and skipped in place.
//!
//! A trace of gigabytes is read once before the run begins, and only a few cells of each row
//! matter, so nothing is decoded here. The scanner accepts exactly what `serde_json` accepts (a
//! test compares the two), because the flavors parse rows with it.

mod scan;
mod stream;

pub(crate) use scan::{Kind, ScanFault, members, scan_value, skip_space};
pub(crate) use stream::{Stream, StreamFault, not_json};
