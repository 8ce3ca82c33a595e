//! Violations that older code still has: `xtask/tidy-baseline.txt`. Their number may only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::violation::Violation;

/// Path of the list below the repository's root.
const LIST: &str = "xtask/tidy-baseline.txt";
const HEADER: &str = "# Violations that remain, by rule and folder. `cargo xtask tidy --baseline` rewrites this list;\n\
                      # a number that rises fails `cargo test -p xtask`.\n";

/// Violations by rule and folder.
pub type Counts = BTreeMap<(String, String), usize>;

/// Counts violations by rule and folder.
#[must_use]
pub fn count(violations: &[Violation]) -> Counts {
    let mut counts = Counts::new();
    for violation in violations {
        let key = (violation.rule.name().to_owned(), folder(&violation.path));
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// The crate of a path, or its first folders: `host/crates/slo`, `plugins/weka`, `docs`.
#[must_use]
pub fn folder(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = match parts.as_slice() {
        ["host", "crates", _, _, ..] => 3,
        ["plugins" | "tests" | "sdk", _, _, ..] => 2,
        _ => 1,
    };
    parts.get(..depth).unwrap_or(&parts).join("/")
}

/// Reads the list below `root`; a missing list allows nothing.
///
/// # Errors
/// When a line is not `rule folder count`.
pub fn read(root: &Path) -> Result<Counts, String> {
    let text = std::fs::read_to_string(root.join(LIST)).unwrap_or_default();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(parse).collect()
}

fn parse(line: &str) -> Result<((String, String), usize), String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if let [rule, folder, count] = fields.as_slice()
        && let Ok(count) = count.parse()
    {
        Ok((((*rule).to_owned(), (*folder).to_owned()), count))
    } else {
        Err(format!("{LIST}: expected `rule folder count`, got `{line}`"))
    }
}

/// Writes the list below `root`.
///
/// # Errors
/// When the file cannot be written.
pub fn write(root: &Path, counts: &Counts) -> Result<(), String> {
    let mut text = HEADER.to_owned();
    for ((rule, folder), count) in counts {
        let _ = writeln!(text, "{rule} {folder} {count}");
    }
    std::fs::write(root.join(LIST), text).map_err(|error| format!("cannot write {LIST}: {error}"))
}

/// Returns a line for each number that exceeds the list.
#[must_use]
pub fn exceeded(counts: &Counts, allowed: &Counts) -> Vec<String> {
    let mut found = Vec::new();
    for (key, count) in counts {
        let limit = allowed.get(key).copied().unwrap_or_default();
        if *count > limit {
            let (rule, folder) = key;
            found.push(format!(
                "{folder}: {count} violations of `{rule}`, {limit} allowed; `cargo xtask tidy --rule {rule} {folder}` lists them"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::violation::Rule;
    use super::*;

    #[test]
    fn rising_numbers_fail_and_falling_ones_pass() {
        let violation = |path: &str| Violation {
            rule: Rule::Phrase,
            path: path.into(),
            line: 1,
            subject: String::new(),
            message: String::new(),
        };
        let old = count(&[
            violation("host/crates/slo/src/a.rs"),
            violation("host/crates/slo/b.rs"),
        ]);
        let fewer = count(&[violation("host/crates/slo/src/a.rs")]);
        assert!(exceeded(&fewer, &old).is_empty());
        assert_eq!(exceeded(&old, &fewer).len(), 1);
        let elsewhere = count(&[violation("docs/a.md")]);
        assert_eq!(exceeded(&elsewhere, &old).len(), 1);
    }

    #[test]
    fn groups_paths_by_crate() {
        assert_eq!(folder("host/crates/slo/src/lib.rs"), "host/crates/slo");
        assert_eq!(folder("host/src/cli/mod.rs"), "host");
        assert_eq!(folder("plugins/weka/src/a.rs"), "plugins/weka");
        assert_eq!(folder("plugins/README.md"), "plugins");
        assert_eq!(folder("README.md"), "README.md");
    }

    #[test]
    fn refuses_malformed_lines() {
        assert!(parse("phrase docs").is_err());
        assert!(parse("phrase docs many").is_err());
        assert!(parse("phrase docs 3").is_ok());
    }
}
