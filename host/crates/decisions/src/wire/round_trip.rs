//! Every step can be written and read again, and no text panics the reader.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use veeksha_model::{
    AnswerForm, Cancellation, Edge, HistoryMode, MediaKind, Message, NodeId, OutputSpec, ReasoningContent,
    Recorded, RecordedAnswer, Replay, ReplayedSession, Request, Role, Seed, Segment, Session, SessionId,
    ToolCall, ToolChoice, ToolDefinitions, ToolRun, Trigger,
};
use veeksha_ports::AgentStep;

use super::{DecisionsOrigin, HeaderLine, StepLine};
use crate::error::DecisionsError;
use crate::recorded_step::RecordedStep;
use crate::redact::Verbatim;

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,6}", Just("\"\\\n\u{0}\u{2028}é".to_owned())]
}

fn edge() -> impl Strategy<Value = Edge> {
    let trigger = prop::sample::select(&Trigger::ALL[..]);
    (any::<u32>(), trigger, any::<u64>()).prop_map(|(parent, trigger, delay)| Edge {
        parent: NodeId(parent),
        trigger,
        delay,
    })
}

fn segment() -> impl Strategy<Value = Segment> {
    let kind = prop::sample::select(&[MediaKind::Image, MediaKind::Audio, MediaKind::Video][..]);
    prop_oneof![
        text().prop_map(Segment::Text),
        (any::<u64>(), any::<u32>()).prop_map(|(seed, tokens)| Segment::Synthetic {
            seed: Seed::from(seed),
            tokens
        }),
        (kind, text()).prop_map(|(kind, source)| Segment::Media { kind, source }),
        vec(any::<u32>(), 0..3).prop_map(Segment::TokenIds),
        any::<u32>().prop_map(|run| Segment::ToolResult(NodeId(run))),
    ]
}

fn reasoning() -> impl Strategy<Value = ReasoningContent> {
    (vec(segment(), 0..2), option::of(text()))
        .prop_map(|(content, signature)| ReasoningContent { content, signature })
}

fn call() -> impl Strategy<Value = ToolCall> {
    (text(), text(), text()).prop_map(|(id, name, arguments)| ToolCall { id, name, arguments })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(&[Role::System, Role::User, Role::Assistant, Role::Tool][..]);
    let calls = vec(call(), 0..2);
    (
        role,
        vec(segment(), 0..3),
        option::of(text()),
        calls,
        option::of(reasoning()),
    )
        .prop_map(|(role, content, tool_call_id, tool_calls, reasoning)| Message {
            role,
            content,
            tool_call_id,
            tool_calls,
            reasoning,
        })
}

fn definitions() -> impl Strategy<Value = ToolDefinitions> {
    prop_oneof![
        text().prop_map(ToolDefinitions::Definitions),
        text().prop_map(ToolDefinitions::Verbatim),
        (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(seed, count, tokens)| {
            ToolDefinitions::Synthetic {
                seed: Seed::from(seed),
                count,
                tokens,
            }
        }),
    ]
}

fn output() -> impl Strategy<Value = OutputSpec> {
    let choice = prop_oneof![
        Just(ToolChoice::Automatic),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        text().prop_map(ToolChoice::Function),
    ];
    let form = (
        option::of(choice),
        option::of(text()),
        option::of(any::<u32>()),
        any::<bool>(),
    )
        .prop_map(
            |(tool_choice, schema, log_probabilities, prompt_log_probabilities)| {
                Box::new(AnswerForm {
                    tool_choice,
                    schema,
                    log_probabilities,
                    prompt_log_probabilities,
                })
            },
        );
    (option::of(any::<u32>()), any::<bool>(), option::of(form)).prop_map(|(target_tokens, exact, form)| {
        OutputSpec {
            target_tokens,
            exact,
            form,
        }
    })
}

fn replay() -> impl Strategy<Value = Replay> {
    let history = prop::sample::select(&[HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh][..]);
    let answer = (vec(segment(), 0..2), vec(call(), 0..2), option::of(reasoning())).prop_map(
        |(content, tool_calls, reasoning)| RecordedAnswer {
            content,
            tool_calls,
            reasoning,
        },
    );
    let recorded =
        (any::<[Option<u64>; 2]>(), any::<[Option<u32>; 2]>()).prop_map(|(times, tokens)| Recorded {
            at: times[0],
            latency: times[1],
            prompt_tokens: tokens[0],
            output_tokens: tokens[1],
        });
    (history, option::of(answer), recorded).prop_map(|(history, answer, recorded)| Replay {
        history,
        answer,
        recorded,
    })
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    vec((text(), text()), 0..2)
}

