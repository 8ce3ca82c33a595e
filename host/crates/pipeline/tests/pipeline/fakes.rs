//! A workload of known size and a transport that answers at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_model::{
    Chunk, ChunkKind, ErrorClass, FailureReason, HistoryMode, Message, NodeId, OutputSpec, Recorded,
    RecordedAnswer, Replay, Request, RequestId, Response, Role, Segment, Session, SessionId, TIMER, ToolRun,
};
use veeksha_pipeline::{PipelineError, Plan, ReplaySchedule};
use veeksha_ports::{
    AgentSource, AgentStep, ConnectionUse, Job, PluginFailure, PluginFailureKind, RequestOutcome,
    SessionSource, Sinks, Timings, ToolRunEnd, Transport, Workload, WorkloadFactory, WorkloadInfo,
};
use veeksha_scheduler::{ConcurrencyLimits, GracePeriod, Interval, SchedulerConfig, Shard, TrafficRule};

/// A request of ten words that asks for four tokens.
pub(crate) fn request(node: u32, parents: &[u32]) -> Request {
    let seed = u64::from(node).into();
    Request {
        node: NodeId(node),
        parents: parents
            .iter()
            .copied()
            .map(|parent| NodeId(parent).into())
            .collect(),
        history_parent: parents.first().copied().map(NodeId),
        messages: vec![Message::new(
            Role::User,
            vec![Segment::Synthetic { seed, tokens: 10 }],
        )],
        output: OutputSpec {
            target_tokens: Some(4),
            exact: true,
            form: None,
        },
        ..Request::default()
    }
}

/// The same request as a recorded one: sent at `at`, and answered with four words that occur
/// nowhere else.
pub(crate) fn replayed(history: HistoryMode, at: Option<u64>, request: Request) -> Request {
    let words = Segment::Text(format!("answer of node {}", request.node));
    Request {
        replay: Some(Box::new(Replay {
            history,
            answer: Some(RecordedAnswer {
                content: vec![words],
                tool_calls: Vec::new(),
                reasoning: None,
            }),
            recorded: Recorded {
                at,
                output_tokens: Some(99),
                ..Recorded::default()
            },
        })),
        ..request
    }
}

/// The kind of workload.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Chains of two requests; the plugin fails at session `fails_at`.
    Chains { length: Option<u64>, fails_at: u64 },
    /// Sessions that the test makes, from a seed and the id. Those outside of `only` are never
    /// asked for.
    Generated {
        seed: u64,
        length: Option<u64>,
        session: fn(u64, u64) -> Session,
        only: Shard,
    },
    /// Agents that ask twice, the second time in answer to the first.
    Agents,
    /// Agents that are done with their first step.
    HastyAgents,
    /// Agents with two requests that fail on every answer.
    FailingAgents,
    /// Agents that start another tool run of no time after each one, without end.
    EndlessAgents,
    /// Agents of two steps that the test makes, the second in answer to the first request.
    SteppingAgents {
        length: Option<u64>,
        first: MadeStep,
        second: MadeStep,
    },
}

/// Makes the requests of a session's step, or fails.
pub(crate) type MadeStep = fn(u64) -> Result<Vec<Request>, &'static str>;

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
            Kind::Generated {
                seed,
                length,
                session,
                only,
            } => Workload::Planned(Box::new(Generated {
                seed,
                length,
                session,
                only,
            })),
            Kind::SteppingAgents {
                length,
                first,
                second,
            } => Workload::Reactive(Box::new(Stepping {
                length,
                first,
                second,
            })),
            Kind::EndlessAgents => Workload::Reactive(Box::new(Endless)),
            Kind::Agents => Workload::Reactive(Box::new(Agents {
                hasty: false,
                fails: false,
            })),
            Kind::HastyAgents => Workload::Reactive(Box::new(Agents {
                hasty: true,
                fails: false,
            })),
            Kind::FailingAgents => Workload::Reactive(Box::new(Agents {
                hasty: false,
                fails: true,
            })),
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

struct Generated {
    seed: u64,
    length: Option<u64>,
    session: fn(u64, u64) -> Session,
    only: Shard,
}

impl SessionSource for Generated {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn sessions(&mut self, first: u64, count: u32) -> Result<Vec<Session>, PluginFailure> {
        let end = (first + u64::from(count)).min(self.length.unwrap_or(u64::MAX));
        if let Some(id) = (first..end).find(|id| !self.only.owns(*id)) {
            let message = format!("session {id} is another's");
            let kind = PluginFailureKind::Trap;
            return Err(PluginFailure::new("fake", "workload.sessions", kind, message));
        }
        Ok((first..end).map(|id| (self.session)(self.seed, id)).collect())
    }
}

