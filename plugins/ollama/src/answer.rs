//! The parts in a line of an answer.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use veeksha_plugin::codec::{self, Parts};
use veeksha_plugin::{Error, Usage};

/// A line of `/api/chat` (which has `message`) or of `/api/generate` (which has `response`). The
/// server leaves out counts that are 0 and texts that it has nothing to say in.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    response: Cow<'a, str>,
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u32>,
    eval_count: Option<u32>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Cow<'a, str>,
    #[serde(borrow, default)]
    thinking: Cow<'a, str>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    /// Which call of the answer it is. Servers that do not number them send all calls of an answer
    /// in one line.
    index: Option<u32>,
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Adds the parts of a line.
pub(crate) fn decode(event: &[u8], parts: &mut Parts) -> Result<(), Error> {
    let line: Line = codec::json(event)?;
    if let Some(message) = line.error {
        parts.error(message, None);
        return Ok(());
    }
    let (content, thinking, calls) = match line.message {
        Some(Message {
            content,
            thinking,
            tool_calls,
        }) => (content, thinking, tool_calls.unwrap_or_default()),
        None => (line.response, line.thinking, Vec::new()),
    };
    let silent = thinking.is_empty() && content.is_empty() && calls.is_empty();
    if !thinking.is_empty() {
        parts.reasoning(thinking);
    }
    if !content.is_empty() {
        parts.content(content);
    }
    for (place, call) in (0..).zip(calls) {
        let Function {
            index,
            name,
            arguments,
        } = call.function;
        parts.tool(index.unwrap_or(place), call.id, name, arguments.to_string());
    }
    if line.done {
        // Until version 0.1.38 it did not say why.
        parts.finish(line.done_reason.unwrap_or_else(|| "done".into()));
        if let Some(prompt) = line.prompt_eval_count {
            parts.usage(Usage {
                prompt,
                completion: line.eval_count.unwrap_or(0),
                cached: None,
                reasoning: None,
            });
        }
        parts.done();
    } else if silent {
        parts.role();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use veeksha_plugin::codec::{EndpointCodec, Part, ToolPiece};

    use super::*;
    use crate::Ollama;

    fn decoded(line: &str) -> Vec<Part> {
        let ollama = Ollama::open(Default::default()).unwrap();
        codec::decode(&ollama, &[line.as_bytes()]).unwrap().remove(0)
    }

    fn content(text: &str) -> Vec<Part> {
        vec![Part::Content(text.into())]
    }

    /// The lines that Ollama's description of its API shows for a streamed chat.
    #[test]
    fn a_chat_as_the_description_shows_it() {
        let line = r#"{"model":"llama3.2","created_at":"2023-08-04T08:52:19.385406455-07:00","message":{"role":"assistant","content":"The","images":null},"done":false}"#;
        assert_eq!(decoded(line), content("The"));
        let last = r#"{"model":"llama3.2","created_at":"2023-08-04T19:22:45.499127Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":4883583458,"load_duration":1334875,"prompt_eval_count":26,"prompt_eval_duration":342546000,"eval_count":282,"eval_duration":4535599000}"#;
        let usage = Usage {
            prompt: 26,
            completion: 282,
            cached: None,
            reasoning: None,
        };
        assert_eq!(
            decoded(last),
            [Part::Finish("stop".into()), Part::Usage(usage), Part::Done]
        );
    }

    /// The same for one text: the last line may carry a `context` of token ids, which is not needed
    /// here.
    #[test]
    fn a_generation_as_the_description_shows_it() {
        let line = r#"{"model":"llama3.2","created_at":"2023-08-04T08:52:19.385406455-07:00","response":"The","done":false}"#;
        assert_eq!(decoded(line), content("The"));
        let last = r#"{"model":"llama3.2","created_at":"2023-08-04T19:22:45.499127Z","response":"","done":true,"done_reason":"length","context":[1,2,3],"total_duration":10706818083,"load_duration":6338219291,"prompt_eval_count":26,"prompt_eval_duration":130079000,"eval_count":259,"eval_duration":4232710000}"#;
        let parts = decoded(last);
        assert_eq!(parts[0], Part::Finish("length".into()));
        assert!(matches!(&parts[1], Part::Usage(usage) if (usage.prompt, usage.completion) == (26, 259)));
    }

    #[test]
    fn separates_thinking_from_the_answer() {
        let thought = Part::Reasoning("Hm".into());
        assert_eq!(
            decoded(r#"{"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}"#),
            std::slice::from_ref(&thought)
        );
        assert_eq!(
            decoded(r#"{"response":"","thinking":"Hm","done":false}"#),
            std::slice::from_ref(&thought)
        );
        assert_eq!(
            decoded(r#"{"message":{"role":"assistant","content":"A","thinking":"Hm"},"done":false}"#),
            [thought, Part::Content("A".into())]
        );
    }

    #[test]
    fn escapes_are_read_as_json_has_them() {
        assert_eq!(
            decoded("{\"response\":\"a\\n\\\"b\\\" \\u00e9\\ud83d\\ude00 ü\",\"done\":false}"),
            content("a\n\"b\" é😀 ü")
        );
    }

    #[test]
    fn calls_have_the_servers_numbers_or_their_place() {
        let piece = |index, id: &str, name: &str, arguments: &str| {
            Part::Tool(ToolPiece {
                index,
                id: id.into(),
                name: name.into(),
                arguments: arguments.into(),
            })
        };
        let old = r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"get_current_weather","arguments":{"format":"celsius","location":"Paris, FR"}}},{"function":{"name":"now","arguments":{}}}]},"done":false}"#;
        assert_eq!(
            decoded(old),
            [
                piece(
                    0,
                    "",
                    "get_current_weather",
                    r#"{"format":"celsius","location":"Paris, FR"}"#
                ),
                piece(1, "", "now", "{}")
            ]
        );
        let numbered = r#"{"message":{"role":"assistant","content":"","tool_calls":[{"id":"call_x","function":{"index":3,"name":"now","arguments":{"zone":"UTC"}}}]},"done":false}"#;
        assert_eq!(
            decoded(numbered),
            [piece(3, "call_x", "now", r#"{"zone":"UTC"}"#)]
        );
    }

    /// An error in the middle of a stream keeps the status 200 and is a line by itself.
    #[test]
    fn a_failure_in_the_stream_is_the_servers() {
        let refusal = decoded(r#"{"error":"an error was encountered while running the model"}"#);
        assert!(
            matches!(&refusal[..], [Part::Error(refusal)] if refusal.message.starts_with("an error was") && refusal.code.is_none())
        );
    }

    #[test]
    fn absent_fields_stay_absent() {
        assert_eq!(
            decoded(r#"{"message":{"role":"assistant","content":""},"done":false}"#),
            [Part::Role]
        );
        // A prompt that was in the cache: older servers then give no count of it.
        assert_eq!(
            decoded(r#"{"response":"","done":true,"eval_count":5}"#),
            [Part::Finish("done".into()), Part::Done]
        );
        let nothing_generated =
            decoded(r#"{"response":"","done":true,"done_reason":"stop","prompt_eval_count":9}"#);
        assert!(
            matches!(&nothing_generated[1], Part::Usage(usage) if (usage.prompt, usage.completion) == (9, 0))
        );
    }

    #[test]
    fn refuses_lines_of_other_apis() {
        let ollama = Ollama::open(Default::default()).unwrap();
        for line in [
            "",
            "[DONE]",
            "data: {}",
            "{\"done\": 1}",
            "{\"response\": \"",
            "7",
        ] {
            let error = codec::decode(&ollama, &[line.as_bytes()]).unwrap_err();
            assert_eq!(error.code, "event", "{line}");
        }
    }
}
