//! Computation of one tool's view from the events of a run.

use veeksha_events::Event;
use veeksha_model::{ErrorClass, RequestRecord, Status};
use veeksha_stats::number;

use crate::aiperf::Aiperf;
use crate::genai_perf::GenaiPerf;
use crate::guidellm::Guidellm;
use crate::inference_perf::InferencePerf;
use crate::options::{OptionsError, ViewOptions};
use crate::report::Notes;
use crate::report::ViewReport;
use crate::sglang::Sglang;
use crate::tokens::TokenCounts;
use crate::tool::Tool;
use crate::vllm::Vllm;

/// A run in the definitions of one tool. It consumes every event of a run, in any order, and
/// reports what the tool would have printed for the same answers.
///
/// Only measured requests count: requests dispatched after the end of the measurement are left out,
/// and so is warm-up. Keeps some hundred bytes per request and, where the tool pools the gaps
/// between chunks, four bytes per gap.
#[derive(Debug)]
pub struct View {
    tool: Tool,
    options: ViewOptions,
    state: ToolState,
    seen: ViewFacts,
}

#[derive(Debug)]
enum ToolState {
    Vllm(Vllm),
    Sglang(Sglang),
    Guidellm(Guidellm),
    GenaiPerf(GenaiPerf),
    InferencePerf(InferencePerf),
    Aiperf(Aiperf),
}

/// Facts about the run that no tool considers, reported as notes.
#[derive(Debug, Default)]
struct ViewFacts {
    drained: u64,
    never_sent: u64,
    cancelled_by_client: u64,
    truncated: u64,
    new_connections: u64,
    held: u64,
    merged: u64,
    /// Largest number of requests in a session.
    session_requests: u32,
    tokens: TokenCounts,
}

impl View {
    /// Creates a view of an empty run.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool does not support an option.
    pub fn new(tool: Tool, options: ViewOptions) -> Result<Self, OptionsError> {
        options.check(tool)?;
        let state = match tool {
            Tool::Vllm => ToolState::Vllm(Vllm::default()),
            Tool::Sglang => ToolState::Sglang(Sglang::default()),
            Tool::Guidellm => ToolState::Guidellm(Guidellm::default()),
            Tool::GenaiPerf => ToolState::GenaiPerf(GenaiPerf::default()),
            Tool::InferencePerf => ToolState::InferencePerf(InferencePerf::default()),
            Tool::Aiperf => ToolState::Aiperf(Aiperf::default()),
        };
        Ok(View {
            tool,
            options,
            state,
            seen: ViewFacts::default(),
        })
    }

    /// Processes an event.
    pub fn on(&mut self, event: &Event) {
        if let ToolState::Aiperf(aiperf) = &mut self.state {
            aiperf.on(event);
        }
        match event {
            Event::NeverSent { .. } => self.seen.never_sent += 1,
            Event::Finished(record) if record.status == Status::CancelledByClient => {
                self.seen.of_session(record);
                self.seen.cancelled_by_client += 1;
            }
            Event::Finished(record) if record.measured => {
                self.seen.of_session(record);
                self.seen.look(record);
                match &mut self.state {
                    ToolState::Vllm(vllm) => vllm.take(record),
                    ToolState::Sglang(sglang) => sglang.take(record),
                    ToolState::Guidellm(guidellm) => guidellm.take(record),
                    ToolState::GenaiPerf(genai_perf) => genai_perf.take(record),
                    ToolState::InferencePerf(inference_perf) => inference_perf.take(record),
                    ToolState::Aiperf(_) => {}
                }
            }
            Event::Finished(record) => {
                self.seen.of_session(record);
                self.seen.drained += 1;
            }
            _ => {}
        }
    }

