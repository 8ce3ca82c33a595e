//! Errors of projects.

use std::fmt;
use std::path::PathBuf;

use veeksha_componentize::ComponentizeError;
use veeksha_manifest::{Language, ManifestError};

/// A project that cannot be made or built.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason, and the fix where there is one.
        why: String,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {why}", path = .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The manifest has a mistake.
    #[error("{path}: {error}", path = .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The mistake.
        error: ManifestError,
    },
    /// The host has no build for the language.
    #[error("{language} is not built by this program: {hint}")]
    NoBuild {
        /// The language of the project.
        language: Language,
        /// The fix.
        hint: String,
    },
    /// A project without the SDK of its language.
    #[error("{folder} has no folder `sdk`: copy it from a project that `veeksha-host plugin new` writes", folder = .0.display())]
    NoSdk(PathBuf),
    /// The tools of the language are not installed.
    #[error(transparent)]
    MissingTool(#[from] MissingTool),
    /// A tool cannot be started, or its output cannot be understood.
    #[error("{tool} cannot be used: {why}")]
    Tool {
        /// The tool.
        tool: String,
        /// The reason.
        why: String,
    },
    /// The tool reported errors in the source, which it has printed.
    #[error("the plugin does not build: {tool} {end}; its messages are above")]
    Failed {
        /// The tool.
        tool: String,
        /// The way in which it ended: `failed with exit status 101`.
        end: String,
    },
    /// The tool's output is not a component.
    #[error("{path} is not a component: {error}", path = .path.display())]
    NotAComponent {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: ComponentizeError,
    },
    /// The component exports other kinds than its manifest states.
    #[error("plugin.toml states kinds = [{stated}], but the component exports {exported}: {hint}")]
    OtherKinds {
        /// The kinds of the manifest.
        stated: String,
        /// The kinds of the component.
        exported: String,
        /// The fix.
        hint: String,
    },
    /// A wrong argument.
    #[error("{0}")]
    Usage(String),
}

impl ProjectError {
    /// The exit code of a command that fails with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProjectError::Unwritable { .. } | ProjectError::Tool { .. } => veeksha_exit::INTERNAL,
            ProjectError::Failed { .. }
            | ProjectError::NotAComponent { .. }
            | ProjectError::OtherKinds { .. } => veeksha_exit::PLUGIN,
            ProjectError::Unreadable { .. }
            | ProjectError::Manifest { .. }
            | ProjectError::NoBuild { .. }
            | ProjectError::NoSdk(_)
            | ProjectError::MissingTool(_)
            | ProjectError::Usage(_) => veeksha_exit::USAGE,
        }
    }
}

/// A tool of a language that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTool {
    /// The tool: `a Rust compiler for wasm32-unknown-unknown`.
    pub needed: String,
    /// The places that were searched, each with its result.
    pub searched: Vec<String>,
    /// The commands that install it; any of them suffices.
    pub install: Vec<String>,
}

impl std::error::Error for MissingTool {}

impl fmt::Display for MissingTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} was not found", self.needed)?;
        for place in &self.searched {
            write!(formatter, "\n  searched: {place}")?;
        }
        for command in &self.install {
            write!(formatter, "\n  install:  {command}")?;
        }
        Ok(())
    }
}
