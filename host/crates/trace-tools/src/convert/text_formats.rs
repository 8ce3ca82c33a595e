//! Formats of text.

use serde_json::{Map, Value, json};
use veeksha_model::{HistoryMode, MediaKind, Message, RecordedAnswer, Request, Role, Segment, ToolCall};

use super::losses;
use super::{Chain, Converter, SourceSession, milliseconds};
use crate::convert::error::ConvertError;

impl Converter {
    pub(super) fn multi_turn(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        source.check_chain(Chain::OfRequests)?;
        let requests = &source.session.requests;
        let mut turns = Vec::with_capacity(requests.len());
        for request in requests {
            turns.push(source.turn(request)?);
        }
        for (place, request) in requests.iter().enumerate() {
            let mode = request.history_mode();
            self.losses
                .add(losses::FRESH, place > 0 && mode == HistoryMode::Fresh);
            self.losses
                .add(losses::RECORDED, place > 0 && mode == HistoryMode::Recorded);
            let recorded = request.replay.as_ref().and_then(|replay| replay.recorded.at);
            self.losses.add(losses::INSTANTS, place > 0 && recorded.is_some());
        }
        let mut row = Map::from_iter([
            ("session_id".to_owned(), source.index.to_string().into()),
            ("turns".to_owned(), Value::Array(turns)),
        ]);
        if let Some(at) = requests.first().and_then(|first| source.instant(first)) {
            row.insert("timestamp".into(), Value::Number(milliseconds(at)));
        }
        Ok(vec![Value::Object(row).to_string()])
    }

    pub(super) fn single_turn(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        source.check_chain(Chain::OfRequests)?;
        let requests = &source.session.requests;
        let mut rows = Vec::with_capacity(requests.len());
        for (place, request) in requests.iter().enumerate() {
            if request.history_parent.is_some() && request.history_mode() != HistoryMode::Fresh {
                return Err(ConvertError::Continues {
                    session: source.index,
                    node: request.node,
                });
            }
            rows.push(source.single(request, place, requests.len())?);
        }
        for (place, request) in requests.iter().enumerate() {
            let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
            self.losses.add(losses::ANSWER_WORDS, answer.is_some());
            let first = place == 0;
            let recorded = source.instant(request).is_some();
            self.losses.add(losses::INSTANTS, !first && recorded);
            self.losses.add(
                losses::FIRST_WAIT,
                first && recorded && request.wait_after_ready > 0,
            );
        }
        Ok(rows)
    }

    pub(super) fn untimed(&mut self, source: &SourceSession<'_>) -> Result<Vec<String>, ConvertError> {
        source.check_chain(Chain::OfTurns)?;
        let requests = &source.session.requests;
        let mut turns = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let (node, session, format) = (request.node, source.index, source.format);
            for message in &request.messages {
                if message.role == Role::Assistant {
                    return Err(ConvertError::Messages {
                        session,
                        node,
                        format,
                        what: "an assistant's message that is not the answer to a request",
                    });
                }
                turns.push(named(source.message(request, message)?));
            }
            match request.replay.as_ref().and_then(|replay| replay.answer.as_ref()) {
                Some(answer) => turns.push(named(source.answer(request, answer)?)),
                None if place + 1 < requests.len() => {
                    return Err(ConvertError::NoAnswer {
                        session,
                        node,
                        format,
                    });
                }
                None => {}
            }
        }
        for (place, request) in requests.iter().enumerate() {
            let unanswered = request
                .replay
                .as_ref()
                .is_none_or(|replay| replay.answer.is_none());
            let target = request.output.target_tokens;
            let live = request.history_mode() == HistoryMode::Live && place > 0;
            for (what, lost) in [
                (losses::INSTANTS, source.instant(request).is_some()),
                (losses::THINK_TIMES, request.wait_after_ready > 0),
                (losses::BODY, request.body.is_some()),
                (losses::OUTPUT, target.is_some()),
                (losses::LAST_ANSWER, unanswered),
                (losses::LIVE, live),
            ] {
                self.losses.add(what, lost);
            }
        }
        Ok(vec![json!({ "conversations": turns }).to_string()])
    }
}

