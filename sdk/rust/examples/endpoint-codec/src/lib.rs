//! An API that streams JSON objects as server-sent events: here the chat API of OpenAI, of which it
//! reads text, finish reason and usage. Change the request and `decode` to match another API.

use veeksha_plugin::codec::{self, Endpoint, EndpointCodec, Parts};
use veeksha_plugin::{Error, Plugin, Usage};

struct ChatStream;

#[derive(serde::Deserialize)]
struct Event {
    choices: Vec<Choice>,
    usage: Option<Tokens>,
}

#[derive(serde::Deserialize)]
struct Choice {
    delta: Delta,
    finish_reason: Option<String>,
}

#[derive(serde::Deserialize)]
struct Delta {
    content: Option<String>,
}

#[derive(serde::Deserialize)]
struct Tokens {
    prompt_tokens: u32,
    completion_tokens: u32,
}

impl Plugin for ChatStream {
    type Config = ();
    const NAME: &'static str = "chat_stream";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "the text of an OpenAI chat stream and nothing else";
}

impl EndpointCodec for ChatStream {
    fn open(_config: ()) -> Result<Self, Error> {
        Ok(ChatStream)
    }

    fn endpoint(&self) -> Endpoint {
        // A string that is a placeholder alone becomes its value. The path follows the target's
        // address.
        let body = r#"{"model": "{{model}}", "messages": "{{messages}}", "max_tokens": "{{max_tokens}}",
            "stream": true, "stream_options": {"include_usage": true}}"#;
        Endpoint::event_stream("chat/completions", body)
    }

    fn decode(&self, event: &[u8], parts: &mut Parts) -> Result<(), Error> {
        if event == b"[DONE]" {
            parts.done();
            return Ok(());
        }
        let event: Event = codec::json(event)?;
        for choice in event.choices {
            match choice.delta.content {
                Some(text) if !text.is_empty() => parts.content(text),
                _ => parts.comment(),
            }
            if let Some(reason) = choice.finish_reason {
                parts.finish(reason);
            }
        }
        if let Some(tokens) = event.usage {
            parts.usage(Usage {
                prompt: tokens.prompt_tokens,
                completion: tokens.completion_tokens,
                cached: None,
                reasoning: None,
            });
        }
        Ok(())
    }
}

veeksha_plugin::export_endpoint_codec!(ChatStream);
