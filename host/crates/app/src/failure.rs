//! Conversion of errors to a message, a hint and an exit code.

use std::fmt;

use veeksha_pipeline::PipelineError;
use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_report::ReportError;
use veeksha_transport::TransportError;

/// Hint if the folder of a run cannot be created.
pub const OUTPUT_DIR: &str = "--set output_dir=FOLDER writes to another folder";

/// Reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The exit code: one of [`veeksha_exit`].
    pub code: u8,
    /// Problem, in one line or a short list.
    pub message: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
}

impl CommandFailure {
    /// Creates a failure without a hint.
    pub fn new(code: u8, message: impl fmt::Display) -> Self {
        CommandFailure {
            code,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Creates a failure of the command line or the scenario.
    pub fn usage(message: impl fmt::Display) -> Self {
        CommandFailure::new(veeksha_exit::USAGE, message)
    }

    /// Creates a failure for an unreachable target.
    pub fn target(message: impl fmt::Display) -> Self {
        CommandFailure::new(veeksha_exit::TARGET, message)
    }

    /// Creates a failure of the program or the system.
    pub fn internal(message: impl fmt::Display) -> Self {
        CommandFailure::new(veeksha_exit::INTERNAL, message)
    }

    /// Creates the failure for a results folder that cannot be created; `elsewhere` is the hint on
    /// how to choose another.
    pub fn no_folder(error: ReportError, elsewhere: &str) -> Self {
        match error {
            ReportError::NotEmpty { .. } | ReportError::LatestNotALink { .. } => CommandFailure::usage(error),
            _ => CommandFailure::internal(error).hinted(elsewhere),
        }
    }

    /// Adds a hint.
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<PluginFailure> for CommandFailure {
    fn from(failure: PluginFailure) -> Self {
        let hint = match &failure.kind {
            PluginFailureKind::Refused { hint, .. } => hint.clone(),
            PluginFailureKind::Deadline { .. } if failure.function == "load" => {
                Some("runtime.plugin_limits.compile_deadline_seconds allows more time for compilation".into())
            }
            PluginFailureKind::Deadline { .. } => {
                Some("runtime.plugin_limits.call_deadline_seconds allows more time for one call".into())
            }
            PluginFailureKind::Memory { .. } => {
                Some("runtime.plugin_limits.memory_mib allows more memory".into())
            }
            PluginFailureKind::Fuel { .. } => {
                Some("runtime.plugin_limits.call_fuel allows more instructions for one call".into())
            }
            PluginFailureKind::Load | PluginFailureKind::Trap | PluginFailureKind::Result => None,
        };
        let code = if refuses_configuration(&failure) {
            veeksha_exit::USAGE
        } else {
            veeksha_exit::PLUGIN
        };
        CommandFailure {
            code,
            message: failure.to_string(),
            hint,
        }
    }
}

/// Returns true if a plugin refused the user's configuration, which is not a bug of the plugin.
fn refuses_configuration(failure: &PluginFailure) -> bool {
    let PluginFailureKind::Refused { path, .. } = &failure.kind else {
        return false;
    };
    // An agent has no call that only opens a configuration.
    failure.function.ends_with(".open") || (failure.function == "generator.start" && path.is_some())
}

impl From<PipelineError> for CommandFailure {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Plugin(failure) => (*failure).into(),
            PipelineError::Transport(source) => match source.downcast_ref::<TransportError>() {
                Some(TransportError::Thread { .. }) => CommandFailure::internal(source).hinted(
                    "raise the limits of this process on open files and threads (`ulimit -n`, `ulimit -u`)",
                ),
                _ => CommandFailure::target(source),
            },
            PipelineError::Thread { .. } => CommandFailure::internal(error),
            PipelineError::NoSuchShard { .. } | PipelineError::TooManyShards { .. } => {
                CommandFailure::usage(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_configurations_are_usage_errors_and_other_errors_are_the_plugins() {
        let code = |function: &str, path: Option<&str>| {
            let kind = PluginFailureKind::Refused {
                code: "config".into(),
                hint: None,
                path: path.map(str::to_owned),
            };
            CommandFailure::from(PluginFailure::new("p", function, kind, "no")).code
        };
        for function in ["workload.open", "flavor.open", "metric.open"] {
            assert_eq!(code(function, None), veeksha_exit::USAGE, "{function}");
        }
        assert_eq!(code("generator.start", Some("/steps")), veeksha_exit::USAGE);
        assert_eq!(code("generator.start", None), veeksha_exit::PLUGIN);
        assert_eq!(code("flavor.session", Some("/steps")), veeksha_exit::PLUGIN);
        let trap = PluginFailure::new("p", "flavor.open", PluginFailureKind::Trap, "boom");
        assert_eq!(CommandFailure::from(trap).code, veeksha_exit::PLUGIN);
    }
}
