//! The build of Python projects with componentize-py.
//!
//! The tool runs the plugin's module once, in the WebAssembly interpreter that becomes the
//! component, and keeps the memory of the interpreter. It is not deterministic: the memory contains
//! the seed of Python's hashes and times of files, so two builds of one source differ.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::build_job::{BuildJob, LanguageBuild, ToolOutput};
use crate::contract::{WORLD, write_world};
use crate::error::{MissingTool, ProjectError};
use crate::python_imports::host_modules;
use crate::tool::{self, make_folder, unwritable};

/// The version of componentize-py. Another one has other rules for the names of a plugin's classes.
const VERSION: &str = "0.25.1";
/// The module that becomes the component; it makes the plugin's module one.
const ENTRY: &str = "veeksha_entry";
/// The plugin's module, in the folder `src` of a project.
const MODULE: &str = "plugin";
/// Runs the tool in an environment that may have been moved since it was made.
const RUN_TOOL: &str = "import sys; from componentize_py import script; sys.exit(script())";

/// Builds with componentize-py.
pub(super) struct PythonBuild;

impl LanguageBuild for PythonBuild {
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError> {
        let source = job.folder.join("src");
        let modules = host_modules(&source)?;
        if !source.join(MODULE).with_extension("py").is_file() {
            return Err(ProjectError::Unreadable {
                path: source.join(MODULE).with_extension("py"),
                why: "a Python project has its plugin in this file".to_owned(),
            });
        }
        let program = Componentizer::find_or_install(job.report)?;
        let inputs = inputs(job, &source, &modules)?;
        let output = job.folder.join("build/python/plugin.wasm");
        make_folder(output.parent().unwrap_or(job.folder))?;
        (job.report)(&format!("building with componentize-py {VERSION}"));
        let mut command = program.command();
        let folder = inputs.path();
        command
            .arg("--quiet")
            .arg("--wit-path")
            .arg(folder.join("wit"))
            .args(["--world", WORLD, "componentize"]);
        for path in ["entry", "src", "sdk"] {
            command.arg("--python-path").arg(folder.join(path));
        }
        command.arg("--output").arg(&output).arg(ENTRY);
        // The packages of a virtual environment of the project are found without activating it.
        let environment = job.folder.join(".venv");
        if environment.is_dir() {
            command.env("VIRTUAL_ENV", environment);
        }
        command.current_dir(folder.join("entry"));
        run(&mut command, job.report)?;
        Ok(ToolOutput {
            path: output,
            tools: vec![format!("componentize-py {VERSION}")],
        })
    }
}

/// Writes the inputs of the tool into a temporary folder: the contract, the entry module, and
/// copies of the plugin and the SDK. Copies, because the interpreter writes its caches next to a
/// source, and a cached module changes the component.
fn inputs(job: &BuildJob<'_>, source: &Path, modules: &[&str]) -> Result<tempfile::TempDir, ProjectError> {
    let folder = tempfile::tempdir().map_err(|error| unwritable(&std::env::temp_dir(), &error))?;
    for name in ["wit", "entry"] {
        make_folder(&folder.path().join(name))?;
    }
    let imports: Vec<&str> = ["log", "random"]
        .into_iter()
        .chain(modules.iter().copied())
        .collect();
    write_world(&folder.path().join("wit"), &job.manifest.kinds, &imports)?;
    let entry = folder.path().join("entry").join(ENTRY).with_extension("py");
    std::fs::write(&entry, entry_module(job)).map_err(|error| unwritable(&entry, &error))?;
    copy_folder(source, &folder.path().join("src"))?;
    let package = job.sdk.join("veeksha");
    copy_folder(&package, &folder.path().join("sdk/veeksha"))?;
    Ok(folder)
}