prop_compose! {
    fn request()(
        nodes in (any::<u32>(), option::of(any::<u32>())),
        parents in vec(edge(), 0..3),
        flags in (any::<bool>(), any::<u64>()),
        messages in vec(message(), 0..3),
        tools in option::of(definitions()),
        output in output(),
        cancellation in option::of((vec(edge(), 0..2), option::of(any::<u32>()))),
        texts in (option::of(text()), option::of(text())),
        named in (pairs(), pairs()),
        replay in option::of(replay()),
    ) -> Request {
        Request {
            node: NodeId(nodes.0),
            parents,
            history_parent: nodes.1.map(NodeId),
            keep_reasoning: flags.0,
            wait_after_ready: flags.1,
            messages,
            tools: tools.map(Box::new),
            output,
            cancellation: cancellation.map(|(when, after_chunks)| Box::new(Cancellation { when, after_chunks })),
            client: texts.0,
            body: texts.1,
            headers: named.0,
            labels: named.1,
            replay: replay.map(Box::new),
        }
    }
}

prop_compose! {
    fn tool_run()(
        node in any::<u32>(),
        parents in vec(edge(), 0..3),
        class in text(),
        service_time in option::of(any::<u64>()),
        result_tokens in option::of(any::<u32>()),
        fails in option::of(any::<bool>()),
        labels in pairs(),
    ) -> ToolRun {
        ToolRun { node: NodeId(node), parents, class, service_time, result_tokens, fails, labels, key: 0 }
    }
}

prop_compose! {
    fn recorded_step()(
        session in any::<u64>(),
        after in option::of(any::<u32>()),
        tool_call_ids in vec(text(), 0..2),
        requests in vec(request(), 0..3),
        tool_runs in vec(tool_run(), 0..2),
        arrives_at in option::of(any::<u64>()),
        named in (pairs(), pairs()),
        replayed in option::of(any::<(u64, u64)>()),
        cancel in vec(any::<u32>(), 0..3),
        done in any::<bool>(),
    ) -> RecordedStep {
        let replays = replayed.map(|(session, seed)| ReplayedSession { session: SessionId(session), seed });
        RecordedStep {
            redacted: Vec::new(),
            session: SessionId(session),
            after: after.map(NodeId),
            tool_call_ids,
            step: AgentStep {
                added: Session { requests, tool_runs, arrives_at, headers: named.0, labels: named.1,
                    replays: replays.filter(|_| after.is_none()) },
                cancel: cancel.into_iter().map(NodeId).collect(),
                done,
            },
        }
    }
}

fn line_of(recorded: &RecordedStep) -> String {
    let ids: Vec<&str> = recorded.tool_call_ids.iter().map(String::as_str).collect();
    let line = StepLine::of(recorded.session, recorded.after, &ids, &recorded.step, &Verbatim);
    serde_json::to_string(&line).unwrap()
}

fn read(line: &[u8]) -> serde_json::Result<RecordedStep> {
    serde_json::from_slice::<StepLine<'_>>(line).map(RecordedStep::from)
}

proptest! {
    #[test]
    fn reads_every_step_that_it_writes(step in recorded_step()) {
        let line = line_of(&step);
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(read(line.as_bytes()).unwrap(), step);
    }

    #[test]
    fn damaged_lines_do_not_panic(
        step in recorded_step(),
        at in any::<prop::sample::Index>(),
        bytes in vec(any::<u8>(), 0..4),
    ) {
        let mut line = line_of(&step).into_bytes();
        let at = at.index(line.len());
        let end = line.len().min(at + bytes.len());
        line.splice(at..end, bytes.clone());
        let _ = read(&line);
        let _ = read(&line[..at]);
        let _ = HeaderLine::read(&line);
        let _ = HeaderLine::read(&bytes);
    }
}

fn origin() -> DecisionsOrigin {
    DecisionsOrigin {
        plugin: "mine".to_owned(),
        plugin_version: "1".to_owned(),
        plugin_digest: "0f".to_owned(),
        seed: u64::MAX,
        run_id: None,
    }
}

#[test]
fn reads_its_own_header() {
    let mut line = Vec::new();
    HeaderLine::write(&mut line, &origin()).unwrap();
    assert_eq!(HeaderLine::read(&line).unwrap(), origin());
}

#[test]
fn error_names_both_versions() {
    let mut line = Vec::new();
    HeaderLine::write(&mut line, &origin()).unwrap();
    let line = String::from_utf8(line).unwrap();
    let refused = |line: &str| match HeaderLine::read(line.as_bytes()) {
        Err(error @ DecisionsError::OtherVersion { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(&line.replace("\"version\":1", "\"version\":2")),
        "its format version is 2 (contract 0.2.0); this program reads version 1 (contract 0.2.0)"
    );
    assert_eq!(
        refused(&line.replace("0.2.0", "0.3.0")),
        "its format version is 1 (contract 0.3.0); this program reads version 1 (contract 0.2.0)"
    );
    // A later version may have other keys.
    assert_eq!(
        refused("{\"format\":\"veeksha-host decisions\",\"version\":\"3\"}"),
        "its format version is 3 (contract null); this program reads version 1 (contract 0.2.0)"
    );
    for other in ["", "7", "{}", "{\"format\":\"x\",\"version\":1}"] {
        assert!(
            matches!(
                HeaderLine::read(other.as_bytes()),
                Err(DecisionsError::Damaged { line: 1, .. })
            ),
            "{other}"
        );
    }
}
