//! A crate uses only lower floors, and each heavy library has one owner.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// The table of `ARCHITECTURE.md`.
const FLOORS: [(&str, u8); 31] = [
    ("veeksha-model", 1),
    ("veeksha-clock", 1),
    ("veeksha-stats", 1),
    ("veeksha-http1", 1),
    ("veeksha-slo", 1),
    ("veeksha-scenario", 2),
    ("veeksha-ports", 2),
    ("veeksha-events", 2),
    ("veeksha-prefix", 2),
    ("veeksha-endpoint", 2),
    ("veeksha-scheduler", 3),
    ("veeksha-simulator", 3),
    ("veeksha-prompt", 3),
    ("veeksha-transport", 3),
    ("veeksha-wasm", 3),
    ("veeksha-lua", 3),
    ("veeksha-metrics", 3),
    ("veeksha-report", 3),
    ("veeksha-trace", 3),
    ("veeksha-trace-tools", 3),
    ("veeksha-machine", 3),
    ("veeksha-record", 3),
    ("veeksha-health", 3),
    ("veeksha-compare", 3),
    ("veeksha-compat", 3),
    ("veeksha-page", 3),
    ("veeksha-certificate", 4),
    ("veeksha-pipeline", 4),
    ("veeksha-bench", 5),
    ("veeksha-experiments", 5),
    ("veeksha-host", 6),
];

/// Floor 1 is itself in two steps: the model, and what speaks its vocabulary.
const WITHIN_FLOOR_ONE: [(&str, &str); 1] = [("veeksha-clock", "veeksha-model")];

/// Library, and the only crate that may depend on it.
const OWNERS: [(&str, &str); 11] = [
    ("parquet", "veeksha-record"),
    ("quick-junit", "veeksha-compare"),
    ("wasmtime", "veeksha-wasm"),
    ("wasmtime-wasi", "veeksha-wasm"),
    ("mlua", "veeksha-lua"),
    ("reqwest", "veeksha-transport"),
    ("tokio-rustls", "veeksha-transport"),
    ("tokenizers", "veeksha-prompt"),
    ("saphyr", "veeksha-scenario"),
    ("indicatif", "veeksha-report"),
    ("thread-priority", "veeksha-machine"),
];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
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

/// What lies in `plugins/`, `sdk/`, `tests/guests/` or `xtask/` sees the contract only.
fn is_guest_or_chore(package: &cargo_metadata::Package) -> bool {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).canonicalize();
    let place = package.manifest_path.as_std_path().canonicalize();
    let (Ok(root), Ok(place)) = (root, place) else {
        return false;
    };
    ["plugins", "sdk", "tests/guests", "xtask"]
        .iter()
        .any(|folder| place.starts_with(root.join(folder)))
}

#[test]
fn every_crate_of_the_house_has_a_floor() {
    let floors = BTreeMap::from(FLOORS);
    let mut found = 0;
    for package in metadata().packages {
        let name = package.name.to_string();
        assert!(
            floors.contains_key(name.as_str()) || is_guest_or_chore(&package),
            "{name} has no floor"
        );
        found += usize::from(floors.contains_key(name.as_str()));
    }
    assert_eq!(found, FLOORS.len(), "a crate of the table is gone");
}

#[test]
fn crates_use_only_lower_floors() {
    let floors = BTreeMap::from(FLOORS);
    for (user, used) in edges() {
        let Some(&to) = floors.get(used.as_str()) else {
            continue;
        };
        let Some(&from) = floors.get(user.as_str()) else {
            panic!(
                "{user} is not of the house and uses {used}; sdk, plugins and xtask see the contract only"
            );
        };
        let within = WITHIN_FLOOR_ONE.contains(&(user.as_str(), used.as_str()));
        assert!(
            to < from || within,
            "{user} (floor {from}) uses {used} (floor {to})"
        );
    }
}

#[test]
fn heavy_libraries_have_one_owner() {
    let edges = edges();
    for (library, owner) in OWNERS {
        for (user, _) in edges.iter().filter(|(_, used)| used == library) {
            assert_eq!(user, owner, "{library} belongs to {owner}");
        }
        assert!(
            edges.contains(&(owner.to_string(), library.to_string())),
            "{owner} no longer uses {library}"
        );
    }
}
