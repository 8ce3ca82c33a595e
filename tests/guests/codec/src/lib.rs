//! A well-behaved endpoint codec, whose events are words: `content hello` is visible text,
//! `tool 2 id name {}` a piece of a call, and so on through every kind of part; `;` separates
//! the parts of one event, and an empty event has none.
//!
//! `{"framing": "lines"}` (also `event-stream`, `whole`): how answers are cut.

wit_bindgen::generate!({
    inline: "
        package fixtures:codec;
        world codec {
            export veeksha:plugin/endpoint-codec@0.2.0;
        }
    ",
    path: "../../../wit/0.2.0",
    generate_all,
});

use exports::veeksha::plugin::endpoint_codec::{
    Codec, Descriptor, Endpoint, Error, Framing, Guest, GuestCodec, Part, Parts, Refusal, TokenProbabilities,
    ToolPiece, Usage,
};

struct Plugin;

struct Words {
    framing: Framing,
}

impl Guest for Plugin {
    type Codec = Words;

    fn describe() -> Descriptor {
        Descriptor {
            name: "codec".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "events as words".into(),
            config_schema: r#"{"type": "object"}"#.into(),
        }
    }
}

impl GuestCodec for Words {
    fn open(config: String) -> Result<Codec, Error> {
        let framing = match config.rsplit('"').nth(1) {
            Some("event-stream") => Framing::EventStream,
            Some("lines") => Framing::Lines,
            Some("whole") => Framing::Whole,
            other => {
                return Err(Error {
                    code: "no-framing".into(),
                    message: format!("`{}` is not a framing", other.unwrap_or_default()),
                    hint: Some("try `lines`".into()),
                    path: Some("/framing".into()),
                });
            }
        };
        Ok(Codec::new(Words { framing }))
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint {
            path: "v2/words".into(),
            headers: vec![("x-words".into(), "all of them".into())],
            request: r#"{"text": "{{prompt}}", "limit": "{{max_tokens}}"}"#.into(),
            framing: self.framing,
        }
    }

    fn decode(&self, bytes: Vec<u8>, ends: Vec<u32>) -> Result<Parts, Error> {
        let mut said = Parts {
            parts: Vec::new(),
            ends: Vec::new(),
        };
        let mut start = 0;
        for end in ends {
            let event = String::from_utf8_lossy(&bytes[start..end as usize]);
            start = end as usize;
            for words in event.split(';').filter(|words| !words.is_empty()) {
                said.parts.push(part(words).ok_or_else(|| Error {
                    code: "event".into(),
                    message: format!("`{words}` is not a part"),
                    hint: None,
                    path: None,
                })?);
            }
            said.ends.push(said.parts.len() as u32);
        }
        Ok(said)
    }
}

fn part(words: &str) -> Option<Part> {
    let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
    let mut rest = rest.splitn(4, ' ');
    let mut word = || rest.next().map(str::to_owned);
    Some(match kind {
        "role" => Part::Role,
        "reasoning" => Part::Reasoning(word()?),
        "content" => Part::Content(word()?),
        "tool" => Part::Tool(ToolPiece {
            index: word()?.parse().ok()?,
            id: word()?,
            name: word()?,
            arguments: word()?,
        }),
        "finish" => Part::Finish(word()?),
        "usage" => Part::Usage(Usage {
            prompt: word()?.parse().ok()?,
            completion: word()?.parse().ok()?,
            cached: word()?.parse().ok(),
            reasoning: word()?.parse().ok(),
        }),
        "signature" => Part::Signature(word()?),
        "log" => Part::LogProbabilities(TokenProbabilities {
            logarithms: vec![word()?.parse().ok()?],
            greedy: word().iter().map(|word| word == "best").collect(),
        }),
        "id" => Part::ResponseId(word()?),
        "done" => Part::Done,
        "comment" => Part::Comment,
        "error" => Part::Error(Refusal {
            code: word()?.parse().ok(),
            message: word()?,
        }),
        _ => return None,
    })
}

export!(Plugin);
