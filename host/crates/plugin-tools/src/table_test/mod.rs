//! Table tests of a plugin: `tests/*.toml` and `tests/*.lua` of a project.

mod condition;
mod diff;
mod evaluation_case;
mod format;
mod lookup;
mod outcome;
mod project_tests;
mod read;
mod request_input;
mod run_results;
mod scenario_case;
mod session_case;
mod session_view;
mod snapshot;
mod trace_case;

pub use diff::diff as text_diff;
pub(crate) use format::ResultsInput;
pub use outcome::{TestOutcome, TestProblem, TestReport};
pub use project_tests::{TestOptions, named_kind, test_project};
pub(crate) use request_input::RequestInput;
pub(crate) use run_results::StatedResults;
pub(crate) use session_case::play as play_sessions;
pub use session_view::{redacted_sessions_json, sessions_json, sessions_view};
pub(crate) use trace_case::open as open_trace;
