//! Bounds of recorded values, which a damaged or edited file may exceed: those of plugins.

use serde_json::{Map, Value};
use veeksha_model::{
    Edge, Label, MAX_SYNTHETIC_TOKENS, Nanos, ReasoningContent, Request, Segment, Session, ToolRun,
};
use veeksha_ports::MAX_LABEL_BYTES;

/// The exclusive upper bound of times.
const TIME_END: Nanos = 1 << 53;

/// Checks the values of a step's nodes.
///
/// # Errors
/// The first value that no plugin could have returned, with its node.
pub(crate) fn check(session: &Session) -> Result<(), String> {
    for request in &session.requests {
        let node = request.node;
        self::request(request).map_err(|why| format!("node {node}: {why}"))?;
    }
    for run in &session.tool_runs {
        let node = run.node;
        tool_run(run).map_err(|why| format!("node {node}: {why}"))?;
    }
    times(session.arrives_at)?;
    labels(&session.labels)
}

fn request(request: &Request) -> Result<(), String> {
    let delays = |edges: &[Edge]| times(edges.iter().map(|edge| edge.delay));
    delays(&request.parents)?;
    times([request.wait_after_ready])?;
    if let Some(cancellation) = &request.cancellation {
        delays(&cancellation.when)?;
    }
    if let Some(replay) = &request.replay {
        times(replay.recorded.at.into_iter().chain(replay.recorded.latency))?;
        let answer = replay.answer.iter();
        synthetic(answer.flat_map(|answer| contents(&answer.content, answer.reasoning.as_ref())))?;
    }
    let messages = request.messages.iter();
    synthetic(messages.flat_map(|message| contents(&message.content, message.reasoning.as_ref())))?;
    labels(&request.labels)?;
    match request
        .body
        .as_deref()
        .map(serde_json::from_str::<Map<String, Value>>)
    {
        Some(Err(error)) => Err(format!("`body` is not a JSON object: {error}")),
        Some(Ok(_)) | None => Ok(()),
    }
}

fn tool_run(run: &ToolRun) -> Result<(), String> {
    times(run.parents.iter().map(|edge| edge.delay))?;
    times(run.service_time)?;
    labels(&run.labels)
}

fn times(times: impl IntoIterator<Item = Nanos>) -> Result<(), String> {
    match times.into_iter().find(|nanos| *nanos >= TIME_END) {
        Some(nanos) => Err(format!("a time is {nanos} ns; it must be below 2^53")),
        None => Ok(()),
    }
}

/// Returns a content and that of the reasoning before it.
fn contents<'a>(
    content: &'a [Segment],
    reasoning: Option<&'a ReasoningContent>,
) -> impl Iterator<Item = &'a Segment> {
    let reasoning = reasoning.into_iter().flat_map(|reasoning| &reasoning.content);
    content.iter().chain(reasoning)
}

fn synthetic<'a>(segments: impl Iterator<Item = &'a Segment>) -> Result<(), String> {
    let tokens = segments.map(|segment| match segment {
        Segment::Synthetic { tokens, .. } => u64::from(*tokens),
        _ => 0,
    });
    let tokens: u64 = tokens.sum();
    if tokens > u64::from(MAX_SYNTHETIC_TOKENS) {
        return Err(format!(
            "{tokens} tokens of synthetic text; {MAX_SYNTHETIC_TOKENS} are allowed"
        ));
    }
    Ok(())
}

fn labels(labels: &[Label]) -> Result<(), String> {
    let bytes: usize = labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > MAX_LABEL_BYTES {
        return Err(format!("{bytes} bytes of labels; {MAX_LABEL_BYTES} are allowed"));
    }
    Ok(())
}
