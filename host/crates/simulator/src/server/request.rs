//! Parses and validates the JSON of a completion request.
//!
//! Every API's body becomes a [`Completion`]. Sampling parameters do not affect the simulation and
//! are accepted, as are unknown keys. `ignore_eos` and `min_tokens` request an exact length in
//! every API, even in those whose real servers do not support them.

mod bodies;
mod prompt;

use serde::de::DeserializeOwned;

use super::completion::Completion;
use super::delivery_mode::DeliveryMode;
use super::served_api::ServedApi;
use bodies::{GenerateBody, MessagesBody, OllamaBody, OpenAiBody, ResponsesBody};

impl Completion {
    /// Parses the body of a request; the error is a message for the client.
    pub(super) fn parse(body: &[u8], api: ServedApi) -> Result<Completion, String> {
        match api {
            ServedApi::Chat => json::<OpenAiBody>(body)?.chat(),
            ServedApi::Text => json::<OpenAiBody>(body)?.text(),
            ServedApi::Responses => json::<ResponsesBody>(body)?.completion(),
            ServedApi::Messages => json::<MessagesBody>(body)?.completion(),
            ServedApi::Generate => json::<GenerateBody>(body)?.completion(DeliveryMode::Whole),
            ServedApi::GenerateStream => {
                json::<GenerateBody>(body)?.completion(DeliveryMode::StreamWithUsage)
            }
            ServedApi::Ollama => json::<OllamaBody>(body)?.completion(),
        }
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the body is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::completion::PromptText;
    use crate::text::MEDIA_TOKENS;

    fn chat(body: &str) -> Result<Completion, String> {
        Completion::parse(body.as_bytes(), ServedApi::Chat)
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
            (None, false, DeliveryMode::Whole)
        );
        let all = body(
            r#","max_tokens":1,"max_completion_tokens":5,"ignore_eos":true,"stream":true,"temperature":0"#,
        );
        let all = all.unwrap();
        assert_eq!(
            (all.max_tokens, all.exact, all.delivery),
            (Some(5), true, DeliveryMode::Stream)
        );
        let usage =
            body(r#","stream":true,"stream_options":{"include_usage":true},"min_tokens":3,"max_tokens":3"#);
        let usage = usage.unwrap();
        assert_eq!(
            (usage.exact, usage.delivery),
            (true, DeliveryMode::StreamWithUsage)
        );
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
        use DeliveryMode::{StreamWithUsage, Whole};
        use ServedApi::{Generate, GenerateStream, Messages, Ollama, Responses};
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
            "streamed unless asked not to"
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
                ServedApi::Chat,
                &format!(r#"{{"messages":[{{"role":"system","content":"be brief"}},{turns}]}}"#)
            ),
            expected
        );
        assert_eq!(
            text(
                ServedApi::Messages,
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
                ServedApi::Responses,
                &format!(r#"{{"instructions":"be brief","input":[{items}]}}"#)
            ),
            expected
        );
        assert_eq!(
            text(ServedApi::Responses, r#"{"input":"hi"}"#),
            "<|user|>\nhi\n<|assistant|>\n"
        );
        assert_eq!(text(ServedApi::Generate, r#"{"inputs":"hi"}"#), "hi");
        assert_eq!(
            text(ServedApi::Ollama, r#"{"system":"be brief","prompt":"hi"}"#),
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
            of(ServedApi::Chat, &format!(r#"{chat}"required""#)).as_deref(),
            Some("f")
        );
        assert_eq!(of(ServedApi::Chat, &format!(r#"{chat}"auto""#)), None);
        let named = format!(r#"{chat}{{"type":"function","function":{{"name":"g"}}}}"#);
        assert_eq!(of(ServedApi::Chat, &named).as_deref(), Some("g"));
        let messages = r#""tools":[{"name":"f"}],"tool_choice":{"type":"any"}"#;
        assert_eq!(of(ServedApi::Messages, messages).as_deref(), Some("f"));
        let responses = r#"{"input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":"required"}"#;
        let tool = Completion::parse(responses.as_bytes(), ServedApi::Responses)
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
        let text = |body: &str| Completion::parse(body.as_bytes(), ServedApi::Text);
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