/// Returns the source of the module that becomes the component.
fn entry_module(job: &BuildJob<'_>) -> String {
    // A JSON string is one of Python, and so is a list of them.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let kinds: Vec<&str> = job.manifest.kinds.iter().map(|kind| kind.name()).collect();
    format!(
        "from veeksha._component import export\n\nexport(\n    globals(),\n    module={},\n    kinds={},\n    \
         name={},\n    version={},\n    summary={},\n)\n",
        quoted(MODULE),
        serde_json::Value::from(kinds),
        quoted(&job.manifest.name),
        quoted(&job.manifest.version.to_string()),
        quoted(&job.manifest.summary),
    )
}

/// Runs the tool. What it and the plugin's module print is reported.
fn run(command: &mut Command, report: &dyn Fn(&str)) -> Result<(), ProjectError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| ProjectError::Tool {
            tool: format!("componentize-py {VERSION}"),
            why: error.to_string(),
        })?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let messages = String::from_utf8_lossy(&output.stderr);
    for text in [printed.trim_end(), essential(&messages)] {
        if !text.is_empty() {
            report(text);
        }
    }
    if output.status.success() {
        return Ok(());
    }
    Err(ProjectError::Failed {
        tool: "componentize-py".to_owned(),
        end: tool::end_of(output.status),
    })
}

/// Returns the SDK's message in the output of the tool, which surrounds it with its traces and
/// those of the interpreter; all of the output if there is none.
fn essential(messages: &str) -> &str {
    const MARK: &str = "veeksha: ";
    let Some((_, message)) = messages.split_once(MARK) else {
        return messages.trim_end();
    };
    let end = message.find("\nCaused by:").unwrap_or(message.len());
    message[..end].trim_end()
}

/// The program.
#[derive(Debug, PartialEq, Eq)]
enum Componentizer {
    /// On the search path.
    OnPath(PathBuf),
    /// The Python interpreter of a private environment that has it.
    Private(PathBuf),
}

impl Componentizer {
    /// Finds the pinned version on the search path or in the cache folder, and otherwise installs
    /// it in the cache folder.
    fn find_or_install(report: &dyn Fn(&str)) -> Result<Self, ProjectError> {
        let mut searched = Vec::new();
        match tool::on_path("componentize-py") {
            Some(program) => {
                let stated = tool::ask(&program, &["--version"], Path::new("."));
                if stated.as_deref().and_then(version_of) == Some(VERSION) {
                    return Ok(Componentizer::OnPath(program));
                }
                let stated = stated.unwrap_or_else(|| "does not run".to_owned());
                searched.push(format!("componentize-py on PATH: {stated}, not {VERSION}"));
            }
            None => searched.push("componentize-py on PATH: not found".to_owned()),
        }
        let Some(cache) = tool::cache_folder() else {
            return Err(missing(searched, "there is no home folder for a private environment").into());
        };
        let folder = cache.join("tools").join(format!("componentize-py-{VERSION}"));
        let installed = tool::install_once(
            &folder,
            |folder| interpreter(folder).is_file(),
            |draft| install(draft, &folder, report),
        );
        if let Err(why) = installed {
            return Err(missing(searched, &format!("{}: {why}", folder.display())).into());
        }
        Ok(Componentizer::Private(interpreter(&folder)))
    }

    fn command(&self) -> Command {
        match self {
            Componentizer::OnPath(program) => Command::new(program),
            Componentizer::Private(python) => {
                let mut command = Command::new(python);
                command.args(["-c", RUN_TOOL]);
                command
            }
        }
    }
}

/// Returns the version that the tool states: `componentize-py 0.25.1`.
fn version_of(stated: &str) -> Option<&str> {
    stated.split_whitespace().last()
}

fn interpreter(environment: &Path) -> PathBuf {
    if cfg!(windows) {
        environment.join("Scripts/python.exe")
    } else {
        environment.join("bin/python")
    }
}

