//! The one place that turns errors into a message, a hint and an exit code.

use std::fmt;

use veeksha_pipeline::PipelineError;
use veeksha_ports::{PluginFailure, PluginFailureKind};
use veeksha_report::ReportError;
use veeksha_transport::TransportError;

use crate::exit;

/// How the folder of a run is named.
pub(crate) const OUTPUT_DIR: &str = "--set output_dir=FOLDER names another folder";

/// What the user is told when a command cannot do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// What happened, in one line or a short list.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl fmt::Display) -> Self {
        Failure {
            code,
            message: message.to_string(),
            hint: None,
        }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Failure::new(exit::USAGE, message)
    }

    pub(crate) fn target(message: impl fmt::Display) -> Self {
        Failure::new(exit::TARGET, message)
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Self {
        Failure::new(exit::INTERNAL, message)
    }

    /// No folder for results could be made; `elsewhere` says how another is named.
    pub(crate) fn no_folder(error: ReportError, elsewhere: &str) -> Self {
        match error {
            ReportError::NotEmpty { .. } | ReportError::LatestNotALink { .. } => Failure::usage(error),
            _ => Failure::internal(error).hinted(elsewhere),
        }
    }

    pub(crate) fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl From<PluginFailure> for Failure {
    fn from(failure: PluginFailure) -> Self {
        let hint = match &failure.kind {
            PluginFailureKind::Refused { hint, .. } => hint.clone(),
            PluginFailureKind::Deadline { .. } => {
                Some("runtime.plugin_limits.call_deadline_seconds allows more time for one call".into())
            }
            PluginFailureKind::Memory { .. } => {
                Some("runtime.plugin_limits.memory_mib allows more memory".into())
            }
            PluginFailureKind::Load | PluginFailureKind::Trap | PluginFailureKind::Result => None,
        };
        Failure {
            code: exit::PLUGIN,
            message: failure.to_string(),
            hint,
        }
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Plugin(failure) => failure.into(),
            PipelineError::Transport(source) => match source.downcast_ref::<TransportError>() {
                Some(TransportError::Thread { .. }) => Failure::internal(source).hinted(
                    "raise the limits of this process on open files and threads (`ulimit -n`, `ulimit -u`)",
                ),
                _ => Failure::target(source),
            },
            PipelineError::Thread { .. } => Failure::internal(error),
            PipelineError::NoSuchShard { .. } | PipelineError::TooManyShards { .. } => Failure::usage(error),
        }
    }
}
