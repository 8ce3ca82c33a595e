//! Parses and validates the JSON of a completion request.
//!
//! Every API's body becomes a [`Completion`]. Sampling parameters do not affect the simulation and
//! are accepted, as are unknown keys. `ignore_eos` and `min_tokens` request an exact length in
//! every API, even in those whose real servers do not support them.

mod bodies;
mod prompt;

use serde::de::DeserializeOwned;

use crate::engine::EngineRequest;
use crate::text::blocks_of;

use super::script::Api;
use bodies::{GenerateBody, MessagesBody, OllamaBody, OpenAiBody, ResponsesBody};

/// Delivery of the answer.
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
    pub(super) max_tokens: Option<u32>,
    /// The tool that must be called.
    pub(super) tool: Option<String>,
    /// True if TGI's details are requested.
    pub(super) details: bool,
    exact: bool,
}

impl Completion {
    /// Parses the body of a request; the error is a message for the client.
    pub(super) fn parse(body: &[u8], api: Api) -> Result<Completion, String> {
        match api {
            Api::Chat => json::<OpenAiBody>(body)?.chat(),
            Api::Text => json::<OpenAiBody>(body)?.text(),
            Api::Responses => json::<ResponsesBody>(body)?.completion(),
            Api::Messages => json::<MessagesBody>(body)?.completion(),
            Api::Generate => json::<GenerateBody>(body)?.completion(Delivery::Whole),
            Api::GenerateStream => json::<GenerateBody>(body)?.completion(Delivery::StreamWithUsage),
            Api::Ollama => json::<OllamaBody>(body)?.completion(),
        }
    }

    /// Converts to an engine request; the driver sets its id.
    pub(super) fn into_engine_request(self, tokens: Vec<u32>, block_size: u32) -> EngineRequest {
        EngineRequest {
            id: 0,
            prompt_tokens: u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            blocks: blocks_of(tokens.into_iter().map(u64::from), block_size),
            max_tokens: self.max_tokens,
            exact: self.exact,
        }
    }

