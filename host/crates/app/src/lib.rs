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
//! folder that was written. A [`CommandFailure`] is the message, the hint and the exit code of a command
//! that failed. Notes and warnings go to standard error.
//!
//! ```no_run
//! use veeksha_app::{Control, RunOptions, Source, plan, run};
//!
//! # fn main() -> Result<(), veeksha_app::Failure> {
//! let path = std::path::Path::new("scenario.yml");
//! let loaded = Source::read(path)?.settle(&["runtime.max_sessions=10".to_owned()], &[], false)?;
//! let plan = plan(loaded, path, Default::default(), false)?;
//! let conclusion = run(plan, &RunOptions::default(), &Control::default())?;
//! println!("{}", conclusion.table());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod absolute_paths;
mod analysis;
pub mod builtin_evaluator;
mod codec;
mod collect;
mod compat_output;
mod components;
mod conclusion;
mod cores;
mod drive;
mod evaluate;
pub mod evaluator_plugins;
mod excluded_metrics;
mod failure;
mod flavors;
mod grants;
pub mod health_expectation;
mod mode;
pub mod objectives;
mod pipeline_plan;
mod plan;
mod prefix_tracking;
pub mod prompts;
mod recorded_run;
mod recording;
mod run;
mod scenario_copy;
pub mod secrets;
mod self_test;
pub mod shipped;
pub mod sim_profile;
mod source;
pub mod sweep_manifest;
mod target;
mod thread_watch;
pub mod tokenizers;
pub mod traces;
mod validated_flavor;
mod variants;
mod wiring;

pub use compat_output::CompatOptions;
pub use conclusion::Conclusion;
pub use evaluate::{EvaluateOptions, Reevaluation};
pub use failure::{CommandFailure, OUTPUT_DIR};
pub use mode::ShardSpec;
pub use plan::{CheckedScenario, RunPlan, SimulationPlan, check, plan, plan_simulation};
pub use recorded_run::RecordedRun;
pub use run::{RunOptions, run, simulate};
pub use source::{Loaded, Source};
pub use target::require_target;
pub use variants::{Variant, collect_errors};
pub use veeksha_pipeline::Control;
pub use wiring::Wired;
