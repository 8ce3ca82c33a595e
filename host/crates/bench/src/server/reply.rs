//! Bytes of a response in the shape of vLLM 0.32: chunked, one event per chunk, about 230 bytes per
//! token.

use std::ops::Range;

/// Length of the variable part of a response id.
const ID_DIGITS: usize = 16;

const HEAD: &str = "HTTP/1.1 200 OK\r\ndate: Fri, 20 Nov 2026 19:46:02 GMT\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

const BEFORE_ID: &str = r#"data: {"id":"chatcmpl-"#;

const AFTER_ID: &str =
    r#"","object":"chat.completion.chunk","created":1795203963,"model":"bench","choices":["#;

/// Token texts as JSON string contents: of several lengths, with an escape and non-ASCII
/// characters.
const WORDS: [&str; 16] = [
    " io",
    " must",
    " the",
    " streaming",
    " a",
    ",",
    " of",
    "\\n",
    " latency",
    " is",
    " caf\u{e9}",
    ".",
    " tokens",
    " and",
    " re",
    "ality",
];

/// An event as an HTTP chunk, with the position of the response id's digits.
#[derive(Debug)]
struct EventBytes {
    bytes: Vec<u8>,
    id: Range<usize>,
}

impl EventBytes {
    fn of(rest: &str) -> Self {
        let event = format!("{BEFORE_ID}{}{AFTER_ID}{rest}\n\n", "0".repeat(ID_DIGITS));
        let size = format!("{:x}\r\n", event.len());
        let at = size.len() + BEFORE_ID.len();
        EventBytes {
            bytes: format!("{size}{event}\r\n").into_bytes(),
            id: at..at + ID_DIGITS,
        }
    }

    fn write(&self, id: &[u8; ID_DIGITS], out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&self.bytes);
        if let Some(place) = out.get_mut(begin + self.id.start..begin + self.id.end) {
            place.copy_from_slice(id);
        }
    }
}

/// The prepared response of a plan.
#[derive(Debug)]
pub(crate) struct PreparedReply {
    tokens: u32,
    role: EventBytes,
    words: Vec<EventBytes>,
    last: EventBytes,
    usage: EventBytes,
}

impl PreparedReply {
    /// Prepares responses of `tokens` tokens, at least one.
    pub(crate) fn new(tokens: u32) -> Self {
        let tokens = tokens.max(1);
        let words = WORDS
            .iter()
            .map(|word| {
                EventBytes::of(&format!(
                    r#"{{"index":0,"delta":{{"content":"{word}"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}"#
                ))
            })
            .collect();
        PreparedReply {
            tokens,
            role: EventBytes::of(
                r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}"#,
            ),
            words,
            last: EventBytes::of(
                r#"{"index":0,"delta":{"content":" end"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}]}"#,
            ),
            usage: EventBytes::of(&format!(
                r#"],"usage":{{"prompt_tokens":28,"total_tokens":{},"completion_tokens":{tokens},"prompt_tokens_details":{{"cached_tokens":0}}}},"system_fingerprint":"vllm-0.32.0-bench"}}"#,
                u64::from(tokens) + 28
            )),
        }
    }

    /// Appends token `index`: with the head and the role before the first, usage and the end after
    /// the last.
    pub(crate) fn write_token(&self, index: u32, answer: u64, out: &mut Vec<u8>) {
        let id = digits(answer);
        if index == 0 {
            out.extend_from_slice(HEAD.as_bytes());
            self.role.write(&id, out);
        }
        if index + 1 < self.tokens {
            // The list is not empty, so the remainder is a valid index.
            if let Some(word) = self.words.get(index as usize % self.words.len().max(1)) {
                word.write(&id, out);
            }
            return;
        }
        self.last.write(&id, out);
        self.usage.write(&id, out);
        out.extend_from_slice(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }

    /// Appends a whole response.
    pub(crate) fn write_whole(&self, answer: u64, out: &mut Vec<u8>) {
        for index in 0..self.tokens {
            self.write_token(index, answer, out);
        }
    }
}

/// Formats a number as sixteen hexadecimal digits.
fn digits(number: u64) -> [u8; ID_DIGITS] {
    std::array::from_fn(|place| {
        let digit = (number >> (4 * (ID_DIGITS - 1 - place))) as u8 & 15;
        if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn digits_match_the_standard_library() {
        for number in [0, 1, 0xdead_beef, u64::MAX] {
            assert_eq!(digits(number), format!("{number:016x}").as_bytes());
        }
    }

    /// Parses the events of a reply independently, by the HTTP/1.1 and server-sent events
    /// specifications.
    fn events(reply: &[u8]) -> Vec<String> {
        let text = std::str::from_utf8(reply).expect("text");
        let (_, mut body) = text.split_once("\r\n\r\n").expect("a head");
        let mut data = String::new();
        loop {
            let (size, rest) = body.split_once("\r\n").expect("a chunk's size");
            let size = usize::from_str_radix(size, 16).expect("a size");
            if size == 0 {
                assert_eq!(rest, "\r\n");
                break;
            }
            data.push_str(&rest[..size]);
            body = rest[size..].strip_prefix("\r\n").expect("a chunk's end");
        }
        data.split_terminator("\n\n")
            .map(|event| event.strip_prefix("data: ").expect("an event").to_owned())
            .collect()
    }

    #[test]
    fn response_matches_the_chat_completions_format() {
        let mut bytes = Vec::new();
        PreparedReply::new(20).write_whole(0xabc, &mut bytes);
        let events = events(&bytes);
        assert_eq!(events.len(), 20 + 3);
        assert_eq!(events.last().map(String::as_str), Some("[DONE]"));
        let json: Vec<Value> = events[..22]
            .iter()
            .map(|event| serde_json::from_str(event).expect("JSON"))
            .collect();
        assert!(
            json.iter()
                .all(|event| event["id"] == "chatcmpl-0000000000000abc")
        );
        assert_eq!(json[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(json[20]["choices"][0]["finish_reason"], "length");
        assert_eq!(json[21]["usage"]["completion_tokens"], 20);
        assert_eq!(json[21]["usage"]["total_tokens"], 48);
        assert_eq!(json[8]["choices"][0]["delta"]["content"], "\n");
    }

    #[test]
    fn separate_tokens_and_whole_response_have_the_same_bytes() {
        for tokens in [1, 2, 33] {
            let reply = PreparedReply::new(tokens);
            let (mut whole, mut parts) = (Vec::new(), Vec::new());
            reply.write_whole(7, &mut whole);
            (0..tokens).for_each(|index| reply.write_token(index, 7, &mut parts));
            assert_eq!(whole, parts);
        }
    }

    #[test]
    fn a_token_takes_about_230_bytes() {
        let (mut some, mut more) = (Vec::new(), Vec::new());
        PreparedReply::new(17).write_whole(1, &mut some);
        PreparedReply::new(33).write_whole(1, &mut more);
        let each = (more.len() - some.len()) / 16;
        assert!((215..=245).contains(&each), "{each}");
    }
}
