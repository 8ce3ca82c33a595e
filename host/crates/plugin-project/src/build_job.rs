//! The work of a language: the project to build, and the output of its tools.

use std::path::{Path, PathBuf};

use veeksha_manifest::PluginManifest;

use crate::error::ProjectError;

/// The purpose of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildProfile {
    /// A fast and small component.
    #[default]
    Release,
    /// A quick build while the source changes.
    Dev,
}

/// A project to build.
pub(crate) struct BuildJob<'a> {
    /// The folder of the project: absolute, without links.
    pub(crate) folder: &'a Path,
    /// Its manifest.
    pub(crate) manifest: &'a PluginManifest,
    /// The folder of the language's SDK.
    pub(crate) sdk: PathBuf,
    /// The purpose of the build.
    pub(crate) profile: BuildProfile,
    /// Prints a line about a step that takes long.
    pub(crate) report: &'a dyn Fn(&str),
}

/// The output of a language's tools.
pub(crate) struct ToolOutput {
    /// The file that the tools wrote: a core module that states its world, or a component.
    pub(crate) path: PathBuf,
    /// The tools and their versions.
    pub(crate) tools: Vec<String>,
}

/// The build of a language.
pub(crate) trait LanguageBuild: Sync {
    /// Finds the tools of the language and builds the project with them.
    /// Messages of the tools go to standard error.
    ///
    /// # Errors
    /// [`ProjectError::MissingTool`] with the commands that install what is missing;
    /// [`ProjectError::Failed`] if the source has errors.
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError>;
}
