//! inference-perf 0.7.0 (kubernetes-sigs), chat API with streaming: `parse_sse_stream`,
//! `correct_streamed_response_metrics`, `compute_request_latency_metrics`, `summarize_requests`,
//! `calculate_goodput_metrics`.
//!
//! * The clock starts just before `session.post`. Here: when a client took the request up.
//!   `schedule_delay` is that instant minus the scheduled one.
//! * First token: the first event with visible text. Reasoning and tool calls are ignored, so the
//!   TTFT of a reasoning model includes all of its reasoning. TTFT, TPOT and ITL exist only for two
//!   or more output tokens.
//! * Every token of an event has the event's time: ITL is 0 within an event and the whole gap
//!   between events.
//! * TPOT: (last token − first) / (tokens − 1). NTPOT: latency / tokens, 0 without tokens. Latency
//!   ends with the stream (usage and `[DONE]` included).
//! * Output tokens: the client's tokenizer on the visible text (`use_server_output_tokens` off);
//!   prompt tokens: the server's count, else the client's.
//! * Throughput: successes over the time from the first start to the last end of all requests,
//!   failed ones included.
//! * Goodput covers successes only; failures do not count.
//! * A request succeeds if HTTP returns 200 and ends regularly, whatever the events contain.

mod goodput;
mod labels;
mod stage;
mod success;
mod summary;
mod table;

