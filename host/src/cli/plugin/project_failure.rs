//! The failures of projects as those of commands.

use veeksha_app::CommandFailure;
use veeksha_plugin_project::ProjectError;

/// The failure of a command for a project that cannot be made or built.
pub(in crate::cli) fn project_failure(error: ProjectError) -> CommandFailure {
    CommandFailure::new(error.exit_code(), error)
}
