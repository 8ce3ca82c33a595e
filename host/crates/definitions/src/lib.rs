//! The built-in metrics: one table of names, units and formulas.
//!
//! [`Metric`] is declared together with its [`Definition`] in `table.rs`. Everything that shows,
//! stores, checks or certifies a metric reads the definition: result files, terminal table, report
//! page, live view, Lua, objectives, comparison. A formula of a request exists once, as
//! [`Definition::samples`], and is computed from an [`Observation`]: the instants and counts that
//! a metric may use.
//!
//! **Adding a metric of requests** takes one entry in `table.rs`, and a method in `observation.rs`
//! for its formula.
#![forbid(unsafe_code)]

mod chunks;
mod definition;
mod metric;
mod observation;
mod packed;
mod table;

pub use chunks::{answer_tokens_by_chunk, gaps};
pub use definition::{Certification, Definition, Needs, Samples, Scope};
pub use metric::{UnknownMetric, canonical_name};
pub use observation::{Observation, cached_share, seconds_between};
pub use packed::{OptionalInstant, OptionalTokens};
pub use table::Metric;
