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

use serde_json::json;
use veeksha_model::{ChunkKind, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::Options;
use crate::report::{MetricList, Notes, number};
use crate::sample::Sample;
use crate::served::{AnswerTimes, Peak, Served, ServedRequest, rate};
use crate::table::{decimal, line, rule};
use crate::view::ToolResult;

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

    pub(crate) fn finish(mut self, options: &Options, request_rate: Option<f64>) -> ToolResult {
        let served = &self.served;
        let seconds = served.seconds_since_first();
        let completed = served.answered.len();
        let sent = completed + served.failed;
        let (input, output) = (
            served.sum(|output| output.prompt),
            served.sum(|output| output.output),
        );
        let retokenized = served.sum(|output| output.retokenized);
        let latencies: f64 = served
            .answered
            .iter()
            .map(|output| output.latency as f64 / 1e9)
            .sum();
        let per_second = |count: f64| rate(count, seconds);
        let peaks = (served.peak_chunks(), served.peak_requests(Peak::PerSecond));

        let mut list = MetricList::default();
        let rate_text = request_rate.map_or_else(|| "inf".to_owned(), |rate| format!("{rate:?}"));
        let limit = options.max_concurrency;
        let limit_text = limit.map_or_else(|| "not set".to_owned(), |limit| limit.to_string());
        let mut table = rule(" Serving Benchmark Result ", '=');
        table += &line("Backend:", "sglang-oai-chat");
        table += &line("Traffic request rate:", &rate_text);
        table += &line("Max request concurrency:", &limit_text);
        table += &line("Successful requests:", &completed.to_string());
        table += &decimal("Benchmark duration (s):", Some(seconds));
        table += &line("Total input tokens:", &input.to_string());
        table += &line("Total input text tokens:", &input.to_string());
        table += &line("Total generated tokens:", &output.to_string());
        table += &line("Total generated tokens (retokenized):", &retokenized.to_string());
        table += &decimal("Request throughput (req/s):", per_second(completed as f64));
        table += &decimal("Input token throughput (tok/s):", per_second(input as f64));
        table += &decimal("Output token throughput (tok/s):", per_second(output as f64));
        table += &decimal("Peak output token throughput (tok/s):", Some(peaks.0 as f64));
        table += &line("Peak concurrent requests:", &peaks.1.to_string());
        table += &decimal(
            "Total token throughput (tok/s):",
            per_second((input + output) as f64),
        );
        table += &decimal("Concurrency:", per_second(latencies));

        list.put("duration", "s", Some(seconds), sent);
        list.count("completed", "requests", completed as u64, sent);
        list.count("total_input_tokens", "tok", input, completed);
        list.count("total_input_text_tokens", "tok", input, completed);
        list.count("total_input_vision_tokens", "tok", 0, completed);
        list.count("total_output_tokens", "tok", output, completed);
        list.count("total_output_tokens_retokenized", "tok", retokenized, completed);
        list.put(
            "request_throughput",
            "req/s",
            per_second(completed as f64),
            completed,
        );
        list.put("input_throughput", "tok/s", per_second(input as f64), completed);
        list.put("output_throughput", "tok/s", per_second(output as f64), completed);
        list.put(
            "total_throughput",
            "tok/s",
            per_second((input + output) as f64),
            completed,
        );
        if !options.goodput.is_empty() {
            goodput(served, options, seconds, (&mut list, &mut table));
        }
        let e2e = served.sample(|output| Some(output.latency as f64));
        let ttft = served.sample(|output| Some(output.ttft as f64));
        let tpot = served.sample(ServedRequest::tpot);
        let itl = self.served.take_gaps();
        block(&mut table, "End-to-End Latency", "E2E Latency", &e2e, None);
        block(&mut table, "Time to First Token", "TTFT", &ttft, Some(0.0));
        let title = "Time per Output Token (excl. 1st token)";
        block(&mut table, title, "TPOT", &tpot, Some(0.0));
        block(&mut table, "Inter-Token Latency", "ITL", &itl, Some(0.0));
        table += &decimal("Max ITL (ms):", Some(itl.max().unwrap_or(0.0)));
        table += &"=".repeat(50);
        table.push('\n');
        for (key, sample, empty) in [
            ("e2e_latency", &e2e, None),
            ("ttft", &ttft, Some(0.0)),
            ("tpot", &tpot, Some(0.0)),
            ("itl", &itl, Some(0.0)),
        ] {
            let stats = [
                ("mean", sample.mean()),
                ("median", sample.percentile(50.0)),
                ("std", sample.std()),
                ("p90", sample.percentile(90.0)),
                ("p95", sample.percentile(95.0)),
                ("p99", sample.percentile(99.0)),
            ];
            for (stat, value) in stats {
                list.put(&format!("{stat}_{key}_ms"), "ms", value.or(empty), sample.len());
            }
        }
        list.put("concurrency", "requests", per_second(latencies), completed);
        list.put(
            "max_output_tokens_per_s",
            "tok/s",
            Some(peaks.0 as f64),
            completed,
        );
        list.count("max_concurrent_requests", "requests", peaks.1, completed);
        list.object.insert("backend".into(), "sglang-oai-chat".into());
        let rate = request_rate.map_or_else(|| "inf".into(), |rate| number(Some(rate)));
        list.object.insert("request_rate".into(), rate);
        list.object.insert("max_concurrency".into(), limit.into());
        list.object.insert("accept_length".into(), number(None));
        let notes = self.notes();
        ToolResult {
            metrics: list,
            table,
            notes,
        }
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

fn block(table: &mut String, title: &str, name: &str, sample: &Sample, empty: Option<f64>) {
    table.push_str(&rule(title, '-'));
    let stats = [
        ("Mean", sample.mean()),
        ("Median", sample.percentile(50.0)),
        ("P90", sample.percentile(90.0)),
        ("P95", sample.percentile(95.0)),
        ("P99", sample.percentile(99.0)),
    ];
    for (label, value) in stats {
        table.push_str(&decimal(&format!("{label} {name} (ms):"), value.or(empty)));
    }
}

/// Adds the goodput: requests that met every threshold, out of all that were sent.
fn goodput(served: &Served, options: &Options, seconds: f64, (list, table): (&mut MetricList, &mut String)) {
    let sent = served.answered.len() + served.failed;
    let met = |metric: &str, output: &ServedRequest| {
        let nanos = match metric {
            "ttft" => output.ttft as f64,
            "tpot" => output.tpot().unwrap_or(0.0),
            _ => output.latency as f64,
        };
        options.threshold(metric).is_none_or(|bound| nanos / 1e6 <= bound)
    };
    let metrics = || options.goodput.iter().map(|threshold| threshold.metric.as_str());
    let good = served
        .answered
        .iter()
        .filter(|output| metrics().all(|metric| met(metric, output)));
    let good = good.count();
    let share = |count: usize| (sent > 0).then(|| count as f64 / sent as f64);
    list.put("request_goodput", "req/s", rate(good as f64, seconds), sent);
    list.put("slo_attainment", "", share(good), sent);
    let slos: Vec<String> = options
        .goodput
        .iter()
        .map(|threshold| format!("{}:{}", threshold.metric, threshold.value))
        .collect();
    table.push_str(&rule("Goodput", '-'));
    table.push_str(&line("SLOs (ms):", &slos.join(" ")));
    table.push_str(&decimal("Request goodput (req/s):", rate(good as f64, seconds)));
    table.push_str(&decimal(
        "SLO attainment (%):",
        share(good).map(|share| share * 100.0),
    ));
    let mut attained = serde_json::Map::new();
    for metric in metrics() {
        let count = served
            .answered
            .iter()
            .filter(|output| met(metric, output))
            .count();
        attained.insert(metric.to_owned(), number(share(count)));
        let label = format!("{} SLO attainment (%):", metric.to_uppercase());
        table.push_str(&decimal(&label, share(count).map(|share| share * 100.0)));
    }
    list.object
        .insert("slo_attainment_by_metric".into(), attained.into());
    let bounds: serde_json::Map<_, _> = options
        .goodput
        .iter()
        .map(|threshold| (threshold.metric.clone(), json!(threshold.value)))
        .collect();
    list.object.insert("goodput_slos_ms".into(), bounds.into());
}
