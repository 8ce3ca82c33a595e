//! The build of C projects with clang or zig.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build_job::{BuildJob, BuildProfile, LanguageBuild, ToolOutput};
use crate::error::{MissingTool, ProjectError};
use crate::tool;

/// The variable that names an installed wasi-sdk.
const SDK_VARIABLE: &str = "WASI_SDK_PATH";
const TARGET: &str = "--target=wasm32-wasi";
/// The files of the SDK with the flags of a compilation and of the linker, which its Makefile uses
/// as well.
const FLAGS: &str = "flags.txt";
const LINK_FLAGS: &str = "link.txt";
/// The sources of the SDK, in its folder.
const SDK_SOURCES: [&str; 2] = ["veeksha.c", "veeksha_json.c"];
/// The library with which `printf` writes numbers of every size. Without it, the C library reports
/// a `long double` on standard error, and every plugin that formats text would import WASI. Zig's
/// always contains it.
const PRINTF: &str = "c-printscan-long-double";
/// Lets the stack end at the beginning of memory: a program that exceeds it traps instead of
/// overwriting its data. Zig does so without the flag, which it refuses.
const STACK_FIRST: &str = "-Wl,--stack-first";

/// Builds with clang or zig.
pub(super) struct CBuild;

/// A compiler that makes WebAssembly with a C library.
#[derive(Debug, PartialEq, Eq)]
struct CCompiler {
    /// The program with its first arguments: `zig cc`.
    command: Vec<PathBuf>,
    /// Compiler and version.
    version: String,
    /// Arguments of the linker in addition to those of the SDK.
    link: Vec<String>,
}

impl LanguageBuild for CBuild {
    fn build(&self, job: &BuildJob<'_>) -> Result<ToolOutput, ProjectError> {
        let [kind] = job.manifest.kinds[..] else {
            return Err(ProjectError::Usage(
                "plugin.toml: a plugin in C has one kind, because each kind has its own contract.h"
                    .to_owned(),
            ));
        };
        let compiler = CCompiler::find(job.folder)?;
        (job.report)(&format!("building with {}", compiler.version));
        let contract = job.sdk.join("generated").join(kind.name().replace('-', "_"));
        let objects = job.folder.join("build/objects");
        std::fs::create_dir_all(&objects).map_err(|error| ProjectError::Unwritable {
            path: objects.clone(),
            why: error.to_string(),
        })?;
        let mut linked = Vec::new();
        for source in sources(job.folder)? {
            // Traps name the lines of the author's files only.
            linked.push(compiler.compile(job, &contract, &source, "-g", &objects)?);
        }
        let of_sdk = SDK_SOURCES.map(|source| job.sdk.join(source));
        for source in of_sdk.iter().chain([&contract.join("contract.c")]) {
            linked.push(compiler.compile(job, &contract, source, "-g0", &objects)?);
        }
        linked.push(contract.join("contract_component_type.o"));
        let module = objects.join("module.wasm");
        let mut command = compiler.command(job, LINK_FLAGS);
        command.arg("-o").arg(&module).args(&linked).args(&compiler.link);
        tool::run("the linker of C", &mut command)?;
        Ok(ToolOutput {
            path: module,
            tools: vec![compiler.version],
        })
    }
}

