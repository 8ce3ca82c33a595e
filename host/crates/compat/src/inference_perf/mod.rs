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
mod summary;
mod table;

use serde_json::{Map, json};
use veeksha_model::{ChunkKind, Nanos, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::Options;
use crate::report::{MetricList, Notes, number};
use crate::sample::{GapPool, Sample};
use crate::view::ToolResult;
use labels::Labels;
use summary::{add_statistics, extend, summary};
use table::{milliseconds, one_row, tenth, three};

const PERCENTILES: [f64; 11] = [0.1, 1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
#[derive(Debug, Default)]
pub(crate) struct InferencePerf {
    answered: Vec<Success>,
    failures: Vec<(f64, f64)>,
    labels: Labels,
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

/// A successful request; times in seconds.
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

    pub(crate) fn finish(self, options: &Options, request_rate: Option<f64>) -> ToolResult {
        let percentiles = match options.percentiles.as_slice() {
            [] => PERCENTILES.as_slice(),
            chosen => chosen,
        };
        let first = self.first_start.unwrap_or(0);
        let total = self.last_end.saturating_sub(first) as f64 / 1e9;
        let sending = self.last_start.saturating_sub(first) as f64 / 1e9;
        let (count, failed) = (self.answered.len(), self.failures.len());
        let all = count + failed;
        let mut list = MetricList::default();
        let notes = self.notes();

        let goodput = goodput::of(&self.answered, options);
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
        list.only("load_summary.count", "requests", Some(all as f64), all);
        add_statistics(
            &mut list,
            "load_summary.schedule_delay",
            "s",
            &delays,
            percentiles,
        );
        list.only("successes.count", "requests", Some(count as f64), all);
        let mut latency = Map::new();
        for (name, sample) in &latencies {
            latency.insert((*name).to_owned(), summary(sample, percentiles));
            add_statistics(
                &mut list,
                &format!("successes.latency.{name}"),
                "s",
                sample,
                percentiles,
            );
        }
        let mut throughput = Map::new();
        for (name, unit, value) in rates {
            throughput.insert(name.to_owned(), number(Some(value)));
            list.only(&format!("successes.throughput.{name}"), unit, Some(value), count);
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
        add_statistics(
            &mut list,
            "successes.prompt_tokens",
            "tokens",
            &prompt,
            percentiles,
        );
        add_statistics(
            &mut list,
            "successes.output_len",
            "tokens",
            &client_output,
            percentiles,
        );
        add_statistics(
            &mut list,
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
                list.only(
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
        list.only("failures.count", "requests", Some(failed as f64), all);
        list.object = Map::from_iter([
            ("benchmark_time_seconds".to_owned(), number(Some(total))),
            ("load_summary".to_owned(), load.into()),
            ("successes".to_owned(), successes),
            (
                "failures".to_owned(),
                json!({
                    "count": failed,
                    "request_latency": summary(&failure_latency, percentiles),
                    "prompt_tokens": failure_tokens,
                    "by_label": self.labels.json(),
                }),
            ),
        ]);

        let achieved = if sending > 0.0 { all as f64 / sending } else { 0.0 };
        let requested = request_rate.unwrap_or(0.0);
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
        ToolResult {
            metrics: list,
            table,
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
