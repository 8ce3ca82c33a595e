//! `python -m sglang.benchmark.serving` (formerly `sglang.bench_serving`), backend
//! `sglang-oai-chat`: `async_request_openai_chat_completions`, `calculate_metrics` and
//! `calculate_goodput` of sglang 0.5.23.
//!
//! * The clock starts just before `session.post`; a new client session for each request means a new
//!   connection each time, which a view cannot add. Here: when a client took the request up.
//! * First token: the first event with visible text or reasoning, not a piece of a tool call. A
//!   request without any has a TTFT of 0, which is averaged with the others. ITL: the gaps between
//!   such events.
//! * Latency ends with the last line of the stream, `[DONE]` included. TPOT: (latency − TTFT) /
//!   (tokens − 1).
//! * Output tokens: `usage.completion_tokens`, else the number that was *requested*. Input: the
//!   client's tokenizer.
//! * Throughput: from the start of the first request to the end of the last. Concurrency: the sum
//!   of latencies over that time.
//! * A request succeeds if HTTP returns 200 and ends regularly, even with an `error` event or
//!   without a finish reason.

use serde_json::Map;
use veeksha_model::{ChunkKind, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::{Threshold, ViewOptions};
use crate::report::{Notes, ToolResult, number};
use crate::served::{AnswerTimes, Served, ServedRequest, rate};
use crate::served_report::{
    COMPLETED, CONCURRENCY, DURATION, INPUT_THROUGHPUT, INPUT_TOKENS, OUTPUT_THROUGHPUT, OUTPUT_TOKENS,
    PEAK_OUTPUT_THROUGHPUT, PEAK_REQUESTS, REQUEST_THROUGHPUT, ServedLatency, ServedReport, ServedTotals,
    ServedValue, TOTAL_THROUGHPUT, tokens,
};
use crate::table::{decimal, line, rule};

const BACKEND: &str = "sglang-oai-chat";
const PERCENTILES: [f64; 3] = [90.0, 95.0, 99.0];

/// Values of the whole run, in the order of the table.
const VALUES: [ServedValue; 14] = [
    COMPLETED,
    DURATION,
    INPUT_TOKENS,
    tokens("total_input_text_tokens", "Total input text tokens:", |totals| {
        totals.input
    }),
    tokens("total_input_vision_tokens", "", |_| 0),
    OUTPUT_TOKENS,
    tokens(
        "total_output_tokens_retokenized",
        "Total generated tokens (retokenized):",
        |totals| totals.retokenized,
    ),
    REQUEST_THROUGHPUT,
    INPUT_THROUGHPUT,
    OUTPUT_THROUGHPUT,
    PEAK_OUTPUT_THROUGHPUT,
    PEAK_REQUESTS,
    TOTAL_THROUGHPUT,
    CONCURRENCY,
];

#[derive(Debug, Default)]
pub(crate) struct Sglang {
    served: Served,
    error_events: u64,
    requested_lengths: u64,
    commented: u64,
    later_turns: u64,
    estimated: u64,
}

impl Sglang {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let start = answer::pickup_time(record);
        let over = answer::end_time(record);
        self.served.record_span(start, over);
        let ending = answer::ending(record);
        // An error event is a line too; without any line the tool fails on an unset variable.
        let lines = ending == Ending::ErrorEvent || !record.chunks.is_empty();
        if !lines || !matches!(ending, Ending::Answered | Ending::ErrorEvent) {
            self.served.failed += 1;
            return;
        }
        self.error_events += u64::from(ending == Ending::ErrorEvent);
        self.commented += u64::from(record.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Comment));
        self.later_turns += u64::from(record.history_parent.is_some());
        let text = |kind| matches!(kind, ChunkKind::Content | ChunkKind::Reasoning);
        let retokenized = answer::client_tokens(record, |kind| {
            matches!(kind, ChunkKind::Content | ChunkKind::Reasoning)
        });
        self.estimated += u64::from(!retokenized.exact);
        let times = || {
            record
                .chunks
                .iter()
                .filter(|chunk| text(chunk.kind))
                .map(|chunk| chunk.at)
        };
        let output = match (record.usage, record.target_output_tokens) {
            (Some(usage), _) => u64::from(usage.completion),
            (None, Some(requested)) => {
                self.requested_lengths += 1;
                u64::from(requested)
            }
            (None, None) => u64::from(record.output_tokens),
        };
        let answered = AnswerTimes {
            start,
            ttft: times().next().map_or(0, |at| at.saturating_sub(start)),
            latency: over.saturating_sub(start),
            prompt: answer::client_prompt_tokens(record),
            output,
            retokenized: retokenized.tokens,
        };
        self.served.answer(answered, times());
    }

    pub(crate) fn finish(mut self, options: &ViewOptions, request_rate: Option<f64>) -> ToolResult {
        let totals = ServedTotals::of(&self.served, self.served.seconds_since_first());
        let mut report = ServedReport::new();
        let limit = options.max_concurrency;
        let rate_text = request_rate.map_or_else(|| "inf".to_owned(), |rate| format!("{rate:?}"));
        let limit_text = limit.map_or_else(|| "not set".to_owned(), |limit| limit.to_string());
        report.table += &line("Backend:", BACKEND);
        report.table += &line("Traffic request rate:", &rate_text);
        report.table += &line("Max request concurrency:", &limit_text);
        report.add_values(&VALUES, &totals);
        if !options.goodput.is_empty() {
            add_goodput(&self.served, options, &totals, &mut report);
        }
        let notes = self.notes();
        for latency in self.latencies() {
            report.add_latency(&latency, &PERCENTILES);
            if latency.key == "itl" {
                report.table += &decimal("Max ITL (ms):", Some(latency.sample.max().unwrap_or(0.0)));
            }
        }
        let rate = request_rate.map_or_else(|| "inf".into(), |rate| number(Some(rate)));
        report.list.object.extend([
            ("backend".to_owned(), BACKEND.into()),
            ("request_rate".to_owned(), rate),
            ("max_concurrency".to_owned(), limit.into()),
            ("accept_length".to_owned(), number(None)),
        ]);
        report.close(notes)
    }

    /// Takes the latencies out of the requests.
    fn latencies(&mut self) -> [ServedLatency; 4] {
        let itl = self.served.take_gaps();
        let latency = |key, name, title, sample, empty| ServedLatency {
            key,
            name,
            title,
            sample,
            empty,
        };
        let sample = |time: fn(&ServedRequest) -> Option<f64>| self.served.sample(time);
        let zero = Some(0.0);
        [
            latency(
                "e2e_latency",
                "E2E Latency",
                "End-to-End Latency",
                sample(|request| Some(request.latency as f64)),
                None,
            ),
            latency(
                "ttft",
                "TTFT",
                "Time to First Token",
                sample(|request| Some(request.ttft as f64)),
                zero,
            ),
            latency(
                "tpot",
                "TPOT",
                "Time per Output Token (excl. 1st token)",
                sample(ServedRequest::tpot),
                zero,
            ),
            latency("itl", "ITL", "Inter-Token Latency", itl, zero),
        ]
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.add(
            "sglang opens a new connection for each request; a view cannot add the time of that where this run kept connections.",
        );
        notes.count(
            self.error_events,
            "Answers with an error event inside the stream that count as successes, as sglang ignores such events",
        );
        notes.count(
            self.requested_lengths,
            "Answers without the server's token counts, for which sglang uses the requested length",
        );
        notes.count(
            self.commented,
            "Answers with comments (keep-alives), which count here while sglang fails the requests because it cannot parse such lines",
        );
        notes.count(
            self.later_turns,
            "Requests that continue a conversation, for which sglang reports 0 input tokens and this view the actual number",
        );
        notes.count(
            self.estimated,
            "Answers without token counts per chunk, whose retokenized length is the server's count or a share of it",
        );
        notes
    }
}

