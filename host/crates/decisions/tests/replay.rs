//! Steps that are recorded, read and replayed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports an error by panicking"
)]

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use veeksha_decisions::{
    DecisionWriter, DecisionsError, DecisionsFile, DecisionsOrigin, FILE, RecordingFactory, Redact,
    RedactedSteps, ReplayFactory, Verbatim, compare_files,
};
use veeksha_model::{
    ErrorClass, FailureReason, Message, Nanos, NodeId, ReasoningContent, RecordedAnswer, Replay,
    ReplayedSession, Request, RequestId, Response, Role, Seed, Segment, Session, SessionId, ToolCall,
};
use veeksha_ports::{AgentSource, AgentStep, PluginFailure, Workload, WorkloadFactory, WorkloadInfo};

fn request(node: u32, parents: &[u32]) -> Request {
    Request {
        node: NodeId(node),
        parents: parents.iter().map(|parent| NodeId(*parent).into()).collect(),
        messages: vec![Message::new(
            Role::User,
            vec![Segment::Text(format!("node {node}"))],
        )],
        ..Request::default()
    }
}

fn step(requests: Vec<Request>) -> AgentStep {
    AgentStep {
        added: Session::from(requests),
        ..AgentStep::default()
    }
}

/// Two subagents (0 -> 2 and 1 -> 3), joined by node 4. The step after node `n` depends on the
/// nodes that ended before it.
#[derive(Default)]
struct TwoSubagents {
    ended: Vec<u32>,
}

impl AgentSource for TwoSubagents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(Some(1))
    }

    fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
        self.ended.clear();
        Ok(step(vec![request(0, &[]), request(1, &[])]))
    }

    fn answered(
        &mut self,
        _: SessionId,
        node: NodeId,
        response: &Response,
        _: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        self.ended.push(node.0);
        Ok(match node.0 {
            0 => {
                let mut answer = request(2, &[0]);
                answer.messages[0].role = Role::Tool;
                answer.messages[0].tool_call_id = response.tool_calls.first().map(|call| call.id.clone());
                step(vec![answer])
            }
            1 => step(vec![request(3, &[1])]),
            4 => AgentStep {
                done: true,
                ..AgentStep::default()
            },
            _ if self.ended.contains(&2) && self.ended.contains(&3) => step(vec![request(4, &[2, 3])]),
            _ => AgentStep::default(),
        })
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep::default())
    }

    fn finish(&mut self, _: SessionId) {}
}

struct Agents(WorkloadInfo);

impl WorkloadFactory for Agents {
    fn info(&self) -> &WorkloadInfo {
        &self.0
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(Workload::Reactive(Box::new(TwoSubagents::default())))
    }
}

fn agents() -> Agents {
    Agents(WorkloadInfo {
        name: "two".to_owned(),
        version: "1".to_owned(),
        summary: String::new(),
        engine: "lua",
        digest: "0f".to_owned(),
        granted: Vec::new(),
    })
}

fn reactive(factory: &dyn WorkloadFactory) -> Box<dyn AgentSource> {
    match factory.open().unwrap() {
        Workload::Reactive(agents) => agents,
        Workload::Planned(_) => panic!("a planned workload"),
    }
}

fn answer(call: &str) -> Response {
    Response {
        tool_calls: vec![ToolCall {
            id: call.to_owned(),
            ..ToolCall::default()
        }],
        ..Response::default()
    }
}

/// Records a session whose nodes end in this order, and one that never starts.
fn record(folder: &Path, order: &[u32]) -> DecisionsFile {
    let path = folder.join(FILE);
    let origin = origin();
    let writer = DecisionWriter::start(path.clone(), origin.clone(), Arc::new(Verbatim)).unwrap();
    let factory = RecordingFactory::new(Arc::new(agents()), writer.sender());
    let mut ahead = reactive(&factory);
    ahead.start(SessionId(6)).unwrap();
    let mut agents = reactive(&factory);
    agents.start(SessionId(5)).unwrap();
    writer.sender().session_started(SessionId(5));
    for node in order {
        let answer = answer(&format!("recorded-{node}"));
        agents.answered(SessionId(5), NodeId(*node), &answer, 0).unwrap();
    }
    agents.finish(SessionId(5));
    writer.finish().unwrap();
    let file = DecisionsFile::open(&path).unwrap();
    assert_eq!(*file.origin(), origin);
    file
}

