//! Metrics, request checks and SLO checks of plugins: opened from a scenario's `evaluators` or from
//! the command line, called with finished requests, and queried for their verdicts.

mod names;
mod open;
mod request_evaluator;
mod slo_checks;
mod thread;
mod tracked_results;

pub use open::{EvaluatorPlugins, open_files, open_scenario};
pub(crate) use request_evaluator::RequestEvaluator;
pub(crate) use slo_checks::{reject_unknown_metrics, run_slo_checks, verdict_events};
pub(crate) use thread::PluginThread;
