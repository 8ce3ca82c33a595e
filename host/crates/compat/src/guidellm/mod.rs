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

mod distribution;
mod instants;
mod table;

use serde_json::{Map, Value, json};
use veeksha_model::{ChunkKind, Nanos, RequestRecord};

use crate::answer::{self, Ending};
use crate::options::Options;
use crate::report::{MetricList, Notes, number};
use crate::view::ToolResult;
use distribution::Distribution;
use instants::{Spread, merged};

#[derive(Debug, Default)]
pub(crate) struct Guidellm {
    requests: Vec<Request>,
    end: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestStatus {
    Successful,
    Incomplete,
    Errored,
}

/// One request. Times in seconds since the run's zero.
#[derive(Clone, Debug)]
struct Request {
    status: RequestStatus,
    targeted: f64,
    start: f64,
    end: f64,
    /// True if the request has an end; failed requests have none.
    ended: bool,
    first: Option<f64>,
    first_output: Option<f64>,
    last: Option<f64>,
    events: u64,
    iterations: u64,
    prompt: u64,
    output: Option<u64>,
}

impl Request {
    fn latency(&self) -> Option<f64> {
        self.ended.then_some(self.end - self.start)
    }

    fn since_start(&self, at: Option<f64>) -> Option<f64> {
        at.map(|at| 1000.0 * (at - self.start))
    }

    /// `time_per_output_token_ms`.
    fn tpot(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 0)?;
        Some(1000.0 * (self.last.unwrap_or(self.end) - self.start) / tokens as f64)
    }

