//! Setup of the conversion of segments to text: tokenizer, salt, chat template, media.

use std::collections::BTreeMap;
use std::path::PathBuf;

use veeksha_model::Role;
use veeksha_prompt::{ChatTemplate, Materializer, MediaStore, PromptTarget};
use veeksha_scenario::{Flavor, Generator, PromptLength};

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::tokenizers::Found;
use veeksha_present::terminal;

/// Returns the materializer of a run.
pub fn materializer(
    loaded: &Loaded,
    found: &Found,
    salt: Option<u64>,
) -> Result<Materializer, CommandFailure> {
    let tokenizer = found.tokenizer.clone();
    let name = tokenizer.name().to_owned();
    let mut materializer = Materializer::new(tokenizer)
        .map_err(|error| CommandFailure::usage(format!("the tokenizer {name}: {error}")))?
        .salted(salt);
    if let Some(template) = found.chat_template(loaded)? {
        let target = match loaded.scenario.client.prompt_length {
            PromptLength::Content => PromptTarget::Content,
            PromptLength::Wrapped => PromptTarget::Wrapped,
        };
        check_template(&template)?;
        materializer = materializer.with_template(template, target);
    }
    Ok(materializer.with_media(media(loaded)?))
}

/// Rejects a template that drops or repeats the user's message, because it would change the
/// workload.
fn check_template(template: &ChatTemplate) -> Result<(), CommandFailure> {
    const MARK: &str = "veeksha chat template check";
    let refuse = |what: String| {
        Err(CommandFailure::usage(format!(
            "the chat template {} cannot be used: {what}",
            template.name()
        )))
    };
    match template.render(&[(Role::User, MARK)], true) {
        Ok(text) => match text.matches(MARK).count() {
            1 => Ok(()),
            0 => refuse("it omits the user's message".into()),
            times => refuse(format!("it repeats the user's message {times} times")),
        },
        Err(error) => refuse(format!("it rejects a single user message: {error}")),
    }
}

/// Reports the requests for which the chat template could not be used as configured.
pub(crate) fn report(materializer: &Materializer) {
    let notes = materializer.template_notes();
    for (count, what) in [
        (
            notes.refused,
            "rejected by the chat template and counted without it",
        ),
        (notes.too_short, "too short for the chat template"),
    ] {
        if count > 0 {
            terminal::err(format!(
                "warning: {} {what}; the first: {}",
                veeksha_stats::counted(count, "request"),
                notes.first.as_deref().unwrap_or("unknown")
            ));
        }
    }
}

/// Returns the files that messages may refer to: those granted by name, and those in the media
/// folder of a trace.
fn media(loaded: &Loaded) -> Result<MediaStore, CommandFailure> {
    let (files, folder) = match &loaded.scenario.session_generator {
        Generator::Shipped { .. } => (BTreeMap::new(), None),
        Generator::Wasm { component, .. } => (component.files.clone(), None),
        Generator::Lua { files, .. } | Generator::Replay { files, .. } => (files.clone(), None),
        Generator::Trace(trace) => {
            let files = match &trace.flavor {
                Flavor::Wasm(component) => component.files.clone(),
                Flavor::Shipped { .. } | Flavor::Lua { .. } => BTreeMap::new(),
            };
            (files, trace.keys.media_folder.clone())
        }
    };
    let rooted = |path: PathBuf| loaded.folder().join(path);
    let files = files.into_iter().map(|(name, path)| (name, rooted(path)));
    let store = MediaStore::default().with_files(files);
    match folder {
        Some(folder) => store
            .with_folder(rooted(folder))
            .map_err(|error| CommandFailure::usage(format!("session_generator.media_folder: {error}"))),
        None => Ok(store),
    }
}
