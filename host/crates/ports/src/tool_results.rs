//! The text of tool results.

use veeksha_model::{NodeId, Seed, Segment, Session, SessionId};
use veeksha_stats::mix64;

/// Returns the text that a tool run returns: as many tokens as its result has, generated from the
/// names of session and node.
pub fn tool_result_text(session: SessionId, run: NodeId, tokens: u32) -> Segment {
    if tokens == 0 {
        return Segment::Text(String::new());
    }
    // Any constant: seeds of a workload's own text are small numbers or hashes of other things.
    let seed = mix64(mix64(session.0 ^ 0x746f_6f6c_2072_756e) ^ u64::from(run.0));
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

/// Replaces the results of tool runs in the messages of a session's requests by text. `tokens`
/// gives the tokens of a run's result, if it is known.
pub fn resolve_tool_results(id: SessionId, session: &mut Session, tokens: impl Fn(NodeId) -> Option<u32>) {
    let messages = session
        .requests
        .iter_mut()
        .flat_map(|request| &mut request.messages);
    for segment in messages.flat_map(|message| &mut message.content) {
        if let Segment::ToolResult(run) = *segment
            && let Some(tokens) = tokens(run)
        {
            *segment = tool_result_text(id, run, tokens);
        }
    }
}
