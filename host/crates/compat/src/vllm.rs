//! `vllm bench serve`, backend `openai-chat`: `vllm/benchmarks/serve.py` (`calculate_metrics`,
//! `benchmark`) and `vllm/benchmarks/lib/endpoint_request_func.py`
//! (`async_request_openai_chat_completions`) at commit `009e6d4a1cd6ba3fb2a9fc00f4ec06f5297232a1`
//! of vllm-project/vllm.
//!
//! * The clock starts just before `session.post`, after the semaphore of `--max-concurrency`:
//!   waiting for a connection, TCP and TLS are inside. Here: when a client took the request up.
//! * First token: the first event whose `choices` is not empty, even if it says only a role. ITL:
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
//!   stream is not looked at.

use veeksha_model::{ChunkKind, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::Options;
use crate::report::{MetricList, Notes, number};
use crate::served::{AnswerTimes, Peak, Served, rate};
use crate::table::{decimal, line, rule};
use crate::view::ToolResult;

/// Default of `--metric-percentiles`.
const PERCENTILES: [f64; 1] = [99.0];

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

    pub(crate) fn finish(mut self, options: &Options, request_rate: Option<f64>) -> ToolResult {
        let served = &self.served;
        let seconds = served.seconds_since_zero();
        let completed = served.answered.len();
        let (input, output) = (
            served.sum(|output| output.prompt),
            served.sum(|output| output.output),
        );
        let good = good(served, options);
        let per_second = |count: f64| rate(count, seconds);
        let peaks = (served.peak_chunks(), served.peak_requests(Peak::PerSecond));

        let mut list = MetricList::default();
        let mut table = rule(" Serving Benchmark Result ", '=');
        table += &line("Successful requests:", &completed.to_string());
        table += &line("Failed requests:", &served.failed.to_string());
        if let Some(limit) = options.max_concurrency {
            table += &line("Maximum request concurrency:", &limit.to_string());
        }
        if request_rate.is_some() {
            table += &decimal("Request rate configured (RPS):", request_rate);
        }
        table += &decimal("Benchmark duration (s):", Some(seconds));
        table += &line("Total input tokens:", &input.to_string());
        table += &line("Total generated tokens:", &output.to_string());
        table += &decimal("Request throughput (req/s):", per_second(completed as f64));
        if let Some(good) = good {
            table += &decimal("Request goodput (req/s):", per_second(good as f64));
        }
        table += &decimal("Output token throughput (tok/s):", per_second(output as f64));
        table += &decimal("Peak output token throughput (tok/s):", Some(peaks.0 as f64));
        table += &decimal("Peak concurrent requests:", Some(peaks.1 as f64));
        table += &decimal(
            "Total token throughput (tok/s):",
            per_second((input + output) as f64),
        );

        list.put("duration", "s", Some(seconds), completed + served.failed);
        list.count(
            "completed",
            "requests",
            completed as u64,
            completed + served.failed,
        );
        list.count(
            "failed",
            "requests",
            served.failed as u64,
            completed + served.failed,
        );
        list.count("total_input_tokens", "tok", input, completed);
        list.count("total_output_tokens", "tok", output, completed);
        list.put(
            "request_throughput",
            "req/s",
            per_second(completed as f64),
            completed,
        );
        match good {
            Some(good) => list.put("request_goodput", "req/s", per_second(good as f64), completed),
            None => {
                list.object.insert("request_goodput".into(), number(None));
            }
        }
        list.put("output_throughput", "tok/s", per_second(output as f64), completed);
        list.put(
            "total_token_throughput",
            "tok/s",
            per_second((input + output) as f64),
            completed,
        );
        list.put(
            "max_output_tokens_per_s",
            "tok/s",
            Some(peaks.0 as f64),
            completed,
        );
        list.count("max_concurrent_requests", "requests", peaks.1, completed);
        list.object.insert("rtfx".into(), number(Some(0.0)));
        list.object
            .insert("num_prompts".into(), (completed + served.failed).into());
        let rate = request_rate.map_or_else(|| "inf".into(), |rate| number(Some(rate)));
        list.object.insert("request_rate".into(), rate);
        list.object
            .insert("max_concurrency".into(), options.max_concurrency.into());

        let ttft = served.sample(|output| Some(output.ttft as f64));
        let tpot = served.sample(|output| output.tpot());
        let e2el = served.sample(|output| Some(output.latency as f64));
        let itl = self.served.take_gaps();
        let metrics = [
            ("ttft", "TTFT", "Time to First Token", &ttft),
            ("tpot", "TPOT", "Time per Output Token (excl. 1st token)", &tpot),
            ("itl", "ITL", "Inter-token Latency", &itl),
            ("e2el", "E2EL", "End-to-end Latency", &e2el),
        ];
        let percentiles = match options.percentiles.as_slice() {
            [] => PERCENTILES.as_slice(),
            chosen => chosen,
        };
        for (key, name, title, sample) in metrics {
            table += &rule(title, '-');
            // `np.mean(x or 0)` of an empty list is zero.
            let mut stat = |stat: &str, label: &str, value: Option<f64>, shown: bool| {
                let value = Some(value.unwrap_or(0.0));
                if shown {
                    table += &decimal(&format!("{label} {name} (ms):"), value);
                }
                list.put(&format!("{stat}_{key}_ms"), "ms", value, sample.len());
            };
            stat("mean", "Mean", sample.mean(), true);
            stat("median", "Median", sample.percentile(50.0), true);
            stat("std", "Std", sample.std(), false);
            for &p in percentiles {
                stat(&format!("p{p}"), &format!("P{p}"), sample.percentile(p), true);
            }
        }
        table += &"=".repeat(50);
        table.push('\n');

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
        ToolResult {
            metrics: list,
            table,
            notes,
        }
    }
}

/// Counts the requests within all thresholds, if there are any.
fn good(served: &Served, options: &Options) -> Option<usize> {
    if options.goodput.is_empty() {
        return None;
    }
    let within = |metric: &str, nanos: f64| {
        options
            .threshold(metric)
            .is_none_or(|bound| nanos / 1e9 <= bound / 1000.0)
    };
    let good = served.answered.iter().filter(|output| {
        within("ttft", output.ttft as f64)
            && within("tpot", output.tpot().unwrap_or(0.0))
            && within("e2el", output.latency as f64)
    });
    Some(good.count())
}
