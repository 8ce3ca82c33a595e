//! The content of an answer, independent of the API: its words, and which of them are reasoning,
//! text or a tool call.

use serde_json::Value;
use veeksha_model::{ChunkKind, Usage};

use crate::server::delivery_mode::DeliveryMode;

/// Short words of everyday English: they are single tokens in most vocabularies, and in that of the
/// host's embedded tokenizer with and without a leading space, so that a client counts as many. The
/// token counts of `usage` are authoritative; the number of words equals the number of tokens.
const WORDS: [&str; 32] = [
    "time", "year", "word", "way", "day", "man", "line", "name", "text", "child", "world", "list", "state",
    "family", "table", "group", "order", "value", "hand", "part", "place", "case", "week", "class", "system",
    "program", "event", "work", "field", "number", "level", "point",
];

/// Size of a huge token's text in bytes.
const HUGE: usize = 1 << 20;

/// A part of an answer. An answer has at most one of each, reasoning first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Part {
    Reasoning,
    Text,
    /// The arguments of one tool call: `{"text":"WORDS"}`.
    Tool,
}

impl Part {
    /// Returns the kind of the chunks that carry its text.
    pub(in crate::server) fn chunk_kind(self) -> ChunkKind {
        match self {
            Part::Reasoning => ChunkKind::Reasoning,
            Part::Text => ChunkKind::Content,
            Part::Tool => ChunkKind::Tool,
        }
    }
}

/// One answer, independent of the API.
#[derive(Clone, Debug)]
pub(in crate::server) struct AnswerContent {
    pub(in crate::server) ordinal: u64,
    /// Nanoseconds since 1970.
    pub(in crate::server) created: u64,
    /// The model's name as JSON, with its quotation marks.
    pub(in crate::server) model: String,
    pub(in crate::server) delivery: DeliveryMode,
    /// Number of reasoning tokens.
    pub(in crate::server) reasoning: u32,
    /// The tool that is called, in place of text.
    pub(in crate::server) tool: Option<String>,
    /// True if the API's optional details were requested.
    pub(in crate::server) details: bool,
    /// The index of the token whose text is a mebibyte.
    pub(in crate::server) huge: Option<u32>,
    /// The requested limit; sent by APIs that echo the request.
    pub(in crate::server) max_tokens: Option<u32>,
}

impl AnswerContent {
    /// Returns the creation time in seconds since 1970.
    pub(super) fn created_seconds(&self) -> u64 {
        self.created / 1_000_000_000
    }

    /// Returns the model's name as a JSON value.
    pub(super) fn model_value(&self) -> Value {
        serde_json::from_str(&self.model).unwrap_or_default()
    }

    pub(super) fn part(&self, index: u32) -> Part {
        match &self.tool {
            _ if index < self.reasoning => Part::Reasoning,
            Some(_) => Part::Tool,
            None => Part::Text,
        }
    }

    /// Returns the index of a token's word, used as a token id.
    pub(super) fn word(&self, index: u32) -> usize {
        let draw = (self.ordinal ^ (u64::from(index) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59;
        draw as usize % WORDS.len()
    }

    /// Appends the text of a token as contents of a JSON string.
    pub(super) fn push_piece(&self, out: &mut Vec<u8>, index: u32, last: bool) {
        self.push(out, index, last, br#"\""#);
    }

    fn push(&self, out: &mut Vec<u8>, index: u32, last: bool, quote: &[u8]) {
        let part = self.part(index);
        let first = index == 0 || self.part(index - 1) != part;
        if part == Part::Tool && first {
            for bytes in [b"{", quote, b"text", quote, b":", quote] {
                out.extend_from_slice(bytes);
            }
        }
        if !first {
            out.push(b' ');
        }
        if self.huge == Some(index) {
            out.resize(out.len() + HUGE, b'x');
        } else {
            out.extend_from_slice(WORDS[self.word(index)].as_bytes());
        }
        if part == Part::Tool && last {
            out.extend_from_slice(quote);
            out.push(b'}');
        }
    }

    /// Returns the text of a part of a complete answer of `tokens` tokens.
    pub(super) fn text(&self, part: Part, tokens: u32) -> String {
        let mut text = Vec::new();
        (0..tokens)
            .filter(|index| self.part(*index) == part)
            .for_each(|index| self.push(&mut text, index, index + 1 == tokens, b"\""));
        String::from_utf8(text).unwrap_or_default()
    }

    /// Returns the parts of an answer of `tokens` tokens, in order, with their texts.
    pub(super) fn parts(&self, tokens: u32) -> Vec<(Part, String)> {
        let all = [Part::Reasoning, Part::Text, Part::Tool];
        let mut parts: Vec<_> = all
            .into_iter()
            .map(|part| (part, self.text(part, tokens)))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        if parts.is_empty() {
            parts.push((Part::Text, String::new()));
        }
        parts
    }

    /// Returns the number of prompt tokens that had to be computed.
    pub(super) fn fresh(usage: &Usage) -> u32 {
        usage.prompt.saturating_sub(usage.cached.unwrap_or(0))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::server::script) fn content(reasoning: u32, tool: Option<&str>) -> AnswerContent {
        AnswerContent {
            ordinal: 7,
            created: 1_700_000_000_123_456_789,
            model: "\"m\"".into(),
            delivery: DeliveryMode::StreamWithUsage,
            reasoning,
            tool: tool.map(str::to_owned),
            details: true,
            huge: None,
            max_tokens: Some(9),
        }
    }

    #[test]
    fn pieces_concatenate_to_the_whole_text() {
        for (reasoning, tool) in [(0, None), (2, None), (0, Some("f")), (2, Some("f"))] {
            let content = content(reasoning, tool);
            for part in [Part::Reasoning, Part::Text, Part::Tool] {
                let mut pieces = Vec::new();
                (0..5)
                    .filter(|index| content.part(*index) == part)
                    .for_each(|index| content.push_piece(&mut pieces, index, index == 4));
                let text: String =
                    serde_json::from_str(&format!("\"{}\"", String::from_utf8(pieces).unwrap())).unwrap();
                assert_eq!(text, content.text(part, 5));
            }
            let words: usize = content
                .parts(5)
                .iter()
                .map(|(_, text)| text.split(' ').count())
                .sum();
            assert_eq!(words, 5, "a word for each token");
            if tool.is_some() {
                let arguments: Value = serde_json::from_str(&content.text(Part::Tool, 5)).unwrap();
                assert!(arguments["text"].is_string());
            }
        }
    }
}
