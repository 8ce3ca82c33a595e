//! Sessions for tests.

use veeksha_model::{
    Message, NodeId, Recorded, RecordedAnswer, Replay, Request, Role, Seed, Segment, Session,
};

pub(crate) fn synthetic(seed: u64, tokens: u32) -> Segment {
    Segment::Synthetic {
        seed: Seed::from(seed),
        tokens,
    }
}

pub(crate) fn text(text: &str) -> Segment {
    Segment::Text(text.into())
}

pub(crate) fn user(content: Vec<Segment>) -> Message {
    Message {
        reasoning: None,
        tool_calls: Vec::new(),
        role: Role::User,
        content,
        tool_call_id: None,
    }
}

/// Returns a request that continues another one, with tokens of the seed of its node.
pub(crate) fn request(node: u32, continues: Option<u32>, tokens: u32) -> Request {
    Request {
        node: NodeId(node),
        parents: continues
            .into_iter()
            .map(|parent| NodeId(parent).into())
            .collect(),
        history_parent: continues.map(NodeId),
        messages: vec![user(vec![synthetic(u64::from(node), tokens)])],
        ..Request::default()
    }
}

pub(crate) fn recorded_answer(mut request: Request, text: &str, output_tokens: u32) -> Request {
    let replay = request.replay.get_or_insert_default();
    replay.answer = Some(RecordedAnswer {
        content: vec![Segment::Text(text.into())],
        tool_calls: Vec::new(),
        reasoning: None,
    });
    replay.recorded.output_tokens = Some(output_tokens);
    request
}

pub(crate) fn session(requests: Vec<Request>) -> Session {
    Session {
        requests,
        ..Session::default()
    }
}

/// Returns a session of one request made of blocks, as from a trace of hash ids.
pub(crate) fn blocks(ids: &[u64], size: u32, tokens: u32, at: u64, output: u32) -> Session {
    let mut left = tokens;
    let content = ids.iter().map(|id| {
        let here = left.min(size);
        left -= here;
        synthetic(id + 1_000_000, here)
    });
    let content = content.collect();
    let mut only = request(0, None, 1);
    only.messages = vec![user(content)];
    only.output.target_tokens = Some(output);
    only.replay = Some(Box::new(Replay {
        recorded: Recorded {
            at: Some(at),
            latency: None,
            prompt_tokens: Some(tokens),
            output_tokens: Some(output),
        },
        ..Replay::default()
    }));
    Session {
        requests: vec![only],
        arrives_at: Some(at),
        ..Session::default()
    }
}