/// Makes an environment with the pinned version.
fn install(environment: &Path, folder: &Path, report: &dyn Fn(&str)) -> Result<(), String> {
    report(&format!(
        "installing componentize-py {VERSION} in {} (once)",
        folder.display()
    ));
    let python = tool::on_path("python3").ok_or("python3 is not on PATH")?;
    let requirement = format!("componentize-py=={VERSION}");
    tool::quietly(Command::new(python).args(["-m", "venv"]).arg(environment))?;
    tool::quietly(
        Command::new(interpreter(environment))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--only-binary", ":all:"])
            .arg(requirement),
    )
}

fn missing(mut searched: Vec<String>, private: &str) -> MissingTool {
    searched.push(format!("a private environment: {private}"));
    MissingTool {
        needed: format!("componentize-py {VERSION}"),
        searched,
        install: vec![
            format!("pipx install componentize-py=={VERSION}"),
            "apt install python3-venv (then this command installs it itself)".to_owned(),
        ],
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), ProjectError> {
    make_folder(to)?;
    let unreadable = |error: std::io::Error| ProjectError::Unreadable {
        path: from.to_owned(),
        why: error.to_string(),
    };
    let skipped = [OsString::from("__pycache__"), OsString::from(".mypy_cache")];
    for entry in std::fs::read_dir(from).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name());
        if skipped.contains(&name) {
            continue;
        }
        if path.is_dir() {
            copy_folder(&path, &to.join(name))?;
        } else {
            std::fs::copy(&path, to.join(name)).map_err(unreadable)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use veeksha_manifest::PluginManifest;

    use super::*;

    #[test]
    fn the_message_of_the_sdk_is_shown_without_the_traces_of_the_tool() {
        let messages = "Traceback (most recent call last):\n  File \"x\"\nAssertionError: veeksha: Traceback:\n  \
                        File \"src/plugin.py\", line 3\nNameError: name 'x'\n\n\nCaused by:\n    0: error\n";
        assert_eq!(
            essential(messages),
            "Traceback:\n  File \"src/plugin.py\", line 3\nNameError: name 'x'"
        );
        assert_eq!(essential("another failure\n"), "another failure");
    }

    #[test]
    fn texts_of_the_manifest_are_quoted_for_python() {
        let manifest = "[plugin]\nname = \"coder\"\nversion = \"0.1.0\"\nsummary = 'a \"hi\" \\ é'\n\
                        kinds = [\"metric\", \"slo-check\"]\n[build]\nlanguage = \"python\"\n";
        let manifest = PluginManifest::parse(manifest).unwrap();
        let job = BuildJob {
            folder: Path::new("/p"),
            manifest: &manifest,
            sdk: PathBuf::from("/s"),
            profile: crate::BuildProfile::Release,
            report: &|_| {},
        };
        assert_eq!(
            entry_module(&job),
            "from veeksha._component import export\n\nexport(\n    globals(),\n    module=\"plugin\",\n    \
             kinds=[\"metric\",\"slo-check\"],\n    name=\"coder\",\n    version=\"0.1.0\",\n    \
             summary=\"a \\\"hi\\\" \\\\ é\",\n)\n"
        );
    }

    #[test]
    fn only_the_pinned_version_is_used_from_the_search_path() {
        assert_eq!(version_of("componentize-py 0.25.1"), Some("0.25.1"));
        assert_eq!(version_of(""), None);
        let message = missing(vec!["componentize-py on PATH: not found".into()], "no python3").to_string();
        assert_eq!(
            message,
            "componentize-py 0.25.1 was not found\n  searched: componentize-py on PATH: not found\n  \
             searched: a private environment: no python3\n  install:  pipx install componentize-py==0.25.1\n  \
             install:  apt install python3-venv (then this command installs it itself)"
        );
    }

    #[test]
    fn copies_sources_without_caches() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir_all(from.join("a/__pycache__")).unwrap();
        std::fs::write(from.join("a/b.py"), "x").unwrap();
        std::fs::write(from.join("a/__pycache__/b.pyc"), "x").unwrap();
        copy_folder(&from, &to).unwrap();
        assert!(to.join("a/b.py").is_file());
        assert!(!to.join("a/__pycache__").exists());
    }
}
