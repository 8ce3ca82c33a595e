//! The build of Rust projects with cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::lost_output;
use crate::build_job::{BuildJob, BuildProfile, LanguageBuild, ToolOutput};
use crate::error::{MissingTool, ProjectError};
use crate::tool;

/// The targets that give a plugin, the better first: a component of the first imports nothing but
/// the contract.
const TARGETS: [&str; 2] = ["wasm32-unknown-unknown", "wasm32-wasip2"];
/// The variable that names a folder with a toolchain, or `rustup`.
const FOLDER_VARIABLE: &str = "VEEKSHA_GUEST_TOOLCHAIN";
/// The value of the variable for the compiler on the search path.
const INSTALLED: &str = "rustup";

/// Builds with cargo.
pub(super) struct RustBuild;

/// A compiler that has one of the [`TARGETS`].
#[derive(Debug, PartialEq, Eq)]
struct RustToolchain {
    target: &'static str,
    /// Compiler and version.
    version: String,
    /// The folder with compiler, linker and library; none for the compiler on the search path.
    folder: Option<PathBuf>,
}

impl LanguageBuild for RustBuild {
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError> {
        let cargo = tool::on_path("cargo").ok_or_else(|| MissingTool {
            needed: "cargo, the build tool of Rust,".to_owned(),
            searched: vec!["cargo on PATH".to_owned()],
            install: vec!["https://rustup.rs, then rustup target add wasm32-unknown-unknown".to_owned()],
        })?;
        let toolchain = RustToolchain::find(job.folder)?;
        let cargo_version =
            tool::ask(&cargo, &["--version"], job.folder).unwrap_or_else(|| "cargo".to_owned());
        (job.report)(&format!(
            "building with {} for {}",
            toolchain.version, toolchain.target
        ));
        if toolchain.target == TARGETS[0] {
            lost_output::warn(&job.folder.join("src"), job.report);
        }
        let mut command = Command::new(&cargo);
        command.current_dir(job.folder).args([
            "rustc",
            "--lib",
            "--target",
            toolchain.target,
            "--message-format",
            "json-render-diagnostics",
        ]);
        if job.profile == BuildProfile::Release {
            command.arg("--release");
        }
        command.arg("--config").arg(dependency_flags(job, &toolchain));
        toolchain.apply(&mut command);
        // Flags of the project's own crate only: with them, dependencies would be compiled again
        // for each project that shares a target folder.
        command.arg("--").arg(remap(job.folder, &job.manifest.name));
        let messages = tool::run("cargo rustc", &mut command)?;
        let path = module_of(&messages, job.folder).ok_or_else(|| ProjectError::Tool {
            tool: "the output of cargo rustc".to_owned(),
            why: "the package builds no cdylib: add `[lib] crate-type = [\"cdylib\"]` to Cargo.toml"
                .to_owned(),
        })?;
        Ok(ToolOutput {
            path,
            tools: vec![
                format!("{}, target {}", toolchain.version, toolchain.target),
                cargo_version,
            ],
        })
    }
}

impl RustToolchain {
    /// Finds the compiler: the one that the variable names, the one on the search path, the one in
    /// the cache folder.
    fn find(project: &Path) -> Result<Self, ProjectError> {
        let named = tool::variable(FOLDER_VARIABLE);
        let cached = tool::cache_folder().map(|cache| cache.join("guest-toolchain"));
        let mut searched = Vec::new();
        match named {
            Some(folder) if folder.as_os_str() != INSTALLED => {
                let problem = match in_folder(&folder) {
                    Ok(toolchain) => return Ok(toolchain),
                    Err(problem) => problem,
                };
                searched.push(format!("${FOLDER_VARIABLE}: {problem}"));
            }
            named => {
                match installed(project) {
                    Ok(toolchain) => return Ok(toolchain),
                    Err(problem) => searched.push(problem),
                }
                for folder in cached.iter().filter(|_| named.is_none()) {
                    match in_folder(folder) {
                        Ok(toolchain) => return Ok(toolchain),
                        Err(problem) => searched.push(problem),
                    }
                }
            }
        }
        Err(missing(searched, cached.as_deref()).into())
    }

    fn apply(&self, command: &mut Command) {
        if let Some(folder) = &self.folder {
            command.env("RUSTC", folder.join("bin/rustc"));
            let linker = format!(
                "CARGO_TARGET_{}_LINKER",
                self.target.to_uppercase().replace('-', "_")
            );
            command.env(linker, folder.join("bin/wasm-ld"));
        }
    }
}

fn missing(searched: Vec<String>, cached: Option<&Path>) -> MissingTool {
    let mut install = vec!["rustup target add wasm32-unknown-unknown".to_owned()];
    if let Some(folder) = cached {
        install.push(format!(
            "xtask/guest-toolchain.sh {} (of the source of veeksha-host, on Debian without rustup)",
            folder.display()
        ));
    }
    MissingTool {
        needed: format!("a Rust compiler for {}", TARGETS.join(" or ")),
        searched,
        install,
    }
}