use serde_json::{Map, json};
use veeksha_model::{ChunkKind, Nanos, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::ViewOptions;
use crate::report::{Notes, ToolResult, number};
use crate::sample::GapPool;
use labels::FailureLabels;
use stage::StageSummary;
use success::{Success, SuccessSamples};
use summary::SummaryList;

const PERCENTILES: [f64; 11] = [0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

#[derive(Debug, Default)]
pub(crate) struct InferencePerf {
    answered: Vec<Success>,
    failures: Vec<(f64, f64)>,
    labels: FailureLabels,
    delays: Vec<f64>,
    gaps: GapPool,
    cached: u64,
    first_start: Option<Nanos>,
    last_start: Nanos,
    last_end: Nanos,
    /// Window of its goodput: from the first start to the last end of the successes.
    good_window: Option<(Nanos, Nanos)>,
    mismatched: u64,
    without_usage: u64,
    error_events: u64,
    estimated: u64,
}

impl InferencePerf {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let (start, end) = (answer::pickup_time(record), answer::end_time(record));
        self.first_start = Some(self.first_start.map_or(start, |first| first.min(start)));
        self.last_start = self.last_start.max(start);
        self.last_end = self.last_end.max(end);
        self.delays.push((start as f64 - record.intended as f64) / 1e9);
        let latency = end.saturating_sub(start) as f64 / 1e9;
        let ending = answer::ending(record);
        if !matches!(ending, Ending::Answered | Ending::ErrorEvent) {
            self.failures
                .push((latency, answer::prompt_tokens(record) as f64));
            self.labels.take(record);
            return;
        }
        self.error_events += u64::from(ending == Ending::ErrorEvent);
        let window = self.good_window.get_or_insert((start, end));
        *window = (window.0.min(start), window.1.max(end));
        let output = answer::client_tokens(record, |kind| kind == ChunkKind::Content);
        self.estimated += u64::from(!output.exact);
        let completion = record.usage.map(|usage| u64::from(usage.completion));
        self.without_usage += u64::from(completion.is_none());
        self.cached += record.usage.and_then(|usage| usage.cached).map_or(0, u64::from);

        let (mut first, mut last, mut tokens) = (None::<Nanos>, 0, 0_u64);
        let (mut sum, mut gaps) = (0_u64, 0_u64);
        for (chunk, carried) in answer::generated(record) {
            // The tool tokenizes each text separately; a text in which no token ends is not
            // counted.
            if chunk.kind != ChunkKind::Content || carried == 0 {
                continue;
            }
            if first.is_some() {
                let gap = chunk.at.saturating_sub(last);
                self.gaps.push(gap);
                sum += gap;
                gaps += 1;
            }
            (1..carried).for_each(|_| self.gaps.push(0));
            gaps += carried - 1;
            first = first.or(Some(chunk.at));
            last = chunk.at;
            tokens += carried;
        }
        // Without an event with visible text it compares nothing.
        self.mismatched += u64::from(tokens > 0 && completion.is_some_and(|completion| completion != tokens));
        let first = first.filter(|_| tokens > 1);
        let span = first.map(|first| last.saturating_sub(first) as f64 / 1e9);
        self.answered.push(Success {
            latency,
            ttft: first.map(|first| first.saturating_sub(start) as f64 / 1e9),
            tpot: span
                .filter(|_| output.tokens > 1)
                .map(|span| span / (output.tokens - 1) as f64),
            itl: first.map(|_| sum as f64 / 1e9 / gaps as f64),
            ntpot: if output.tokens > 0 {
                latency / output.tokens as f64
            } else {
                0.0
            },
            prompt: answer::prompt_tokens(record) as f64,
            client_output: output.tokens as f64,
            server_output: completion.unwrap_or(output.tokens) as f64,
        });
    }

    pub(crate) fn finish(self, options: &ViewOptions, request_rate: Option<f64>) -> ToolResult {
        let percentiles = match options.percentiles.as_slice() {
            [] => PERCENTILES.as_slice(),
            chosen => chosen,
        };
        let notes = self.notes();
        let goodput = goodput::of(&self.answered, options);
        let window = self
            .good_window
            .map_or(0.0, |(start, end)| end.saturating_sub(start) as f64 / 1e9);
        let first = self.first_start.unwrap_or(0);
        let sending = self.last_start.saturating_sub(first) as f64 / 1e9;
        let stage = StageSummary {
            seconds: self.last_end.saturating_sub(first) as f64 / 1e9,
            request_rate: request_rate.unwrap_or(0.0),
            achieved_rate: if sending > 0.0 {
                (self.answered.len() + self.failures.len()) as f64 / sending
            } else {
                0.0
            },
            failed: self.failures.len(),
            goodput: goodput.map(|goodput| (goodput, window)),
            samples: SuccessSamples::of(&self.answered, self.gaps),
        };
        let mut list = SummaryList::new(percentiles);
        let load = stage.add_load(&mut list, self.delays);
        let mut successes = stage.add_successes(&mut list, self.cached as f64);
        successes.insert("token_count_mismatches".into(), self.mismatched.into());
        let fallbacks = json!({ "prompt": self.without_usage, "output": self.without_usage });
        successes.insert("client_fallback_requests".into(), fallbacks);
        let failures = stage.add_failures(&mut list, &self.failures, self.labels.json());
        let mut metrics = list.list;
        metrics.object = Map::from_iter([
            ("benchmark_time_seconds".to_owned(), number(Some(stage.seconds))),
            ("load_summary".to_owned(), load.into()),
            ("successes".to_owned(), successes.into()),
            ("failures".to_owned(), failures),
        ]);
        ToolResult {
            metrics,
            table: stage.table(),
            notes,
        }
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.add(
            "The size of the request bodies is not part of a run's record; request_size_bytes, image, video and audio are left out.",
        );
        notes.count(
            self.error_events,
            "Answers with an error event inside the stream that count as successes, as inference-perf ignores such events",
        );
        let silent = self
            .answered
            .iter()
            .filter(|success| success.ttft.is_none())
            .count();
        notes.count(
            silent as u64,
            "Answers with fewer than two tokens of visible text, which have no TTFT, TPOT and ITL here",
        );
        notes.count(
            self.estimated,
            "Answers without token counts per chunk, whose length is the server's count or a share of it, and whose chunks count as one token",
        );
        notes
    }
}