    /// Converts to an engine request with a number of prompt tokens that are not identified.
    pub(super) fn into_counted_request(self, tokens: u32) -> EngineRequest {
        EngineRequest {
            id: 0,
            prompt_tokens: tokens,
            blocks: Vec::new(),
            max_tokens: self.max_tokens,
            exact: self.exact,
        }
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the body is not valid: {error}"))
}

fn exact(ignore_eos: Option<bool>, min_tokens: Option<u32>, max_tokens: Option<u32>) -> Result<bool, String> {
    if ignore_eos.unwrap_or(false) {
        return Ok(true);
    }
    let min_tokens = min_tokens.unwrap_or(0);
    match max_tokens {
        _ if min_tokens == 0 => Ok(false),
        Some(max) if min_tokens == max => Ok(true),
        Some(max) if min_tokens > max => {
            Err(format!("min_tokens is {min_tokens}, more than max_tokens, {max}"))
        }
        _ => Err(
            "min_tokens must equal max_tokens: the simulator draws other lengths; \
                  set ignore_eos for an exact length"
                .into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::MEDIA_TOKENS;

    fn chat(body: &str) -> Result<Completion, String> {
        Completion::parse(body.as_bytes(), Api::Chat)
    }

    #[test]
    fn media_are_distinct_with_fixed_length() {
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
    fn parses_lengths_and_delivery() {
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
    fn parses_lengths_of_each_api() {
        let parse = |api, body: &str| Completion::parse(body.as_bytes(), api);
        let of = |api, body: &str| {
            let completion = parse(api, body).unwrap();
            (completion.max_tokens, completion.exact, completion.delivery)
        };
        use Api::{Generate, GenerateStream, Messages, Ollama, Responses};
        use Delivery::{StreamWithUsage, Whole};
        assert_eq!(
            of(Responses, r#"{"input":"hi","max_output_tokens":4,"stream":true}"#),
            (Some(4), false, StreamWithUsage)
        );
        assert_eq!(
            of(
                Responses,
                r#"{"input":"hi","max_output_tokens":4,"ignore_eos":true}"#
            ),
            (Some(4), true, Whole)
        );
        let hi = r#""messages":[{"role":"user","content":"hi"}]"#;
        assert_eq!(
            of(
                Messages,
                &format!(r#"{{{hi},"max_tokens":4,"min_tokens":4,"stream":true}}"#)
            ),
            (Some(4), true, StreamWithUsage)
        );
        let missing = parse(Messages, &format!("{{{hi}}}")).unwrap_err();
        assert!(missing.contains("max_tokens is missing"), "{missing}");
        let tgi = r#"{"inputs":"hi","parameters":{"max_new_tokens":4,"min_new_tokens":4,"details":true}}"#;
        assert_eq!(of(GenerateStream, tgi), (Some(4), true, StreamWithUsage));
        assert_eq!(of(Generate, tgi), (Some(4), true, Whole));
        assert!(parse(Generate, tgi).unwrap().details);
        assert_eq!(
            of(Generate, r#"{"inputs":"hi"}"#),
            (Some(100), false, Whole),
            "TGI's default"
        );
        assert_eq!(
            of(
                Ollama,
                r#"{"prompt":"hi","options":{"num_predict":4,"ignore_eos":true}}"#
            ),
            (Some(4), true, StreamWithUsage),
            "streamed unless request_head not to"
        );
        assert_eq!(
            of(
                Ollama,
                r#"{"prompt":"hi","stream":false,"options":{"num_predict":-1}}"#
            ),
            (None, false, Whole)
        );
    }

    /// The same conversation is the same prompt in every API that has conversations.
    #[test]
    fn renders_prompts_of_each_api() {
        let text = |api, body: &str| match Completion::parse(body.as_bytes(), api).unwrap().prompt {
            PromptText::Text(text) => text,
            PromptText::Ids(_) => panic!("a text"),
        };
        let expected =
            "<|system|>\nbe brief\n<|user|>\nhi\n<|assistant|>\nyes\n<|user|>\nmore\n<|assistant|>\n";
        let turns = r#"{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"more"}"#;
        assert_eq!(
            text(
                Api::Chat,
                &format!(r#"{{"messages":[{{"role":"system","content":"be brief"}},{turns}]}}"#)
            ),
            expected
        );
        assert_eq!(
            text(
                Api::Messages,
                &format!(
                    r#"{{"system":[{{"type":"text","text":"be brief"}}],"max_tokens":1,"messages":[{turns}]}}"#
                )
            ),
            expected
        );
        let items = turns.replace(
            r#""content":"yes""#,
            r#""content":[{"type":"output_text","text":"yes"}]"#,
        );
        assert_eq!(
            text(
                Api::Responses,
                &format!(r#"{{"instructions":"be brief","input":[{items}]}}"#)
            ),
            expected
        );
        assert_eq!(
            text(Api::Responses, r#"{"input":"hi"}"#),
            "<|user|>\nhi\n<|assistant|>\n"
        );
        assert_eq!(text(Api::Generate, r#"{"inputs":"hi"}"#), "hi");
        assert_eq!(
            text(Api::Ollama, r#"{"system":"be brief","prompt":"hi"}"#),
            "be brief\nhi"
        );
    }

    #[test]
    fn detects_required_tool() {
        let tools = r#""messages":[{"role":"user","content":"hi"}],"max_tokens":1"#;
        let of = |api, rest: &str| {
            let body = format!("{{{tools},{rest}}}");
            Completion::parse(body.as_bytes(), api).unwrap().tool
        };
        let chat = r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"#;
        assert_eq!(
            of(Api::Chat, &format!(r#"{chat}"required""#)).as_deref(),
            Some("f")
        );
        assert_eq!(of(Api::Chat, &format!(r#"{chat}"auto""#)), None);
        let named = format!(r#"{chat}{{"type":"function","function":{{"name":"g"}}}}"#);
        assert_eq!(of(Api::Chat, &named).as_deref(), Some("g"));
        let messages = r#""tools":[{"name":"f"}],"tool_choice":{"type":"any"}"#;
        assert_eq!(of(Api::Messages, messages).as_deref(), Some("f"));
        let responses = r#"{"input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":"required"}"#;
        let tool = Completion::parse(responses.as_bytes(), Api::Responses)
            .unwrap()
            .tool;
        assert_eq!(tool.as_deref(), Some("f"));
    }

    #[test]
    fn refuses_invalid_bodies() {
        for (body, expected) in [
            ("", "the body is not valid"),
            ("[1]", "the body is not valid"),
            ("{}", "messages is missing"),
            (r#"{"messages":[]}"#, "messages is empty"),
            (r#"{"messages":[{"content":"hi"}]}"#, "has no role"),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#,
                "a content part of type `image_url` has neither text nor",
            ),
        ] {
            let message = chat(body).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
        let text = |body: &str| Completion::parse(body.as_bytes(), Api::Text);
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
