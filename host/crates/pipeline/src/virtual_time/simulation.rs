//! The loop: time jumps to the next thing that happens, and it is passed on.

mod results;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use veeksha_events::{Event, RunInfo};
use veeksha_model::{
    Chunk, ChunkKind, ErrorClass, History, Nanos, PreparedToolForm, Request, RequestId, SessionId,
    ToolChoice, Usage,
};
use veeksha_ports::{PluginFailure, WorkloadFactory};
use veeksha_prompt::{Materializer, Tokenizer};
use veeksha_scheduler::{Action, Scheduler, SchedulerInput};
use veeksha_simulator::{EngineEvent, EngineRequest, Fault, FinishReason};

use crate::arrivals::ArrivalReader;
use crate::control::Control;
use crate::dispatcher::recorded;
use crate::entry::EventEntry;
use crate::live_agents::OpenWorkload;
use crate::made::{EmptySessions, MadeSession, SessionStart};
use crate::partition::Partition;
use crate::pieces::{PromptSource, tools_of};
use crate::plan::{PipelineError, Plan, RunEnd, failed_start_events, session_failed};

use super::in_flight::InFlight;
use super::prompt::PromptWriter;
use super::servers::{SimulatedServers, SimulatedTargets};
use super::source::{SimulatedPreparer, SimulatedSource};
use super::warm_engine::EngineWarmup;

/// Runs a workload in virtual time. `record` is called with every event, in order. A warm-up comes
/// first: the engines keep their caches, and the run begins at 0. `control` stops the run where it
/// is, as in real time.
///
/// # Errors
/// If the shard does not exist or the plugin cannot be opened. A later failure of the plugin is in
/// [`RunEnd`]. Each failure of the plugin is an event too.
pub fn simulate(
    plan: &Plan,
    targets: &SimulatedTargets,
    factory: &Arc<dyn WorkloadFactory>,
    tokenizer: &Tokenizer,
    materializer: &Materializer,
    record: &mut dyn FnMut(EventEntry),
    control: &Control,
) -> Result<RunEnd, PipelineError> {
    let part = Partition::of(plan)?.undivided();
    let mut config = plan.scheduler.clone();
    config.shard = part.shard(0);
    let seed = config.seed;
    let opened = open(&**factory).and_then(|(workload, length)| {
        let arrivals = plan.arrivals.as_deref();
        let most = plan.scheduler.max_sessions;
        let arrivals = arrivals.map(|process| ArrivalReader::open(process, part, most));
        Ok((workload, arrivals.transpose()?, length))
    });
    let (workload, arrivals, length) = match opened {
        Ok(opened) => opened,
        Err(failure) => {
            let started = Event::RunStarted(RunInfo::default());
            for event in failed_start_events(started, [(Some(part.session(0)), &failure)]) {
                record(event.into());
            }
            return Err(failure.into());
        }
    };
    // Sessions that do not exist are not missed.
    config.max_sessions = config.max_sessions.into_iter().chain(length).min();
    let end = part.below(config.max_sessions.unwrap_or(u64::MAX));
    // The block size does not matter for the lengths that the source needs.
    let writer = PromptWriter {
        tokenizer,
        block_size: targets.default.profile.block_size,
    };
    let timing = plan.timing();
    let mut servers = SimulatedServers::new(targets, &plan.clients, tokenizer, seed);
    let warm_up = EngineWarmup {
        writer: &writer,
        clients: &plan.clients,
        timing,
    };
    let report = warm_up.run(&plan.warmup, &mut servers);
    record(Event::RunStarted(RunInfo::default()).into());
    let mut simulation = Simulation {
        plan,
        materializer,
        record,
        control,
        scheduler: Scheduler::new(config),
        servers,
        source: SimulatedSource {
            workload,
            arrivals,
            part,
            preparer: SimulatedPreparer {
                plugin: factory.info().name.clone(),
                timing,
                writer: &writer,
                materializer,
                clients: plan.clients.clone(),
                tools: plan.tools.clone(),
            },
            next: 0,
            end,
            end_sent: false,
            empty_sessions: EmptySessions::default(),
        },
        flights: HashMap::new(),
        numbers: HashMap::new(),
        next_flight: 0,
        now: 0,
        end: RunEnd {
            warmup_failures: report.failures,
            first_warmup_failure: report.first_failure,
            ..RunEnd::default()
        },
    };
    simulation.drive();
    let mut end = simulation.end;
    end.at = simulation.now;
    record(Event::RunEnded { at: end.at }.into());
    Ok(end)
}

