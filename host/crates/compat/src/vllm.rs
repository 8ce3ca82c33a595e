//! `vllm bench serve`, backend `openai-chat`: `vllm/benchmarks/serve.py` (`calculate_metrics`,
//! `benchmark`) and `vllm/benchmarks/lib/endpoint_request_func.py`
//! (`async_request_openai_chat_completions`) at commit `009e6d4a1cd6ba3fb2a9fc00f4ec06f5297232a1`
//! of vllm-project/vllm.
//!
//! * The clock starts just before `session.post`, after the semaphore of `--max-concurrency`:
//!   waiting for a connection, TCP and TLS are inside. Here: when a client took the request up.
//! * First token: the first event whose `choices` is not empty, even if it has only a role. ITL:
//!   the gaps between all such events, the one with the finish reason included. Latency ends with
//!   the last of them; the usage event and `[DONE]` do not count. (Versions before "only token
//!   chunks advance the request end" let the usage event extend it.)
//! * TPOT: (latency − TTFT) / (tokens − 1) for two tokens and more; one token counts as 0 in
//!   goodput, and so always passes.
//! * Output tokens: `usage.completion_tokens`, else the client's tokenizer on the visible text.
//!   Input: `usage.prompt_tokens`, else the client's. Usage counts only on an event without
//!   `choices`: the client reads it in an `elif`.
//! * Peak concurrent requests: releases (0.32) count the requests of each whole second since the
//!   first start, and print the busiest second. The commit above has replaced that by an exact
//!   sweep, which a note states.
//! * Throughput: over the time from the start of the sending loop to the end of the last request,
//!   failed ones included.
//! * A request succeeds if one such event came and HTTP ended well. An `error` event inside the
//!   stream is ignored.

