//! Folders, files, the record's thread and the summary on real file systems.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test may panic, also in its functions")]

mod chrome;
mod drawings;
mod folder;
mod lanes;
mod plot;
mod record;
mod table;
