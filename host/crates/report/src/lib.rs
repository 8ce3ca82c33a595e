//! Files of a run, terminal summary, progress line.
//!
//! This crate writes and shows what others computed: it takes anything that can be serialised, and plain rows of text.
//! [`RunFolder`] is the folder of one run, [`RecordWriter`] the thread that appends the record to its files,
//! [`summary_table`] the closing summary, [`Progress`] the line that moves while a run lasts, [`stream_line`] the one that is printed.
//!
//! A plot is a [`Figure`]: data that says what stands where, and of which PNG and SVG are drawn. [`cdf_plot`] and its kind make one of
//! plain data, with the CSV that lies beside it; [`RunFolder::write_plot`] writes all three. [`ChromeTrace`] takes the events of a run.
#![forbid(unsafe_code)]

mod chrome;
mod error;
mod figure;
mod folder;
mod line_file;
mod plots;
mod progress;
mod record_writer;
mod table;

pub use chrome::{ChromeTrace, ChromeTraceLimits};
pub use error::ReportError;
pub use figure::{Axis, BoxShape, Chart, Dash, Element, Figure, Fill, Hue, Marker, Scale, Shape, Span};
pub use folder::{RunFolder, write_named};
pub use plots::{
    BoxGroup, BoxPlotData, BoxStats, CdfData, ConcurrencyData, Curve, DecodeWindowData, Level, Panel,
    PanelKind, Plot, PrefillData, SliceData, ThroughputData, TimelineChoice, TimelineData, TimelineRequest,
    box_plot, cdf_csv, cdf_log_plot, cdf_plot, concurrency_plot, decode_window_plot, length_groups,
    portrait_svg, prefill_plot, slices_plot, throughput_plot, timeline_plot, wants_log_axis,
};
pub use progress::{Progress, ProgressFigures, stream_line};
pub use record_writer::{LatencyDefinition, RecordSender, RecordWriter, Trace};
pub use table::{Colour, Mark, Row, Section, summary_table};
pub use veeksha_stats::{duration, number, share};