fn nodes(step: &AgentStep) -> Vec<u32> {
    step.added.nodes().map(|node| node.0).collect()
}

#[test]
fn steps_of_sessions_that_started_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path(), &[0, 1, 2, 3, 4]);
    assert_eq!(file.session_ids().collect::<Vec<_>>(), [SessionId(5)]);
    let steps = file.steps(SessionId(5)).unwrap();
    // The step after node 2 decides nothing, but its answer had a tool call.
    let after: Vec<_> = steps.iter().map(|step| step.after.map(|node| node.0)).collect();
    assert_eq!(after, [None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(steps[0].step, step(vec![request(0, &[]), request(1, &[])]));
    assert_eq!(steps[4].step, step(vec![request(4, &[2, 3])]));
    assert!(steps[5].step.done);
    assert!(file.steps(SessionId(6)).unwrap().is_empty());
}

/// In the recording, subagent 0 -> 2 was the faster one; now the other is. The step after node 3
/// names node 2, which does not exist before node 0 has ended.
#[test]
fn steps_wait_for_the_nodes_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path(), &[0, 2, 1, 3, 4]);
    let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
    assert_eq!(replay.length().unwrap(), Some(1));
    let session = SessionId(0);
    assert_eq!(nodes(&replay.start(session).unwrap()), [0, 1]);
    let mut end = |node| {
        let step = replay.answered(session, NodeId(node), &answer(&format!("now-{node}")), 0);
        step.unwrap()
    };
    assert_eq!(nodes(&end(1)), [3]);
    assert_eq!(end(3), AgentStep::default());
    let both = end(0);
    assert_eq!(nodes(&both), [2, 4]);
    // The tool message names the call of this run's answer.
    assert_eq!(
        both.added.requests[0].messages[0].tool_call_id.as_deref(),
        Some("now-0")
    );
    assert!(!end(2).done);
    let last = end(4);
    assert!(last.done && last.added == Session::default(), "{last:?}");
    // The end of a node may still be on its way.
    assert!(end(4).done);
    assert!(replay.start(SessionId(1)).is_err());
}

#[test]
fn failed_requests_do_not_change_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path(), &[0, 1, 2, 3, 4]);
    let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
    let session = SessionId(0);
    replay.start(session).unwrap();
    let reason = FailureReason {
        request: RequestId {
            session,
            node: NodeId(0),
        },
        class: ErrorClass::Timeout,
        status: None,
        retry_after: None,
        message: String::new(),
        at: 0,
    };
    assert_eq!(nodes(&replay.failed(session, &reason).unwrap()), [2]);
}

/// What a run recorded before its end cut the session is sent, and then the session ends.
#[test]
fn cut_sessions_end_with_their_last_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path(), &[1]);
    let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
    let session = SessionId(0);
    assert!(!replay.start(session).unwrap().done);
    let last = replay
        .answered(session, NodeId(1), &Response::default(), 0)
        .unwrap();
    assert_eq!((nodes(&last), last.done), (vec![3], true));
}

fn origin() -> DecisionsOrigin {
    DecisionsOrigin {
        plugin: "two".to_owned(),
        plugin_version: "1".to_owned(),
        plugin_digest: "0f".to_owned(),
        seed: 3,
        run_id: Some("run".to_owned()),
    }
}

