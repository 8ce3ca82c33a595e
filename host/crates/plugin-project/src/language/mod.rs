//! The languages whose projects can be built, with one file per language.

mod c;
mod python;
mod rust;

use std::path::{Path, PathBuf};

use veeksha_manifest::{Language, PluginManifest};

use crate::build_plugin::BuildProfile;
use crate::error::ProjectError;

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
    /// Finds the tools of the language and builds the project with them. Messages of the tools go to
    /// standard error.
    ///
    /// # Errors
    /// [`ProjectError::MissingTool`] with the commands that install what is missing;
    /// [`ProjectError::Failed`] if the source has errors.
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError>;
}

/// The build of a language; none if the host cannot build it.
pub(crate) fn build_of(language: Language) -> Option<&'static dyn LanguageBuild> {
    match language {
        Language::Rust => Some(&rust::RustBuild),
        Language::C => Some(&c::CBuild),
        Language::Python => Some(&python::PythonBuild),
        Language::JavaScript | Language::TypeScript | Language::Lua => None,
    }
}

/// The files of an SDK in a project.
pub(crate) struct SdkLayout {
    /// Folders below `sdk/` of the repository, and their places in the folder `sdk` of a project.
    /// Examples and tests in them are left out.
    pub(crate) copies: &'static [(&'static str, &'static str)],
    /// Texts of an example, which lies inside the SDK, and their replacements in a project, which
    /// contains it: the path of the SDK.
    pub(crate) replacements: &'static [(&'static str, &'static str)],
}

/// The files of a language's SDK in a project.
pub(crate) fn layout_of(language: Language) -> SdkLayout {
    match language {
        Language::Rust => SdkLayout {
            copies: &[("rust", "rust"), ("coroutines", "coroutines")],
            replacements: &[("\"../..\"", "\"sdk/rust\"")],
        },
        Language::Python => SdkLayout {
            copies: &[("python", "")],
            replacements: &[],
        },
        Language::JavaScript | Language::TypeScript => SdkLayout {
            copies: &[("js", "")],
            replacements: &[],
        },
        Language::C => SdkLayout {
            copies: &[("c", "")],
            replacements: &[],
        },
        Language::Lua => SdkLayout {
            copies: &[("lua", "")],
            replacements: &[("\"../..\"", "\"sdk\"")],
        },
    }
}
