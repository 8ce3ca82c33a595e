//! A plugin on disk: a file, or the folder of a project with its build output.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use veeksha_app::CommandFailure;
use veeksha_componentize::{ComponentOptions, componentize};
use veeksha_manifest::{FILE_NAME, Language, PluginManifest};

use crate::form::FileForm;
use crate::refusal::unusable_form;

/// Maximum size of a file, in bytes. Components of interpreted languages have tens of MiB.
const MAX_BYTES: u64 = 256 << 20;

/// A plugin that was read from disk and not looked into.
#[derive(Clone, Debug)]
pub struct PluginFile {
    /// The file that was read.
    pub path: PathBuf,
    /// Its form.
    pub form: FileForm,
    /// Its content.
    pub bytes: Vec<u8>,
    /// The manifest of the project, if a project was named.
    pub project: Option<PluginManifest>,
}

impl PluginFile {
    /// Reads a file, or the build output of a project's folder.
    ///
    /// # Errors
    /// If there is no such file, or the project was not built.
    pub fn read(path: &Path) -> Result<Self, CommandFailure> {
        if path.is_dir() {
            return PluginFile::of_project(path);
        }
        let bytes = read_bytes(path)
            .map_err(|why| CommandFailure::usage(format!("cannot read {}: {why}", path.display())))?;
        Ok(PluginFile {
            form: FileForm::of(path, &bytes),
            path: path.to_owned(),
            bytes,
            project: None,
        })
    }

    fn of_project(folder: &Path) -> Result<Self, CommandFailure> {
        let manifest = project_manifest(folder)?;
        let output = output_of(folder, &manifest);
        if !output.is_file() {
            return Err(
                CommandFailure::usage(format!("{} does not exist", output.display())).hinted(format!(
                    "build the project first: veeksha-host plugin build {}",
                    folder.display()
                )),
            );
        }
        let mut file = PluginFile::read(&output)?;
        file.project = Some(manifest);
        Ok(file)
    }

    /// Returns the component: the content of the file, or the component that a core module becomes.
    ///
    /// # Errors
    /// If the file is neither, or the module cannot be wrapped.
    pub fn component(&self) -> Result<Cow<'_, [u8]>, CommandFailure> {
        match self.form {
            FileForm::Component => Ok(Cow::Borrowed(&self.bytes)),
            FileForm::CoreModule => {
                let built = componentize(&self.bytes, &ComponentOptions::default()).map_err(|error| {
                    CommandFailure::new(veeksha_exit::PLUGIN, format!("{}: {error}", self.path.display()))
                })?;
                Ok(Cow::Owned(built.component))
            }
            _ => Err(unusable_form(&self.path, self.form)),
        }
    }

    /// Returns the name of the plugin in messages: that of its file.
    pub fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or(self.path.as_os_str());
        stem.to_string_lossy().into_owned()
    }
}

/// Reads the manifest of a project.
///
/// # Errors
/// If the folder has none, or it has a mistake.
pub(crate) fn project_manifest(folder: &Path) -> Result<PluginManifest, CommandFailure> {
    let path = folder.join(FILE_NAME);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        CommandFailure::usage(format!("cannot read {}: {error}", path.display())).hinted(
            "give a plugin file, or the folder of a project, which has a plugin.toml (`veeksha-host plugin new`)",
        )
    })?;
    PluginManifest::parse(&text)
        .map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))
}

/// Returns the file of a project that the host runs: its component, or for Lua the scenario that
/// uses the plugin, because the plugin itself may be a function of a configuration.
pub(crate) fn output_of(folder: &Path, manifest: &PluginManifest) -> PathBuf {
    let scenario = folder.join("scenario.lua");
    match manifest.language {
        Language::Lua if scenario.is_file() => scenario,
        Language::Lua => folder.join("src").join("plugin.lua"),
        _ => folder.join("build").join(format!("{}.wasm", manifest.name)),
    }
}

/// Reads a regular file; a device or a pipe might never end.
fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let facts = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("not a regular file".to_owned());
    }
    if facts.len() > MAX_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    std::fs::read(path).map_err(|error| error.to_string())
}
