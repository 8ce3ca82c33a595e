//! Help, version, completions.

use crate::support::{assert_code, stdout, veeksha};

/// Returns the subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let (_, section) = help.split_once("\nCommands:\n").unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let entries = lines.filter_map(|line| line.strip_prefix("  "));
    // Further lines of a description are indented.
    let names = entries.filter(|entry| !entry.starts_with(' '));
    names
        .filter_map(|entry| entry.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn help_texts() {
    let mut open = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let output = veeksha(command.iter().map(String::as_str).chain(["--help"]));
        assert_code(&output, 0);
        let help = stdout(&output);
        let name = if command.is_empty() {
            "help".to_owned()
        } else {
            format!("help-{}", command.join("-"))
        };
        insta::assert_snapshot!(name, help);
        seen += 1;
        for subcommand in subcommands(&help) {
            open.push([command.clone(), vec![subcommand]].concat());
        }
    }
    assert!(seen >= 16, "the help lists its commands");
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
        for command in subcommands(&stdout(&veeksha(["--help"]))) {
            assert!(stdout(&output).contains(&command), "{shell}: {command}");
        }
    }
}
