//! The trace flavor `inputs_json`.
#![forbid(unsafe_code)]
