//! Profiles of the built-in simulator.

use std::path::Path;
use std::sync::Arc;

use veeksha_scenario::Document;
use veeksha_simulator::{Profile, SimOptions};

use crate::failure::CommandFailure;

/// Returns the options of a simulated server with the embedded tokenizer, which is also the default
/// of its clients.
pub fn options(profile: Profile, seed: u64) -> Result<SimOptions, CommandFailure> {
    let tokenizer = veeksha_prompt::Tokenizer::embedded().map_err(CommandFailure::internal)?;
    let tokenize = Arc::new(move |text: &str| tokenizer.encode(text).unwrap_or_default());
    Ok(SimOptions {
        tokenize,
        ..SimOptions::new(profile, seed)
    })
}

/// Returns the profile `name`: a built-in one, or a YAML file relative to `folder`.
pub fn profile(name: &str, folder: &Path) -> Result<Profile, CommandFailure> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    let path = folder.join(name);
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        CommandFailure::usage(format!(
            "there is no profile `{name}`, and no file {shown}: {error}"
        ))
        .hinted(format!("the profiles are {}", Profile::names().join(", ")))
    })?;
    let document = Document::from_yaml(&text, &shown.to_string()).map_err(CommandFailure::usage)?;
    let profile: Profile = serde_json::from_value(document.root.to_json())
        .map_err(|error| CommandFailure::usage(format!("{shown}: {error}")))?;
    profile
        .check()
        .map_err(|error| CommandFailure::usage(format!("{shown}: {error}")))?;
    Ok(profile)
}