struct Agents {
    hasty: bool,
    fails: bool,
}

impl AgentSource for Agents {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(None)
    }

    fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
        let mut requests = vec![request(0, &[])];
        if self.fails {
            requests.push(request(1, &[]));
        }
        Ok(AgentStep {
            added: requests.into(),
            done: self.hasty,
            ..AgentStep::default()
        })
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        response: &Response,
        _: u64,
    ) -> Result<AgentStep, PluginFailure> {
        if self.fails {
            let message = format!("boom in {session}\nand a second line");
            return Err(PluginFailure::new(
                "fake",
                "agent.answered",
                PluginFailureKind::Trap,
                message,
            ));
        }
        assert_eq!(response.text, "four words of answer");
        let next = if node == NodeId(0) {
            vec![request(1, &[0])]
        } else {
            Vec::new()
        };
        Ok(AgentStep {
            done: next.is_empty(),
            added: next.into(),
            ..AgentStep::default()
        })
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep {
            done: true,
            ..AgentStep::default()
        })
    }

    fn finish(&mut self, _: SessionId) {}
}

struct Stepping {
    length: Option<u64>,
    first: MadeStep,
    second: MadeStep,
}

fn stepped(requests: Result<Vec<Request>, &str>, done: bool) -> Result<AgentStep, PluginFailure> {
    let trap = |why: &str| PluginFailure::new("fake", "agent", PluginFailureKind::Trap, why);
    Ok(AgentStep {
        added: requests.map_err(trap)?.into(),
        done,
        ..AgentStep::default()
    })
}

impl AgentSource for Stepping {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(self.length)
    }

    fn start(&mut self, session: SessionId) -> Result<AgentStep, PluginFailure> {
        stepped((self.first)(session.0), false)
    }

    fn answered(
        &mut self,
        session: SessionId,
        node: NodeId,
        _: &Response,
        _: u64,
    ) -> Result<AgentStep, PluginFailure> {
        // The answers of the first step lead to one step each.
        let requests = if node.0 < 10 {
            (self.second)(session.0)
        } else {
            Ok(Vec::new())
        };
        let is_last = node.0 >= 10;
        stepped(requests, is_last)
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        stepped(Ok(Vec::new()), true)
    }

    fn finish(&mut self, _: SessionId) {}
}

struct Endless;

/// Starts a timer of no time after a node.
fn timer(node: u32, after: Option<u32>) -> AgentStep {
    let run = ToolRun {
        node: NodeId(node),
        parents: after.into_iter().map(|parent| NodeId(parent).into()).collect(),
        class: TIMER.into(),
        service_time: None,
        result_tokens: None,
        fails: None,
        labels: Vec::new(),
        key: 0,
    };
    AgentStep {
        added: Session {
            tool_runs: vec![run],
            ..Session::default()
        },
        ..AgentStep::default()
    }
}

impl AgentSource for Endless {
    fn length(&mut self) -> Result<Option<u64>, PluginFailure> {
        Ok(Some(1))
    }

    fn start(&mut self, _: SessionId) -> Result<AgentStep, PluginFailure> {
        Ok(timer(0, None))
    }

    fn answered(
        &mut self,
        _: SessionId,
        _: NodeId,
        _: &Response,
        _: u64,
    ) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep::default())
    }

    fn failed(&mut self, _: SessionId, _: &FailureReason) -> Result<AgentStep, PluginFailure> {
        Ok(AgentStep::default())
    }

    fn tool_ended(&mut self, _: SessionId, end: ToolRunEnd<'_>) -> Result<AgentStep, PluginFailure> {
        let node = end.node().0;
        Ok(timer(node + 1, Some(node)))
    }

    fn finish(&mut self, _: SessionId) {}
}

/// The behavior of the server.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Server {
    /// Answers at once; what is sent before the run it answers after a while.
    Up,
    /// Takes no connection.
    Gone,
    /// Fails what is sent before the run.
    Cold,
    /// Never answers.
    Silent,
}

/// Time that [`Server::Up`] takes for a request of the warm-up.
pub(crate) const WARMING: Duration = Duration::from_millis(60);

/// Answers on the dispatcher's own thread, without usage. Everything that it was sent is kept.
pub(crate) struct Echo {
    pub(crate) server: Server,
    pub(crate) clock: RunClock,
    pub(crate) sink: Sinks,
    pub(crate) jobs: Arc<Mutex<Vec<Job>>>,
    pub(crate) unanswered: Mutex<Vec<Job>>,
}

