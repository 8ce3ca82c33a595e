//! Definitions of functions: read from JSON text, or generated with an exact number of tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use veeksha_model::{FunctionDefinition, PreparedToolForm, PreparedTools, Seed, ToolDefinitions};
use veeksha_stats::RandomStream;

use crate::compose::{PromptPiece, repaired};
use crate::error::PromptError;
use crate::salt::TextSalt;
use crate::synthetic::SyntheticRun;
use crate::writer::{MAX_TOKENS, MessageWriter};

/// Maximum number of generated functions.
const MAX_FUNCTIONS: u32 = 1_024;
/// Tokens of descriptions for which a function has one more parameter.
const TOKENS_PER_PARAMETER: u32 = 40;
/// Maximum number of parameters of a generated function.
const MAX_PARAMETERS: u32 = 8;
/// Maximum number of rounds in which all descriptions change.
const ROUNDS: u32 = 6;
/// Entries at which the cache is cleared: workloads have few sets of functions.
const CACHED_SETS: usize = 128;

/// Definitions that were made before, by what was asked for.
#[derive(Debug, Default)]
pub(crate) struct DefinitionCache(Mutex<HashMap<ToolDefinitions, Arc<PreparedTools>>>);

impl DefinitionCache {
    /// Returns definitions that can be sent. The error is a message for the author of the workload.
    pub(crate) fn prepared(
        &self,
        writer: &MessageWriter,
        salt: TextSalt,
        definitions: &ToolDefinitions,
    ) -> Result<Arc<PreparedTools>, String> {
        // A panic with the lock held leaves at worst an incomplete cache.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = known().get(definitions) {
            return Ok(tools.clone());
        }
        let (form, tokens) = match definitions {
            ToolDefinitions::Definitions(text) => (
                PreparedToolForm::Functions(functions(text)?),
                writer.tokenizer.count(text),
            ),
            ToolDefinitions::Verbatim(text) => {
                array(text)?;
                (
                    PreparedToolForm::Verbatim(text.clone()),
                    writer.tokenizer.count(text),
                )
            }
            ToolDefinitions::Synthetic { seed, count, tokens } => {
                let (text, tokens) = synthetic(writer, salt.apply(*seed), *count, *tokens)?;
                (PreparedToolForm::Functions(functions(&text)?), tokens)
            }
        };
        let mut tools = PreparedTools { form, tokens };
        if tools.is_empty() {
            tools.tokens = 0;
        }
        let tools = Arc::new(tools);
        let mut known = known();
        if known.len() >= CACHED_SETS {
            known.clear();
        }
        known.insert(definitions.clone(), tools.clone());
        Ok(tools)
    }
}

/// Checks that a text is a JSON array.
fn array(text: &str) -> Result<Vec<&RawValue>, String> {
    serde_json::from_str(text).map_err(|error| format!("`tools` must be a JSON array: {error}"))
}

/// A definition. Other members differ between endpoints, so they are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFunction<'a> {
    name: String,
    description: Option<String>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
}

/// Reads portable definitions.
fn functions(text: &str) -> Result<Vec<FunctionDefinition>, String> {
    let mut functions: Vec<FunctionDefinition> = Vec::new();
    for (number, written) in (1..).zip(array(text)?) {
        let written: WrittenFunction<'_> = serde_json::from_str(written.get()).map_err(|error| {
            format!(
                "definition {number} of `tools` must be an object with `name`, and optionally `description` and \
                 `parameters`: {error}; send another form verbatim"
            )
        })?;
        let parameters = written.parameters.map(|schema| schema.get().to_owned());
        let name = written.name;
        if name.is_empty() {
            return Err(format!("definition {number} of `tools` has an empty name"));
        }
        if functions.iter().any(|function| function.name == name) {
            return Err(format!("`tools` defines `{name}` twice"));
        }
        if parameters.as_ref().is_some_and(|schema| !schema.starts_with('{')) {
            return Err(format!(
                "the `parameters` of the tool `{name}` must be a JSON schema, an object"
            ));
        }
        functions.push(FunctionDefinition {
            name,
            description: written.description,
            parameters,
        });
    }
    Ok(functions)
}