use veeksha_model::{ChunkKind, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::ViewOptions;
use crate::report::{Notes, ToolResult, number};
use crate::served::{AnswerTimes, Peak, Served, ServedRequest, rate};
use crate::served_report::{
    COMPLETED, DURATION, FAILED, INPUT_TOKENS, OUTPUT_THROUGHPUT, OUTPUT_TOKENS, PEAK_OUTPUT_THROUGHPUT,
    PEAK_REQUESTS, REQUEST_THROUGHPUT, ServedFormula, ServedLatency, ServedReport, ServedTotals, ServedValue,
    TOTAL_THROUGHPUT,
};
use crate::table::{decimal, line};

/// Default of `--metric-percentiles`.
const PERCENTILES: [f64; 1] = [99.0];

const DECIMAL_PEAK_REQUESTS: ServedValue = ServedValue {
    formula: ServedFormula::DecimalCount(|totals| totals.peak_requests),
    ..PEAK_REQUESTS
};
const TOTAL_TOKEN_THROUGHPUT: ServedValue = ServedValue {
    key: "total_token_throughput",
    ..TOTAL_THROUGHPUT
};

#[derive(Debug, Default)]
pub(crate) struct Vllm {
    served: Served,
    error_events: u64,
    /// Answers whose usage came only on events with `choices`.
    ignored_usage: u64,
}

/// Returns true if an event's `choices` is not empty.
fn has_choices(kind: ChunkKind) -> bool {
    !matches!(kind, ChunkKind::Usage | ChunkKind::Done | ChunkKind::Comment)
}

impl Vllm {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let start = answer::pickup_time(record);
        self.served.record_span(start, answer::end_time(record));
        let chunks = || record.chunks.iter().filter(|chunk| has_choices(chunk.kind));
        let ending = answer::ending(record);
        let tolerated = matches!(ending, Ending::Answered | Ending::ErrorEvent);
        let (Some(first), Some(last), true) = (chunks().next(), chunks().next_back(), tolerated) else {
            self.served.failed += 1;
            return;
        };
        self.error_events += u64::from(ending == Ending::ErrorEvent);
        let text = answer::client_tokens(record, |kind| kind == ChunkKind::Content);
        let has_usage_event = record.chunks.iter().any(|chunk| chunk.kind == ChunkKind::Usage);
        let usage = record.usage.filter(|_| has_usage_event);
        self.ignored_usage += u64::from(record.usage.is_some() && usage.is_none());
        let completion = usage.map_or(0, |usage| u64::from(usage.completion));
        let answered = AnswerTimes {
            start,
            ttft: first.at.saturating_sub(start),
            latency: last.at.saturating_sub(start),
            prompt: usage.map_or_else(
                || answer::client_prompt_tokens(record),
                |usage| u64::from(usage.prompt),
            ),
            output: if completion > 0 { completion } else { text.tokens },
            retokenized: text.tokens,
        };
        self.served.answer(answered, chunks().map(|chunk| chunk.at));
    }

    pub(crate) fn finish(mut self, options: &ViewOptions, request_rate: Option<f64>) -> ToolResult {
        let totals = ServedTotals::of(&self.served, self.served.seconds_since_zero());
        let mut report = ServedReport::new();
        report.add_values(&[COMPLETED, FAILED], &totals);
        if let Some(limit) = options.max_concurrency {
            report.table += &line("Maximum request concurrency:", &limit.to_string());
        }
        if request_rate.is_some() {
            report.table += &decimal("Request rate configured (RPS):", request_rate);
        }
        report.add_values(
            &[DURATION, INPUT_TOKENS, OUTPUT_TOKENS, REQUEST_THROUGHPUT],
            &totals,
        );
        match good(&self.served, options) {
            Some(good) => {
                let good = rate(good as f64, totals.seconds);
                report.table += &decimal("Request goodput (req/s):", good);
                report
                    .list
                    .put("request_goodput", "req/s", good, totals.completed);
            }
            None => {
                report.list.object.insert("request_goodput".into(), number(None));
            }
        }
        report.add_values(
            &[
                OUTPUT_THROUGHPUT,
                PEAK_OUTPUT_THROUGHPUT,
                DECIMAL_PEAK_REQUESTS,
                TOTAL_TOKEN_THROUGHPUT,
            ],
            &totals,
        );
        let rate = request_rate.map_or_else(|| "inf".into(), |rate| number(Some(rate)));
        report.list.object.extend([
            ("rtfx".to_owned(), number(Some(0.0))),
            ("num_prompts".to_owned(), totals.sent().into()),
            ("request_rate".to_owned(), rate),
            ("max_concurrency".to_owned(), options.max_concurrency.into()),
        ]);
        let percentiles = match options.percentiles.as_slice() {
            [] => PERCENTILES.as_slice(),
            chosen => chosen,
        };
        let notes = self.notes();
        for latency in self.latencies() {
            report.add_latency(&latency, percentiles);
        }
        report.close(notes)
    }

    /// Takes the latencies out of the requests. `np.mean(x or 0)` of an empty list is zero.
    fn latencies(&mut self) -> [ServedLatency; 4] {
        let itl = self.served.take_gaps();
        let latency = |key, name, title, sample| ServedLatency {
            key,
            name,
            title,
            sample,
            empty: Some(0.0),
        };
        let sample = |time: fn(&ServedRequest) -> Option<f64>| self.served.sample(time);
        [
            latency(
                "ttft",
                "TTFT",
                "Time to First Token",
                sample(|request| Some(request.ttft as f64)),
            ),
            latency(
                "tpot",
                "TPOT",
                "Time per Output Token (excl. 1st token)",
                sample(ServedRequest::tpot),
            ),
            latency("itl", "ITL", "Inter-token Latency", itl),
            latency(
                "e2el",
                "E2EL",
                "End-to-end Latency",
                sample(|request| Some(request.latency as f64)),
            ),
        ]
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.add(
            "vLLM prints the end-to-end block only with --percentile-metrics ttft,tpot,itl,e2el; its default omits e2el.",
        );
        notes.add(&format!(
            "Peak concurrent requests are those of the busiest whole second, as in vLLM releases up to 0.32; at one instant there were at most {}.",
            self.served.peak_requests(Peak::Exact)
        ));
        notes.count(
            self.ignored_usage,
            "Answers whose usage came on an event with choices, which vLLM ignores; their tokens are the client's count",
        );
        notes.count(
            self.error_events,
            "Answers with an error event inside the stream that count as successes, as vLLM ignores such events",
        );
        notes
    }
}

/// Counts the requests within all thresholds, if there are any.
fn good(served: &Served, options: &ViewOptions) -> Option<usize> {
    if options.goodput.is_empty() {
        return None;
    }
    let is_good = |request: &&ServedRequest| {
        options
            .goodput
            .iter()
            .all(|threshold| request.goodput_nanos(&threshold.metric) / 1e9 <= threshold.value / 1000.0)
    };
    Some(served.answered.iter().filter(is_good).count())
}