/// The compiler on the search path, as the project selects it.
fn installed(project: &Path) -> Result<RustToolchain, String> {
    let Some(version) = tool::ask("rustc", &["--version"], project) else {
        return Err("rustc on PATH: not found, or it does not run".to_owned());
    };
    let has = |target: &&'static str| {
        let libraries = tool::ask(
            "rustc",
            &["--print", "target-libdir", "--target", target],
            project,
        );
        libraries.is_some_and(|libraries| has_core(Path::new(&libraries)))
    };
    match TARGETS.into_iter().find(has) {
        Some(target) => Ok(RustToolchain {
            target,
            version,
            folder: None,
        }),
        None => Err(format!(
            "rustc on PATH: {version} has no target {}",
            TARGETS.join(" or ")
        )),
    }
}

/// A compiler with its linker and library in a folder.
fn in_folder(folder: &Path) -> Result<RustToolchain, String> {
    let pin = std::fs::read_to_string(folder.join("pin")).map_err(|_| {
        format!(
            "{} is not a toolchain of xtask/guest-toolchain.sh",
            folder.display()
        )
    })?;
    let folder = folder
        .canonicalize()
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(RustToolchain {
        target: TARGETS[0],
        version: pin.trim().to_owned(),
        folder: Some(folder),
    })
}

/// Returns true if a folder of libraries contains the core library.
fn has_core(libraries: &Path) -> bool {
    let Ok(mut entries) = std::fs::read_dir(libraries) else {
        return false;
    };
    entries.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libcore-")))
}

/// The flag that replaces a folder of this machine in the component.
fn remap(folder: &Path, name: &str) -> String {
    format!("--remap-path-prefix={}={name}", folder.display())
}

/// Compiler flags, as a setting of cargo, that replace folders of this machine. Panics and traps
/// then name files of the project by their paths in it, and those of the SDK and of dependencies as
/// foreign ones, which reports leave out.
fn dependency_flags(job: &BuildJob<'_>, toolchain: &RustToolchain) -> String {
    const SDK: &str = "/crates/sdk";
    let mut flags = Vec::new();
    let home = tool::variable("CARGO_HOME").or_else(|| Some(tool::variable("HOME")?.join(".cargo")));
    flags.extend(home.map(|home| remap(&home, "/cargo")));
    if let Some(folder) = &toolchain.folder {
        // The compiler takes the last that fits.
        flags.push(remap(&folder.join("root"), "/guest-toolchain"));
        flags.push(remap(&folder.join("root/usr/lib/rustlib/src/rust"), "/rustc"));
    }
    // Inside the project's folder, the compiler is given relative paths.
    flags.push(match job.sdk.strip_prefix(job.folder) {
        Ok(relative) => remap(relative, SDK),
        Err(_) => remap(&job.sdk, SDK),
    });
    let flags: Vec<Value> = flags.into_iter().map(Value::from).collect();
    // An array of JSON strings is one of TOML.
    format!("target.{}.rustflags={}", toolchain.target, Value::Array(flags))
}

/// The module of the project's own package in the messages of cargo.
fn module_of(messages: &[u8], folder: &Path) -> Option<PathBuf> {
    let manifest = folder.join("Cargo.toml");
    let mut found = None;
    for line in messages.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let is_own = message["reason"] == "compiler-artifact"
            && message["manifest_path"]
                .as_str()
                .is_some_and(|path| Path::new(path) == manifest);
        if !is_own {
            continue;
        }
        let files = message["filenames"].as_array().into_iter().flatten();
        let modules = files
            .filter_map(Value::as_str)
            .filter(|file| file.ends_with(".wasm"));
        found = modules.map(PathBuf::from).next().or(found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_module_of_the_project_and_not_of_a_dependency() {
        let messages = br#"{"reason":"compiler-artifact","manifest_path":"/p/sdk/rust/Cargo.toml","filenames":["/t/other.wasm"]}
not json
{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/t/coder.wasm"]}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(module_of(messages, Path::new("/p")), Some("/t/coder.wasm".into()));
        assert_eq!(module_of(messages, Path::new("/q")), None);
    }

    #[test]
    fn a_folder_is_a_toolchain_only_with_a_pin() {
        let folder = tempfile::tempdir().unwrap();
        assert!(in_folder(folder.path()).is_err());
        std::fs::write(folder.path().join("pin"), "rustc-web 1.96\n").unwrap();
        let toolchain = in_folder(folder.path()).unwrap();
        assert_eq!(toolchain.version, "rustc-web 1.96");
        assert_eq!(toolchain.target, "wasm32-unknown-unknown");
    }

    #[test]
    fn a_missing_compiler_names_what_was_searched_and_how_to_install_it() {
        let message = missing(
            vec!["rustc on PATH: not found".into()],
            Some(Path::new("/cache/t")),
        )
        .to_string();
        assert_eq!(
            message,
            "a Rust compiler for wasm32-unknown-unknown or wasm32-wasip2 was not found\n  \
             searched: rustc on PATH: not found\n  \
             install:  rustup target add wasm32-unknown-unknown\n  \
             install:  xtask/guest-toolchain.sh /cache/t (of the source of veeksha-host, on Debian without rustup)"
        );
    }
}
