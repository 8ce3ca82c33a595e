//! Files of a run, terminal summary, progress line, plots.
//!
//! This crate formats and writes values computed by others: it accepts anything serializable, and
//! plain rows of text. [`RunFolder`] is the folder of one run, [`LineWriter`] the thread that
//! appends the record to its files, [`summary_table`] the closing summary, [`ProgressLine`] the
//! line that is redrawn during a run, [`stream_line`] the one that is printed.
//!
//! A [`Drawing`] describes a chart as data, of which PNG and SVG are made. [`cdf_plot`] and its
//! siblings make a [`Plot`], a drawing with its data as CSV, from plain data;
//! [`RunFolder::write_plot`] writes all three files. [`ChromeTrace`] takes the events of a run.
#![forbid(unsafe_code)]

mod chrome;
mod drawing;
mod error;
mod folder;
mod line_file;
mod line_writer;
mod plots;
mod progress;
mod table;

pub use chrome::{ChromeTrace, ChromeTraceLimits};
pub use drawing::{
    AreaFill, AxisScale, AxisSpan, BoxShape, Chart, Color, Dash, Drawing, LineShape, Marker, PlotAxis,
    PlotElement,
};
pub use error::ReportError;
pub use folder::{RunFolder, link_as_latest, write_named};
pub use line_writer::{LineSender, LineWriter, TraceFile};
pub use plots::{
    BoxGroup, BoxPlotData, BoxStats, CdfData, ConcurrencyData, DecodeWindowData, Level, Panel, PanelKind,
    Plot, PrefillData, SliceData, ThroughputData, TimeCurve, TimelineChoice, TimelineData, TimelineRequest,
    cdf_csv, cdf_log_plot, cdf_plot, concurrency_plot, csv_table, decode_window_plot, length_groups,
    portrait_svg, prefill_plot, slices_plot, throughput_plot, timeline_plot, violin_plot, wants_log_axis,
};
pub use progress::{ProgressLine, ProgressStats, stream_line};
pub use table::{ColorMode, RowMark, Section, SummaryRow, summary_table};
pub use veeksha_stats::{duration, number, share};
