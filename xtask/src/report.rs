//! The report of `cargo xtask tidy`.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use xtask::tidy::{self, Rule};

/// Prints the violations, and fails if there are any.
pub(crate) fn tidy(repository: &Path, paths: &[String], rule: Option<&str>) -> Result<()> {
    let sources = tidy::read(repository).map_err(|error| anyhow!(error))?;
    let mut found = Vec::new();
    let selected = |candidate: &Rule| rule.is_none_or(|name| name == candidate.name());
    for rule in Rule::ALL.into_iter().filter(selected) {
        found.extend(tidy::check(&sources, rule).map_err(|error| anyhow!(error))?);
    }
    if !paths.is_empty() {
        found.retain(|violation| paths.iter().any(|part| violation.path.contains(part)));
    }
    for violation in &found {
        println!("{violation}");
    }
    if !found.is_empty() {
        bail!("{} violations; STYLE.md explains the rules", found.len());
    }
    Ok(())
}
