//! A workload of known size and a transport that answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use veeksha_clock::RunClock;
use veeksha_model::{
    Chunk, ChunkKind, ErrorClass, FailureReason, Message, NodeId, OutputSpec, Request, Response, Role,
    Segment, Session, SessionId,
};
use veeksha_pipeline::{Plan, Schedule};
use veeksha_ports::{
    AgentSource, AgentStep, ConnectionUse, Job, Outcome, OutcomeSink, PluginFailure, PluginFailureKind,
    SessionSource, Timings, Transport, Workload, WorkloadFactory, WorkloadInfo,
};
use veeksha_scheduler::{Grace, Interval, SchedulerConfig, Shard, Traffic};

/// A request of ten words that asks for four tokens.
pub(crate) fn request(node: u32, parents: &[u32]) -> Request {
    let seed = u64::from(node).into();
    Request {
        node: NodeId(node),
        parents: parents.iter().copied().map(NodeId).collect(),
        history_parent: parents.first().copied().map(NodeId),
        wait_after_ready: 0,
        messages: vec![Message {
            role: Role::User,
            content: vec![Segment::Synthetic { seed, tokens: 10 }],
            tool_call_id: None,
        }],
        output: OutputSpec {
            target_tokens: Some(4),
            exact: true,
        },
        body: None,
        labels: Vec::new(),
        replay: None,
    }
}

/// What the workload is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Chains of two requests; the plugin fails at session `fails_at`.
    Chains { length: Option<u64>, fails_at: u64 },
    /// Agents that ask twice, the second time in answer to the first.
    Agents,
    /// Agents that are done with their first step.
    HastyAgents,
}

pub(crate) struct Factory {
    info: WorkloadInfo,
    kind: Kind,
}

pub(crate) fn factory(kind: Kind) -> Arc<dyn WorkloadFactory> {
    let info = WorkloadInfo {
        name: "fake".into(),
        version: "1".into(),
        summary: String::new(),
        engine: "test",
        digest: String::new(),
        granted: Vec::new(),
    };
    Arc::new(Factory { info, kind })
}

impl WorkloadFactory for Factory {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Workload, PluginFailure> {
        Ok(match self.kind {
            Kind::Chains { length, fails_at } => Workload::Planned(Box::new(Chains { length, fails_at })),
            Kind::Agents => Workload::Reactive(Box::new(Agents { hasty: false })),
            Kind::HastyAgents => Workload::Reactive(Box::new(Agents { hasty: true })),
        })
    }
}

struct Chains {
    length: Option<u64>,
    fails_at: u64,
}

impl SessionSource for Chains {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let end = (first + u64::from(count)).min(self.length.unwrap_or(u64::MAX));
        if (first..end).contains(&self.fails_at) {
            return Err(PluginFailure::new(
                "fake",
                "workload.sessions",
                PluginFailureKind::Trap,
                "boom",
            ));
        }
        let chain = |_| Session {
            requests: vec![request(0, &[]), request(1, &[0])],
            ..Session::default()
        };
        Ok((first..end).map(chain).collect())
    }
}

struct Agents {
    hasty: bool,
}

impl AgentSource for Agents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(None)
    }

    fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep {
            requests: vec![request(0, &[])],
            done: self.hasty,
        })
    }

    fn answered(
        &mut self,
        _: SessionId,
        node: NodeId,
        response: &Response,
        _: u64,
    ) -> Result<AgentStep, PluginFailure> {
        assert_eq!(response.text, "four words of answer");
        let next = if node == NodeId(0) {
            vec![request(1, &[0])]
        } else {
            Vec::new()
        };
        Ok(AgentStep {
            done: next.is_empty(),
            requests: next,
        })
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep {
            requests: Vec::new(),
            done: true,
        })
    }

    fn finish(&mut self, _: SessionId) {}
}

/// Whether the server is there.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Server {
    Up,
    Gone,
}

/// Answers every job at once, without usage, on the dispatcher's own thread.
pub(crate) struct Echo {
    pub(crate) server: Server,
    pub(crate) clock: RunClock,
    pub(crate) sink: OutcomeSink,
    pub(crate) answered: AtomicUsize,
}

impl Transport for Echo {
    fn submit(&self, job: Job) {
        let at = self.clock.now();
        let response = Response {
            text: "four words of answer".into(),
            finish_reason: "stop".into(),
            ..Response::default()
        };
        self.answered.fetch_add(1, Ordering::Relaxed);
        (self.sink)(Outcome {
            timings: Timings {
                picked_up_at: Some(at),
                sent_at: Some(at),
                first_byte_at: Some(at),
                completed_at: at,
            },
            connection: ConnectionUse::default(),
            status: Some(200),
            chunks: vec![Chunk {
                at,
                bytes: 20,
                kind: ChunkKind::Content,
                merged: false,
            }],
            result: match self.server {
                Server::Up => Ok(response),
                Server::Gone => Err(FailureReason {
                    request: job.id,
                    class: ErrorClass::Connect,
                    status: None,
                    message: "refused".into(),
                    at,
                }),
            },
            job,
        });
    }

    fn cancel_all(&self) {}

    fn in_flight(&self) -> usize {
        0
    }
}

/// Four sessions at once, 20 in all.
pub(crate) fn plan() -> Plan {
    Plan {
        scheduler: SchedulerConfig {
            traffic: Traffic::Concurrent { target: 4, ramp: 0 },
            cancel_session_on_failure: true,
            max_sessions: Some(20),
            benchmark_timeout: None,
            grace: Grace::Unbounded,
            seed: 7,
            shard: Shard::WHOLE,
        },
        shard: Shard::WHOLE,
        schedule: Schedule::default(),
        warmup: Vec::new(),
        dispatchers: 1,
        completion_threads: 1,
        plugin_threads: 1,
        pregenerate: false,
        min_tokens_prompt: None,
        include_content: false,
        track_prefixes: false,
    }
}

/// The same with arrivals every 2 ms.
pub(crate) fn paced() -> Plan {
    let mut plan = plan();
    plan.scheduler.traffic = Traffic::Rate(Interval::Fixed { interval: 0.002 });
    plan
}
