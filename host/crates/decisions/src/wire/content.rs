//! The wire form of messages and their content.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use veeksha_model::{MediaKind, Message, NodeId, ReasoningContent, Role, Seed, Segment, ToolCall};

use crate::redact::Redact;

/// A text that a line borrows while it is written.
pub(super) type Text<'a> = Cow<'a, str>;

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleName {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MediaName {
    Image,
    Audio,
    Video,
}

/// A seed in two halves: numbers above 2^53 are not exact in all readers of JSON.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct SeedPair(u32, u32);

impl From<Seed> for SeedPair {
    fn from(seed: Seed) -> Self {
        SeedPair(seed.high, seed.low)
    }
}

impl From<SeedPair> for Seed {
    fn from(SeedPair(high, low): SeedPair) -> Self {
        Seed { high, low }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SegmentLine<'a> {
    Text(Text<'a>),
    Synthetic { seed: SeedPair, tokens: u32 },
    Media { kind: MediaName, source: Text<'a> },
    TokenIds(Cow<'a, [u32]>),
    ToolResult(u32),
}

impl<'a> SegmentLine<'a> {
    fn of(segment: &'a Segment, redact: &dyn Redact) -> Self {
        match segment {
            Segment::Text(text) => SegmentLine::Text(redact.text(text)),
            Segment::Synthetic { seed, tokens } => SegmentLine::Synthetic {
                seed: (*seed).into(),
                tokens: *tokens,
            },
            Segment::Media { kind, source } => SegmentLine::Media {
                kind: match kind {
                    MediaKind::Image => MediaName::Image,
                    MediaKind::Audio => MediaName::Audio,
                    MediaKind::Video => MediaName::Video,
                },
                source: redact.text(source),
            },
            Segment::TokenIds(ids) => SegmentLine::TokenIds(Cow::Borrowed(ids)),
            Segment::ToolResult(run) => SegmentLine::ToolResult(run.0),
        }
    }
}

impl From<SegmentLine<'_>> for Segment {
    fn from(line: SegmentLine<'_>) -> Self {
        match line {
            SegmentLine::Text(text) => Segment::Text(text.into_owned()),
            SegmentLine::Synthetic { seed, tokens } => Segment::Synthetic {
                seed: seed.into(),
                tokens,
            },
            SegmentLine::Media { kind, source } => Segment::Media {
                kind: match kind {
                    MediaName::Image => MediaKind::Image,
                    MediaName::Audio => MediaKind::Audio,
                    MediaName::Video => MediaKind::Video,
                },
                source: source.into_owned(),
            },
            SegmentLine::TokenIds(ids) => Segment::TokenIds(ids.into_owned()),
            SegmentLine::ToolResult(run) => Segment::ToolResult(NodeId(run)),
        }
    }
}

/// Returns the lines of a message's content.
pub(super) fn segments<'a>(content: &'a [Segment], redact: &dyn Redact) -> Vec<SegmentLine<'a>> {
    content
        .iter()
        .map(|segment| SegmentLine::of(segment, redact))
        .collect()
}

/// Returns the content of the lines of a message.
pub(super) fn content(lines: Vec<SegmentLine<'_>>) -> Vec<Segment> {
    lines.into_iter().map(Segment::from).collect()
}

#[derive(Serialize, Deserialize)]
pub(super) struct CallLine<'a> {
    #[serde(default)]
    id: Text<'a>,
    name: Text<'a>,
    arguments: Text<'a>,
}

impl<'a> CallLine<'a> {
    pub(super) fn of(call: &'a ToolCall, redact: &dyn Redact) -> Self {
        CallLine {
            id: redact.text(&call.id),
            name: redact.text(&call.name),
            arguments: redact.text(&call.arguments),
        }
    }
}

impl From<CallLine<'_>> for ToolCall {
    fn from(line: CallLine<'_>) -> Self {
        ToolCall {
            id: line.id.into_owned(),
            name: line.name.into_owned(),
            arguments: line.arguments.into_owned(),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ReasoningLine<'a> {
    content: Vec<SegmentLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Text<'a>>,
}

impl<'a> ReasoningLine<'a> {
    pub(super) fn of(reasoning: &'a ReasoningContent, redact: &dyn Redact) -> Self {
        ReasoningLine {
            content: segments(&reasoning.content, redact),
            signature: reasoning.signature.as_deref().map(|text| redact.text(text)),
        }
    }
}

impl From<ReasoningLine<'_>> for ReasoningContent {
    fn from(line: ReasoningLine<'_>) -> Self {
        ReasoningContent {
            content: content(line.content),
            signature: line.signature.map(Cow::into_owned),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct MessageLine<'a> {
    role: RoleName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<SegmentLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallLine<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningLine<'a>>,
}

impl<'a> MessageLine<'a> {
    pub(super) fn of(message: &'a Message, redact: &dyn Redact) -> Self {
        MessageLine {
            role: match message.role {
                Role::System => RoleName::System,
                Role::User => RoleName::User,
                Role::Assistant => RoleName::Assistant,
                Role::Tool => RoleName::Tool,
            },
            content: segments(&message.content, redact),
            tool_call_id: message.tool_call_id.as_deref().map(|id| redact.text(id)),
            tool_calls: message
                .tool_calls
                .iter()
                .map(|call| CallLine::of(call, redact))
                .collect(),
            reasoning: message
                .reasoning
                .as_ref()
                .map(|reasoning| ReasoningLine::of(reasoning, redact)),
        }
    }
}

impl From<MessageLine<'_>> for Message {
    fn from(line: MessageLine<'_>) -> Self {
        Message {
            role: match line.role {
                RoleName::System => Role::System,
                RoleName::User => Role::User,
                RoleName::Assistant => Role::Assistant,
                RoleName::Tool => Role::Tool,
            },
            content: content(line.content),
            tool_call_id: line.tool_call_id.map(Cow::into_owned),
            tool_calls: line.tool_calls.into_iter().map(ToolCall::from).collect(),
            reasoning: line.reasoning.map(ReasoningContent::from),
        }
    }
}
