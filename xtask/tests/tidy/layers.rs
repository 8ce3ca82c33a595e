//! A crate uses only lower layers, and each heavy library has one owner: the table of
//! `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// A row of the table: a crate of the host.
struct Row {
    package: String,
    layer: u8,
    /// Libraries that no other crate may use.
    owned: Vec<String>,
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The rows of the table whose second cell names a crate.
fn table() -> Vec<Row> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let rows: Vec<Row> = text.lines().filter_map(row).collect();
    assert!(rows.len() > 25, "the table of crates is in ARCHITECTURE.md");
    rows
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim_matches(['|', ' ']).split('|').map(str::trim).collect();
    let [layer, name, purpose] = cells.as_slice() else {
        return None;
    };
    // The contract's row names a folder.
    let name = quoted(name).next().filter(|name| !name.ends_with('/'))?;
    let package = if name == "host" {
        "veeksha-host".to_owned()
    } else {
        format!("veeksha-{name}")
    };
    let owned = purpose.split_once("Only user of ").map_or("", |(_, owned)| owned);
    Some(Row {
        package,
        layer: layer.parse().ok()?,
        owned: quoted(owned).map(str::to_owned).collect(),
    })
}

/// The text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn layers() -> BTreeMap<String, u8> {
    table().into_iter().map(|row| (row.package, row.layer)).collect()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".into()])
        .exec()
        .expect("cargo metadata answers")
}

/// (crate, its ordinary dependency) for every package of the workspace.
fn edges() -> Vec<(String, String)> {
    let packages = metadata().packages;
    packages
        .iter()
        .flat_map(|package| {
            let ordinary = package
                .dependencies
                .iter()
                .filter(|edge| edge.kind != DependencyKind::Development);
            ordinary.map(|edge| (package.name.to_string(), edge.name.clone()))
        })
        .collect()
}

/// Returns true for packages in `plugins/`, `sdk/`, `tests/guests/` and `xtask/`, which see the
/// contract only.
fn is_outside_the_host(package: &cargo_metadata::Package) -> bool {
    let root = root().canonicalize();
    let folder = package.manifest_path.as_std_path().canonicalize();
    let (Ok(root), Ok(folder)) = (root, folder) else {
        return false;
    };
    ["plugins", "sdk", "tests/guests", "xtask"]
        .iter()
        .any(|part| folder.starts_with(root.join(part)))
}

#[test]
fn table_lists_exactly_the_crates_of_the_host() {
    let listed: BTreeSet<String> = layers().into_keys().collect();
    let found: BTreeSet<String> = metadata()
        .packages
        .iter()
        .filter(|package| !is_outside_the_host(package))
        .map(|package| package.name.to_string())
        .collect();
    assert_eq!(listed, found, "ARCHITECTURE.md (left) and the workspace (right)");
}

#[test]
fn crates_use_only_lower_layers() {
    let layers = layers();
    for (user, used) in edges() {
        let Some(&to) = layers.get(&used) else {
            continue;
        };
        // The shipped components are made by the code that makes those of users.
        if (user.as_str(), used.as_str()) == ("xtask", "veeksha-componentize") {
            continue;
        }
        let Some(&from) = layers.get(&user) else {
            panic!("{user} uses {used}; sdk, plugins and xtask may use the contract only");
        };
        assert!(to < from, "{user} (layer {from}) uses {used} (layer {to})");
    }
}

#[test]
fn heavy_libraries_have_one_owner() {
    let edges = edges();
    let mut count = 0;
    for row in table() {
        let owner = row.package;
        for library in row.owned {
            count += 1;
            for (user, _) in edges.iter().filter(|(_, used)| *used == library) {
                assert_eq!(*user, owner, "only {owner} may use {library}");
            }
            assert!(
                edges.contains(&(owner.clone(), library.clone())),
                "{owner} no longer uses {library}: update ARCHITECTURE.md"
            );
        }
    }
    assert!(count >= 15, "ARCHITECTURE.md names the owners as `Only user of`");
}
