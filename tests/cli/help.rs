//! Help, version, completions.

use crate::support::{assert_code, stdout, veeksha};

#[test]
fn help_texts() {
    for command in [
        &[][..],
        &["run"],
        &["check"],
        &["simulate"],
        &["evaluate"],
        &["health"],
        &["compare"],
        &["metrics"],
        &["sim"],
        &["trace"],
        &["trace", "inspect"],
        &["trace", "convert"],
        &["trace", "synthesize"],
        &["schema"],
        &["completions"],
    ] {
        let output = veeksha(command.iter().chain(&["--help"]));
        assert_code(&output, 0);
        let name = if command.is_empty() {
            "help".to_owned()
        } else {
            format!("help-{}", command.join("-"))
        };
        insta::assert_snapshot!(name, stdout(&output));
    }
}

#[test]
fn the_version_is_the_package_s() {
    let output = veeksha(["--version"]);
    assert_code(&output, 0);
    assert_eq!(
        stdout(&output).trim(),
        concat!("veeksha-host ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = veeksha(["completions", shell]);
        assert_code(&output, 0);
        for command in [
            "run", "check", "simulate", "evaluate", "health", "compare", "metrics", "sim", "trace", "schema",
        ] {
            assert!(stdout(&output).contains(command), "{shell}: {command}");
        }
    }
}