/// Records sessions of a workload. Each answer has a tool call of the same id.
fn recorded(
    folder: &Path,
    factory: impl WorkloadFactory + 'static,
    redact: Arc<dyn Redact>,
    seed: u64,
    sessions: &[u64],
) -> DecisionsFile {
    let path = folder.join(FILE);
    let origin = DecisionsOrigin { seed, ..origin() };
    let writer = DecisionWriter::start(path.clone(), origin, redact).unwrap();
    let mut agents = reactive(&RecordingFactory::new(Arc::new(factory), writer.sender()));
    for session in sessions {
        let session = SessionId(*session);
        agents.start(session).unwrap();
        writer.sender().session_started(session);
        for node in [0, 2, 1, 3, 4] {
            agents
                .answered(session, NodeId(node), &answer("call_0"), 0)
                .unwrap();
        }
        agents.finish(session);
    }
    writer.finish().unwrap();
    DecisionsFile::open(&path).unwrap()
}

/// A shard has every second session; a replay numbers them from 0, and so does a replay of it.
#[test]
fn sessions_of_replays_are_compared_by_the_ids_of_the_first_run() {
    let folders = [(); 4].map(|()| tempfile::tempdir().unwrap());
    let first = recorded(folders[0].path(), agents(), Arc::new(Verbatim), 3, &[1, 3, 5]);
    let replay = |of: DecisionsFile, folder: &Path, seed| {
        let factory = ReplayFactory::new(Arc::new(of));
        recorded(folder, factory, Arc::new(Verbatim), seed, &[0, 1, 2])
    };
    let second = replay(first, folders[1].path(), 8);
    let ids: Vec<_> = second.session_ids().map(|session| session.0).collect();
    assert_eq!(ids, [0, 1, 2]);
    let third = replay(second, folders[2].path(), 9);
    // The seed and the session are those of the run whose agent decided.
    let replays = |session| third.steps(SessionId(session)).unwrap()[0].step.added.replays;
    assert_eq!(
        replays(1),
        Some(ReplayedSession {
            session: SessionId(3),
            seed: 3
        })
    );
    let first = recorded(folders[3].path(), agents(), Arc::new(Verbatim), 3, &[1, 3, 4]);
    let summary = compare_files(&first, &third).unwrap();
    assert_eq!(
        (
            summary.identical,
            summary.diverged,
            summary.only_recorded,
            summary.only_other
        ),
        (2, 0, 1, 1)
    );
}

#[test]
fn two_sessions_cannot_replay_the_same_one() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), agents(), Arc::new(Verbatim), 3, &[0, 1]);
    let mut lines = lines(folder.path());
    let start = lines
        .iter()
        .position(|line| line.starts_with(r#"{"session":1,"requests""#));
    let start = start.unwrap();
    lines[start] = lines[start].replacen('{', r#"{"replays":{"session":0,"seed":3},"#, 1);
    assert_eq!(
        open(folder.path(), &lines, "\n").unwrap_err().to_string(),
        format!(
            "line {} is damaged: session 1 replays session 0, as another session does",
            start + 1
        )
    );
}

/// The recorded server numbers the calls of each answer from 0. The join has the result of a call
/// of node 3, and waits for node 2, whose subagent is slower now.
#[test]
fn repeated_ids_of_tool_calls_are_renamed_by_their_answer() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path(), agents(), Arc::new(Verbatim), 3, &[0]);
    let mut lines = lines(folder.path());
    let join = lines
        .iter()
        .position(|line| line.starts_with(r#"{"session":0,"after":3,"#));
    let join = &mut lines[join.unwrap()];
    *join = join.replace(r#""role":"user""#, r#""role":"tool","tool_call_id":"call_0""#);
    let file = open(folder.path(), &lines, "\n").unwrap();
    let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
    let session = SessionId(0);
    replay.start(session).unwrap();
    let mut end = |node| {
        let step = replay.answered(session, NodeId(node), &answer(&format!("now-{node}")), 0);
        step.unwrap()
    };
    end(1);
    end(3);
    let both = end(0);
    assert_eq!(nodes(&both), [2, 4]);
    let ids = both.added.requests.iter();
    let ids: Vec<_> = ids
        .map(|request| request.messages[0].tool_call_id.as_deref())
        .collect();
    assert_eq!(ids, [Some("now-0"), Some("now-3")]);
}

/// Replaces a secret, as the redaction of a run does.
struct Secret;

impl Redact for Secret {
    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Cow::Owned(text.replace("secret", "***"))
    }
}

/// An agent with one request.
struct OneRequest(Request);

impl AgentSource for OneRequest {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(Some(1))
    }

    fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep {
            done: true,
            ..step(vec![self.0.clone()])
        })
    }

    fn answered(
        &mut self,
        _: SessionId,
        _: NodeId,
        _: &Response,
        _: Nanos,
    ) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep::default())
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep::default())
    }

    fn finish(&mut self, _: SessionId) {}
}

