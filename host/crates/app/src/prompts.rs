//! What turns segments into text: tokenizer, salt, chat template, media.

use std::collections::BTreeMap;
use std::path::PathBuf;

use veeksha_model::Role;
use veeksha_prompt::{ChatTemplate, Materializer, MediaStore, PromptTarget};
use veeksha_scenario::{Flavor, Generator, PromptLength};

use crate::failure::Failure;
use crate::source::Loaded;
use crate::tokenizers::Found;
use veeksha_present::terminal;

/// The materializer of a run.
pub fn materializer(loaded: &Loaded, found: &Found, salt: Option<u64>) -> Result<Materializer, Failure> {
    let tokenizer = found.tokenizer.clone();
    let name = tokenizer.name().to_owned();
    let mut materializer = Materializer::new(tokenizer)
        .map_err(|error| Failure::usage(format!("the tokenizer {name}: {error}")))?
        .salted(salt);
    if let Some(template) = found.chat_template(loaded)? {
        let target = match loaded.scenario.client.prompt_length {
            PromptLength::Content => PromptTarget::Content,
            PromptLength::Wrapped => PromptTarget::Wrapped,
        };
        says_what_it_is_given(&template)?;
        materializer = materializer.with_template(template, target);
    }
    Ok(materializer.with_media(media(loaded)?))
}

/// A template that drops or doubles what a user says would be measured as something else.
fn says_what_it_is_given(template: &ChatTemplate) -> Result<(), Failure> {
    const MARK: &str = "veeksha chat template check";
    let refuse = |what: String| {
        Err(Failure::usage(format!(
            "the chat template {} cannot be used: {what}",
            template.name()
        )))
    };
    match template.render(&[(Role::User, MARK)], true) {
        Ok(text) => match text.matches(MARK).count() {
            1 => Ok(()),
            0 => refuse("it leaves out what the user says".into()),
            times => refuse(format!("it repeats what the user says {times} times")),
        },
        Err(error) => refuse(format!("it refuses a single user message: {error}")),
    }
}

/// Says of which requests the chat template could not do what was asked.
pub(crate) fn report(materializer: &Materializer) {
    let notes = materializer.template_notes();
    for (count, what) in [
        (
            notes.refused,
            "refused by the chat template and counted without it",
        ),
        (notes.too_short, "too short to make room for the chat template"),
    ] {
        if count > 0 {
            terminal::err(format!(
                "warning: {} {what}; the first: {}",
                terminal::counted(count, "request"),
                notes.first.as_deref().unwrap_or("unknown")
            ));
        }
    }
}

/// The files that messages may name: those that the scenario grants by name, and those in a trace's media folder.
fn media(loaded: &Loaded) -> Result<MediaStore, Failure> {
    let (files, folder) = match &loaded.scenario.session_generator {
        Generator::Shipped { .. } => (BTreeMap::new(), None),
        Generator::Wasm { files, .. } | Generator::Lua { files, .. } => (files.clone(), None),
        Generator::Trace(trace) => {
            let files = match &trace.flavor {
                Flavor::Wasm { files, .. } => files.clone(),
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
            .map_err(|error| Failure::usage(format!("session_generator.media_folder: {error}"))),
        None => Ok(store),
    }
}
