//! What is asked of a run: objectives, goodput's conditions, plugins that judge; and what they come
//! to.
//!
//! [`Objectives::check`] settles before the run whether everything that is asked for can be
//! answered at all. [`SloResults`] holds the answers.

mod absence;
mod ask;
mod check;
mod error;
mod goodput;
mod judge;
mod plugin_verdict;
mod range;
mod results;
mod stated;
mod unknown;

pub(crate) use ask::quantile_among;
pub use check::Objectives;
pub use error::{ObjectiveError, ObjectiveProblem};
pub(crate) use goodput::count_good;
pub(crate) use judge::Judgements;
pub use plugin_verdict::PluginVerdict;
pub(crate) use results::answer;
pub use results::{SloResult, SloResults, WorstWindow};
pub use stated::{Slo, Stated};
pub(crate) use unknown::Unknown;
