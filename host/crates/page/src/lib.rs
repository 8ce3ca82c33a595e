//! The page of a run: one self-contained HTML file, and the same page served while the run goes on.
//!
//! [`page`] turns [`PageData`] into `report.html`: markup, style, script and data in one file that
//! opens from disk, asks for nothing from any network, and forbids itself to (`default-src
//! 'none'`). [`PageData`] is plain: whoever makes a page fills in what the run has, and leaves out
//! what it has not. Text reaches the page as text only: the data is JSON in which `<` is escaped,
//! and the script writes it by `textContent`, so that no label, message or name of a server can
//! become markup.
//!
//! [`RequestSample`] takes the events of a run of any length and keeps the requests that the page
//! shows, in bounded memory.
//!
//! [`Live`] serves the same page while the run goes on. It has a thread of its own, and telling it
//! something new costs the run the exchange of a pointer.
#![forbid(unsafe_code)]

mod chunk_times;
mod columns;
mod data;
mod error;
mod html;
mod live;
mod request;
mod sample;

pub use chunk_times::ChunkTimes;
pub use data::{
    Bound, Certificate, Check, CheckOutcome, Curves, Fact, Failures, Figure, Finding, Metric, MetricSummary,
    NeverSent, PageData, Plugin, RunFacts, RunState, Slice, SliceColumn, Slices, Slo, Verdict, WorstWindow,
};
pub use error::PageError;
pub use html::page;
pub use live::Live;
pub use request::{NodeNeverSent, Outcome, PageRequest, PageSession, Requests};
pub use sample::RequestSample;