impl Echo {
    fn end(&self, job: Job, result: Result<Response, (ErrorClass, &str)>) {
        let at = self.clock.now();
        (self.sink.returned)(Box::new(RequestOutcome {
            timings: Timings {
                picked_up_at: Some(at),
                sent_at: Some(at),
                first_byte_at: Some(at),
                completed_at: at,
                stamps: Default::default(),
            },
            connection: ConnectionUse::default(),
            status: Some(200),
            chunk_texts: Vec::new(),
            chunk_tokens: Vec::new(),
            body_digest: None,
            response_id: None,
            trace_id: None,
            chunks: vec![Chunk {
                lag: 0,
                at,
                bytes: 20,
                kind: ChunkKind::Content,
                merged: false,
            }],
            result: result.map_err(|(class, message)| FailureReason {
                request: job.id,
                class,
                status: None,
                retry_after: None,
                message: message.into(),
                at,
            }),
            codec_failure: None,
            job,
        }));
    }
}

fn answer() -> Response {
    Response {
        text: "four words of answer".into(),
        finish_reason: "stop".into(),
        ..Response::default()
    }
}

impl Transport for Echo {
    fn submit(&self, job: Job) {
        self.jobs.lock().unwrap().push(job.clone());
        // Requests after the timeout are not measured either, but no test here has one.
        let before_the_run = !job.measured;
        match self.server {
            Server::Up => {
                if before_the_run {
                    std::thread::sleep(WARMING);
                }
                self.end(job, Ok(answer()));
            }
            Server::Gone => self.end(job, Err((ErrorClass::Connect, "refused"))),
            Server::Cold if before_the_run => self.end(job, Err((ErrorClass::Status, "too cold"))),
            Server::Cold => self.end(job, Ok(answer())),
            Server::Silent => self.unanswered.lock().unwrap().push(job),
        }
    }

    fn cancel(&self, request: RequestId) {
        let mut unanswered = self.unanswered.lock().unwrap();
        let place = unanswered.iter().position(|job| job.id == request);
        let job = place.map(|place| unanswered.swap_remove(place));
        drop(unanswered);
        if let Some(job) = job {
            let part = Response {
                text: "four words".into(),
                cancelled: true,
                ..Response::default()
            };
            self.end(job, Ok(part));
        }
    }

    fn cancel_all(&self) {
        for job in self.unanswered.lock().unwrap().drain(..) {
            self.end(job, Err((ErrorClass::Cancelled, "given up")));
        }
    }

    fn in_flight(&self) -> usize {
        self.unanswered.lock().unwrap().len()
    }
}

/// A transport to such a server, and what it was sent.
pub(crate) fn echo(
    server: Server,
    jobs: &Arc<Mutex<Vec<Job>>>,
) -> impl FnOnce(RunClock, Sinks) -> Result<Arc<dyn Transport>, PipelineError> + use<> {
    let jobs = jobs.clone();
    move |clock, sink| {
        let unanswered = Mutex::default();
        Ok(Arc::new(Echo {
            server,
            clock,
            sink,
            jobs,
            unanswered,
        }))
    }
}

/// Four sessions at once, 20 in all.
pub(crate) fn plan() -> Plan {
    Plan {
        tools: Default::default(),
        scheduler: SchedulerConfig {
            tools: Vec::new(),
            traffic: TrafficRule::Concurrent { target: 4, ramp: 0 },
            limits: ConcurrencyLimits::default(),
            cancel_session_on_failure: true,
            max_sessions: Some(20),
            benchmark_timeout: None,
            grace: GracePeriod::Unbounded,
            seed: 7,
            shard: Shard::WHOLE,
        },
        spin: 0,
        on_dispatcher_start: None,
        thread_watch: None,
        run_id: None,
        shard: Shard::WHOLE,
        schedule: ReplaySchedule::default(),
        arrivals: None,
        warmup: Vec::new(),
        dispatchers: 1,
        completion_threads: 1,
        plugin_threads: 1,
        pregenerate: false,
        clients: Default::default(),
        include_content: false,
        track_prefixes: false,
    }
}

/// The same with arrivals every 2 ms.
pub(crate) fn paced() -> Plan {
    let mut plan = plan();
    plan.scheduler.traffic = TrafficRule::Rate(Interval::Fixed { interval: 0.002 });
    plan
}