/// Adds the goodput: requests that met every threshold, out of all that were sent.
fn add_goodput(served: &Served, options: &ViewOptions, totals: &ServedTotals, report: &mut ServedReport) {
    let ServedReport { list, table } = report;
    let sent = totals.sent();
    let met = |threshold: &Threshold, request: &ServedRequest| {
        request.goodput_nanos(&threshold.metric) / 1e6 <= threshold.value
    };
    let good = served.answered.iter().filter(|request| {
        let mut thresholds = options.goodput.iter();
        thresholds.all(|threshold| met(threshold, request))
    });
    let good = good.count();
    let share = |count: usize| (sent > 0).then(|| count as f64 / sent as f64);
    let percent = |count: usize| share(count).map(|share| share * 100.0);
    let per_second = rate(good as f64, totals.seconds);
    list.put("request_goodput", "req/s", per_second, sent);
    list.put("slo_attainment", "", share(good), sent);
    let slos = options
        .goodput
        .iter()
        .map(|threshold| format!("{}:{}", threshold.metric, threshold.value));
    *table += &rule("Goodput", '-');
    *table += &line("SLOs (ms):", &slos.collect::<Vec<_>>().join(" "));
    *table += &decimal("Request goodput (req/s):", per_second);
    *table += &decimal("SLO attainment (%):", percent(good));
    let (mut attained, mut bounds) = (Map::new(), Map::new());
    for threshold in &options.goodput {
        let answered = served.answered.iter();
        let count = answered.filter(|request| met(threshold, request)).count();
        attained.insert(threshold.metric.clone(), number(share(count)));
        bounds.insert(threshold.metric.clone(), threshold.value.into());
        let label = format!("{} SLO attainment (%):", threshold.metric.to_uppercase());
        *table += &decimal(&label, percent(count));
    }
    list.object
        .insert("slo_attainment_by_metric".into(), attained.into());
    list.object.insert("goodput_slos_ms".into(), bounds.into());
}
