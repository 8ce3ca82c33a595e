//! Dependencies: all used, under an accepted licence, in one version unless `deny.toml` has a
//! reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use xtask::tidy::{self, Kind};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .expect("the repository")
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .other_options(vec![
            "--locked".into(),
            "--filter-platform".into(),
            "x86_64-unknown-linux-gnu".into(),
        ])
        .exec()
        .expect("cargo metadata answers")
}

/// The strings of the array `key = [ … ]` of `deny.toml`.
fn listed(key: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let (_, after) = text
        .split_once(&format!("\n{key} = [\n"))
        .expect("the array of deny.toml");
    let (array, _) = after.split_once("\n]").expect("its end");
    let lines = array.lines().map(str::trim).filter(|line| line.starts_with('"'));
    lines
        .map(|line| line.trim_matches(['"', ',']).to_owned())
        .collect()
}

#[test]
fn licences_are_accepted() {
    let accepted = listed("allow");
    let is_accepted = |name: &str| accepted.contains(name.trim_matches(['(', ')', ' ']));
    let mut count = 0;
    for package in metadata()
        .packages
        .iter()
        .filter(|package| package.source.is_some())
    {
        count += 1;
        let licence = package.license.clone().unwrap_or_default();
        let is_satisfied = licence.split(" AND ").all(|part| {
            part.split(" OR ")
                .flat_map(|part| part.split('/'))
                .any(is_accepted)
        });
        assert!(is_satisfied, "{} has the licence `{licence}`", package.name);
    }
    assert!(count > 200, "the dependencies are in the metadata");
}

#[test]
fn duplicate_versions_have_a_reason() {
    let accepted = listed("skip");
    let metadata = metadata();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let host = host_packages(&metadata);
    for package in metadata
        .packages
        .iter()
        .filter(|package| host.contains(&package.id.repr))
    {
        versions
            .entry(package.name.to_string())
            .or_default()
            .insert(package.version.to_string());
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        assert!(
            accepted.contains(name),
            "{name} has the versions {versions:?}: unify them, or give the reason in deny.toml"
        );
    }
}

/// The packages that are built on Linux: ordinary and build dependencies, without those of tests.
fn host_packages(metadata: &Metadata) -> BTreeSet<String> {
    let nodes: BTreeMap<&str, _> = metadata
        .resolve
        .iter()
        .flat_map(|resolve| &resolve.nodes)
        .map(|node| (node.id.repr.as_str(), node))
        .collect();
    let mut open: Vec<&str> = metadata
        .workspace_members
        .iter()
        .map(|id| id.repr.as_str())
        .collect();
    let mut found: BTreeSet<String> = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id.to_owned()) {
            continue;
        }
        for dependency in nodes.get(id).iter().flat_map(|node| &node.deps) {
            let is_built = dependency
                .dep_kinds
                .iter()
                .any(|kind| kind.kind != DependencyKind::Development);
            if is_built {
                open.push(dependency.pkg.repr.as_str());
            }
        }
    }
    found
}

fn folder(package: &Package) -> PathBuf {
    let folder = package.manifest_path.parent().expect("a folder");
    folder.as_std_path().canonicalize().expect("the package's folder")
}

/// Rust sources of a package: path and text.
fn sources(package: &Package, all: &[(PathBuf, String)]) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder(package)];
    // Integration tests of the command line are in the repository's `tests`.
    for target in &package.targets {
        if let Ok(path) = target.src_path.as_std_path().canonicalize() {
            folders.extend(path.parent().map(Path::to_owned));
        }
    }
    let is_own = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    // Files that tests share, as `#[path = "..."]`.
    let shared: Vec<PathBuf> = all
        .iter()
        .filter(|(path, _)| is_own(path))
        .flat_map(|(path, text)| {
            let names = text.split("#[path = \"").skip(1);
            let names = names.filter_map(|rest| rest.split('"').next());
            names.filter_map(|name| path.parent()?.join(name).canonicalize().ok())
        })
        .collect();
    let is_shared = |path: &Path| path.canonicalize().is_ok_and(|path| shared.contains(&path));
    all.iter()
        .filter(|(path, _)| is_own(path) || is_shared(path))
        .cloned()
        .collect()
}

/// The name of a package's library, which may differ: `rustls-webpki` is `webpki` in code.
fn library(metadata: &Metadata, package: &str) -> String {
    let mut found = metadata
        .packages
        .iter()
        .filter(|candidate| candidate.name.as_str() == package);
    let target = found.find_map(|package| {
        let mut targets = package.targets.iter();
        targets.find(|target| target.is_lib() || target.is_proc_macro())
    });
    target.map_or_else(|| package.to_owned(), |target| target.name.clone())
}

fn names(text: &str, name: &str) -> bool {
    text.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .any(|word| word == name)
}

#[test]
fn every_dependency_is_used() {
    let root = root();
    let read = tidy::read(&root).expect("readable sources");
    let all: Vec<(PathBuf, String)> = read
        .files()
        .iter()
        .filter(|file| file.kind == Kind::Rust)
        .map(|file| (root.join(&file.path), file.text.clone()))
        .collect();
    let metadata = metadata();
    let mut unused = Vec::new();
    for package in metadata.workspace_packages() {
        let folder = folder(package);
        let sources = sources(package, &all);
        for dependency in &package.dependencies {
            let name = dependency
                .rename
                .clone()
                .unwrap_or_else(|| library(&metadata, &dependency.name))
                .replace('-', "_");
            let is_used = sources.iter().any(|(path, text)| {
                let is_test = |part: std::path::Component| {
                    ["tests", "benches", "examples"]
                        .iter()
                        .any(|folder| part.as_os_str() == *folder)
                };
                let code = match dependency.kind {
                    DependencyKind::Development => text.as_str(),
                    _ if path
                        .strip_prefix(&folder)
                        .unwrap_or(path)
                        .components()
                        .any(is_test) =>
                    {
                        ""
                    }
                    _ => text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default(),
                };
                names(code, &name)
            });
            if !is_used {
                unused.push(format!("{}: {}", package.name, dependency.name));
            }
        }
    }
    assert!(unused.is_empty(), "unused dependencies: {unused:#?}");
}
