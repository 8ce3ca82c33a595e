//! The crates of the Rust SDK can be packaged: a package needs nothing of this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: [&str; 2] = ["veeksha-coroutines", "veeksha-plugin"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(command: &mut Command) {
    let output = command.output().expect("the command starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn packages_of_the_sdk_contain_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root())
        .args(["package", "--quiet", "--offline", "--no-verify", "--allow-dirty"]);
    cargo.arg("--target-dir").arg(folder.path());
    cargo.args(PACKAGES.map(|package| format!("--package={package}")));
    run(&mut cargo);
    for package in PACKAGES {
        let name = format!("{package}-{}", env!("CARGO_PKG_VERSION"));
        let archive = folder.path().join("package").join(format!("{name}.crate"));
        run(Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(folder.path()));
        let package = folder.path().join(name);
        let manifest = std::fs::read_to_string(package.join("Cargo.toml")).expect("a manifest");
        // Only the crate's own files have a path.
        let outside = manifest
            .lines()
            .find(|line| line.starts_with("path = \"..") || line.contains("workspace"));
        assert_eq!(outside, None, "{manifest}");
        for file in ["LICENSE", "src/lib.rs"] {
            assert!(package.join(file).is_file(), "{file}");
        }
    }
    let plugin = folder
        .path()
        .join(format!("veeksha-plugin-{}", env!("CARGO_PKG_VERSION")));
    let mut count = 0;
    for file in std::fs::read_dir(root().join("wit/0.2.0")).expect("the contract") {
        let file = file.expect("a file");
        let packaged = std::fs::read(plugin.join("wit").join(file.file_name())).expect("the packaged file");
        assert_eq!(packaged, std::fs::read(file.path()).expect("the file"));
        count += 1;
    }
    assert!(count >= 13, "{count} files");
}