    /// `inter_token_latency_ms`.
    fn itl(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 1)?;
        Some(1000.0 * (self.last? - self.first?) / (tokens - 1) as f64)
    }

    /// `iter_tokens_per_iteration`.
    fn per_iteration(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 1)?;
        (self.iterations > 1).then(|| (tokens as f64 - 1.0) / (self.iterations as f64 - 1.0))
    }

    /// `output_tokens_timings`.
    fn output_instants(&self) -> Spread {
        let tokens = self.output.unwrap_or(0) as f64;
        match (self.first, self.last) {
            (Some(first), Some(last)) if self.iterations > 1 => {
                let head = if tokens > 0.0 { 1.0 } else { 0.0 };
                let rest = self.per_iteration();
                Spread {
                    first,
                    last,
                    num: if rest.is_some() { self.iterations } else { 1 },
                    weight: rest.unwrap_or(0.0),
                    head,
                }
            }
            _ => Spread::once(self.last.unwrap_or(self.end), tokens),
        }
    }

    fn prompt_instant(&self) -> Spread {
        Spread::once(self.first.unwrap_or(self.end), self.prompt as f64)
    }
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
        self.requests.push(Request {
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

    pub(crate) fn finish(self, options: &Options) -> ToolResult {
        let window = (0.0, self.end as f64 / 1e9);
        let metrics = Metrics {
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

/// A distribution for each status, and for all requests.
#[derive(Clone, Debug)]
pub(crate) struct ByStatus {
    pub(crate) successful: Distribution,
    incomplete: Distribution,
    errored: Distribution,
    pub(crate) total: Distribution,
}

impl ByStatus {
    fn of(distribution: impl Fn(Option<RequestStatus>) -> Distribution) -> ByStatus {
        ByStatus {
            successful: distribution(Some(RequestStatus::Successful)),
            incomplete: distribution(Some(RequestStatus::Incomplete)),
            errored: distribution(Some(RequestStatus::Errored)),
            total: distribution(None),
        }
    }

    fn json(&self) -> Value {
        json!({
            "successful": self.successful.json(),
            "incomplete": self.incomplete.json(),
            "errored": self.errored.json(),
            "total": self.total.json(),
        })
    }

    /// Adds the statistics of the status that GuideLLM's tables show.
    fn add_to(&self, name: &str, unit: &'static str, list: &mut MetricList) {
        let (status, of) =
            if name.ends_with("_per_second") || name == "request_concurrency" || name == "request_goodput" {
                ("total", &self.total)
            } else {
                ("successful", &self.successful)
            };
        let stats = [("mean", of.mean), ("median", of.median()), ("p95", of.p95())];
        for (stat, value) in stats {
            list.only(
                &format!("{name}.{status}.{stat}"),
                unit,
                Some(value),
                of.count as usize,
            );
        }
    }
}

/// Distributions over all requests.
struct Metrics<'a> {
    requests: &'a [Request],
    window: (f64, f64),
}

impl Metrics<'_> {
    fn of(&self, status: Option<RequestStatus>) -> impl Iterator<Item = &Request> + '_ {
        let wanted = move |request: &&Request| status.is_none_or(|status| request.status == status);
        self.requests.iter().filter(wanted)
    }

    fn values(&self, value: impl Fn(&Request) -> Option<(f64, f64)>) -> ByStatus {
        ByStatus::of(|status| Distribution::of(self.of(status).filter_map(&value).collect(), None))
    }

    fn rates(&self, instants: impl Fn(&Request) -> Vec<Spread>) -> ByStatus {
        ByStatus::of(|status| {
            let spreads: Vec<Spread> = self.of(status).flat_map(&instants).collect();
            Distribution::of_rates(merged(&spreads), self.window)
        })
    }

    /// Returns every metric with its name and unit, in the order of `GenerativeMetrics`.
    fn all(&self, scheduled: bool) -> Vec<(&'static str, &'static str, ByStatus)> {
        let plain = |value: f64| Some((value, 1.0));
        let mut all = vec![
            (
                "requests_per_second",
                "req/s",
                self.rates(|request| vec![Spread::once(request.end, 1.0)]),
            ),
            ("request_concurrency", "requests", self.concurrency()),
            (
                "request_latency",
                "s",
                self.values(|request| plain(request.latency().unwrap_or(0.0))),
            ),
        ];
        if scheduled {
            all.push((
                "request_dispatch_delay",
                "s",
                self.values(|request| plain(request.start - request.targeted)),
            ));
            all.push((
                "request_scheduled_latency",
                "s",
                self.values(|request| request.ended.then_some((request.end - request.targeted, 1.0))),
            ));
        }
        let repeated = |head: Option<f64>, request: &Request| {
            let instants = request.output_instants();
            let rest = instants.num.saturating_sub(1) as f64;
            let head = head.map(|_| (instants.head, 1.0));
            head.into_iter()
                .chain((rest > 0.0).then_some((instants.weight, rest)))
        };
        all.extend([
            (
                "request_streaming_iterations_count",
                "events",
                self.values(|request| plain(request.events as f64)),
            ),
            (
                "prompt_token_count",
                "tokens",
                self.values(|request| plain(request.prompt as f64)),
            ),
            (
                "output_token_count",
                "tokens",
                self.values(|request| plain(request.output.unwrap_or(0) as f64)),
            ),
            (
                "total_token_count",
                "tokens",
                self.values(|request| plain((request.prompt + request.output.unwrap_or(0)) as f64)),
            ),
            (
                "time_to_first_token_ms",
                "ms",
                self.values(|request| request.since_start(request.first).and_then(plain)),
            ),
            (
                "time_to_first_output_token_ms",
                "ms",
                self.values(|request| request.since_start(request.first_output).and_then(plain)),
            ),
            (
                "time_per_output_token_ms",
                "ms",
                self.values(|request| {
                    Some((request.tpot().unwrap_or(0.0), request.output.unwrap_or(0) as f64))
                }),
            ),
            (
                "inter_token_latency_ms",
                "ms",
                self.values(|request| {
                    let weight = request.output.filter(|&tokens| tokens > 0).unwrap_or(1) - 1;
                    Some((request.itl().unwrap_or(0.0), weight as f64))
                }),
            ),
            (
                "prompt_tokens_per_second",
                "tok/s",
                self.rates(|request| vec![request.prompt_instant()]),
            ),
            (
                "output_tokens_per_second",
                "tok/s",
                self.rates(|request| vec![request.output_instants()]),
            ),
            (
                "tokens_per_second",
                "tok/s",
                self.rates(|request| vec![request.prompt_instant(), request.output_instants()]),
            ),
            (
                "output_tokens_per_iteration",
                "tokens",
                ByStatus::of(|status| {
                    let values = self.of(status).flat_map(|request| repeated(Some(0.0), request));
                    Distribution::of(values.collect(), None)
                }),
            ),
            (
                "iter_tokens_per_iteration",
                "tokens",
                ByStatus::of(|status| {
                    let streamed = self.of(status).filter(|request| request.first.is_some());
                    let values = streamed.flat_map(|request| repeated(None, request));
                    Distribution::of(values.collect(), None)
                }),
            ),
        ]);
        all
    }

    fn concurrency(&self) -> ByStatus {
        ByStatus::of(|status| {
            let intervals: Vec<_> = self
                .of(status)
                .map(|request| (request.start, request.end))
                .collect();
            Distribution::of_concurrency(&intervals, self.window)
        })
    }

    /// `_compile_goodput`: the share, the number of requests it covers, and the rate.
    fn goodput(&self, options: &Options) -> (Option<f64>, usize, Option<ByStatus>) {
        let bounds = ["ttft", "tpot", "e2el"].map(|metric| options.threshold(metric));
        let mut conforming: Vec<Spread> = Vec::new();
        let mut determined = self.of(Some(RequestStatus::Errored)).count();
        for request in self.of(Some(RequestStatus::Successful)) {
            let measured = [
                request.since_start(request.first),
                request.itl(),
                request.latency().map(|latency| latency * 1000.0),
            ];
            let pairs = || {
                bounds
                    .iter()
                    .zip(&measured)
                    .filter_map(|(bound, value)| bound.map(|bound| (bound, value)))
            };
            if pairs().any(|(_, value)| value.is_none()) {
                continue;
            }
            determined += 1;
            if pairs().all(|(bound, value)| value.is_some_and(|value| value <= bound)) {
                conforming.push(Spread::once(request.end, 1.0));
            }
        }
        if determined == 0 {
            return (None, 0, None);
        }
        let empty = || Distribution::of_rates(std::iter::empty(), self.window);
        let rates = Distribution::of_rates(merged(&conforming), self.window);
        let statuses = ByStatus {
            successful: rates.clone(),
            incomplete: empty(),
            errored: empty(),
            total: rates,
        };
        let share = conforming.len() as f64 / determined as f64;
        (Some(share), determined, Some(statuses))
    }
}
