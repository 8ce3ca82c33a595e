//! A run, event by event, through the eyes of one tool.

use veeksha_events::Event;
use veeksha_model::{ErrorClass, RequestRecord, Status};
use veeksha_stats::number;

use crate::aiperf::Aiperf;
use crate::genai_perf::GenaiPerf;
use crate::guidellm::Guidellm;
use crate::inference_perf::InferencePerf;
use crate::options::{Options, OptionsError};
use crate::report::ViewReport;
use crate::report::{Figures, Notes};
use crate::sglang::Sglang;
use crate::tokens::TokenCounts;
use crate::tool::Tool;
use crate::vllm::Vllm;

/// A run in the definitions of one tool. It takes every event of a run, in any order, and says at the end what the tool would have
/// said of the same answers.
///
/// Only measured requests count: what was dispatched after the end of the measurement is left out, warm-up too. It keeps some
/// hundred bytes for a request and, where the tool pools the gaps between chunks, four bytes for each.
#[derive(Debug)]
pub struct View {
    tool: Tool,
    options: Options,
    lens: Lens,
    seen: Seen,
}

#[derive(Debug)]
enum Lens {
    Vllm(Vllm),
    Sglang(Sglang),
    Guidellm(Guidellm),
    GenaiPerf(GenaiPerf),
    InferencePerf(InferencePerf),
    Aiperf(Aiperf),
}

/// What a tool's view has to tell.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) figures: Figures,
    pub(crate) table: String,
    pub(crate) notes: Notes,
}

/// What no tool sees.
#[derive(Debug, Default)]
struct Seen {
    drained: u64,
    never_sent: u64,
    truncated: u64,
    new_connections: u64,
    held: u64,
    merged: u64,
    /// The most requests of a session.
    session_requests: u32,
    tokens: TokenCounts,
}

impl View {
    /// A view of a run of which nothing has happened yet.
    ///
    /// # Errors
    ///
    /// If the options ask for what the tool does not offer.
    pub fn new(tool: Tool, options: Options) -> Result<Self, OptionsError> {
        options.check(tool)?;
        let lens = match tool {
            Tool::Vllm => Lens::Vllm(Vllm::default()),
            Tool::Sglang => Lens::Sglang(Sglang::default()),
            Tool::Guidellm => Lens::Guidellm(Guidellm::default()),
            Tool::GenaiPerf => Lens::GenaiPerf(GenaiPerf::default()),
            Tool::InferencePerf => Lens::InferencePerf(InferencePerf::default()),
            Tool::Aiperf => Lens::Aiperf(Aiperf::default()),
        };
        Ok(View {
            tool,
            options,
            lens,
            seen: Seen::default(),
        })
    }

    /// Takes in an event.
    pub fn on(&mut self, event: &Event) {
        if let Lens::Aiperf(aiperf) = &mut self.lens {
            aiperf.on(event);
        }
        match event {
            Event::NeverSent { .. } => self.seen.never_sent += 1,
            Event::Finished(record) if record.measured => {
                self.seen.of_session(record);
                self.seen.look(record);
                match &mut self.lens {
                    Lens::Vllm(vllm) => vllm.take(record),
                    Lens::Sglang(sglang) => sglang.take(record),
                    Lens::Guidellm(guidellm) => guidellm.take(record),
                    Lens::GenaiPerf(genai_perf) => genai_perf.take(record),
                    Lens::InferencePerf(inference_perf) => inference_perf.take(record),
                    Lens::Aiperf(_) => {}
                }
            }
            Event::Finished(record) => {
                self.seen.of_session(record);
                self.seen.drained += 1;
            }
            _ => {}
        }
    }

    /// What the tool would have said.
    pub fn finish(self) -> ViewReport {
        let options = &self.options;
        let rate = self.seen.request_rate(options);
        let mut told = match self.lens {
            Lens::Vllm(vllm) => vllm.finish(options, rate),
            Lens::Sglang(sglang) => sglang.finish(options, rate),
            Lens::Guidellm(guidellm) => guidellm.finish(options),
            Lens::GenaiPerf(genai_perf) => genai_perf.finish(options),
            Lens::InferencePerf(inference_perf) => inference_perf.finish(options, rate),
            Lens::Aiperf(aiperf) => aiperf.finish(options),
        };
        self.seen.tell(self.tool, options, &mut told.notes);
        ViewReport {
            tool: self.tool,
            figures: told.figures.list,
            notes: told.notes.0,
            table: told.table,
            json: told.figures.object.into(),
        }
    }
}

impl Seen {
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

    /// The rate of sessions, where that is one of requests.
    fn request_rate(&self, options: &Options) -> Option<f64> {
        options.session_rate.filter(|_| self.session_requests <= 1)
    }

    fn tell(&self, tool: Tool, options: &Options, notes: &mut Notes) {
        notes.say(&format!(
            "A view repeats the arithmetic of {tool} on the answers that this host received; it does not repeat that tool's client: its connections, its queue, its reads."
        ));
        let repeats_rate = matches!(tool, Tool::Vllm | Tool::Sglang | Tool::InferencePerf);
        if let (true, Some(rate), None) = (repeats_rate, options.session_rate, self.request_rate(options)) {
            notes.say(&format!(
                "The load asked for {} sessions a second, of up to {} requests each; the tool knows a rate of requests only, so none is given as asked for.",
                number(rate),
                self.session_requests
            ));
        }
        if let Some(remark) = self.tokens.remark(options.tokenizer.as_deref()) {
            notes.say(&remark);
        }
        notes.count(
            self.truncated,
            "Answers without a finish reason or with a broken connection, which count as failed, while the tool calls such an answer a success if HTTP ended well",
        );
        notes.count(
            self.new_connections,
            "Requests that opened a connection of their own",
        );
        notes.count(
            self.merged,
            "Answers with events that shared a read, where a client that reads at other instants sees other gaps",
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
            self.drained,
            "Requests dispatched after the end of the measurement, which are left out",
        );
    }
}
