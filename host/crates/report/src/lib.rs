//! Files of a run, terminal summary, progress line.
//!
//! This crate writes and shows what others computed: it takes anything that can be serialised, and plain rows of text.
//! [`RunFolder`] is the folder of one run, [`RecordWriter`] the thread that appends the record to its files,
//! [`summary_table`] the closing summary, [`Progress`] the line that moves while a run lasts, [`portrait_svg`] a plot.
#![forbid(unsafe_code)]

mod error;
mod folder;
mod line_file;
mod plot;
mod progress;
mod record_writer;
mod table;

pub use error::ReportError;
pub use folder::RunFolder;
pub use plot::{Panel, PanelKind, portrait_svg};
pub use progress::{Progress, ProgressFigures};
pub use record_writer::{LatencyDefinition, RecordSender, RecordWriter, Trace};
pub use table::{Colour, Mark, Row, Section, summary_table};
pub use veeksha_stats::{duration, number, share};