/// Generates definitions, and returns their JSON text and its tokens.
///
/// Names and descriptions are words of the seed; descriptions take up the tokens that names and
/// syntax leave.
fn synthetic(writer: &MessageWriter, seed: Seed, count: u32, tokens: u32) -> Result<(String, u32), String> {
    if !(1..=MAX_FUNCTIONS).contains(&count) {
        return Err(format!(
            "{count} synthetic tools; a request may have 1 to {MAX_FUNCTIONS}"
        ));
    }
    if tokens > MAX_TOKENS {
        return Err(format!(
            "{tokens} tokens of synthetic tools; a request may have {MAX_TOKENS}"
        ));
    }
    let parameters = (1 + tokens / count / TOKENS_PER_PARAMETER).min(MAX_PARAMETERS);
    let mut pieces = pieces(writer, seed, count, parameters);
    let failed = |error: PromptError| error.to_string();
    // With one word in each description.
    let least = writer.count(&writer.build(&pieces)).map_err(failed)?;
    if tokens < least {
        return Err(format!(
            "{count} synthetic tools of {tokens} tokens; their syntax alone needs {least} tokens of this tokenizer"
        ));
    }
    spread(writer, &mut pieces, tokens).map_err(failed)?;
    let (built, counted) = repaired(
        &mut pieces,
        tokens,
        |pieces| writer.build(pieces),
        |built| writer.count(built),
    )
    .map_err(failed)?;
    Ok((built.text.to_string(), counted))
}

/// Lengthens or shortens all descriptions alike until hardly a word is missing. One round suffices
/// if each word is a token.
fn spread(writer: &MessageWriter, pieces: &mut [PromptPiece], tokens: u32) -> Result<(), PromptError> {
    let descriptions = pieces.iter_mut().filter_map(run).count() as i64;
    for _ in 0..ROUNDS {
        let counted = writer.count(&writer.build(pieces))?;
        let mut missing = i64::from(tokens) - i64::from(counted);
        if missing == 0 {
            break;
        }
        for (left, run) in (1..=descriptions).rev().zip(pieces.iter_mut().filter_map(run)) {
            let share = missing / left;
            run.words = (i64::from(run.words) + share).max(1) as u32;
            missing -= share;
        }
    }
    Ok(())
}

fn run(piece: &mut PromptPiece) -> Option<&mut SyntheticRun> {
    match piece {
        PromptPiece::Synthetic(run) => Some(run),
        PromptPiece::Text(_) => None,
    }
}

/// Returns definitions with one word in each description.
fn pieces(writer: &MessageWriter, seed: Seed, count: u32, parameters: u32) -> Vec<PromptPiece> {
    let stream = RandomStream::new(seed.into(), 0, "tools");
    let mut drawn = 0;
    let mut draw = || {
        drawn += 1;
        stream.word(drawn)
    };
    let mut pieces = Vec::new();
    let mut text = String::from("[");
    for function in 0..count {
        let mut word = || writer.words.choose(draw()).trim_start().to_owned();
        text.push_str(&format!(
            "{{\"name\":\"{}_{function}\",\"description\":\"",
            word()
        ));
        let names: Vec<String> = (0..parameters)
            .map(|place| format!("{}_{place}", word()))
            .collect();
        let mut describe = |text: &mut String| {
            let seed = u64::from(draw()) << 32 | u64::from(draw());
            pieces.push(PromptPiece::Text(std::mem::take(text)));
            pieces.push(PromptPiece::synthetic(Seed::from(seed), 1));
        };
        describe(&mut text);
        text.push_str("\",\"parameters\":{\"type\":\"object\",\"properties\":{");
        for (place, name) in names.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            text.push_str(&format!(
                "{comma}\"{name}\":{{\"type\":\"string\",\"description\":\""
            ));
            describe(&mut text);
            text.push_str("\"}");
        }
        text.push_str(&format!("}},\"required\":[\"{}\"]}}}}", names[0]));
        text.push(if function + 1 < count { ',' } else { ']' });
    }
    pieces.push(PromptPiece::Text(text));
    pieces
}
