//! `decisions.jsonl` of a run, indexed by session.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use veeksha_model::{KnownNodes, NodeId, ReplayedSession, RequestId, SessionId, check_session};

use crate::bounds;
use crate::error::DecisionsError;
use crate::recorded_step::RecordedStep;
use crate::redact::has_redacted_headers;
use crate::wire::{DecisionsOrigin, HeaderLine, StepLine};

/// The name of the file in the folder of a run.
pub const FILE: &str = "decisions.jsonl";

/// Longest line that is read. A step of a thousand requests with long texts is shorter.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// The place of a step in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepPlace {
    /// The node whose end the step answers.
    pub(crate) after: Option<NodeId>,
    offset: u64,
    bytes: u32,
}

/// The steps of a session, in the order in which they were recorded.
#[derive(Debug)]
pub(crate) struct SessionSteps {
    /// The session of the recorded run.
    pub(crate) id: SessionId,
    /// The session that first took these decisions: itself, unless the run is a replay.
    pub(crate) origin: ReplayedSession,
    pub(crate) steps: Vec<StepPlace>,
}

/// The recorded decisions of a run. Only the places of the steps are in memory; steps are read
/// when they are needed, from any thread.
#[derive(Debug)]
pub struct DecisionsFile {
    file: File,
    origin: DecisionsOrigin,
    sessions: Vec<SessionSteps>,
    digest: String,
    redacted: RedactedSteps,
    unfinished: u64,
    is_cut: bool,
}

/// The parts of recorded decisions in which a secret was replaced by `***`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedactedSteps {
    /// Steps with such a header, which a replay leaves out.
    pub headers: u64,
    /// Requests with such a content, which cannot be sent as they were.
    pub requests: u64,
    /// The first of these requests.
    pub first_request: Option<RequestId>,
}

impl RedactedSteps {
    fn add(&mut self, step: &RecordedStep) {
        self.headers += u64::from(has_redacted_headers(step));
        self.requests += step.redacted.len() as u64;
        let (session, first) = (step.session, step.redacted.first());
        self.first_request = self
            .first_request
            .or(first.map(|node| RequestId { session, node: *node }));
    }
}

/// What is checked of a session while the file is indexed.
#[derive(Default)]
struct IndexedSession {
    steps: Vec<StepPlace>,
    known: KnownNodes,
    answered: HashSet<Option<NodeId>>,
    replays: Option<ReplayedSession>,
    /// True if the agent ended.
    done: bool,
}