/// Opens the plugin. Returns it with the number of its sessions, if that is finite.
fn open(factory: &dyn WorkloadFactory) -> Result<(OpenWorkload, Option<u64>), PluginFailure> {
    let mut workload = OpenWorkload::from(factory.open()?);
    let length = workload.length()?;
    Ok((workload, length))
}

struct Simulation<'a> {
    plan: &'a Plan,
    materializer: &'a Materializer,
    record: &'a mut dyn FnMut(EventEntry),
    control: &'a Control,
    scheduler: Scheduler<Request>,
    servers: SimulatedServers<'a>,
    source: SimulatedSource<'a>,
    flights: HashMap<u64, InFlight>,
    /// The number of the flight of each request.
    numbers: HashMap<RequestId, u64>,
    next_flight: u64,
    now: Nanos,
    end: RunEnd,
}

impl Simulation<'_> {
    fn drive(&mut self) {
        let mut inputs = VecDeque::from([SchedulerInput::Tick]);
        let mut happened = Vec::new();
        loop {
            self.read_ahead(&mut inputs);
            self.observe_stop(&mut inputs);
            while let Some(input) = inputs.pop_front() {
                self.feed(input, &mut inputs);
                // An agent can add and end many nodes at one instant.
                self.observe_stop(&mut inputs);
            }
            if self.scheduler.is_done() {
                return;
            }
            // Sessions that are due now start before the time goes on, however many there are.
            if self.scheduler.wanted() > 0 && self.source.next < self.source.end {
                continue;
            }
            let deadline = self.next_deadline();
            let wakes = [self.scheduler.next_wake(), self.servers.next_wake(), deadline];
            // Nothing will ever happen again: only a source that has not ended can leave the
            // scheduler waiting.
            let Some(next) = wakes.into_iter().flatten().min() else {
                return;
            };
            self.now = self.now.max(next);
            self.servers.advance(self.now, &mut happened);
            for event in happened.drain(..) {
                self.on_engine(event, &mut inputs);
            }
            self.expire(&mut inputs);
            inputs.push_back(SchedulerInput::Tick);
        }
    }

    fn observe_stop(&mut self, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        if self.control.is_stopped() && !self.end.interrupted {
            self.end.interrupted = true;
            (self.record)(Event::Interrupted { at: self.now }.into());
            inputs.push_front(SchedulerInput::Stop);
        }
    }

    fn read_ahead(&mut self, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        let mut wanted = self.scheduler.wanted();
        while wanted > 0 && self.source.next < self.source.end {
            match self.source.make(wanted) {
                Ok(made) => {
                    wanted = wanted.saturating_sub(made.len() as u32);
                    for session in made {
                        self.deliver(session, inputs);
                    }
                }
                Err(failure) => {
                    let session = self.source.part.session(self.source.next);
                    self.session_failed(session, failure);
                    self.end_source("its plugin failed".to_owned());
                }
            }
        }
        if self.source.next >= self.source.end && !self.source.end_sent {
            self.source.end_sent = true;
            inputs.push_back(SchedulerInput::SourceEnded);
        }
    }

    fn deliver(&mut self, session: MadeSession<Request>, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        let MadeSession { plan, start } = session;
        let session = plan.id;
        let goes_on = self.source.empty_sessions.count(&plan);
        inputs.push_back(SchedulerInput::Session(plan));
        inputs.extend(start.input(session));
        if !goes_on {
            self.end_source(EmptySessions::reason());
        }
        match start {
            SessionStart::Made { digest, .. } => {
                (self.record)(Event::SessionPlanned { session, digest }.into());
            }
            SessionStart::Failed(failure) => self.session_failed(session, *failure),
        }
    }

    /// Records a failure of the workload's plugin, and keeps it for the report.
    fn session_failed(&mut self, session: SessionId, failure: PluginFailure) {
        (self.record)(session_failed(&failure, Some(session), self.now).into());
        self.end.keep_failure(failure);
    }

    /// Ends the workload with the sessions that were read.
    fn end_source(&mut self, reason: String) {
        let SimulatedSource { part, next, end, .. } = &mut self.source;
        self.end.unstarted = part.unstarted(reason, *next, *end);
        *end = *next;
    }

    fn feed(&mut self, input: SchedulerInput<Request>, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        let mut actions = Vec::new();
        self.scheduler.on(self.now, input, &mut actions);
        for action in actions {
            match action {
                Action::Dispatch {
                    id,
                    intended,
                    held,
                    payload,
                    history,
                    measured,
                    reports_first_chunk,
                    session_requests,
                } => {
                    let client = self.servers.index(&payload);
                    let flight = InFlight {
                        id,
                        client,
                        intended,
                        held,
                        dispatched_at: self.now,
                        measured,
                        reports_first_chunk,
                        session_requests,
                        prompt_tokens: 0,
                        total_prompt_tokens: 0,
                        started: false,
                        chunks: Vec::new(),
                        tool: self.required_tool(client, &payload, &history),
                        request: payload,
                    };
                    self.launch(flight, &history, inputs);
                }
                Action::AskAgent {
                    session,
                    node,
                    outcome,
                    at,
                } => {
                    let SimulatedSource {
                        workload, preparer, ..
                    } = &mut self.source;
                    let OpenWorkload::Reactive(agents) = workload else {
                        continue;
                    };
                    let step = agents.ended(session, node, &outcome, at, |step| {
                        Ok(SchedulerInput::Step {
                            session,
                            nodes: preparer.nodes(session, step.added)?,
                            cancel: step.cancel,
                            done: step.done,
                        })
                    });
                    match step {
                        None => {}
                        Some(Ok(step)) => inputs.push_back(step),
                        Some(Err(failure)) => {
                            self.session_failed(session, failure);
                            inputs.push_back(SchedulerInput::AgentFailed { session });
                        }
                    }
                }
                Action::ForgetAgent { session } => {
                    if let OpenWorkload::Reactive(agents) = &mut self.source.workload {
                        agents.finish(session);
                    }
                }
                Action::Cancel { request } => {
                    if let Some(number) = self.numbers.get(&request) {
                        self.cancel(*number, self.now, inputs);
                    }
                }
                Action::CancelInFlight => self.cancel_all(inputs),
                other => {
                    if let Some(event) = recorded(other) {
                        (self.record)(event.into());
                    }
                }
            }
        }
    }

    fn launch(
        &mut self,
        mut flight: InFlight,
        history: &Option<Arc<History<Request>>>,
        inputs: &mut VecDeque<SchedulerInput<Request>>,
    ) {
        let (id, intended, at) = (flight.id, flight.intended, self.now);
        let event = Event::Dispatched {
            request: id,
            intended,
            at,
        };
        let asked = self.plan.track_prefixes.then(|| PromptSource::Simulated {
            session: id.session,
            request: flight.request.clone(),
            history: history.clone(),
        });
        (self.record)(EventEntry {
            prompt: asked,
            ..event.into()
        });
        let client = flight.client;
        let server = self.servers.at(client);
        let prompt = server.writer.prompt(id.session, &flight.request, history);
        flight.total_prompt_tokens = prompt.tokens;
        flight.prompt_tokens = prompt.new_tokens;
        let number = self.next_flight;
        self.next_flight += 1;
        self.numbers.insert(id, number);
        let request = EngineRequest {
            id: number,
            prompt_tokens: prompt.tokens,
            blocks: prompt.blocks,
            max_tokens: flight.request.output.target_tokens,
            exact: flight.request.output.exact,
        };
        self.flights.insert(number, flight);
        server
            .deadlines
            .push_back((at + server.target.request_timeout, number));
        let mut happened = Vec::new();
        self.servers.submit(client, at, request, &mut happened);
        for event in happened {
            self.on_engine(event, inputs);
        }
    }

    fn on_engine(&mut self, event: EngineEvent, inputs: &mut VecDeque<SchedulerInput<Request>>) {
        match event {
            EngineEvent::Started { id, .. } => {
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.started = true;
                }
            }
            EngineEvent::Token { id, at, .. } => {
                if let Some(flight) = self.flights.get_mut(&id) {
                    if flight.chunks.is_empty() && flight.reports_first_chunk {
                        inputs.push_back(SchedulerInput::FirstChunk {
                            request: flight.id,
                            at,
                        });
                    }
                    flight.chunks.push(Chunk {
                        lag: 0,
                        at,
                        bytes: 0,
                        kind: if flight.tool.is_some() {
                            ChunkKind::Tool
                        } else {
                            ChunkKind::Content
                        },
                        merged: false,
                    });
                    let cancellation = flight.request.cancellation.as_ref();
                    let limit = cancellation.and_then(|cancellation| cancellation.after_chunks);
                    if limit.is_some_and(|limit| flight.chunks.len() >= limit as usize) {
                        self.cancel(id, at, inputs);
                    }
                }
            }
            EngineEvent::Finished {
                id,
                at,
                reason,
                prompt_tokens,
                cached_tokens,
                completion_tokens,
            } => {
                let usage = Usage {
                    prompt: prompt_tokens,
                    completion: completion_tokens,
                    cached: Some(cached_tokens),
                    reasoning: None,
                };
                let reason = match reason {
                    FinishReason::Stop => "stop",
                    FinishReason::Length => "length",
                };
                self.answer(id, at, reason, usage, inputs);
            }
            EngineEvent::Rejected { id, status, message } => {
                self.fail(id, self.now, ErrorClass::Status, Some(status), &message, inputs);
            }
            EngineEvent::Fault { id, at, fault } => match fault {
                // A stall only delays what comes after it.
                Fault::Stall { .. } => {}
                Fault::DropConnection => {
                    let started = self.flights.get(&id).is_some_and(|flight| flight.started);
                    let class = if started {
                        ErrorClass::Truncated
                    } else {
                        ErrorClass::Connect
                    };
                    self.fail(id, at, class, None, "the connection was dropped", inputs);
                }
                Fault::MidStreamError => {
                    self.fail(
                        id,
                        at,
                        ErrorClass::InStream,
                        Some(500),
                        "an error inside the stream",
                        inputs,
                    );
                }
                Fault::Truncate => {
                    self.fail(
                        id,
                        at,
                        ErrorClass::Truncated,
                        None,
                        "the stream ended without a finish reason",
                        inputs,
                    );
                }
            },
        }
    }

    /// Returns the tool that a request must call. Its body overrides the parameters of the target,
    /// and both the choice of the workload.
    fn required_tool(
        &mut self,
        client: usize,
        request: &Request,
        history: &Option<Arc<History<Request>>>,
    ) -> Option<String> {
        let of_target = &self.servers.at(client).target.tool;
        let body = request.body.as_deref();
        let body = body.and_then(|body| serde_json::from_str::<serde_json::Value>(body).ok());
        let member = |name: &str| body.as_ref().and_then(|body| body.get(name)).cloned();
        let form = request.output.form.as_deref();
        let stated = form
            .and_then(|form| form.tool_choice.as_ref())
            .map(|choice| match choice {
                ToolChoice::Automatic | ToolChoice::None => "auto".into(),
                ToolChoice::Required => "required".into(),
                ToolChoice::Function(name) => serde_json::json!({ "name": name }),
            });
        let Some(choice) = member("tool_choice").or_else(|| stated.filter(|_| of_target.is_none())) else {
            return of_target.clone();
        };
        let tools = member("tools").or_else(|| {
            let turns = History::turns(history);
            let tools = tools_of(request, turns.iter().map(|turn| &*turn.request))?;
            let tools = self.materializer.tools(tools).ok()?;
            match &tools.form {
                PreparedToolForm::Functions(functions) => {
                    let names = functions
                        .iter()
                        .map(|function| serde_json::json!({ "name": function.name }));
                    Some(names.collect())
                }
                PreparedToolForm::Verbatim(text) => serde_json::from_str(text).ok(),
            }
        });
        veeksha_simulator::required_tool(&serde_json::json!({ "tools": tools, "tool_choice": choice }))
    }
}
