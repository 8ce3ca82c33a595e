//! NVIDIA GenAI-Perf 0.0.16 over Perf Analyzer, endpoint `v1/chat/completions`:
//! `LLMProfileDataParser`, `Statistics`, `LLMGoodputCalculator`.
//!
//! * The clock starts when Perf Analyzer sends and includes the connection. Here: when a client
//!   took the request up.
//! * A response is a *read* of the stream: events from one read are merged into one response with
//!   that read's time. Responses without visible text (role, reasoning, tool calls, finish, usage,
//!   `[DONE]`) are removed first. So the first token is the first visible text, and the latency
//!   ends with the last.
//! * ITL: one number for each request, (latency − TTFT) / (tokens − 1) in whole nanoseconds, for
//!   requests with two responses and two tokens. Throughput per user is its inverse. TPOT does not
//!   exist.
//! * Tokens: the client's tokenizer on the visible text.
//! * Throughput: from the first send to the last response of requests with text; the number of
//!   requests in it includes the empty ones.
//! * Percentiles as in numpy, standard deviation of the population. A failure ends Perf Analyzer's
//!   measurement; here it is left out.
//! * Goodput compares the lists of several metrics position by position although they leave out
//!   different requests; so does this view.

use serde_json::{Map, Value, json};
use veeksha_model::{ChunkKind, Nanos, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::ViewOptions;
use crate::report::{MetricList, Notes, ToolResult, number};
use crate::sample::ToolSample;
use crate::table::{BoxTable, grouped};

/// Metrics that its goodput accepts: times in milliseconds, the throughput in tokens/s/user.
pub(crate) const GOODPUT_METRICS: [(&str, &str); 5] = [
    ("time_to_first_token", "ms"),
    ("time_to_second_token", "ms"),
    ("inter_token_latency", "ms"),
    ("request_latency", "ms"),
    (THROUGHPUT_PER_USER, "tokens/s/user"),
];

const THROUGHPUT_PER_USER: &str = "output_token_throughput_per_user";
const PERCENTILES: [u8; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];
/// Columns of its table.
const COLUMNS: [&str; 6] = ["avg", "min", "max", "p99", "p90", "p75"];

/// The lists of `LLMMetrics`: each lacks the requests for which the metric does not exist.
#[derive(Debug, Default)]
pub(crate) struct GenaiPerf {
    /// Requests in the profile, including empty answers.
    requests: u64,
    left_out: u64,
    estimated: u64,
    first_send: Option<Nanos>,
    last_response: Nanos,
    latencies: Vec<f64>,
    first: Vec<f64>,
    second: Vec<f64>,
    between: Vec<f64>,
    per_user: Vec<f64>,
    output: Vec<f64>,
    input: Vec<f64>,
}

impl GenaiPerf {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        if answer::ending(record) != Ending::Answered {
            self.left_out += 1;
            return;
        }
        self.requests += 1;
        let responses = responses(record);
        let (Some(&first), Some(&last)) = (responses.first(), responses.last()) else {
            return;
        };
        let start = answer::pickup_time(record);
        let counted = answer::client_tokens(record, |kind| kind == ChunkKind::Content);
        self.estimated += u64::from(!counted.exact);
        self.first_send = Some(self.first_send.map_or(start, |send| send.min(start)));
        self.last_response = self.last_response.max(last);
        let (latency, ttft) = (last.saturating_sub(start), first.saturating_sub(start));
        self.latencies.push(latency as f64);
        self.first.push(ttft as f64);
        self.input.push(answer::client_prompt_tokens(record) as f64);
        self.output.push(counted.tokens as f64);
        if let Some(second) = responses.get(1) {
            self.second.push(second.saturating_sub(first) as f64);
        }
        if responses.len() > 1 && counted.tokens > 1 {
            let gap = (latency.saturating_sub(ttft) as f64 / (counted.tokens - 1) as f64).round_ties_even();
            self.between.push(gap);
            if gap > 0.0 {
                self.per_user.push(1.0 / (gap / 1e9));
            }
        }
    }

    pub(crate) fn finish(self, options: &ViewOptions) -> ToolResult {
        let seconds = self
            .first_send
            .map_or(0.0, |send| self.last_response.saturating_sub(send) as f64 / 1e9);
        let count = self.latencies.len();
        let per_second = |number: f64| (seconds > 0.0).then(|| number / seconds);
        let good = good_requests(&self, options).map(|good| good as f64);
        let generated: f64 = self.output.iter().sum();
        let systems = [
            ("output_token_throughput", "tokens/sec", per_second(generated)),
            (
                "request_throughput",
                "requests/sec",
                per_second(self.requests as f64),
            ),
            ("request_goodput", "requests/sec", good.and_then(per_second)),
            ("request_count", "count", Some(count as f64)),
        ];
        let mut notes = self.notes();
        if options.goodput.len() > 1 {
            notes.add(
                "Its goodput compares the lists of several metrics position by position, although they leave out different requests.",
            );
        }
        let samples = [
            ("time_to_first_token", "ms", ToolSample::of(self.first), 1e6),
            ("time_to_second_token", "ms", ToolSample::of(self.second), 1e6),
            ("request_latency", "ms", ToolSample::of(self.latencies), 1e6),
            ("inter_token_latency", "ms", ToolSample::of(self.between), 1e6),
            (
                THROUGHPUT_PER_USER,
                "tokens/sec/user",
                ToolSample::of(self.per_user),
                1.0,
            ),
            (
                "output_sequence_length",
                "tokens",
                ToolSample::of(self.output),
                1.0,
            ),
            ("input_sequence_length", "tokens", ToolSample::of(self.input), 1.0),
        ];
        let mut headings = vec!["Statistic"];
        headings.extend(COLUMNS);
        let mut table = BoxTable::new("NVIDIA GenAI-Perf | LLM Metrics", &headings);
        let mut list = MetricList::default();
        for (tag, unit, sample, per) in samples {
            let skipped = tag == "inter_token_latency" && sample.sum() == 0.0;
            if sample.len() == 0 || skipped {
                table.row(row(tag, unit, |_| None));
                continue;
            }
            let stat = |name: &str| stat(&sample, name).map(|value| value / per);
            let mut object = Map::from_iter([("unit".to_owned(), json!(unit))]);
            for name in stats() {
                let value = stat(&name);
                object.insert(name.clone(), number(value));
                list.only(&format!("{tag}.{name}"), unit, value, sample.len());
            }
            list.object.insert(tag.to_owned(), Value::Object(object));
            table.row(row(tag, unit, stat));
        }
        for (tag, unit, value) in systems {
            if tag == "request_goodput" && options.goodput.is_empty() {
                continue;
            }
            list.only(&format!("{tag}.avg"), unit, value, count);
            let object = json!({ "unit": unit, "avg": number(value) });
            list.object.insert(tag.to_owned(), object);
            let shown = if unit == "requests/sec" { "per sec" } else { unit };
            table.row(row(tag, shown, |name| value.filter(|_| name == "avg")));
        }
        ToolResult {
            metrics: list,
            table: table.draw(),
            notes,
        }
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.add(
            "Which events share a read depends on the client; the reads are this host's, not Perf Analyzer's.",
        );
        notes.count(
            self.left_out,
            "Failed requests that are left out, where Perf Analyzer would have ended its measurement at the first",
        );
        notes.count(
            self.requests - self.latencies.len() as u64,
            "Answers without visible text, which no metric but request_throughput counts",
        );
        notes.count(
            self.estimated,
            "Answers without token counts per chunk, whose length is the server's count or a share of it",
        );
        notes
    }
}

