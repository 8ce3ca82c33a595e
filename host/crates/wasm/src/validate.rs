//! Checks of the sessions that a plugin returns.
//!
//! Languages without integers convert a wrong value silently into another one, so every field is
//! checked.

use serde_json::{Map, Value};
use veeksha_model::{
    Edge, KnownNodes, Label, NodeId, Replay, Request, Segment, Session, ToolRun, check_session,
};
use veeksha_ports::MAX_LABEL_BYTES;

use crate::text::{cut, grouped};

/// The exclusive upper bound of times, which every guest language can represent.
const TIME_END: u64 = 1 << 53;
/// Maximum number of synthetic tokens of one request, beyond every existing context window.
const MAX_SYNTHETIC_TOKENS: u64 = 1 << 24;

/// Checks a whole session.
pub(crate) fn session(session: &Session) -> Result<(), String> {
    step(session, &KnownNodes::new())
}

/// Checks the new nodes of a session's step; `known` are the nodes of its earlier steps.
pub(crate) fn step(session: &Session, known: &KnownNodes) -> Result<(), String> {
    check_session(session, known).map_err(|error| error.to_string())?;
    session.requests.iter().try_for_each(|request| {
        self::request(request).map_err(|why| format!("node {}: {why}", request.node))
    })?;
    session
        .tool_runs
        .iter()
        .try_for_each(|run| tool_run(run).map_err(|why| format!("node {}: {why}", run.node)))?;
    if let Some(at) = session.arrives_at {
        time("arrives-at", at)?;
    }
    labels(&session.labels)
}

/// Checks the nodes that a step cancels against all nodes so far.
pub(crate) fn cancelled(nodes: &[NodeId], known: &KnownNodes) -> Result<(), String> {
    let unknown = nodes.iter().find(|node| !known.contains_key(node));
    unknown.map_or(Ok(()), |node| {
        Err(format!(
            "`cancel` names node {node}, which the session does not have"
        ))
    })
}

fn tool_run(run: &ToolRun) -> Result<(), String> {
    edges(&run.parents)?;
    run.service_time
        .map_or(Ok(()), |nanos| time("service-time", nanos))?;
    labels(&run.labels)
}

fn edges(edges: &[Edge]) -> Result<(), String> {
    edges.iter().try_for_each(|edge| time("delay", edge.delay))
}

fn request(request: &Request) -> Result<(), String> {
    time("wait-after-ready", request.wait_after_ready)?;
    edges(&request.parents)?;
    if let Some(cancellation) = &request.cancellation {
        edges(&cancellation.when)?;
    }
    labels(&request.labels)?;
    let segments = || request.messages.iter().flat_map(|message| &message.content);
    if segments().any(|segment| matches!(segment, Segment::Synthetic { tokens: 0, .. })) {
        return Err("synthetic text of 0 tokens: leave the segment out, or ask for at least 1".into());
    }
    synthetic(segments())?;
    if let Some(replay) = &request.replay {
        self::replay(replay)?;
    }
    request.body.as_deref().map_or(Ok(()), object)
}

/// Checks the recorded data of a request.
fn replay(replay: &Replay) -> Result<(), String> {
    let recorded = &replay.recorded;
    for (what, nanos) in [("at", recorded.at), ("latency", recorded.latency)] {
        nanos.map_or(Ok(()), |nanos| time(what, nanos))?;
    }
    match &replay.answer {
        Some(answer) => synthetic(&answer.content).map_err(|why| format!("recorded answer: {why}")),
        None => Ok(()),
    }
}

fn synthetic<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> Result<(), String> {
    let lengths = segments.into_iter().map(|segment| match segment {
        Segment::Synthetic { tokens, .. } => u64::from(*tokens),
        _ => 0,
    });
    let tokens: u64 = lengths.sum();
    if tokens > MAX_SYNTHETIC_TOKENS {
        return Err(format!(
            "{} tokens of synthetic text, at most {} are allowed in one request",
            grouped(tokens),
            grouped(MAX_SYNTHETIC_TOKENS)
        ));
    }
    Ok(())
}

fn time(what: &str, nanos: u64) -> Result<(), String> {
    if nanos < TIME_END {
        return Ok(());
    }
    Err(format!(
        "`{what}` is {} ns, it must be below 2^53 (was it negative?)",
        grouped(nanos)
    ))
}

fn labels(labels: &[Label]) -> Result<(), String> {
    let bytes: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_LABEL_BYTES {
        return Err(format!(
            "{} bytes of labels, at most {} are allowed",
            grouped(bytes as u64),
            grouped(MAX_LABEL_BYTES as u64)
        ));
    }
    Ok(())
}

/// Checks that `body` is the text of a JSON object nested at most 128 deep, which the merge into
/// the request can read.
fn object(body: &str) -> Result<(), String> {
    match serde_json::from_str::<Map<String, Value>>(body) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!(
            "`body` must be a JSON object: {error}, in `{}`",
            cut(body, 80)
        )),
    }
}

#[cfg(test)]
mod tests {
    use veeksha_model::{Message, NodeId, NodeKind, Role, Seed};

    use super::*;

    fn plain() -> Request {
        Request {
            node: NodeId(3),
            messages: vec![Message::new(Role::User, vec![Segment::Text("hello".into())])],
            ..Request::default()
        }
    }

    fn refusal(request: Request) -> String {
        session(&Session {
            requests: vec![request],
            ..Session::default()
        })
        .unwrap_err()
    }

