//! The build of a plugin.

use std::io::Write;
use std::path::{Path, PathBuf};

use veeksha_componentize::{ComponentOptions, ComponentOutline, DebugInfo, componentize};
use veeksha_manifest::{Language, PluginKind, PluginManifest};

use crate::build_job::{BuildJob, BuildProfile};
use crate::error::ProjectError;
use crate::language::build_of;
use crate::project::Project;

/// The options of a build.
#[derive(Clone, Debug, Default)]
pub struct BuildOptions {
    /// The file to write; by default `build/NAME.wasm` in the project.
    pub output: Option<PathBuf>,
    /// The place of the debug information.
    pub debug_info: DebugInfo,
    /// The purpose of the build.
    pub profile: BuildProfile,
}

/// A plugin that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginBuild {
    /// The component.
    pub path: PathBuf,
    /// The file with the debug information, if it was split.
    pub debug_path: Option<PathBuf>,
    /// The size of the component, in bytes.
    pub size: usize,
    /// BLAKE3 of the component, in hex.
    pub digest: String,
    /// The kinds that it exports.
    pub kinds: Vec<PluginKind>,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The tools that built it, with their versions.
    pub tools: Vec<String>,
}

/// Builds the project in a folder, or makes a component of a WebAssembly file.
///
/// `report` receives lines about steps that take long. Messages of the language's tools go to
/// standard error.
///
/// # Errors
/// If the path is not a project or a module, a tool is missing, the source has errors, or the
/// component exports other kinds than the manifest states.
pub fn build_plugin(
    path: &Path,
    options: &BuildOptions,
    report: &dyn Fn(&str),
) -> Result<PluginBuild, ProjectError> {
    if path.is_dir() {
        return build_project(&Project::open(path)?, options, report);
    }
    let output = match &options.output {
        Some(output) => output.clone(),
        None => path.with_extension("component.wasm"),
    };
    finish(path, None, &output, options, Vec::new())
}

fn build_project(
    project: &Project,
    options: &BuildOptions,
    report: &dyn Fn(&str),
) -> Result<PluginBuild, ProjectError> {
    let language = project.manifest.language;
    let Some(build) = build_of(language) else {
        return Err(no_build(language));
    };
    let job = BuildJob {
        folder: &project.folder,
        manifest: &project.manifest,
        sdk: project.sdk()?,
        profile: options.profile,
        report,
    };
    let built = build.build(&job)?;
    let output = options.output.clone().unwrap_or_else(|| project.component());
    finish(&built.path, Some(project), &output, options, built.tools)
}

fn no_build(language: Language) -> ProjectError {
    let hint = match language {
        Language::Lua => "a Lua file runs as it is: `veeksha-host run scenario.lua`",
        _ => "build it with its own tools, then run `veeksha-host plugin build MODULE.wasm`",
    };
    ProjectError::NoBuild {
        language,
        hint: hint.to_owned(),
    }
}

/// Makes the component of the tools' output, checks it and writes it.
fn finish(
    wasm: &Path,
    project: Option<&Project>,
    output: &Path,
    options: &BuildOptions,
    tools: Vec<String>,
) -> Result<PluginBuild, ProjectError> {
    let bytes = std::fs::read(wasm).map_err(|error| ProjectError::Unreadable {
        path: wasm.to_owned(),
        why: error.to_string(),
    })?;
    let not_a_component = |error| ProjectError::NotAComponent {
        path: wasm.to_owned(),
        error,
    };
    let component_options = ComponentOptions {
        manifest: project.map(|project| project.manifest_text.as_str()),
        debug_info: options.debug_info,
    };
    let built = componentize(&bytes, &component_options).map_err(not_a_component)?;
    let outline = ComponentOutline::read(&built.component).map_err(not_a_component)?;
    let kinds = outline.kinds();
    check_kinds(&kinds, project.map(|project| &project.manifest), &outline)?;
    write(output, &built.component)?;
    let debug_path = output.with_extension("debug.wasm");
    match &built.debug {
        Some(debug) => write(&debug_path, debug)?,
        // That of an earlier build would name wrong lines.
        None => remove(&debug_path)?,
    }
    Ok(PluginBuild {
        path: output.to_owned(),
        debug_path: built.debug.is_some().then_some(debug_path),
        size: built.component.len(),
        digest: blake3::hash(&built.component).to_hex().to_string(),
        kinds,
        imports: outline.imports,
        tools,
    })
}

fn check_kinds(
    exported: &[PluginKind],
    manifest: Option<&PluginManifest>,
    outline: &ComponentOutline,
) -> Result<(), ProjectError> {
    let names = |kinds: &[PluginKind]| {
        let names: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
        names.join(", ")
    };
    let mut stated = manifest
        .map(|manifest| manifest.kinds.clone())
        .unwrap_or_default();
    stated.sort();
    let mut found = exported.to_vec();
    found.sort();
    let is_same = manifest.is_none() || stated == found;
    if is_same && !found.is_empty() {
        return Ok(());
    }
    let exports = if outline.exports.is_empty() {
        "nothing".to_owned()
    } else {
        outline.exports.join(", ")
    };
    Err(ProjectError::OtherKinds {
        stated: names(&stated),
        exported: if found.is_empty() { exports } else { names(&found) },
        hint: if found.is_empty() {
            "export one of the kinds in the source".to_owned()
        } else {
            format!(
                "export the kinds in the source, or write kinds = [{}]",
                names(&found)
            )
        },
    })
}

/// Writes a file as a whole: a reader sees the old content or the new.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ProjectError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new();
        #[cfg(unix)]
        let file = {
            use std::os::unix::fs::PermissionsExt;
            file.permissions(std::fs::Permissions::from_mode(0o644))
        };
        let mut file = file.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| ProjectError::Unwritable {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

fn remove(path: &Path) -> Result<(), ProjectError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ProjectError::Unwritable {
            path: path.to_owned(),
            why: error.to_string(),
        }),
        _ => Ok(()),
    }
}