/// Returns the arrival of each response: of each read with visible text.
fn responses(record: &RequestRecord) -> Vec<Nanos> {
    let mut reads: Vec<(Nanos, bool)> = Vec::new();
    for chunk in &record.chunks {
        let text = chunk.kind == ChunkKind::Content;
        match reads.last_mut() {
            Some(read) if chunk.merged => read.1 |= text,
            _ => reads.push((chunk.at, text)),
        }
    }
    reads.retain(|read| read.1);
    reads.into_iter().map(|read| read.0).collect()
}

fn stats() -> impl Iterator<Item = String> {
    let percentiles = PERCENTILES.iter().map(|p| format!("p{p}"));
    let others = ["avg", "min", "max", "std"].map(str::to_owned);
    others.into_iter().chain(percentiles)
}

fn stat(sample: &ToolSample, name: &str) -> Option<f64> {
    match name {
        "avg" => sample.mean(),
        "min" => sample.min(),
        "max" => sample.max(),
        "std" => sample.std(),
        percentile => sample.percentile(percentile.trim_start_matches('p').parse().ok()?),
    }
}

/// Formats a table row: `Time To First Token (ms)` and its statistics.
fn row(tag: &str, unit: &str, stat: impl Fn(&str) -> Option<f64>) -> Vec<String> {
    let words: Vec<String> = tag
        .split('_')
        .map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            format!("{}{rest}", first.to_uppercase())
        })
        .collect();
    let mut cells = vec![format!("{} ({unit})", words.join(" "))];
    let shown = COLUMNS
        .iter()
        .map(|column| stat(column).map_or_else(|| "N/A".to_owned(), |value| grouped(value, 2)));
    cells.extend(shown);
    cells
}

/// Counts the positions at which every list is within its threshold; `zip` ends with the shortest
/// list.
fn good_requests(metrics: &GenaiPerf, options: &ViewOptions) -> Option<usize> {
    if options.goodput.is_empty() {
        return None;
    }
    let lists = options.goodput.iter().map(|threshold| {
        let (list, bound) = match threshold.metric.as_str() {
            "time_to_first_token" => (&metrics.first, threshold.value * 1e6),
            "time_to_second_token" => (&metrics.second, threshold.value * 1e6),
            "inter_token_latency" => (&metrics.between, threshold.value * 1e6),
            "request_latency" => (&metrics.latencies, threshold.value * 1e6),
            _ => (&metrics.per_user, threshold.value),
        };
        (threshold.metric == THROUGHPUT_PER_USER, list, bound)
    });
    let lists: Vec<_> = lists.collect();
    // The list of a throughput, if there is one, sets the number of positions; else the shortest
    // list of times.
    let times = lists.iter().filter(|list| !list.0).map(|list| list.1.len()).min();
    let throughput = lists.iter().find(|list| list.0).map(|list| list.1.len());
    let positions = throughput.or(times).unwrap_or(0);
    let good = |at: &usize| {
        lists.iter().all(|(throughput, list, bound)| {
            let value = list.get(*at).copied();
            value.is_some_and(|value| {
                if *throughput {
                    value >= *bound
                } else {
                    value <= *bound
                }
            })
        })
    };
    Some((0..positions).filter(good).count())
}
