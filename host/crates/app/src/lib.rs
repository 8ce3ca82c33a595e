//! Plans, runs, simulates and evaluates scenarios: the library behind the `veeksha-host` command.
//!
//! A [`Source`] is the file of a scenario; [`Source::settle`] resolves it to a [`Loaded`] scenario
//! (and [`Source::variants`] a file with several of them). From there:
//!
//! * [`plan`] loads the plugins and queries the target, and [`run`] executes the plan;
//! * [`plan_simulation`] and [`simulate`] do the same in virtual time;
//! * [`Reevaluation`] recomputes the metrics of a run folder from its record;
//! * [`check`] validates a scenario without sending anything.
//!
//! All of them end in a [`Conclusion`]: the results, their certificate, the exit code, and the
//! folder that was written. A [`CommandFailure`] is the message, the hint and the exit code of a
//! command that failed. Notes and warnings go to standard error.
//!
//! ```no_run
//! use veeksha_app::{Control, RunOptions, Source, plan, run};
//!
//! # fn main() -> Result<(), veeksha_app::CommandFailure> {
//! let path = std::path::Path::new("scenario.yml");
//! let loaded = Source::read(path)?.settle(&["runtime.max_sessions=10".to_owned()], &[], false)?;
//! let plan = plan(loaded, path, Default::default(), false)?;
//! let conclusion = run(plan, &RunOptions::default(), &Control::default())?;
//! println!("{}", conclusion.table());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod codec;
mod cores;
mod endpoint;
mod evaluation;
pub mod evaluator_plugins;
mod execution;
mod failure;
mod record;
mod scenario;
pub mod sim_profile;
mod target;
mod workload;

pub use evaluation::compat_output::CompatOptions;
pub use evaluation::conclusion::Conclusion;
pub use evaluation::evaluate::{EvaluateOptions, Reevaluation};
pub use evaluation::{builtin_evaluator, health_expectation, objectives};
pub use execution::mode::ShardSpec;
pub use execution::plan::{CheckedScenario, RunPlan, SimulationPlan, check, plan, plan_simulation};
pub use execution::run::{RunOptions, run, simulate, simulate_metrics};
pub use execution::wiring::Wired;
pub use failure::{CommandFailure, OUTPUT_DIR};
pub use record::recorded_run::RecordedRun;
pub use record::sweep_manifest;
pub use scenario::command_line_grant::CommandLineGrant;
pub use scenario::scenario_copy::RecordedCode;
pub use scenario::secrets;
pub use scenario::source::{Loaded, Source};
pub use scenario::variants::{Variant, collect_errors};
pub use target::require_target;
pub use veeksha_pipeline::Control;
pub use workload::bundle_store::{BundleStore, read_bundle, write_file};
pub use workload::component_source::read_lock;
pub use workload::plugin_lock::{FetchBundle, LockOptions, lock_plugins};
pub use workload::standalone::StandaloneHost;
pub use workload::{prompts, shipped, tokenizers, traces};
