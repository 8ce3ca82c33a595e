//! The plots of a run: from plain data to a drawing and its data as CSV.

mod cdf;
mod curves;
mod density;
mod plot;
mod portrait;
mod prefill;
mod scale;
mod selection;
mod table;
mod timeline;
mod violin;

pub use cdf::{CdfData, cdf_csv, cdf_log_plot, cdf_plot, wants_log_axis};
pub use curves::{
    ConcurrencyData, DecodeWindowData, Level, SliceData, ThroughputData, TimeCurve, concurrency_plot,
    decode_window_plot, slices_plot, throughput_plot,
};
pub use plot::Plot;
pub use portrait::{Panel, PanelKind, portrait_svg};
pub use prefill::{PrefillData, prefill_plot};
pub use table::csv_table;
pub use timeline::{TimelineChoice, TimelineData, TimelineRequest, timeline_plot};
pub use violin::{BoxGroup, BoxPlotData, BoxStats, length_groups, violin_plot};
