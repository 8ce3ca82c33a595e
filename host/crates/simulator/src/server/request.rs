//! The JSON of a completion request, checked and turned into tokens.

use serde::Deserialize;
use serde_json::Value;

use crate::EngineRequest;
use crate::text::{MEDIA_TOKENS, blocks_of};

use super::dialect::Dialect;

/// The keys that matter here. Sampling parameters change nothing about the simulation and are let through, as are unknown keys.
#[derive(Debug, Deserialize)]
pub(super) struct Body {
    pub(super) model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Prompt>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    min_tokens: Option<u32>,
    ignore_eos: Option<bool>,
    n: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    image_url: Option<Value>,
    input_audio: Option<Value>,
    audio_url: Option<Value>,
    video_url: Option<Value>,
}

impl Part {
    /// The part as text. An image, a sound or a video is a word of its own, which depends on its content, and
    /// [`MEDIA_TOKENS`] more: what an engine makes of it takes about as much room.
    fn into_text(self) -> Result<String, String> {
        if let Some(text) = self.text {
            return Ok(text);
        }
        let media = [self.image_url, self.input_audio, self.audio_url, self.video_url];
        match media.into_iter().flatten().next() {
            Some(content) => {
                let identity = crate::text::identity(&content.to_string());
                Ok(format!("<|{identity:016x}|>{}", " the".repeat(MEDIA_TOKENS)))
            }
            None => Err(format!(
                "a content part of type `{}` has neither text nor `image_url`, `input_audio`, `audio_url` or `video_url`",
                self.kind
            )),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
}

/// How the answer is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    Whole,
    Stream,
    StreamWithUsage,
}

/// A prompt whose length is not known yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PromptText {
    Text(String),
    Ids(Vec<u32>),
}

/// A valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    pub(super) model: Option<String>,
    pub(super) delivery: Delivery,
    pub(super) prompt: PromptText,
    max_tokens: Option<u32>,
    exact: bool,
}

impl Completion {
    /// Reads the body of a request; the error is a line for the client.
    pub(super) fn parse(body: &[u8], dialect: Dialect) -> Result<Completion, String> {
        let body: Body =
            serde_json::from_slice(body).map_err(|error| format!("the body is not valid: {error}"))?;
        if body.n.is_some_and(|n| n != 1) {
            return Err("n must be 1: the simulated engine gives one answer per request".into());
        }
        let prompt = match dialect {
            Dialect::Chat => PromptText::Text(render(body.messages.ok_or("messages is missing")?)?),
            Dialect::Text => match body.prompt.ok_or("prompt is missing")? {
                Prompt::Text(text) => PromptText::Text(text),
                Prompt::Ids(ids) => PromptText::Ids(ids),
                Prompt::Texts(mut texts) => match (texts.pop(), texts.is_empty()) {
                    (Some(text), true) => PromptText::Text(text),
                    _ => {
                        return Err(
                            "prompt must be one text: the simulated engine takes no lists of texts".into(),
                        );
                    }
                },
            },
        };
        let max_tokens = body.max_completion_tokens.or(body.max_tokens);
        Ok(Completion {
            model: body.model,
            delivery: match (
                body.stream.unwrap_or(false),
                body.stream_options.unwrap_or_default().include_usage,
            ) {
                (false, _) => Delivery::Whole,
                (true, false) => Delivery::Stream,
                (true, true) => Delivery::StreamWithUsage,
            },
            prompt,
            max_tokens,
            exact: exact(
                body.ignore_eos.unwrap_or(false),
                body.min_tokens.unwrap_or(0),
                max_tokens,
            )?,
        })
    }

    /// The request as the engine takes it; its id is the driver's.
    pub(super) fn into_engine_request(self, tokens: Vec<u32>, block_size: u32) -> EngineRequest {
        EngineRequest {
            id: 0,
            prompt_tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            blocks: blocks_of(tokens.into_iter().map(u64::from), block_size),
            max_tokens: self.max_tokens,
            exact: self.exact,
        }
    }
}

fn exact(ignore_eos: bool, min_tokens: u32, max_tokens: Option<u32>) -> Result<bool, String> {
    if ignore_eos {
        return Ok(true);
    }
    match max_tokens {
        _ if min_tokens == 0 => Ok(false),
        Some(max) if min_tokens == max => Ok(true),
        Some(max) if min_tokens > max => {
            Err(format!("min_tokens is {min_tokens}, more than max_tokens, {max}"))
        }
        _ => Err(
            "min_tokens must equal max_tokens: the simulated engine draws other lengths itself; \
                  set ignore_eos for an exact length"
                .into(),
        ),
    }
}

