//! inference-perf 0.7.0 (kubernetes-sigs), chat API with streaming: `parse_sse_stream`, `correct_streamed_response_metrics`,
//! `compute_request_latency_metrics`, `summarize_requests`, `calculate_goodput_metrics`.
//!
//! * The clock starts just before `session.post`. Here: when a client took the request up. `schedule_delay` is that instant
//!   minus the scheduled one.
//! * First token: the first event with visible text; reasoning and tool calls are not looked at, so that a reasoning model's TTFT
//!   spans all of its thought. TTFT, TPOT and ITL exist for two output tokens and more, else not at all.
//! * Every token of an event has the event's time: ITL is 0 within an event and the whole gap between events.
//! * TPOT: (last token − first) / (tokens − 1). NTPOT: latency / tokens, 0 without tokens. Latency ends with the stream
//!   (usage and `[DONE]` included).
//! * Output tokens: the client's tokenizer on the visible text (`use_server_output_tokens` off); prompt tokens: the server's
//!   count, else the client's.
//! * Throughput: successes over the time from the first start to the last end of all requests, failed ones included.
//! * Goodput: of the successes only; failures vanish from it.
//! * A request succeeds if HTTP says 200 and ends well, whatever the events say.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use veeksha_model::{ChunkKind, ErrorClass, Nanos, RequestRecord, Status};

use crate::answer::{self, Ending};
use crate::options::Options;
use crate::report::{Figures, Notes, number};
use crate::sample::{Gaps, Sample};
use crate::table::{Boxed, grouped};
use crate::view::Told;

