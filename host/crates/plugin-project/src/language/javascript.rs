//! The build of TypeScript and JavaScript projects with esbuild and componentize-qjs.
//!
//! esbuild makes one module of the plugin and the SDK. Its imports are the interfaces that the
//! component may ask for, because a component of the QuickJS engine imports everything that its
//! world names. componentize-qjs then runs the module once, and keeps the memory of the engine. Two
//! builds of one source differ in it: it contains the seed of the engine's random numbers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use veeksha_manifest::PluginKind;

use crate::build_job::{BuildJob, LanguageBuild, ToolOutput};
use crate::contract::{WORLD, write_world};
use crate::error::{MissingTool, ProjectError};
use crate::tool::{self, make_folder, unwritable};

/// The versions of the tools. Another componentize-qjs may convert values in another way.
const COMPONENTIZE: &str = "componentize-qjs";
const COMPONENTIZE_VERSION: &str = "0.4.5";
const ESBUILD_VERSION: &str = "0.28.2";
/// The interfaces that the SDK itself uses.
const OF_SDK: [&str; 2] = ["log", "random"];

/// Builds with esbuild and componentize-qjs.
pub(super) struct JavaScriptBuild;

impl LanguageBuild for JavaScriptBuild {
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError> {
        let source = job.folder.join("src").join(format!("plugin.{}", extension(job)));
        if !source.is_file() {
            return Err(ProjectError::Unreadable {
                path: source,
                why: format!("a {} project has its plugin in this file", job.manifest.language),
            });
        }
        let tools = NodeTools::find_or_install(job.report)?;
        let output = job.folder.join("build/javascript");
        make_folder(&output)?;
        let entry = output.join("entry.js");
        std::fs::write(&entry, entry_module(job, &source)).map_err(|error| unwritable(&entry, &error))?;
        let bundle = output.join("plugin.js");
        let imports = tools.bundle(job, &entry, &bundle)?;
        let wit = tempfile::tempdir().map_err(|error| unwritable(&std::env::temp_dir(), &error))?;
        let imports: Vec<&str> = imports.iter().map(String::as_str).collect();
        write_world(wit.path(), &job.manifest.kinds, &imports)?;
        let path = output.join("plugin.wasm");
        (job.report)(&format!("building with {COMPONENTIZE} {COMPONENTIZE_VERSION}"));
        tools.componentize(job, wit.path(), &bundle, &path)?;
        Ok(ToolOutput {
            path,
            tools: vec![
                format!("esbuild {ESBUILD_VERSION}"),
                format!("{COMPONENTIZE} {COMPONENTIZE_VERSION}"),
            ],
        })
    }
}

fn extension(job: &BuildJob<'_>) -> &'static str {
    match job.manifest.language {
        veeksha_manifest::Language::JavaScript => "js",
        _ => "ts",
    }
}

/// Returns the source of the module that becomes the component: an export for each kind.
fn entry_module(job: &BuildJob<'_>, source: &Path) -> String {
    // A JSON string is one of JavaScript.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let facts = format!(
        "{{ name: {}, version: {}, summary: {} }}",
        quoted(&job.manifest.name),
        quoted(&job.manifest.version.to_string()),
        quoted(&job.manifest.summary)
    );
    let mut module = format!(
        "import * as component from \"veeksha/component\";\nimport * as plugin from {};\n\nconst facts = {facts};\n",
        quoted(&source.to_string_lossy())
    );
    for kind in &job.manifest.kinds {
        let name = interface(*kind);
        module.push_str(&format!(
            "export const {name} = component.{name}(plugin, facts);\n"
        ));
    }
    module
}

/// Returns the name of an interface in JavaScript: `sessionGenerator`.
fn interface(kind: PluginKind) -> String {
    let mut parts = kind.name().split('-');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let (letter, rest) = part.split_at(part.len().min(1));
        name + &letter.to_ascii_uppercase() + rest
    })
}

/// Node.js, and the folder of the packages that it runs.
struct NodeTools {
    node: PathBuf,
    folder: PathBuf,
}

impl NodeTools {
    /// Finds the pinned versions in the cache folder, and otherwise installs them there.
    fn find_or_install(report: &dyn Fn(&str)) -> Result<Self, ProjectError> {
        let Some(node) = tool::on_path("node") else {
            return Err(missing("node on PATH: not found").into());
        };
        let Some(cache) = tool::cache_folder() else {
            return Err(missing("there is no home folder for the packages").into());
        };
        let folder = cache.join("tools").join(format!(
            "{COMPONENTIZE}-{COMPONENTIZE_VERSION}-esbuild-{ESBUILD_VERSION}"
        ));
        let installed = tool::install_once(
            &folder,
            |folder| folder.join("node_modules").is_dir(),
            |draft| install(draft, &folder, report),
        );
        if let Err(why) = installed {
            return Err(missing(&format!("{}: {why}", folder.display())).into());
        }
        Ok(NodeTools { node, folder })
    }

