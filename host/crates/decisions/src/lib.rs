//! The decisions of agents: recorded during a run, replayed without the agent, compared.
//!
//! An agent decides in steps: at the start of its session and at the end of each node. A
//! [`RecordingFactory`] writes the steps of a workload to the file [`FILE`] of the run's folder;
//! [`DecisionsFile`] reads it; a [`ReplayFactory`] is a workload that sends the same nodes again;
//! [`divergence()`] finds the first difference between the decisions of two sessions.
//!
//! The decorator of the workload is the only place that records: real and virtual time write the
//! same file, and the pipeline does not know of it.
#![forbid(unsafe_code)]

mod bounds;
mod canonical;
mod divergence;
mod error;
mod file;
mod recorded_step;
mod recording;
mod redact;
mod replay;
mod tool_calls;
mod wire;
mod writer;

pub use canonical::{CanonicalSteps, PrintableSteps, canonical_step};
pub use divergence::{
    DecisionField, Divergence, DivergenceSummary, SessionComparison, compare_files, divergence,
};
pub use error::DecisionsError;
pub use file::{DecisionsFile, FILE, RedactedSteps};
pub use recorded_step::RecordedStep;
pub use recording::RecordingFactory;
pub use redact::{Redact, Verbatim};
pub use replay::ReplayFactory;
pub use wire::DecisionsOrigin;
pub use writer::{DecisionSender, DecisionWriter};