    #[test]
    fn times_stay_below_two_to_the_53() {
        let mut request = plain();
        request.wait_after_ready = (1 << 53) - 1;
        assert_eq!(session(&Session::from(vec![request.clone()])), Ok(()));
        request.wait_after_ready = 1 << 53;
        assert_eq!(
            refusal(request),
            "node 3: `wait-after-ready` is 9,007,199,254,740,992 ns, it must be below 2^53 (was it negative?)"
        );
        let late = Session {
            requests: vec![plain()],
            arrives_at: Some(u64::MAX),
            ..Session::default()
        };
        assert!(
            session(&late)
                .unwrap_err()
                .starts_with("`arrives-at` is 18,446,744,073,709,551,615 ns")
        );
    }

    /// The scenario knows which clients exist.
    #[test]
    fn the_name_of_a_client_is_not_checked_here() {
        let request = Request {
            client: Some("judge".into()),
            ..plain()
        };
        assert_eq!(session(&Session::from(vec![request])), Ok(()));
    }

    #[test]
    fn a_body_is_a_json_object() {
        for good in ["{}", r#"{"a": [1, {"b": null}], "c": "d"}"#, " {\"a\": 1} "] {
            let request = Request {
                body: Some(good.into()),
                ..plain()
            };
            assert_eq!(session(&Session::from(vec![request])), Ok(()), "{good}");
        }
        for bad in [
            "",
            "[]",
            "1",
            "null",
            "\"{}\"",
            "{",
            "{} {}",
            "{\"a\" 1}",
            "{'a': 1}",
        ] {
            let why = refusal(Request {
                body: Some(bad.into()),
                ..plain()
            });
            assert!(
                why.starts_with("node 3: `body` must be a JSON object: "),
                "{bad}: {why}"
            );
        }
    }

    #[test]
    fn a_deeply_nested_body_is_refused_not_followed() {
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(
            refusal(Request {
                body: Some(deep),
                ..plain()
            })
            .contains("recursion limit")
        );
    }

    #[test]
    fn labels_are_bounded() {
        let labels = vec![("k".to_owned(), "v".repeat(MAX_LABEL_BYTES))];
        assert_eq!(
            refusal(Request {
                labels: labels.clone(),
                ..plain()
            }),
            "node 3: 16,385 bytes of labels, at most 16,384 are allowed"
        );
        assert!(
            session(&Session {
                requests: vec![plain()],
                labels,
                ..Session::default()
            })
            .is_err()
        );
    }

    #[test]
    fn synthetic_text_is_bounded() {
        let mut request = plain();
        let half = Segment::Synthetic {
            seed: Seed { high: 0, low: 1 },
            tokens: 1 << 23,
        };
        request.messages[0].content = vec![half.clone(), half.clone()];
        assert_eq!(session(&Session::from(vec![request.clone()])), Ok(()));
        request.messages[0].content.push(half);
        assert!(refusal(request).starts_with("node 3: 25,165,824 tokens of synthetic text"));
    }

    #[test]
    fn synthetic_text_has_at_least_one_token() {
        let mut request = plain();
        let segment = |tokens| Segment::Synthetic {
            seed: Seed { high: 0, low: 1 },
            tokens,
        };
        request.messages[0].content = vec![segment(1)];
        assert_eq!(session(&Session::from(vec![request.clone()])), Ok(()));
        request.messages[0].content.push(segment(0));
        assert_eq!(
            refusal(request),
            "node 3: synthetic text of 0 tokens: leave the segment out, or ask for at least 1"
        );
    }

    #[test]
    fn recorded_values_have_the_bounds_of_sessions() {
        use veeksha_model::{Recorded, RecordedAnswer};
        let recorded = Recorded {
            at: Some((1 << 53) - 1),
            latency: Some(0),
            prompt_tokens: Some(u32::MAX),
            output_tokens: Some(0),
        };
        let with = |recorded| Replay {
            recorded,
            ..Replay::default()
        };
        assert_eq!(replay(&with(recorded)), Ok(()));
        let late = Recorded {
            at: Some(1 << 53),
            ..recorded
        };
        assert!(
            replay(&with(late))
                .unwrap_err()
                .starts_with("`at` is 9,007,199,254,740,992 ns")
        );
        let slow = Recorded {
            latency: Some(u64::MAX),
            ..recorded
        };
        assert!(
            replay(&with(slow))
                .unwrap_err()
                .starts_with("`latency` is 18,446,744,073,709,551,615 ns")
        );
        let long = Replay {
            answer: Some(RecordedAnswer {
                reasoning: None,
                content: vec![Segment::Synthetic {
                    seed: Seed { high: 0, low: 1 },
                    tokens: (1 << 24) + 1,
                }],
                tool_calls: Vec::new(),
            }),
            ..Replay::default()
        };
        assert!(
            replay(&long)
                .unwrap_err()
                .starts_with("recorded answer: 16,777,217 tokens of synthetic text")
        );
    }

    #[test]
    fn a_step_without_requests_is_fine_once_there_are_nodes() {
        assert_eq!(
            step(
                &Session::default(),
                &KnownNodes::from([(NodeId(0), NodeKind::Request)])
            ),
            Ok(())
        );
        assert_eq!(
            session(&Session::default()).unwrap_err(),
            "the session has no requests"
        );
    }
}
