//! The events of a run, and their JSON forms.
//!
//! A run is a sequence of [`Event`]s; every number is a function of them. The enum is closed: a
//! consumer that does not handle a kind of event does not compile. The wire forms (one JSON object
//! per line) are in this crate only, so that the types of the model need no serialization.
#![forbid(unsafe_code)]

mod dropped_tool_run;
mod event;
mod never_sent;
mod wire;

pub use dropped_tool_run::{DroppedToolRun, ToolDropReason};
pub use event::{Event, FailedPlugin, PluginCall, PluginRole, RunInfo, SessionEnd, ThreadSample};
pub use never_sent::NeverSentReason;
pub use veeksha_model::{RequestRecord, Status};
pub use wire::{request_line, trace_line};
