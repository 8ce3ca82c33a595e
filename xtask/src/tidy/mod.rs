//! The conventions that no compiler checks: module cycles, wording, width, names.
//!
//! `cargo xtask tidy` prints every violation; `cargo test -p xtask --test tidy` fails for them.

mod allowed;
mod lexer;
mod modules;
mod names;
mod phrases;
mod source;
mod violation;
mod width;

use std::path::Path;

pub use source::{Kind, Sources};
pub use violation::{Rule, Violation};

use allowed::Allowed;

/// Returns the violations of `rule` in `sources`, less those on the reviewed list of exceptions.
///
/// # Errors
/// When the list of exceptions cannot be read.
pub fn check(sources: &Sources, rule: Rule) -> Result<Vec<Violation>, String> {
    let allowed = Allowed::read(sources.root())?;
    let found = match rule {
        Rule::Cycle => modules::cycles(sources),
        Rule::Width => width::wide(sources),
        Rule::Phrase => phrases::forbidden(sources),
        Rule::Name => names::repeated(sources),
    };
    Ok(found
        .into_iter()
        .filter(|violation| !allowed.permits(violation))
        .collect())
}

/// Returns the violations of every rule.
///
/// # Errors
/// When the list of exceptions cannot be read.
pub fn check_all(sources: &Sources) -> Result<Vec<Violation>, String> {
    let mut found = Vec::new();
    for rule in Rule::ALL {
        found.extend(check(sources, rule)?);
    }
    Ok(found)
}

/// Returns the exceptions that no longer match a violation, so that the list shrinks.
///
/// # Errors
/// When the list of exceptions cannot be read.
pub fn stale_exceptions(sources: &Sources) -> Result<Vec<String>, String> {
    let allowed = Allowed::read(sources.root())?;
    let mut found = modules::cycles(sources);
    found.extend(width::wide(sources));
    found.extend(phrases::forbidden(sources));
    found.extend(names::repeated(sources));
    Ok(allowed.unused(&found))
}

/// Reads every checked file below `root`.
///
/// # Errors
/// When a folder or file cannot be read.
pub fn read(root: &Path) -> Result<Sources, String> {
    Sources::read(root)
}