const PERCENTILES: [f64; 11] = [0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
/// `max_error_messages`: how many messages of one label are kept.
const MESSAGES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct InferencePerf {
    answered: Vec<Success>,
    failures: Vec<(f64, f64)>,
    labels: BTreeMap<String, Label>,
    delays: Vec<f64>,
    gaps: Gaps,
    cached: u64,
    first_start: Option<Nanos>,
    last_start: Nanos,
    last_end: Nanos,
    /// The window of its goodput: from the first start to the last end of the successes.
    good_window: Option<(Nanos, Nanos)>,
    mismatched: u64,
    without_usage: u64,
    error_events: u64,
    estimated: u64,
}

/// A successful request; seconds.
#[derive(Debug)]
struct Success {
    latency: f64,
    ttft: Option<f64>,
    tpot: Option<f64>,
    itl: Option<f64>,
    ntpot: f64,
    prompt: f64,
    client_output: f64,
    server_output: f64,
}

#[derive(Debug, Default)]
struct Label {
    count: u64,
    messages: Vec<String>,
}

impl InferencePerf {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let (start, end) = (answer::begun(record), answer::over(record));
        self.first_start = Some(self.first_start.map_or(start, |first| first.min(start)));
        self.last_start = self.last_start.max(start);
        self.last_end = self.last_end.max(end);
        self.delays.push((start as f64 - record.intended as f64) / 1e9);
        let latency = end.saturating_sub(start) as f64 / 1e9;
        let ending = answer::ending(record);
        if !matches!(ending, Ending::Answered | Ending::ErrorEvent) {
            self.failures
                .push((latency, answer::prompt_tokens(record) as f64));
            self.label(record);
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
            // The tool tokenizes each text of its own; a text of which no token ends here is not seen.
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
        // Without an event of visible text there is nothing that it compares.
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

    /// `make_concise_label`: by HTTP status, else by what the error is.
    fn label(&mut self, record: &RequestRecord) {
        let Status::Failed { class, message } = &record.status else {
            return;
        };
        let text = message.to_lowercase();
        let label = match record.http_status.filter(|_| *class == ErrorClass::Status) {
            Some(code) => format!("{code} - {}", http_label(code, &text)),
            None if is_timeout(&text) => "Timeout".to_owned(),
            None if text.contains("connect") => "Connection Error".to_owned(),
            None => class.name().to_owned(),
        };
        let label = self.labels.entry(label).or_default();
        label.count += 1;
        if label.messages.len() < MESSAGES && !label.messages.contains(message) {
            label.messages.push(message.clone());
        }
    }

    pub(crate) fn finish(self, options: &Options) -> Told {
        let percentiles = match options.percentiles.as_slice() {
            [] => PERCENTILES.as_slice(),
            chosen => chosen,
        };
        let first = self.first_start.unwrap_or(0);
        let total = self.last_end.saturating_sub(first) as f64 / 1e9;
        let sending = self.last_start.saturating_sub(first) as f64 / 1e9;
        let (count, failed) = (self.answered.len(), self.failures.len());
        let all = count + failed;
        let mut figures = Figures::default();
        let notes = self.notes();

        let goodput = goodput(&self.answered, options);
        let window = self
            .good_window
            .map_or(0.0, |(start, end)| end.saturating_sub(start) as f64 / 1e9);
        let of =
            |value: fn(&Success) -> Option<f64>| Sample::of(self.answered.iter().filter_map(value).collect());
        let latencies = [
            ("request_latency", of(|success| Some(success.latency))),
            (
                "normalized_time_per_output_token",
                of(|success| Some(success.ntpot)),
            ),
            ("time_per_output_token", of(|success| success.tpot)),
            ("time_to_first_token", of(|success| success.ttft)),
            ("inter_token_latency", self.gaps.into_sample(1e9)),
        ];
        let prompt = of(|success| Some(success.prompt));
        let client_output = of(|success| Some(success.client_output));
        let server_output = of(|success| Some(success.server_output));
        let per_second = |sum: f64| if total > 0.0 { sum / total } else { 0.0 };
        let rates = [
            ("input_tokens_per_sec", "tokens/s", per_second(prompt.sum())),
            (
                "output_tokens_per_sec",
                "tokens/s",
                per_second(client_output.sum()),
            ),
            (
                "total_tokens_per_sec",
                "tokens/s",
                per_second(prompt.sum() + client_output.sum()),
            ),
            ("requests_per_sec", "req/s", per_second(count as f64)),
        ];

        let mut load = Map::from_iter([("count".to_owned(), json!(all))]);
        let delays = Sample::of(self.delays);
        load.insert("schedule_delay".into(), summary(&delays, percentiles));
        figures.only("load_summary.count", "requests", Some(all as f64), all);
        told(
            &mut figures,
            "load_summary.schedule_delay",
            "s",
            &delays,
            percentiles,
        );
        figures.only("successes.count", "requests", Some(count as f64), all);
        let mut latency = Map::new();
        for (name, sample) in &latencies {
            latency.insert((*name).to_owned(), summary(sample, percentiles));
            told(
                &mut figures,
                &format!("successes.latency.{name}"),
                "s",
                sample,
                percentiles,
            );
        }
        let mut throughput = Map::new();
        for (name, unit, value) in rates {
            throughput.insert(name.to_owned(), number(Some(value)));
            figures.only(&format!("successes.throughput.{name}"), unit, Some(value), count);
        }
        let mut prompt_tokens = summary(&prompt, percentiles);
        let cached = self.cached as f64;
        let totals = [
            ("total", prompt.sum()),
            ("cached", cached),
            ("uncached", (prompt.sum() - cached).max(0.0)),
        ];
        extend(&mut prompt_tokens, &totals);
        let mut output_tokens = summary(&server_output, percentiles);
        extend(&mut output_tokens, &[("total", server_output.sum())]);
        told(
            &mut figures,
            "successes.prompt_tokens",
            "tokens",
            &prompt,
            percentiles,
        );
        told(
            &mut figures,
            "successes.output_len",
            "tokens",
            &client_output,
            percentiles,
        );
        told(
            &mut figures,
            "successes.output_tokens",
            "tokens",
            &server_output,
            percentiles,
        );

        let mut successes = json!({
            "count": count,
            "latency": latency,
            "throughput": throughput,
            "prompt_tokens": prompt_tokens,
            "output_len": summary(&client_output, percentiles),
            "output_tokens": output_tokens,
            "token_count_mismatches": self.mismatched,
            "client_fallback_requests": { "prompt": self.without_usage, "output": self.without_usage },
        });
        if let (Some(goodput), Some(successes)) = (&goodput, successes.as_object_mut()) {
            let object = goodput.object(window);
            for (name, value) in &object {
                figures.only(
                    &format!("successes.goodput_metrics.{name}"),
                    "",
                    value.as_f64(),
                    count,
                );
            }
            successes.insert("goodput_metrics".into(), object.into());
        }
        let failure_latency = Sample::of(self.failures.iter().map(|failure| failure.0).collect());
        let failure_prompt = Sample::of(self.failures.iter().map(|failure| failure.1).collect());
        let mut failure_tokens = summary(&failure_prompt, percentiles);
        let sum = failure_prompt.sum();
        extend(
            &mut failure_tokens,
            &[("total", sum), ("cached", 0.0), ("uncached", sum)],
        );
        let labels: Map<String, Value> = self
            .labels
            .into_iter()
            .map(|(name, label)| {
                let messages: Vec<Value> = label
                    .messages
                    .iter()
                    .map(|message| json!({ "message": message }))
                    .collect();
                (name, json!({ "count": label.count, "messages": messages }))
            })
            .collect();
        figures.only("failures.count", "requests", Some(failed as f64), all);
        figures.object = Map::from_iter([
            ("benchmark_time_seconds".to_owned(), number(Some(total))),
            ("load_summary".to_owned(), load.into()),
            ("successes".to_owned(), successes),
            (
                "failures".to_owned(),
                json!({
                    "count": failed,
                    "request_latency": summary(&failure_latency, percentiles),
                    "prompt_tokens": failure_tokens,
                    "by_label": labels,
                }),
            ),
        ]);

        let achieved = if sending > 0.0 { all as f64 / sending } else { 0.0 };
        let requested = options.request_rate.unwrap_or(0.0);
        let errors = if all > 0 {
            100.0 * failed as f64 / all as f64
        } else {
            0.0
        };
        let mut first_row = vec!["0".to_owned(), tenth(requested), tenth(achieved)];
        first_row.push(format!("{errors:.1}%"));
        let shown = [rates[3].2, rates[0].2, rates[1].2, rates[2].2];
        first_row.extend(shown.map(tenth));
        let mut headings = vec![
            "Stage",
            "Req Rate",
            "Achieved Rate",
            "Error Rate",
            "Req/s",
            "In Tokens/s",
            "Out Tokens/s",
            "Tot Tokens/s",
        ];
        if let Some(goodput) = &goodput {
            headings.extend(["Goodput %", "Req Goodput", "Token Goodput"]);
            let per = goodput.rates(window);
            first_row.extend([format!("{:.1}%", per[0]), tenth(per[1]), tenth(per[2])]);
        }
        let mut table = one_row("Throughput and Goodput Summary", &headings, first_row);
        let by = |at: usize| latencies.get(at).map(|latency| &latency.1);
        table += &milliseconds(
            "Request & Token Latency (ms)",
            &[("Req Lat", by(0)), ("TTFT", by(3)), ("ITL", by(4))],
        );
        table += &milliseconds(
            "Token Generation Speed (ms)",
            &[("TPOT", by(2)), ("Norm TPOT", by(1))],
        );
        let lengths = [
            ("Prompt", Some(&prompt)),
            ("Out (client)", Some(&client_output)),
            ("Out (server)", Some(&server_output)),
        ];
        table += &three("Token Length Aggregates", &lengths, 1.0);
        Told {
            figures,
            table,
            notes,
        }
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.say(
            "The size of the request bodies is not part of a run's record; request_size_bytes, image, video and audio are left out.",
        );
        notes.count(
            self.error_events,
            "Answers with an error event inside the stream that count as successes, as inference-perf does not look for such events",
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
            "Answers that this host's tokenizer did not count chunk by chunk, whose length is the server's count or a share of it, and whose chunks count as one token",
        );
        notes
    }
}

/// `_HTTP_CODE_LABELS`, else `_HTTP_ERROR_LABELS` by the words of the message, in lower case.
fn http_label(code: u16, text: &str) -> &'static str {
    let any = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match code {
        429 => "Rate Limit",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ if any(&[
            "context window",
            "context_window",
            "context length",
            "maximum context",
        ]) || any(&[
            "max tokens",
            "max_tokens",
            "maxtokens",
            "token limit",
            "token_limit",
        ]) =>
        {
            "Context Window"
        }
        _ if any(&["invalid json", "malformed json", "json parse", "unexpected token"])
            || any(&[
                "expecting value",
                "unterminated string",
                "expecting ',' delimiter",
            ]) =>
        {
            "Invalid JSON"
        }
        _ if is_timeout(text) => "Timeout",
        _ if any(&["model not found", "model_not_found", "no such model"]) => "Model Not Found",
        _ => "other",
    }
}

fn is_timeout(text: &str) -> bool {
    ["timeout", "timed out", "timed-out", "timedout"]
        .iter()
        .any(|word| text.contains(word))
}

fn key(p: f64) -> String {
    if p == 50.0 {
        "median".to_owned()
    } else {
        format!("p{p}")
    }
}

/// `summarize`: null without values.
fn summary(sample: &Sample, percentiles: &[f64]) -> Value {
    if sample.len() == 0 {
        return Value::Null;
    }
    let mut object = Map::new();
    let ends = [
        ("mean", sample.mean()),
        ("min", sample.min()),
        ("max", sample.max()),
    ];
    for (name, value) in ends {
        object.insert(name.to_owned(), number(value));
    }
    for &p in percentiles {
        object.insert(key(p), number(sample.percentile(p)));
    }
    Value::Object(object)
}

/// Puts totals beside a distribution; without values they stand alone.
fn extend(summary: &mut Value, totals: &[(&str, f64)]) {
    if summary.is_null() {
        *summary = Value::Object(Map::new());
    }
    if let Some(object) = summary.as_object_mut() {
        let totals = totals
            .iter()
            .map(|(name, value)| ((*name).to_owned(), number(Some(*value))));
        object.extend(totals);
    }
}

fn told(figures: &mut Figures, name: &str, unit: &'static str, sample: &Sample, percentiles: &[f64]) {
    let mut put = |stat: &str, value: Option<f64>| {
        figures.only(&format!("{name}.{stat}"), unit, value, sample.len());
    };
    put("mean", sample.mean());
    put("min", sample.min());
    put("max", sample.max());
    for &p in percentiles {
        put(&key(p), sample.percentile(p));
    }
}

/// `calculate_goodput_metrics`.
struct Goodput {
    good: u64,
    tokens: f64,
    total: u64,
    attained: Vec<(String, u64)>,
}

impl Goodput {
    /// The share in percent, and requests and tokens a second.
    fn rates(&self, seconds: f64) -> [f64; 3] {
        let per = |value: f64| if seconds > 0.0 { value / seconds } else { 0.0 };
        [
            100.0 * self.good as f64 / self.total as f64,
            per(self.good as f64),
            per(self.tokens),
        ]
    }

    fn object(&self, seconds: f64) -> Map<String, Value> {
        let [share, requests, tokens] = self.rates(seconds);
        let mut object = Map::from_iter([
            ("goodput_percentage".to_owned(), number(Some(share))),
            ("request_goodput".to_owned(), number(Some(requests))),
            ("token_goodput".to_owned(), number(Some(tokens))),
            ("good_requests".to_owned(), self.good.into()),
            ("total_requests".to_owned(), self.total.into()),
        ]);
        for (metric, count) in &self.attained {
            let share = *count as f64 / self.total as f64 * 100.0;
            object.insert(format!("{metric}_attainment_percentage"), number(Some(share)));
        }
        object
    }
}

fn goodput(answered: &[Success], options: &Options) -> Option<Goodput> {
    if options.goodput.is_empty() || answered.is_empty() {
        return None;
    }
    let mut goodput = Goodput {
        good: 0,
        tokens: 0.0,
        total: answered.len() as u64,
        attained: options
            .goodput
            .iter()
            .map(|threshold| (threshold.metric.clone(), 0))
            .collect(),
    };
    for success in answered {
        let mut good = true;
        for (threshold, attained) in options.goodput.iter().zip(&mut goodput.attained) {
            let value = match threshold.metric.as_str() {
                "ttft" => success.ttft,
                "tpot" => success.tpot,
                "itl" => success.itl,
                "ntpot" => Some(success.ntpot),
                _ => Some(success.latency),
            };
            let met = value.is_some_and(|value| value <= threshold.value);
            attained.1 += u64::from(met);
            good &= met;
        }
        if good {
            goodput.good += 1;
            goodput.tokens += success.prompt + success.client_output;
        }
    }
    Some(goodput)
}

fn tenth(value: f64) -> String {
    // `{:0.1f}`, without separators.
    grouped(value, 1).replace(',', "")
}

fn one_row(title: &str, headings: &[&str], cells: Vec<String>) -> String {
    let mut table = Boxed::new(title, headings);
    table.row(cells);
    table.draw()
}

fn milliseconds(title: &str, columns: &[(&str, Option<&Sample>)]) -> String {
    three(title, columns, 1000.0)
}

/// Mean, median and P90 of each.
fn three(title: &str, columns: &[(&str, Option<&Sample>)], times: f64) -> String {
    let mut headings = vec!["Stage".to_owned()];
    let mut cells = vec!["0".to_owned()];
    for (name, sample) in columns {
        let stats = [
            ("Mean", sample.and_then(Sample::mean)),
            ("Med", sample.and_then(|sample| sample.percentile(50.0))),
            ("P90", sample.and_then(|sample| sample.percentile(90.0))),
        ];
        for (stat, value) in stats {
            headings.push(format!("{name} {stat}"));
            cells.push(value.map_or_else(|| "-".to_owned(), |value| tenth(value * times)));
        }
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    one_row(title, &headings, cells)
}
