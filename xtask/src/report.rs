//! The report of `cargo xtask tidy`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use xtask::tidy::{self, Rule, Violation, baseline};

/// Prints the violations, and fails if there are any.
pub(crate) fn tidy(repository: &Path, paths: &[String], rule: Option<&str>, is_summary: bool) -> Result<()> {
    let sources = tidy::read(repository).map_err(|error| anyhow!(error))?;
    let mut found = Vec::new();
    let selected = |candidate: &Rule| rule.is_none_or(|name| name == candidate.name());
    for rule in Rule::ALL.into_iter().filter(selected) {
        found.extend(tidy::check(&sources, rule).map_err(|error| anyhow!(error))?);
    }
    if !paths.is_empty() {
        found.retain(|violation| paths.iter().any(|part| violation.path.contains(part)));
    }
    if is_summary {
        summarize(&found);
    } else {
        for violation in &found {
            println!("{violation}");
        }
    }
    if !found.is_empty() {
        bail!("{} violations; STYLE.md explains the rules", found.len());
    }
    Ok(())
}

/// Prints one line a crate or folder: its violations by rule.
fn summarize(found: &[Violation]) {
    let mut counts: BTreeMap<String, BTreeMap<Rule, usize>> = BTreeMap::new();
    for violation in found {
        *counts
            .entry(baseline::folder(&violation.path))
            .or_default()
            .entry(violation.rule)
            .or_default() += 1;
    }
    for (part, rules) in counts {
        let rules: Vec<String> = rules
            .iter()
            .map(|(rule, count)| format!("{} {count}", rule.name()))
            .collect();
        println!("{part:<28} {}", rules.join(", "));
    }
}

/// Rewrites the list of remaining violations.
pub(crate) fn write_baseline(repository: &Path) -> Result<()> {
    let sources = tidy::read(repository).map_err(|error| anyhow!(error))?;
    let found = tidy::check_all(&sources).map_err(|error| anyhow!(error))?;
    println!("{} violations remain", found.len());
    baseline::write(repository, &baseline::count(&found)).map_err(|error| anyhow!(error))
}
