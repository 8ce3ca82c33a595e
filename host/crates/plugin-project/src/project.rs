//! A project on disk.

use std::path::{Path, PathBuf};

use veeksha_manifest::{FILE_NAME, PluginManifest};

use crate::error::ProjectError;
use crate::language::build_of;

/// The folder of a project that holds the SDK.
pub(crate) const SDK_FOLDER: &str = "sdk";
/// The folder of a project that receives its component.
const BUILD_FOLDER: &str = "build";

/// Returns the folder of the project that contains a component, if this program can build it: the
/// nearest folder above with a manifest.
pub fn project_of(component: &Path) -> Option<PathBuf> {
    let folder = component
        .ancestors()
        .skip(1)
        .find(|folder| folder.join(FILE_NAME).is_file())?;
    let project = Project::open(folder).ok();
    // A manifest with an error is that of a project: its build reports the error.
    let is_built = project.is_none_or(|project| build_of(project.manifest.language).is_some());
    is_built.then(|| folder.to_owned())
}

/// A folder with a manifest.
pub(crate) struct Project {
    /// The absolute path, without links.
    pub(crate) folder: PathBuf,
    pub(crate) manifest: PluginManifest,
    /// The text of the manifest.
    pub(crate) manifest_text: String,
}

impl Project {
    /// Reads the manifest of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self, ProjectError> {
        let path = folder.join(FILE_NAME);
        let manifest_text = std::fs::read_to_string(&path).map_err(|error| ProjectError::Unreadable {
            path: path.clone(),
            why: format!("{error}; `veeksha-host plugin new` writes a project with this file"),
        })?;
        let manifest =
            PluginManifest::parse(&manifest_text).map_err(|error| ProjectError::Manifest { path, error })?;
        let folder = folder.canonicalize().map_err(|error| ProjectError::Unreadable {
            path: folder.to_owned(),
            why: error.to_string(),
        })?;
        Ok(Project {
            folder,
            manifest,
            manifest_text,
        })
    }

    /// The component that a build writes.
    pub(crate) fn component(&self) -> PathBuf {
        self.folder
            .join(BUILD_FOLDER)
            .join(format!("{}.wasm", self.manifest.name))
    }

    /// The SDK of the project: its folder `sdk`, or for an example of an SDK, which has none, the
    /// SDK that it belongs to.
    pub(crate) fn sdk(&self) -> Result<PathBuf, ProjectError> {
        let own = self.folder.join(SDK_FOLDER);
        if own.is_dir() {
            return Ok(own);
        }
        let examples = self
            .folder
            .parent()
            .filter(|parent| parent.file_name().is_some_and(|name| name == "examples"));
        match examples.and_then(Path::parent) {
            Some(sdk) => Ok(sdk.to_owned()),
            None => Err(ProjectError::NoSdk(self.folder.clone())),
        }
    }
}
