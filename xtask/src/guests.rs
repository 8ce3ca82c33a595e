//! Rebuilding the components of the repository, and comparing them with the ones that are shipped.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use veeksha_componentize::{ComponentOptions, componentize};

use crate::digests::{self, Digests};
use crate::toolchain::{self, TARGET, Toolchain};

/// Some components that are shipped together.
struct Collection {
    /// Where they are shipped.
    dist: PathBuf,
    /// What they are built from.
    parts: Vec<Part>,
}

/// Components of one workspace. A package's dependencies must lie in its workspace, or its bytes
/// depend on where the repository lies: cargo names what is outside by its absolute path.
struct Part {
    workspace: PathBuf,
    /// Package and name of the component.
    members: Vec<(String, String)>,
}

/// A component, fresh from its source.
struct Built {
    file: String,
    bytes: Vec<u8>,
}

/// Builds every component and ships it.
pub(crate) fn rebuild(repository: &Path, asked: Option<&Path>) -> Result<()> {
    let toolchain = toolchain::find(repository, asked)?;
    if let Toolchain::Rustup { version } = &toolchain {
        eprintln!("building with {version}; the pinned toolchain gives other bytes, so do not commit these");
    }
    for collection in collections(repository)? {
        let built = build(repository, &toolchain, &collection)?;
        std::fs::create_dir_all(&collection.dist)?;
        for component in &built {
            let path = collection.dist.join(&component.file);
            std::fs::write(&path, &component.bytes)
                .with_context(|| format!("cannot write {}", path.display()))?;
            println!(
                "{} ({} bytes)",
                relative(repository, &path),
                component.bytes.len()
            );
        }
        let remarks = [
            "Components of this folder (BLAKE3), rebuilt by `cargo xtask plugins`, compared by `cargo xtask plugins --check`.",
            &format!("Built with {}.", toolchain.describe()),
        ];
        digests::write(&collection.dist.join("digests.txt"), &remarks, &listing(&built))?;
    }
    Ok(())
}

/// Builds every component and compares it with the one that is shipped.
pub(crate) fn check(repository: &Path, asked: Option<&Path>) -> Result<()> {
    let mut differences = Vec::new();
    let collections = collections(repository)?;
    for collection in &collections {
        let listed = digests::read(&collection.dist.join("digests.txt"))?;
        let shipped = shipped(&collection.dist)?;
        let folder = relative(repository, &collection.dist);
        differences.extend(digests::differences(&listed, &shipped, &folder));
    }
    if !differences.is_empty() {
        bail!(
            "digests.txt and the shipped components differ: {}",
            differences.join("; ")
        );
    }
    let toolchain = toolchain::find(repository, asked)?;
    for collection in &collections {
        let built = listing(&build(repository, &toolchain, collection)?);
        let listed = digests::read(&collection.dist.join("digests.txt"))?;
        differences.extend(digests::differences(&listed, &built, "the rebuilt source"));
    }
    if differences.is_empty() {
        println!("every component is what its source gives");
        return Ok(());
    }
    if let Toolchain::Rustup { version } = &toolchain {
        let reason = format!("built with {version} instead, and the bytes differ, as they may");
        return Err(toolchain::unavailable(repository, reason)?.into());
    }
    bail!(
        "{}; run `cargo xtask plugins` and commit what it writes",
        differences.join("; ")
    )
}

/// The plugins, and the fixtures that are listed in `tests/guests/fixtures.txt`.
fn collections(repository: &Path) -> Result<Vec<Collection>> {
    let plugins = repository.join("plugins");
    let mut members = Vec::new();
    for entry in std::fs::read_dir(&plugins).with_context(|| format!("cannot read {}", plugins.display()))? {
        let manifest = entry?.path().join("Cargo.toml");
        if manifest.is_file() {
            let folder = manifest
                .parent()
                .and_then(Path::file_name)
                .context("a plugin without a folder")?;
            members.push((package(&manifest)?, folder.to_string_lossy().into_owned()));
        }
    }
    members.sort();
    let mut collections = vec![Collection {
        dist: plugins.join("dist"),
        parts: vec![Part {
            workspace: repository.to_owned(),
            members,
        }],
    }];

    let guests = repository.join("tests/guests");
    let list = guests.join("fixtures.txt");
    if list.is_file() {
        let text =
            std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
        let names = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        // Those that are made with the SDK belong to its workspace.
        let (of_sdk, own): (Vec<&str>, Vec<&str>) = names.partition(|name| name.starts_with("sdk-"));
        let part = |workspace: &Path, names: Vec<&str>| Part {
            workspace: workspace.to_owned(),
            members: names
                .into_iter()
                .map(|name| (name.to_owned(), name.to_owned()))
                .collect(),
        };
        collections.push(Collection {
            dist: guests.join("dist"),
            parts: vec![part(&guests, own), part(repository, of_sdk)],
        });
    }
    Ok(collections)
}

