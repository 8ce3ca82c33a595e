//! JSON without a tree: values are checked and stepped over where they stand.
//!
//! A trace of gigabytes is read once before the run begins, and of each row only a few cells matter. So nothing is decoded
//! here; what is accepted is exactly what `serde_json` accepts (a test compares the two), for the flavors read with that.

mod scan;
mod stream;

pub(crate) use scan::{Fault, Kind, members, scan_value, skip_space};
pub(crate) use stream::{Stream, StreamFault, not_json};