struct OneRequestFactory(WorkloadInfo, Request);

impl WorkloadFactory for OneRequestFactory {
    fn info(&self) -> &WorkloadInfo {
        &self.0
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(Workload::Reactive(Box::new(OneRequest(self.1.clone()))))
    }
}

#[test]
fn content_with_a_secret_is_marked() {
    let redacted = |request: Request| {
        let folder = tempfile::tempdir().unwrap();
        let factory = OneRequestFactory(agents().0, request);
        recorded(folder.path(), factory, Arc::new(Secret), 3, &[4]).redacted()
    };
    let first_request = Some(RequestId {
        session: SessionId(4),
        node: NodeId(7),
    });
    let plain = request(7, &[]);
    let body = |body: &str| Request {
        body: Some(body.to_owned()),
        ..plain.clone()
    };
    assert_eq!(
        redacted(body(r#"{"input": "a secret"}"#)),
        RedactedSteps {
            headers: 0,
            requests: 1,
            first_request
        }
    );
    // Markdown.
    assert_eq!(
        redacted(body(r#"{"input": "***bold***"}"#)),
        RedactedSteps::default()
    );
    let mut message = plain.clone();
    message.messages[0].content = vec![Segment::Text("secret".to_owned())];
    assert_eq!(redacted(message).requests, 1);
    // A header is not sent; a label is.
    let pair = vec![("x-a".to_owned(), "secret".to_owned())];
    let header = Request {
        headers: pair.clone(),
        ..plain.clone()
    };
    assert_eq!(
        redacted(header),
        RedactedSteps {
            headers: 1,
            requests: 0,
            first_request: None
        }
    );
    let label = Request {
        labels: pair,
        ..plain
    };
    assert_eq!(redacted(label), RedactedSteps::default());
}

#[test]
fn reasoning_of_recorded_answers_is_bounded() {
    let synthetic = |tokens| {
        vec![Segment::Synthetic {
            seed: Seed::from(1),
            tokens,
        }]
    };
    let answer = RecordedAnswer {
        content: synthetic(1 << 23),
        reasoning: Some(ReasoningContent {
            content: synthetic((1 << 23) + 1),
            signature: None,
        }),
        ..RecordedAnswer::default()
    };
    let replay = Replay {
        answer: Some(answer),
        ..Replay::default()
    };
    let request = Request {
        replay: Some(Box::new(replay)),
        ..request(0, &[])
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let writer = DecisionWriter::start(path.clone(), origin(), Arc::new(Verbatim)).unwrap();
    let factory = OneRequestFactory(agents().0, request);
    let mut agents = reactive(&RecordingFactory::new(Arc::new(factory), writer.sender()));
    agents.start(SessionId(0)).unwrap();
    writer.sender().session_started(SessionId(0));
    writer.finish().unwrap();
    let error = DecisionsFile::open(&path).unwrap_err().to_string();
    assert!(error.contains("node 0: 16777217 tokens"), "{error}");
}

fn lines(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(FILE)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn open(folder: &Path, lines: &[String], end: &str) -> Result<DecisionsFile, DecisionsError> {
    let path = folder.join("changed.jsonl");
    std::fs::write(&path, lines.join("\n") + end).unwrap();
    DecisionsFile::open(&path)
}

#[test]
fn names_the_damaged_line() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &[0, 1, 2, 3, 4]);
    let written = lines(folder.path());
    let refused = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = written.clone();
        change(&mut lines);
        open(folder.path(), &lines, "\n").unwrap_err().to_string()
    };
    assert!(refused(&|lines| lines[2].truncate(9)).starts_with("line 3 is damaged: EOF"));
    assert_eq!(
        refused(&|lines| {
            lines.remove(4);
            lines.remove(2);
        }),
        "line 4 is damaged: session 5: node 4 names the parent 2, which the session does not have"
    );
    assert_eq!(
        refused(&|lines| lines.push(lines[1].clone())),
        "line 8 is damaged: session 5 starts again"
    );
    assert_eq!(
        refused(&|lines| lines.push(lines[6].clone())),
        "line 8 is damaged: session 5 answers the end of node 4 again"
    );
    assert_eq!(
        refused(&|lines| lines[6] = lines[6].replace("\"after\":4", "\"after\":9")),
        "line 7 is damaged: session 5 has no node 9 so far"
    );
    assert_eq!(
        refused(&|lines| lines[6] = lines[6].replace("\"done\"", "\"cancel\":[7],\"done\"")),
        "line 7 is damaged: session 5 cancels the node 7, which it does not have"
    );
    assert_eq!(
        refused(
            &|lines| lines[2] = lines[2].replace("\"messages\"", "\"wait_ns\":9007199254740992,\"messages\"")
        ),
        "line 3 is damaged: session 5: node 2: a time is 9007199254740992 ns; it must be below 2^53"
    );
    assert_eq!(
        refused(&|lines| lines[3] = lines[3].replace("\"messages\"", "\"body\":\"[]\",\"messages\"")),
        "line 4 is damaged: session 5: node 3: `body` is not a JSON object: invalid type: sequence, expected a map at line \
         1 column 0"
    );
    assert_eq!(
        refused(&|lines| lines.clear()),
        "line 1 is damaged: EOF while parsing a value at line 1 column 0"
    );
}

#[test]
fn incomplete_last_line_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), &[0, 1, 2, 3, 4]);
    let written = lines(folder.path());
    let whole = open(folder.path(), &written, "\n").unwrap();
    assert_eq!(whole.steps(SessionId(5)).unwrap().len(), 6);
    let cut = open(folder.path(), &written, "").unwrap();
    assert_eq!(cut.steps(SessionId(5)).unwrap().len(), 5);
    assert!(matches!(
        open(folder.path(), &[String::new()], "{").unwrap_err(),
        DecisionsError::Empty
    ));
}