/// The chat template: `<|ROLE|>`, a line feed, the text, a line feed for each message, and the answer's role at the end. A later
/// turn of a conversation therefore begins with all of the earlier one.
fn render(messages: Vec<Message>) -> Result<String, String> {
    if messages.is_empty() {
        return Err("messages is empty: it needs at least one message".into());
    }
    let mut text = String::new();
    for message in messages {
        text.push_str("<|");
        text.push_str(&message.role);
        text.push_str("|>\n");
        match message.content {
            None => {}
            Some(Content::Text(content)) => text.push_str(&content),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    text.push_str(&part.into_text()?);
                }
            }
        }
        if let Some(calls) = message.tool_calls {
            text.push_str(&calls.to_string());
        }
        text.push('\n');
    }
    text.push_str("<|assistant|>\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: &str) -> Result<Completion, String> {
        Completion::parse(body.as_bytes(), Dialect::Chat)
    }

    #[test]
    fn media_are_names_of_their_own_and_a_fixed_length() {
        let prompt = |url: &str| {
            let body = format!(
                r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"see"}},
                    {{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]}}"#
            );
            match chat(&body).unwrap().prompt {
                PromptText::Text(text) => text,
                PromptText::Ids(_) => panic!("a chat is text"),
            }
        };
        assert_eq!(prompt("data:a"), prompt("data:a"));
        assert_ne!(prompt("data:a"), prompt("data:b"));
        assert_eq!(prompt("data:a").matches(" the").count(), MEDIA_TOKENS);
        assert!(prompt("data:a").starts_with("<|user|>\nsee<|"));
    }

    #[test]
    fn a_conversation_is_a_prefix_of_its_next_turn() {
        let one = chat(r#"{"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
        let two = chat(
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]},
                {"role":"assistant","content":"yes"},{"role":"user","content":"more"}]}"#,
        )
        .unwrap();
        let (PromptText::Text(one), PromptText::Text(two)) = (one.prompt, two.prompt) else {
            panic!()
        };
        assert_eq!(one, "<|user|>\nhi\n<|assistant|>\n");
        assert_eq!(two, format!("{one}yes\n<|user|>\nmore\n<|assistant|>\n"));
    }

    #[test]
    fn lengths_and_delivery() {
        let body = |rest: &str| {
            chat(&format!(
                r#"{{"messages":[{{"role":"user","content":"hi"}}]{rest}}}"#
            ))
        };
        let plain = body("").unwrap();
        assert_eq!(
            (plain.max_tokens, plain.exact, plain.delivery),
            (None, false, Delivery::Whole)
        );
        let all = body(
            r#","max_tokens":1,"max_completion_tokens":5,"ignore_eos":true,"stream":true,"temperature":0"#,
        );
        let all = all.unwrap();
        assert_eq!(
            (all.max_tokens, all.exact, all.delivery),
            (Some(5), true, Delivery::Stream)
        );
        let usage =
            body(r#","stream":true,"stream_options":{"include_usage":true},"min_tokens":3,"max_tokens":3"#);
        let usage = usage.unwrap();
        assert_eq!((usage.exact, usage.delivery), (true, Delivery::StreamWithUsage));
        for (rest, expected) in [
            (r#","n":2"#, "n must be 1"),
            (
                r#","min_tokens":3,"max_tokens":2"#,
                "min_tokens is 3, more than max_tokens, 2",
            ),
            (r#","min_tokens":3"#, "min_tokens must equal"),
            (r#","max_tokens":-1"#, "the body is not valid"),
            (r#","stream":"yes""#, "the body is not valid"),
        ] {
            let message = body(rest).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn bad_bodies_are_refused_in_words() {
        for (body, expected) in [
            ("", "the body is not valid"),
            ("[1]", "the body is not valid"),
            ("{}", "messages is missing"),
            (r#"{"messages":[]}"#, "messages is empty"),
            (r#"{"messages":[{"content":"hi"}]}"#, "missing field `role`"),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#,
                "a content part of type `image_url` has neither text nor",
            ),
        ] {
            let message = chat(body).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let text = |body: &str| Completion::parse(body.as_bytes(), Dialect::Text);
        assert!(text("{}").unwrap_err().contains("prompt is missing"));
        assert!(text(r#"{"prompt":["a","b"]}"#).unwrap_err().contains("one text"));
        assert_eq!(
            text(r#"{"prompt":["a"]}"#).unwrap().prompt,
            PromptText::Text("a".into())
        );
        assert_eq!(
            text(r#"{"prompt":[1,2]}"#).unwrap().prompt,
            PromptText::Ids(vec![1, 2])
        );
    }
}
