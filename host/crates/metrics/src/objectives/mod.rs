//! Objectives, conditions of goodput and judging plugins, and their results.
//!
//! [`Objectives::check`] determines before the run if everything can be evaluated. [`SloResults`]
//! holds the results.

mod absence;
mod ask;
mod check;
mod checked;
mod error;
mod goodput;
mod judge;
mod plugin_verdict;
mod range;
mod results;
mod stated;
mod unknown;

pub use check::Objectives;
pub use error::{ObjectiveError, ObjectiveProblem};
pub(crate) use goodput::{GoodputResult, count_good};
pub(crate) use judge::Judgements;
pub use plugin_verdict::PluginVerdict;
pub use results::{DecidingWindow, SloResult, SloResults};
pub use stated::{ConstantSlo, Stated};
pub(crate) use unknown::Unknown;