/// The sources of a project, in the order of their names.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, ProjectError> {
    let folder = folder.join("src");
    let unreadable = |why: String| ProjectError::Unreadable {
        path: folder.clone(),
        why,
    };
    let entries = std::fs::read_dir(&folder).map_err(|error| unreadable(error.to_string()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    found.sort();
    if found.is_empty() {
        return Err(unreadable(
            "it has no `.c` file; the source of a plugin in C is src/plugin.c".to_owned(),
        ));
    }
    Ok(found)
}

impl CCompiler {
    /// Finds the compiler: that of the wasi-sdk that the variable names, clang with the packages of
    /// the system, zig.
    fn find(folder: &Path) -> Result<Self, ProjectError> {
        let mut searched = Vec::new();
        if let Some(sdk) = tool::variable(SDK_VARIABLE) {
            let clang = sdk.join("bin/clang");
            match Self::clang(clang.clone(), folder) {
                Ok(compiler) => return Ok(compiler),
                Err(problem) => searched.push(format!("${SDK_VARIABLE}: {}: {problem}", clang.display())),
            }
        } else {
            searched.push(format!("${SDK_VARIABLE}: not set"));
        }
        match tool::on_path("clang").map(|clang| Self::clang(clang, folder)) {
            Some(Ok(compiler)) => return Ok(compiler),
            Some(Err(problem)) => searched.push(format!("clang on PATH: {problem}")),
            None => searched.push("clang on PATH: not found".to_owned()),
        }
        let zigs: [&[&str]; 2] = [&["zig"], &["python3", "-m", "ziglang"]];
        for zig in zigs {
            match Self::zig(zig, folder) {
                Some(compiler) => return Ok(compiler),
                None => searched.push(format!("{}: not found", zig.join(" "))),
            }
        }
        Err(missing(searched).into())
    }

    /// A clang, if it has what a plugin needs.
    fn clang(clang: PathBuf, folder: &Path) -> Result<Self, String> {
        let Some(version) = tool::ask(&clang, &["--version"], folder) else {
            return Err("not found, or it does not run".to_owned());
        };
        // The answer is a path if there is such a file, else the name itself.
        let has = |name: &str| {
            let question = format!("-print-file-name={name}");
            let answer = tool::ask(&clang, &[TARGET, &question], folder);
            answer.is_some_and(|path| Path::new(&path).is_file())
        };
        if !has("libc.a") && !has("wasm32-wasi/libc.a") {
            return Err("it has no C library for wasm32-wasi".to_owned());
        }
        let runtime = tool::ask(&clang, &[TARGET, "-print-libgcc-file-name"], folder);
        if !runtime.is_some_and(|path| Path::new(&path).is_file()) {
            return Err("it has no compiler runtime for wasm32".to_owned());
        }
        let linker = tool::ask(&clang, &[TARGET, "-print-prog-name=wasm-ld"], folder);
        let is_program = |name: String| Path::new(&name).is_file() || tool::on_path(&name).is_some();
        if !linker.is_some_and(is_program) {
            return Err("it has no linker wasm-ld".to_owned());
        }
        let printf = has(&format!("lib{PRINTF}.a")).then(|| format!("-l{PRINTF}"));
        Ok(CCompiler {
            version: version.lines().next().unwrap_or("clang").to_owned(),
            link: printf.into_iter().chain([STACK_FIRST.to_owned()]).collect(),
            command: vec![clang],
        })
    }

    fn zig(program: &[&str], folder: &Path) -> Option<Self> {
        let (first, arguments) = program.split_first()?;
        let version = tool::ask(first, &[arguments, &["version"]].concat(), folder)?;
        Some(CCompiler {
            command: program.iter().chain(&["cc"]).map(PathBuf::from).collect(),
            version: format!("zig {version}"),
            link: Vec::new(),
        })
    }

    /// The compiler with the flags of a file of the SDK.
    fn command(&self, job: &BuildJob<'_>, flags: &str) -> Command {
        let mut command = Command::new(self.command.first().map_or(Path::new("clang"), PathBuf::as_path));
        command.current_dir(job.folder);
        command.args(self.command.iter().skip(1));
        let mut response_file = std::ffi::OsString::from("@");
        response_file.push(job.sdk.join(flags));
        command.arg(response_file);
        command
    }

    /// Compiles a file and returns the object.
    fn compile(
        &self,
        job: &BuildJob<'_>,
        contract: &Path,
        source: &Path,
        debug: &str,
        objects: &Path,
    ) -> Result<PathBuf, ProjectError> {
        let name = source.file_name().map(PathBuf::from).unwrap_or_default();
        // A file of the project may have the name of one of the SDK.
        let owner = if source.starts_with(job.folder.join("src")) {
            "plugin"
        } else {
            "sdk"
        };
        let object = objects.join(format!("{owner}-{}.o", name.display()));
        let mut command = self.command(job, FLAGS);
        if job.profile == BuildProfile::Dev {
            // Of two levels, the later counts.
            command.arg("-O1");
        }
        command.arg(debug).arg("-I").arg(&job.sdk).arg("-I").arg(contract);
        command.arg(format!(
            "-ffile-prefix-map={}={}",
            job.folder.display(),
            job.manifest.name
        ));
        command.arg("-c").arg(source).arg("-o").arg(&object);
        tool::run("the compiler of C", &mut command)?;
        Ok(object)
    }
}

fn missing(searched: Vec<String>) -> MissingTool {
    MissingTool {
        needed: "a C compiler for wasm32-wasi with a C library".to_owned(),
        searched,
        install: vec![
            "apt install clang lld wasi-libc libclang-rt-14-dev-wasm32 (Debian 12; the number is that of clang)"
                .to_owned(),
            format!("https://github.com/WebAssembly/wasi-sdk, with {SDK_VARIABLE} set to its folder"),
            "pip install ziglang".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_the_c_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("src");
        assert!(sources(folder.path()).is_err());
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("notes.txt"), "").unwrap();
        let error = sources(folder.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("the source of a plugin in C is src/plugin.c"),
            "{error}"
        );
        for name in ["plugin.c", "draw.c", "draw.h"] {
            std::fs::write(source.join(name), "").unwrap();
        }
        let names: Vec<_> = sources(folder.path()).unwrap();
        assert_eq!(names, [source.join("draw.c"), source.join("plugin.c")]);
    }

    #[test]
    fn a_missing_compiler_names_what_was_searched_and_how_to_install_it() {
        let message = missing(vec!["clang on PATH: it has no linker wasm-ld".into()]).to_string();
        assert!(
            message.starts_with(
                "a C compiler for wasm32-wasi with a C library was not found\n  \
                 searched: clang on PATH: it has no linker wasm-ld\n  \
                 install:  apt install clang lld wasi-libc"
            ),
            "{message}"
        );
    }

    /// Other programs than compilers are refused by their first missing answer.
    #[test]
    fn a_program_without_a_c_library_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = CCompiler::clang("/nowhere/clang".into(), folder.path());
        assert_eq!(refused, Err("not found, or it does not run".to_owned()));
        let echo = CCompiler::clang("echo".into(), folder.path());
        assert_eq!(echo, Err("it has no C library for wasm32-wasi".to_owned()));
    }
}
