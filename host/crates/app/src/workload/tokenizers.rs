//! Selection of a run's tokenizer and chat template.

use std::path::{Path, PathBuf};

use veeksha_model::printable;
use veeksha_prompt::{ChatTemplate, Tokenizer};
use veeksha_scenario::{Client, Scenario};

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;

/// Name of the embedded tokenizer.
const EMBEDDED: &str = "embedded";

/// Describes the tokenizer of a run, as part of a sentence.
pub(crate) fn describe(client: &Client) -> String {
    let simulated = client.is_simulated();
    match client.tokenizer.as_deref() {
        Some(EMBEDDED) | None if simulated => {
            "the embedded tokenizer, which the simulator uses too".to_owned()
        }
        Some(EMBEDDED) => "the embedded tokenizer, which may differ from the model's".to_owned(),
        Some(name) => format!("the tokenizer {name}"),
        // The configuration of the run may be unreadable; nothing is known then.
        None if client.model.is_none() => {
            "a tokenizer that the configuration of the run does not name".to_owned()
        }
        None => "the model's own tokenizer".to_owned(),
    }
}

/// Tokenizer of a run.
pub struct Found {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// File or folder of the tokenizer; `None` for the embedded one.
    path: Option<PathBuf>,
}

impl Found {
    /// Sets the embedded tokenizer in a scenario that names none, so that `config.yml` identifies
    /// it: the model's own tokenizer may be on this machine when the run is evaluated again.
    pub(crate) fn note_in(&self, scenario: &mut Scenario) {
        if self.path.is_none() && scenario.client.tokenizer.is_none() {
            scenario.client.tokenizer = Some(EMBEDDED.to_owned());
        }
    }

    /// Returns the chat template to apply, if the scenario requests one.
    pub(crate) fn chat_template(&self, loaded: &Loaded) -> Result<Option<ChatTemplate>, CommandFailure> {
        let client = &loaded.scenario.client;
        if !client.apply_chat_template {
            return Ok(None);
        }
        let template = match (&client.chat_template, &self.path) {
            (Some(file), _) => ChatTemplate::load(&loaded.folder().join(file))
                .map_err(|error| CommandFailure::usage(format!("client.chat_template: {error}")))?,
            (None, Some(path)) => ChatTemplate::beside(path).map_err(|error| {
                CommandFailure::usage(format!("client.apply_chat_template: {error}"))
                    .hinted("set client.chat_template to a template file")
            })?,
            (None, None) => {
                return Err(CommandFailure::usage(
                    "client.apply_chat_template: the embedded tokenizer has no chat template",
                )
                .hinted("set client.tokenizer to the tokenizer of the model, or client.chat_template to a template file"));
            }
        };
        Ok(Some(template))
    }
}

/// Returns the tokenizer that the scenario names; else the model's tokenizer, if it is on this
/// machine; else the embedded one.
pub fn tokenizer(loaded: &Loaded, notes: &mut Vec<String>) -> Result<Found, CommandFailure> {
    let client = &loaded.scenario.client;
    let embedded = || {
        let tokenizer = Tokenizer::embedded().map_err(CommandFailure::internal)?;
        Ok(Found {
            tokenizer,
            path: None,
        })
    };
    let open = |path: &Path| {
        let tokenizer = Tokenizer::load(path)
            .map_err(|error| CommandFailure::usage(format!("client.tokenizer: {error}")))?;
        Ok(Found {
            tokenizer,
            path: Some(path.to_owned()),
        })
    };
    let on_this_machine = |name: &str| veeksha_prompt::hub::cached(name, loaded.cache());
    match client.tokenizer.as_deref() {
        Some(EMBEDDED) => embedded(),
        Some(name) if loaded.folder().join(name).exists() => open(&loaded.folder().join(name)),
        Some(name) if Path::new(name).exists() => open(Path::new(name)),
        Some(name) if veeksha_prompt::hub::is_hub_name(name) => match on_this_machine(name) {
            Some(path) => open(&path),
            None => open(&download(name, loaded)?),
        },
        Some(name) => Err(
            CommandFailure::usage(format!("client.tokenizer: {name} does not exist"))
                .hinted("set a tokenizer.json, a folder with one, or a hub name such as `org/model`"),
        ),
        // The simulator also uses the embedded tokenizer.
        None if client.is_simulated() => embedded(),
        None => {
            let model = client.model.as_deref().unwrap_or_default();
            if let Some(path) = beside(Path::new(model)).or_else(|| on_this_machine(model)) {
                return open(&path);
            }
            let why = match model {
                "" => "the model is not known (a run asks the server, and takes the model's own if it is on this machine)".to_owned(),
                model => format!("that of {} is not on this machine", printable(model)),
            };
            notes.push(format!(
                "prompts are measured with the embedded tokenizer: {why}; --client.tokenizer names a tokenizer.json, a model's \
                 folder or a hub name"
            ));
            embedded()
        }
    }
}

/// Returns the tokenizer in a model's folder, or next to a model's file.
fn beside(model: &Path) -> Option<PathBuf> {
    let folder = if model.is_dir() {
        model
    } else {
        model.parent().filter(|_| model.is_file())?
    };
    Some(folder.join("tokenizer.json")).filter(|path| path.is_file())
}

fn download(name: &str, loaded: &Loaded) -> Result<PathBuf, CommandFailure> {
    let Some(cache) = loaded.cache() else {
        return Err(
            CommandFailure::usage(format!("client.tokenizer: {name} is not on this machine"))
                .hinted("it cannot be downloaded without a cache; set the path of a tokenizer.json"),
        );
    };
    let url = veeksha_prompt::hub::url(name);
    let file = veeksha_prompt::hub::cache_file(name, cache);
    let token = std::env::var("HF_TOKEN")
        .ok()
        .filter(|value| !value.is_empty())
        .map(veeksha_transport::ApiKey::new);
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(|error| {
            CommandFailure::internal(format!("cannot create {}: {error}", parent.display()))
        })?;
    }
    veeksha_transport::untimed::download(&url, token.as_ref(), &file).map_err(|error| {
        CommandFailure::usage(format!(
            "client.tokenizer: {name} is not on this machine and cannot be downloaded: {error}"
        ))
        .hinted("set the path of a tokenizer.json, or `embedded`")
    })?;
    Ok(file)
}
