//! GuideLLM 0.8.1, backend `openai_http`, `/v1/chat/completions`:
//! `guidellm/backends/openai/http.py`, `guidellm/schemas/base/request_stats.py`,
//! `guidellm/benchmark/schemas/metrics.py`.
//!
//! * The clock starts when the request's head is written, after the connection is established.
//!   Here: `sent_at`, when the last byte of the request was handed over.
//! * First token: the first event with text, reasoning or a piece of a tool call; TTFOT: the first
//!   with text or a tool call.
//! * "ITL": (last − first) / (tokens − 1), one number for each request, weighted by its tokens;
//!   others call this TPOT. "TPOT": (last − *start*) / tokens, so it contains the TTFT, weighted by
//!   tokens.
//! * Latency ends at `[DONE]`, or with the stream.
//! * Output tokens: `usage`, else the number of such events. Prompt tokens: `usage`, else the
//!   client's.
//! * Rates and concurrency are distributions over time (see [`distribution`]); the tokens of a
//!   request are spread evenly over its events. Window: from the start of the run to the last
//!   completion.
//! * Percentiles are observed values, standard deviations those of the population.
//! * Errors (`errored`) and cancelled requests (`incomplete`) have separate distributions; the
//!   latency of a failed request is 0. An answer without text, tool calls and tokens is an error,
//!   and so is an `error` event in a stream.
//! * Goodput (`ttft`, `tpot` against ITL, `e2el`): of the requests for which all objectives exist,
//!   plus the errored ones.

mod by_status;
mod distribution;
mod instants;
mod metrics;
mod request;
mod table;

use serde_json::{Map, Value, json};
use veeksha_model::{ChunkKind, Nanos, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::ViewOptions;
use crate::report::{MetricList, Notes, ToolResult, number};
use metrics::GuidellmMetrics;
use request::{GuidellmRequest, RequestStatus};

#[derive(Debug, Default)]
pub(crate) struct Guidellm {
    requests: Vec<GuidellmRequest>,
    end: Nanos,
}

impl Guidellm {
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let end = answer::end_time(record);
        self.end = self.end.max(end);
        let seconds = |at: Nanos| at as f64 / 1e9;
        let of = |wanted: fn(ChunkKind) -> bool| record.chunks.iter().filter(move |chunk| wanted(chunk.kind));
        let first_of = |wanted| of(wanted).next().map(|chunk| seconds(chunk.at));
        let iterations = of(ChunkKind::is_generated).count() as u64;
        let visible = |kind| matches!(kind, ChunkKind::Content | ChunkKind::Tool);
        let usage = record.usage;
        let completion = usage.map(|usage| u64::from(usage.completion));
        let usable = first_of(visible).is_some() || completion.unwrap_or(0) > 0;
        let status = match answer::ending(record) {
            Ending::Answered if usable => RequestStatus::Successful,
            Ending::Cancelled => RequestStatus::Incomplete,
            _ => RequestStatus::Errored,
        };
        // A failed request keeps its timestamps but loses the server's token count.
        let completion = completion.filter(|_| status == RequestStatus::Successful);
        self.requests.push(GuidellmRequest {
            status,
            targeted: seconds(record.intended),
            start: seconds(answer::write_time(record)),
            end: seconds(end),
            ended: answer::ending(record) == Ending::Answered,
            first: first_of(ChunkKind::is_generated),
            first_output: first_of(visible),
            last: of(ChunkKind::is_generated)
                .next_back()
                .map(|chunk| seconds(chunk.at)),
            events: record.chunks.len() as u64,
            iterations,
            prompt: match status {
                RequestStatus::Errored => answer::client_prompt_tokens(record),
                _ => answer::prompt_tokens(record),
            },
            output: completion.or((iterations > 0).then_some(iterations)),
        });
    }

    pub(crate) fn finish(self, options: &ViewOptions) -> ToolResult {
        let window = (0.0, self.end as f64 / 1e9);
        let metrics = GuidellmMetrics {
            requests: &self.requests,
            window,
        };
        let mut list = MetricList::default();
        let mut object = Map::new();
        let mut shown = table::TableContents::default();
        let count = |status| {
            self.requests
                .iter()
                .filter(|request| request.status == status)
                .count()
        };
        let counts = [
            ("successful", count(RequestStatus::Successful)),
            ("incomplete", count(RequestStatus::Incomplete)),
            ("errored", count(RequestStatus::Errored)),
            ("total", self.requests.len()),
        ];
        let totals: Map<String, Value> = counts
            .iter()
            .map(|&(name, count)| (name.to_owned(), count.into()))
            .collect();
        for (name, count) in counts {
            let all = self.requests.len();
            list.only(
                &format!("request_totals.{name}"),
                "requests",
                Some(count as f64),
                all,
            );
        }
        object.insert("request_totals".into(), totals.into());
        for (name, unit, statuses) in metrics.all(options.session_rate.is_some()) {
            statuses.add_to(name, unit, &mut list);
            object.insert(name.into(), statuses.json());
            shown.put(name, statuses);
        }
        let mut notes = self.notes();
        if !options.goodput.is_empty() {
            let (attained, determined, rates) = metrics.goodput(options);
            object.insert("slo_attainment".into(), number(attained));
            object.insert("slo_determined_requests".into(), determined.into());
            list.only("slo_attainment", "", attained, determined);
            if let Some(rates) = &rates {
                rates.add_to("request_goodput", "req/s", &mut list);
                object.insert("request_goodput".into(), rates.json());
            }
            if attained.is_none() {
                object.insert("request_goodput".into(), Value::Null);
                notes.add("No request has every metric of the objectives, so attainment is undefined.");
            }
            shown.goodput = Some((attained, rates));
        }
        list.object = Map::from_iter([(
            "benchmarks".to_owned(),
            json!([{
                "type_": "generative_benchmark",
                "start_time": window.0,
                "end_time": window.1,
                "duration": window.1 - window.0,
                "metrics": object,
            }]),
        )]);
        ToolResult {
            metrics: list,
            table: shown.draw(),
            notes,
        }
    }

    fn notes(&self) -> Notes {
        let mut notes = Notes::default();
        notes.add("Times are seconds since the run's start; GuideLLM's are seconds since 1970, which rounds them to 0.24 µs.");
        notes.add("Its confidence intervals, its turns and its tables of words, characters, images, video and audio are omitted.");
        let failed = self
            .requests
            .iter()
            .filter(|request| request.status != RequestStatus::Successful);
        let pickup_time = failed.filter(|request| request.output.is_some()).count();
        notes.count(
            pickup_time as u64,
            "Failed or cancelled answers that had started; each of their events counts as one token, as in GuideLLM",
        );
        notes
    }
}