    /// Makes one module, and returns the interfaces of the host that it imports.
    fn bundle(&self, job: &BuildJob<'_>, entry: &Path, bundle: &Path) -> Result<Vec<String>, ProjectError> {
        let mut command = Command::new(&self.node);
        command
            .arg(job.sdk.join("bundle.mjs"))
            .args([&self.folder, job.folder, entry, bundle].map(Path::as_os_str));
        let printed = tool::run("esbuild", &mut command)?;
        let named: Vec<String> = serde_json::from_slice(&printed).map_err(|error| ProjectError::Tool {
            tool: "sdk/bundle.mjs".to_owned(),
            why: error.to_string(),
        })?;
        let of_sdk = OF_SDK.map(str::to_owned).into_iter();
        let others = named.into_iter().filter(|name| !OF_SDK.contains(&name.as_str()));
        Ok(of_sdk.chain(others).collect())
    }

    fn componentize(
        &self,
        job: &BuildJob<'_>,
        wit: &Path,
        bundle: &Path,
        output: &Path,
    ) -> Result<(), ProjectError> {
        let program = self
            .folder
            .join("node_modules")
            .join(COMPONENTIZE)
            .join("bin")
            .join(COMPONENTIZE);
        let mut command = Command::new(&self.node);
        command
            .arg(program)
            .arg("--wit")
            .arg(wit)
            .args(["--world", WORLD, "--sync", "--js"])
            .arg(bundle)
            .arg("--output")
            .arg(output)
            .stdin(Stdio::null())
            .current_dir(job.folder);
        let _ = std::fs::remove_file(output);
        let ended = command.output().map_err(|error| ProjectError::Tool {
            tool: COMPONENTIZE.to_owned(),
            why: error.to_string(),
        })?;
        // The tool ends with 0 after some failures.
        if ended.status.success() && output.is_file() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&ended.stderr);
        (job.report)(essential(&messages));
        Err(ProjectError::Failed {
            tool: COMPONENTIZE.to_owned(),
            end: if ended.status.success() {
                "wrote no component".to_owned()
            } else {
                tool::end_of(ended.status)
            },
        })
    }
}

/// Installs the packages. Their scripts are not run: both packages contain programs for each
/// platform.
fn install(draft: &Path, folder: &Path, report: &dyn Fn(&str)) -> Result<(), String> {
    report(&format!(
        "installing {COMPONENTIZE} {COMPONENTIZE_VERSION} and esbuild {ESBUILD_VERSION} in {} (once)",
        folder.display()
    ));
    let npm = tool::on_path("npm").ok_or("npm is not on PATH")?;
    std::fs::create_dir_all(draft).map_err(|error| error.to_string())?;
    std::fs::write(draft.join("package.json"), "{ \"private\": true }\n")
        .map_err(|error| error.to_string())?;
    tool::quietly(
        Command::new(npm)
            .args([
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
            ])
            .arg(draft)
            .arg(format!("{COMPONENTIZE}@{COMPONENTIZE_VERSION}"))
            .arg(format!("esbuild@{ESBUILD_VERSION}")),
    )
}

/// Returns the exception of the plugin's module in the output of the tool; all of it if there is
/// none.
fn essential(messages: &str) -> &str {
    let end = messages.find("\nCaused by:").unwrap_or(messages.len());
    messages[..end].trim()
}

fn missing(searched: &str) -> MissingTool {
    MissingTool {
        needed: format!(
            "Node.js 20 with {COMPONENTIZE} {COMPONENTIZE_VERSION} and esbuild {ESBUILD_VERSION}"
        ),
        searched: vec![searched.to_owned()],
        install: vec![
            "apt install nodejs npm (then this command installs the packages itself)".to_owned(),
            "or Node.js from https://nodejs.org".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_have_their_names_in_javascript() {
        assert_eq!(interface(PluginKind::SessionGenerator), "sessionGenerator");
        assert_eq!(interface(PluginKind::Metric), "metric");
        assert_eq!(interface(PluginKind::SloCheck), "sloCheck");
    }

    #[test]
    fn the_exception_of_a_module_is_shown_without_the_traces_of_the_tool() {
        let messages = "Error: src/plugin: no class of the kind metric\nCaused by:\n    0: wizer\n";
        assert_eq!(
            essential(messages),
            "Error: src/plugin: no class of the kind metric"
        );
    }
}