    /// Returns what the tool would have reported.
    pub fn finish(self) -> ViewReport {
        let options = &ViewOptions {
            max_concurrency: self.seen.max_concurrency(&self.options),
            ..self.options
        };
        let rate = self.seen.request_rate(options);
        let mut result = match self.state {
            ToolState::Vllm(vllm) => vllm.finish(options, rate),
            ToolState::Sglang(sglang) => sglang.finish(options, rate),
            ToolState::Guidellm(guidellm) => guidellm.finish(options),
            ToolState::GenaiPerf(genai_perf) => genai_perf.finish(options),
            ToolState::InferencePerf(inference_perf) => inference_perf.finish(options, rate),
            ToolState::Aiperf(aiperf) => aiperf.finish(options),
        };
        self.seen.add_to(self.tool, options, &mut result.notes);
        ViewReport {
            tool: self.tool,
            metrics: result.metrics.metrics,
            notes: result.notes.0,
            table: result.table,
            json: result.metrics.object.into(),
        }
    }
}

impl ViewFacts {
    fn look(&mut self, record: &RequestRecord) {
        let truncated = matches!(
            record.status,
            Status::Failed {
                class: ErrorClass::Truncated,
                ..
            }
        );
        self.tokens.take(record);
        self.truncated += u64::from(truncated);
        self.new_connections += u64::from(!record.connection_reused);
        self.held += u64::from(record.held.total() > 0);
        self.merged += u64::from(record.chunks.iter().any(|chunk| chunk.merged));
    }

    fn of_session(&mut self, record: &RequestRecord) {
        self.session_requests = self.session_requests.max(record.session_requests);
    }

    /// Returns the session rate if it is also the request rate.
    fn request_rate(&self, options: &ViewOptions) -> Option<f64> {
        options.session_rate.filter(|_| self.session_requests <= 1)
    }

    /// Returns the limit on concurrent requests. A number of concurrent sessions is one if each
    /// session is one request.
    fn max_concurrency(&self, options: &ViewOptions) -> Option<u32> {
        let sessions = options.concurrent_sessions.filter(|_| self.session_requests <= 1);
        match (options.max_concurrency, sessions) {
            (Some(limit), Some(sessions)) => Some(limit.min(sessions)),
            (limit, sessions) => limit.or(sessions),
        }
    }

    fn add_to(&self, tool: Tool, options: &ViewOptions, notes: &mut Notes) {
        notes.add(&format!(
            "A view applies the arithmetic of {tool} to the answers that this host received; it does not reproduce that tool's client: its connections, its queue, its reads."
        ));
        let repeats_rate = matches!(tool, Tool::Vllm | Tool::Sglang | Tool::InferencePerf);
        if let (true, Some(rate), None) = (repeats_rate, options.session_rate, self.request_rate(options)) {
            notes.add(&format!(
                "The load requested {} sessions per second, of up to {} requests each; the tool has only a rate of requests, so the requested rate is omitted.",
                number(rate),
                self.session_requests
            ));
        }
        let prints_limit = matches!(tool, Tool::Vllm | Tool::Sglang);
        if let (true, Some(sessions), None) =
            (prints_limit, options.concurrent_sessions, options.max_concurrency)
        {
            notes.add(&format!(
                "The load ran {sessions} sessions concurrently, of up to {} requests each; the tool has only a limit on requests, so it is omitted.",
                self.session_requests
            ));
        }
        if let Some(note) = self.tokens.note(options.tokenizer.as_deref()) {
            notes.add(&note);
        }
        notes.count(
            self.truncated,
            "Answers without a finish reason or with a broken connection, which count as failed, while the tool counts such an answer as a success if the HTTP response is complete",
        );
        notes.count(self.new_connections, "Requests that opened a new connection");
        notes.count(
            self.merged,
            "Answers with several events in one read; a client that reads at other instants has other gaps",
        );
        notes.count(
            self.held,
            "Requests that waited for a limit before the instant at which the tool's clock starts",
        );
        notes.count(
            self.never_sent,
            "Requests of the workload that were never sent, which no tool counts",
        );
        notes.count(
            self.cancelled_by_client,
            "Requests that their workload cancelled, which are left out",
        );
        notes.count(
            self.drained,
            "Requests dispatched after the end of the measurement, which are left out",
        );
    }
}