impl DecisionsFile {
    /// Reads and checks every line of a file. A last line without its line feed was cut by a crash
    /// and is ignored.
    ///
    /// # Errors
    /// If the file cannot be read, has another format version, or a line of it is damaged.
    pub fn open(path: &Path) -> Result<Self, DecisionsError> {
        let file = File::open(path)?;
        let mut reader = BufReader::with_capacity(256 << 10, &file);
        let mut digest = blake3::Hasher::new();
        let (mut line, mut offset, mut number) = (Vec::new(), 0, 0);
        let mut origin = None;
        let mut sessions: BTreeMap<SessionId, IndexedSession> = BTreeMap::new();
        let mut redacted = RedactedSteps::default();
        let mut origins = HashSet::new();
        let is_cut = loop {
            line.clear();
            number += 1;
            let bytes = (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? as u64;
            if line.pop() != Some(b'\n') {
                if bytes < MAX_LINE_BYTES {
                    break bytes > 0;
                }
                return Err(DecisionsError::Damaged {
                    line: number,
                    why: format!("it is longer than {} MiB", MAX_LINE_BYTES >> 20),
                });
            }
            digest.update(&line);
            if origin.is_none() {
                origin = Some(HeaderLine::read(&line)?);
            } else {
                let damaged = |why: String| DecisionsError::Damaged { line: number, why };
                let step = parse(&line).map_err(damaged)?;
                redacted.add(&step);
                let first = step.after.is_none().then(|| (step.session, first_session(&step)));
                let place = StepPlace {
                    after: step.after,
                    offset,
                    bytes: line.len() as u32,
                };
                let session = sessions.entry(step.session).or_default();
                session.add(step, place).map_err(damaged)?;
                if let Some((session, first)) = first
                    && !origins.insert(first)
                {
                    let why = format!("session {session} replays session {first}, as another session does");
                    return Err(damaged(why));
                }
            }
            offset += bytes;
        };
        let unfinished = sessions.values().filter(|session| !session.done).count();
        let origin = origin.ok_or(DecisionsError::Empty)?;
        let sessions = sessions.into_iter();
        let sessions = sessions.map(|(id, session)| SessionSteps {
            id,
            origin: session.replays.unwrap_or(ReplayedSession {
                session: id,
                seed: origin.seed,
            }),
            steps: session.steps,
        });
        Ok(DecisionsFile {
            sessions: sessions.collect(),
            origin,
            digest: digest.finalize().to_hex().to_string(),
            redacted,
            unfinished: unfinished as u64,
            is_cut,
            file,
        })
    }

    /// Returns the origin of the decisions.
    pub fn origin(&self) -> &DecisionsOrigin {
        &self.origin
    }

    /// Returns the number of recorded sessions.
    pub fn session_count(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Returns the parts in which a secret was replaced by `***`.
    pub fn redacted(&self) -> RedactedSteps {
        self.redacted
    }

    /// Returns the number of sessions without the end of their agent: it failed, or the run or the
    /// recording ended before.
    pub fn unfinished_sessions(&self) -> u64 {
        self.unfinished
    }

    /// Returns true if the last line was cut: the run was killed, its disk was full, or it is still
    /// being written.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the ids of the recorded sessions, in ascending order.
    pub fn session_ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions.iter().map(|session| session.id)
    }

    /// Returns the recorded sessions by the session that first took their decisions, which is the
    /// same in a run and in each replay of it.
    pub(crate) fn by_origin(&self) -> BTreeMap<SessionId, SessionId> {
        let sessions = self.sessions.iter();
        sessions
            .map(|session| (session.origin.session, session.id))
            .collect()
    }

    /// Returns BLAKE3 of the file's lines, in hex.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the steps of the session at a position in the order of ids.
    pub(crate) fn session_at(&self, position: u64) -> Option<&SessionSteps> {
        self.sessions.get(usize::try_from(position).ok()?)
    }

    /// Reads all steps of a session; none if the run did not start it.
    ///
    /// # Errors
    /// If the file cannot be read any more, or has changed.
    pub fn steps(&self, session: SessionId) -> Result<Vec<RecordedStep>, DecisionsError> {
        let found = self.sessions.binary_search_by_key(&session, |session| session.id);
        let Some(session) = found.ok().and_then(|index| self.sessions.get(index)) else {
            return Ok(Vec::new());
        };
        session
            .steps
            .iter()
            .map(|place| self.read(session.id, *place))
            .collect()
    }

    /// Reads a step of a session.
    pub(crate) fn read(&self, session: SessionId, place: StepPlace) -> Result<RecordedStep, DecisionsError> {
        let mut line = vec![0; place.bytes as usize];
        self.file.read_exact_at(&mut line, place.offset)?;
        match parse(&line) {
            Ok(step) if step.session == session && step.after == place.after => Ok(step),
            _ => Err(DecisionsError::Changed(session)),
        }
    }
}

/// Returns the session that first took the decisions of a session, by its first step.
fn first_session(step: &RecordedStep) -> SessionId {
    let replays = step.step.added.replays;
    replays.map_or(step.session, |replays| replays.session)
}

fn parse(line: &[u8]) -> Result<RecordedStep, String> {
    let line: StepLine<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    Ok(line.into())
}

impl IndexedSession {
    /// Adds the next step of the session, if it can follow the others.
    fn add(&mut self, step: RecordedStep, place: StepPlace) -> Result<(), String> {
        let session = step.session;
        match step.after {
            None if !self.steps.is_empty() => return Err(format!("session {session} starts again")),
            Some(node) if !self.known.contains_key(&node) => {
                return Err(format!("session {session} has no node {node} so far"));
            }
            _ => {}
        }
        if !self.answered.insert(step.after) {
            let node = step.after.unwrap_or_default();
            return Err(format!("session {session} answers the end of node {node} again"));
        }
        let added = &step.step.added;
        check_session(added, &self.known).map_err(|error| format!("session {session}: {error}"))?;
        bounds::check(added).map_err(|why| format!("session {session}: {why}"))?;
        let own: HashSet<NodeId> = if step.step.cancel.is_empty() {
            HashSet::new()
        } else {
            added.nodes().collect()
        };
        let known = |node: &NodeId| self.known.contains_key(node) || own.contains(node);
        if let Some(node) = step.step.cancel.iter().find(|node| !known(node)) {
            return Err(format!(
                "session {session} cancels the node {node}, which it does not have"
            ));
        }
        self.known.extend(added.kinds());
        self.replays = self.replays.or(added.replays);
        self.done |= step.step.done;
        self.steps.push(place);
        Ok(())
    }
}