impl SourceSession<'_> {
    /// Writes a turn of `multi_turn`: a single user message as it is, anything else as messages,
    /// the answer last.
    fn turn(&self, request: &Request) -> Result<Value, ConvertError> {
        let answer = request.replay.as_ref().and_then(|replay| replay.answer.as_ref());
        let mut turn = Map::new();
        match (request.messages.as_slice(), answer) {
            ([only], None) if only.role == Role::User => self.modalities(request, only, &mut turn)?,
            (messages, answer) => {
                let mut written = Vec::with_capacity(messages.len() + 1);
                for message in messages {
                    written.push(Value::Object(self.message(request, message)?));
                }
                if answer.is_none() && messages.last().is_some_and(|last| last.role == Role::Assistant) {
                    return Err(ConvertError::Messages {
                        session: self.index,
                        node: request.node,
                        format: self.format,
                        what: "a request that ends with an assistant message and has no recorded answer",
                    });
                }
                if let Some(answer) = answer {
                    written.push(Value::Object(self.answer(request, answer)?));
                }
                turn.insert("messages".into(), Value::Array(written));
            }
        }
        if request.wait_after_ready > 0 || !request.parents.is_empty() {
            turn.insert(
                "delay".into(),
                Value::Number(milliseconds(request.wait_after_ready)),
            );
        }
        self.tail(request, &mut turn)?;
        Ok(Value::Object(turn))
    }

    /// Writes a row of `single_turn`: an optional system message and one other.
    fn single(&self, request: &Request, place: usize, of: usize) -> Result<String, ConvertError> {
        let mut row = Map::new();
        let (system, message) = match request.messages.as_slice() {
            [message] if message.role != Role::System => (None, message),
            [system, message] if system.role == Role::System && message.role != Role::System => {
                (Some(system), message)
            }
            _ => {
                return Err(ConvertError::Messages {
                    session: self.index,
                    node: request.node,
                    format: self.format,
                    what: "more than a system message and one other",
                });
            }
        };
        if let Some(system) = system {
            row.insert(
                "system".into(),
                self.text_formats(request, &system.content)?.into(),
            );
        }
        if message.role != Role::User {
            row.insert("role".into(), message.role.name().into());
        }
        self.modalities(request, message, &mut row)?;
        if of > 1 {
            row.insert("session_id".into(), self.index.to_string().into());
        }
        // A row has a timestamp or a delay.
        match self.instant(request).filter(|_| place == 0) {
            Some(at) => {
                row.insert("timestamp".into(), Value::Number(milliseconds(at)));
            }
            None if place > 0 || request.wait_after_ready > 0 => {
                row.insert(
                    "delay".into(),
                    Value::Number(milliseconds(request.wait_after_ready)),
                );
            }
            None => {}
        }
        self.tail(request, &mut row)?;
        Ok(Value::Object(row).to_string())
    }

    /// Adds `output_length` and `extra`.
    fn tail(&self, request: &Request, row: &mut Map<String, Value>) -> Result<(), ConvertError> {
        let recorded = request
            .replay
            .as_ref()
            .and_then(|replay| replay.recorded.output_tokens);
        if let Some(tokens) = request
            .output
            .target_tokens
            .or(recorded)
            .filter(|tokens| *tokens > 0)
        {
            row.insert("output_length".into(), tokens.into());
        }
        if let Some(body) = &request.body {
            let invalid = |error: serde_json::Error| ConvertError::Body {
                session: self.index,
                node: request.node,
                why: error.to_string(),
            };
            let fields: Map<String, Value> = serde_json::from_str(body).map_err(invalid)?;
            row.insert("extra".into(), Value::Object(fields));
        }
        Ok(())
    }

    /// Writes one message as `text`, `images`, `audios` and `videos`.
    fn modalities(
        &self,
        request: &Request,
        message: &Message,
        row: &mut Map<String, Value>,
    ) -> Result<(), ConvertError> {
        let is_text = |segment: &&Segment| !matches!(segment, Segment::Media { .. });
        let text: Vec<Segment> = message.content.iter().filter(is_text).cloned().collect();
        if !text.is_empty() || message.content.is_empty() {
            row.insert("text".into(), self.text_formats(request, &text)?.into());
        }
        for segment in &message.content {
            if let Segment::Media { kind, source } = segment {
                let name = match kind {
                    MediaKind::Image => "images",
                    MediaKind::Audio => "audios",
                    MediaKind::Video => "videos",
                };
                if let Value::Array(sources) = row.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                    sources.push(source.clone().into());
                }
            }
        }
        Ok(())
    }

    /// Writes a message in the form of OpenAI's API.
    fn message(&self, request: &Request, message: &Message) -> Result<Map<String, Value>, ConvertError> {
        let mut written = Map::from_iter([
            ("role".to_owned(), message.role.name().into()),
            ("content".to_owned(), self.content(request, &message.content)?),
        ]);
        if let Some(call) = &message.tool_call_id {
            written.insert("tool_call_id".into(), call.as_str().into());
        }
        Ok(written)
    }

    fn answer(&self, request: &Request, answer: &RecordedAnswer) -> Result<Map<String, Value>, ConvertError> {
        let mut written = Map::from_iter([
            ("role".to_owned(), Role::Assistant.name().into()),
            ("content".to_owned(), self.content(request, &answer.content)?),
        ]);
        if !answer.tool_calls.is_empty() {
            let call = |call: &ToolCall| {
                let function = json!({ "name": call.name, "arguments": call.arguments });
                json!({ "id": call.id, "type": "function", "function": function })
            };
            written.insert("tool_calls".into(), answer.tool_calls.iter().map(call).collect());
        }
        Ok(written)
    }

    /// Writes text as a string, and text with media as content parts.
    fn content(&self, request: &Request, content: &[Segment]) -> Result<Value, ConvertError> {
        let has_media = content
            .iter()
            .any(|segment| matches!(segment, Segment::Media { .. }));
        if !has_media {
            return Ok(self.text_formats(request, content)?.into());
        }
        let block = |segment: &Segment| match segment {
            Segment::Media { kind, source } => {
                let name = format!("{}_url", kind.name());
                Ok(json!({ "type": name, name: { "url": source } }))
            }
            text => {
                let text = self.text_formats(request, std::slice::from_ref(text))?;
                Ok(json!({ "type": "text", "text": text }))
            }
        };
        content.iter().map(block).collect()
    }

    fn text_formats(&self, request: &Request, content: &[Segment]) -> Result<String, ConvertError> {
        let mut text_formats = String::new();
        for segment in content {
            match segment {
                Segment::Text(text) => text_formats.push_str(text),
                Segment::Synthetic { tokens: 0, .. } | Segment::Media { .. } => {}
                Segment::Synthetic { .. } | Segment::TokenIds(_) | Segment::ToolResult(_) => {
                    return Err(ConvertError::NoWords {
                        session: self.index,
                        node: request.node,
                        format: self.format,
                    });
                }
            }
        }
        Ok(text_formats)
    }
}

/// Renames the keys of a message to ShareGPT's `from` and `value`.
fn named(mut message: Map<String, Value>) -> Value {
    let from = match message.remove("role").as_ref().and_then(Value::as_str) {
        Some("user") => "human",
        Some("assistant") => "gpt",
        Some("system") => "system",
        _ => "tool",
    };
    let value = message.remove("content").unwrap_or_default();
    let mut named = Map::from_iter([("from".to_owned(), from.into()), ("value".to_owned(), value)]);
    named.append(&mut message);
    Value::Object(named)
}
