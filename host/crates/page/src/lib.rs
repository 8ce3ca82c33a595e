//! The report page of a run: one self-contained HTML file, also served during the run.
//!
//! [`page`] turns [`PageData`] into `report.html`: markup, style, script and data in one file that
//! opens from disk. Its policy forbids all network access (`default-src 'none'`). [`PageData`] is
//! plain data: the caller fills in the available parts and omits the others. Text reaches the page
//! as text only: the data is JSON in which `<` is escaped, and the script writes it by
//! `textContent`, so that labels, messages and server names cannot become markup.
//!
//! [`RequestSample`] processes the events of a run of any length and keeps the requests on the
//! page, in bounded memory.
//!
//! [`LivePage`] serves the same page during the run, on a dedicated thread. Publishing new data
//! only exchanges a pointer.
#![forbid(unsafe_code)]

mod chunk_times;
mod columns;
mod critical_paths;
mod data;
mod error;
mod html;
mod live;
mod request;
mod sample;

pub use chunk_times::ChunkTimes;
pub use data::{
    CertificateFinding, CertificateSection, CertificateVerdict, CheckOutcome, DroppedToolRuns, Fact,
    FailedWorkload, Failures, GroupTable, GroupValues, HealthRow, KeyMetric, Metric, MetricError,
    MetricStatistics, NeverSent, PageData, Plugin, PluginUseRow, RunCurves, RunFacts, RunState, SliceRow,
    Slices, SloRow, ValueColumn, WorstSloWindow,
};
pub use error::PageError;
pub use html::page;
pub use live::LivePage;
pub use request::{NodeNeverSent, Outcome, PageRequest, PageSession, PageToolRun, RequestList};
pub use sample::RequestSample;
