//! The built-in metrics and the fields of a finished request: one table each.
//!
//! [`Metric`] is declared together with its [`Definition`] in `table.rs`. Everything that displays,
//! stores, checks or certifies a metric reads the definition: result files, terminal table, report
//! page, live view, Lua, objectives, comparison. The formula of a request metric exists once, as
//! [`Definition::samples`], and is computed from an [`Observation`]: the instants and counts that a
//! metric may use.
//!
//! [`REQUEST_FIELDS`] holds every field of a finished request: its key in JSON, its column, its
//! name in Lua, its documentation and its value.
//!
//! [`SessionGraph`] relates the requests and tool runs of a session to each other, and returns
//! their [`CriticalPath`].
//!
//! **Adding a request metric** requires one entry in `table.rs`, and a method in `observation.rs`
//! for its formula.
#![forbid(unsafe_code)]

mod cache_classes;
mod cached_tokens;
mod chunks;
mod critical_path;
mod defaults;
mod definition;
mod fields;
mod metric;
mod observation;
mod packed;
mod path_part;
mod scope;
mod session_graph;
mod table;
mod tool_times;

pub use cache_classes::{CacheClass, CacheTokens};
pub use chunks::{answer_tokens_by_chunk, gaps};
pub use critical_path::{CriticalPath, PathStep};
pub use definition::{Certification, Definition};
pub use fields::{FieldValue, FinishedRequest, REQUEST_FIELDS, RequestField};
pub use metric::{UnknownMetric, canonical_name};
pub use observation::{Observation, cached_share, seconds_between};
pub use packed::{OptionalInstant, OptionalTokens};
pub use path_part::{PathPart, PathParts};
pub use scope::{Needs, Samples, Scope};
pub use session_graph::{GraphNode, NodePhases, SessionGraph};
pub use table::Metric;
pub use tool_times::ToolTimes;