/// Returns the name in a manifest's `[package]`, which precedes any other `name`.
fn package(manifest: &Path) -> Result<String> {
    let text =
        std::fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let name = text.lines().find_map(|line| {
        line.strip_prefix("name")?
            .trim_start()
            .strip_prefix('=')?
            .trim()
            .strip_prefix('"')?
            .strip_suffix('"')
    });
    Ok(name
        .with_context(|| format!("{} names no package", manifest.display()))?
        .to_owned())
}

fn build(repository: &Path, toolchain: &Toolchain, collection: &Collection) -> Result<Vec<Built>> {
    let mut built = Vec::new();
    for part in &collection.parts {
        built.extend(build_part(repository, toolchain, part)?);
    }
    Ok(built)
}

fn build_part(repository: &Path, toolchain: &Toolchain, part: &Part) -> Result<Vec<Built>> {
    let target = repository.join("target/guests").join(toolchain.key());
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(&part.workspace);
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "plugin",
        "--target",
        TARGET,
    ]);
    for (package, _) in &part.members {
        cargo.args(["--package", package]);
    }
    // What the user's shell or settings say about other builds must not reach this one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PROFILE_") || text.starts_with("CARGO_BUILD_") || text.starts_with("RUSTC")
        {
            cargo.env_remove(&name);
        }
    }
    cargo
        .env_remove("RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_TARGET_DIR", &target);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(repository, toolchain, &target)?);
    toolchain.apply(&mut cargo);
    let status = cargo.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the components in {} do not build", part.workspace.display());
    }
    let modules = target.join(TARGET).join("plugin");
    part.members
        .iter()
        .map(|(package, name)| encode(&modules, package, name))
        .collect()
}

fn encode(modules: &Path, package: &str, name: &str) -> Result<Built> {
    let module = modules.join(format!("{}.wasm", package.replace('-', "_")));
    let bytes = std::fs::read(&module)
        .with_context(|| format!("cannot read {}: is {package} a cdylib?", module.display()))?;
    let built =
        componentize(&bytes, &ComponentOptions::default()).with_context(|| format!("the plugin {name}"))?;
    Ok(Built {
        file: format!("{name}.wasm"),
        bytes: built.component,
    })
}

/// Names for every folder that differs from machine to machine, so that none shows in a component:
/// panics and traps say `/rustc/…`, `/crates/…`, and paths inside the repository. Of several that
/// fit, the compiler takes the last.
fn flags(repository: &Path, toolchain: &Toolchain, target: &Path) -> Result<OsString> {
    let mut names = vec![(repository.to_owned(), "/veeksha-host".to_owned())];
    let home = match std::env::var_os("CARGO_HOME").filter(|value| !value.is_empty()) {
        Some(home) => PathBuf::from(home),
        None => {
            PathBuf::from(std::env::var_os("HOME").context("no HOME, so no cargo folder")?).join(".cargo")
        }
    };
    names.push((home.clone(), "/cargo".to_owned()));
    // One folder per registry; its name depends on where the registry is reached.
    if let Ok(registries) = std::fs::read_dir(home.join("registry/src")) {
        let mut folders: Vec<PathBuf> = registries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        folders.sort();
        names.extend(folders.into_iter().map(|folder| (folder, "/crates".to_owned())));
    }
    names.push((target.to_owned(), "/target".to_owned()));
    if let Some((root, source)) = toolchain.folders() {
        names.push((root, "/guest-toolchain".to_owned()));
        names.push((source, "/rustc".to_owned()));
    }
    let mut flags = OsString::new();
    for (folder, name) in names {
        if !flags.is_empty() {
            flags.push("\x1f");
        }
        flags.push("--remap-path-prefix=");
        flags.push(folder);
        flags.push("=");
        flags.push(name);
    }
    Ok(flags)
}

fn listing(built: &[Built]) -> Digests {
    built
        .iter()
        .map(|component| (component.file.clone(), digests::digest(&component.bytes)))
        .collect()
}

fn shipped(dist: &Path) -> Result<Digests> {
    let mut found = Digests::new();
    for entry in std::fs::read_dir(dist).with_context(|| format!("cannot read {}", dist.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            found.insert(name, digests::digest(&bytes));
        }
    }
    Ok(found)
}

fn relative(repository: &Path, path: &Path) -> String {
    path.strip_prefix(repository)
        .unwrap_or(path)
        .display()
        .to_string()
}
