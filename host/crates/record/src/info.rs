//! Facts about a record that are known without reading its rows.

use veeksha_model::Nanos;

/// The state of a record, and how much of it can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordInfo {
    /// Version of the format.
    pub version: u32,
    /// The program that wrote it, and its version.
    pub program: String,
    /// The name that its files bear, drawn when the run began: the same in a copy, and of no other
    /// run. None of the first version has one.
    pub run: Option<String>,
    /// The digest of the configuration that the run was of, as
    /// [`RunRecorder::of_config`](crate::RunRecorder::of_config) was given it.
    pub config: Option<String>,
    /// True if the run was recorded to its end and every recorded event can be read.
    pub complete: bool,
    /// Files that can be read: two for a finished record, else the parts of both tables.
    pub parts: usize,
    /// Requests in them.
    pub requests: u64,
    /// Other events in them.
    pub events: u64,
    /// Recorded events that are missing, according to the files; after all rows were read, also
    /// those that could not be decoded. Events that were never written are not counted.
    pub lost: u64,
    /// Problems, file by file. Reading the rows can add to them.
    pub damaged: Vec<String>,
    /// Of a record that was not finished: the instant until which events were written, if any part
    /// of it can be read.
    pub cut_after: Option<Nanos>,
}
