//! Location of a model's chat template.
//!
//! In a model's folder, in the order of Hugging Face: `chat_template.jinja` (the text itself), the
//! key `chat_template` of `tokenizer_config.json`, and the same key of `chat_template.json`
//! (processors). If the value is a list of named templates, the one called `default` is used.
//! Control tokens come from `tokenizer_config.json`, and missing ones from
//! `special_tokens_map.json`.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ChatTemplate, SpecialTokens};
use crate::error::PromptError;
use crate::file;

/// Maximum size of a template or of a file that may contain one.
const MAX_FILE_BYTES: u64 = 16 << 20;
const CONFIG: &str = "tokenizer_config.json";
const SPECIAL: &str = "special_tokens_map.json";
const JINJA: &str = "chat_template.jinja";
const PROCESSOR: &str = "chat_template.json";

impl ChatTemplate {
    /// Loads the template next to a tokenizer: `tokenizer` is its `tokenizer.json` or the folder
    /// that contains it.
    pub fn beside(tokenizer: &Path) -> Result<Self, PromptError> {
        let folder = folder_of(tokenizer);
        let tokens = special_tokens(&folder)?;
        let jinja = folder.join(JINJA);
        if let Some(text) = read(&jinja)? {
            return Self::from_text(&jinja.display().to_string(), &text, tokens);
        }
        for file in [CONFIG, PROCESSOR] {
            let path = folder.join(file);
            if let Some(json) = read_json(&path)?
                && let Some(text) = template_in(&json, &path)?
            {
                return Self::from_text(&path.display().to_string(), &text, tokens);
            }
        }
        Err(PromptError::NoTemplate { path: folder })
    }

    /// Loads a template by path: a Jinja file, a `.json` file with the key `chat_template`, or a
    /// model's folder. Control tokens come from the files next to it.
    pub fn load(path: &Path) -> Result<Self, PromptError> {
        if path.is_dir() {
            return Self::beside(path);
        }
        let name = path.display().to_string();
        let tokens = special_tokens(&folder_of(path))?;
        let missing = || PromptError::NoTemplate {
            path: path.to_path_buf(),
        };
        let is_json = path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let text = if is_json {
            let json = read_json(path)?.ok_or_else(missing)?;
            template_in(&json, path)?.ok_or_else(missing)?
        } else {
            read(path)?.ok_or_else(missing)?
        };
        Self::from_text(&name, &text, tokens)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Returns the text of a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, PromptError> {
    let text = file::read(path, MAX_FILE_BYTES).and_then(|bytes| {
        String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    });
    match text {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PromptError::UnreadableTemplate {
            path: path.to_path_buf(),
            source,
        }),
    }
}

fn read_json(path: &Path) -> Result<Option<Value>, PromptError> {
    let Some(text) = read(path)? else { return Ok(None) };
    let json = serde_json::from_str(&text).map_err(|error| PromptError::Template {
        name: path.display().to_string(),
        reason: format!("not JSON: {error}"),
    })?;
    Ok(Some(json))
}

/// Returns the value of `chat_template`: a text, or the one named `default` of a list.
fn template_in(json: &Value, path: &Path) -> Result<Option<String>, PromptError> {
    let refuse = |reason: &str| PromptError::Template {
        name: path.display().to_string(),
        reason: reason.to_string(),
    };
    match json.get("chat_template") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(list)) => {
            let default = list
                .iter()
                .find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"));
            default
                .and_then(|entry| entry.get("template"))
                .and_then(Value::as_str)
                .map(|text| Some(text.to_string()))
                .ok_or_else(|| {
                    refuse("`chat_template` lists no template named `default`; give the template's file")
                })
        }
        Some(_) => Err(refuse(
            "`chat_template` must be a text or a list of named templates",
        )),
    }
}

/// Returns the control tokens named by the files of a folder.
fn special_tokens(folder: &Path) -> Result<SpecialTokens, PromptError> {
    let mut tokens = SpecialTokens::new();
    for file in [CONFIG, SPECIAL] {
        let Some(Value::Object(fields)) = read_json(&folder.join(file))? else {
            continue;
        };
        for (name, value) in fields.iter().filter(|(name, _)| name.ends_with("_token")) {
            // A text, or the object of a manually added token.
            let text = value
                .as_str()
                .or_else(|| value.get("content").and_then(Value::as_str));
            if let Some(text) = text {
                tokens.entry(name.clone()).or_insert_with(|| text.to_string());
            }
        }
    }
    Ok(tokens)
}