/// A file that was replaced after the check.
#[test]
fn changed_file_fails_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let file = record(folder.path(), &[0, 1, 2, 3, 4]);
    let path = folder.path().join(FILE);
    let length = std::fs::metadata(&path).unwrap().len();
    let mut changed = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    changed.write_all(&vec![b' '; length as usize]).unwrap();
    let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
    let failure = replay.start(SessionId(0)).unwrap_err();
    assert_eq!(
        failure.message,
        "session 0: decisions.jsonl: it changed while it was read: session 5 is different now"
    );
}

proptest! {
    /// Whatever a file contains, it is refused or replayed to its end.
    #[test]
    fn changed_bytes_do_not_panic(changes in vec((any::<Index>(), any::<u8>()), 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        record(folder.path(), &[0, 1, 2, 3, 4]);
        let path = folder.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        std::fs::write(&path, bytes).unwrap();
        if let Ok(file) = DecisionsFile::open(&path) {
            let mut replay = reactive(&ReplayFactory::new(Arc::new(file)));
            for session in 0..replay.length().unwrap().unwrap() {
                let mut step = replay.start(SessionId(session)).unwrap();
                let mut ends: Vec<NodeId> = step.added.nodes().collect();
                while let Some(node) = ends.pop() {
                    step = replay.answered(SessionId(session), node, &Response::default(), 0).unwrap();
                    ends.extend(step.added.nodes());
                }
                prop_assert!(step.done);
            }
        }
    }
}
