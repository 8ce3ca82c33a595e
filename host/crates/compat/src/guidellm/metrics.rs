//! GuideLLM's metrics of all requests: `GenerativeMetrics`.

use super::by_status::ByStatus;
use super::distribution::GuidellmDistribution;
use super::instants::{TokenInstants, merged};
use super::request::{GuidellmRequest, RequestStatus};
use crate::options::ViewOptions;

/// Formula of a metric.
#[derive(Clone, Copy)]
enum GuidellmFormula {
    /// Number of concurrent requests over time.
    Concurrency,
    /// One value for each request that has it.
    Value(fn(&GuidellmRequest) -> Option<f64>),
    /// One value for each request, with a weight.
    Weighted(fn(&GuidellmRequest) -> (f64, f64)),
    /// Amounts per second.
    Rate(fn(&GuidellmRequest) -> Vec<TokenInstants>),
    /// Tokens of each event, with or without those of the first event.
    PerIteration { with_first: bool },
}

/// A metric of all requests.
struct GuidellmMetric {
    name: &'static str,
    unit: &'static str,
    /// True if it exists only for loads with a rate.
    scheduled: bool,
    formula: GuidellmFormula,
}

const fn metric(name: &'static str, unit: &'static str, formula: GuidellmFormula) -> GuidellmMetric {
    GuidellmMetric {
        name,
        unit,
        scheduled: false,
        formula,
    }
}

const METRICS: [GuidellmMetric; 18] = [
    metric(
        "requests_per_second",
        "req/s",
        GuidellmFormula::Rate(|request| vec![TokenInstants::once(request.end, 1.0)]),
    ),
    metric("request_concurrency", "requests", GuidellmFormula::Concurrency),
    metric(
        "request_latency",
        "s",
        GuidellmFormula::Value(|request| Some(request.latency().unwrap_or(0.0))),
    ),
    GuidellmMetric {
        scheduled: true,
        ..metric(
            "request_dispatch_delay",
            "s",
            GuidellmFormula::Value(|request| Some(request.start - request.targeted)),
        )
    },
    GuidellmMetric {
        scheduled: true,
        ..metric(
            "request_scheduled_latency",
            "s",
            GuidellmFormula::Value(|request| request.ended.then_some(request.end - request.targeted)),
        )
    },
    metric(
        "request_streaming_iterations_count",
        "events",
        GuidellmFormula::Value(|request| Some(request.events as f64)),
    ),
    metric(
        "prompt_token_count",
        "tokens",
        GuidellmFormula::Value(|request| Some(request.prompt as f64)),
    ),
    metric(
        "output_token_count",
        "tokens",
        GuidellmFormula::Value(|request| Some(request.output.unwrap_or(0) as f64)),
    ),
    metric(
        "total_token_count",
        "tokens",
        GuidellmFormula::Value(|request| Some((request.prompt + request.output.unwrap_or(0)) as f64)),
    ),
    metric(
        "time_to_first_token_ms",
        "ms",
        GuidellmFormula::Value(|request| request.since_start(request.first)),
    ),
    metric(
        "time_to_first_output_token_ms",
        "ms",
        GuidellmFormula::Value(|request| request.since_start(request.first_output)),
    ),
    metric(
        "time_per_output_token_ms",
        "ms",
        GuidellmFormula::Weighted(|request| {
            (request.tpot().unwrap_or(0.0), request.output.unwrap_or(0) as f64)
        }),
    ),
    metric(
        "inter_token_latency_ms",
        "ms",
        GuidellmFormula::Weighted(|request| {
            let weight = request.output.filter(|&tokens| tokens > 0).unwrap_or(1) - 1;
            (request.itl().unwrap_or(0.0), weight as f64)
        }),
    ),
    metric(
        "prompt_tokens_per_second",
        "tok/s",
        GuidellmFormula::Rate(|request| vec![request.prompt_instant()]),
    ),
    metric(
        "output_tokens_per_second",
        "tok/s",
        GuidellmFormula::Rate(|request| vec![request.output_instants()]),
    ),
    metric(
        "tokens_per_second",
        "tok/s",
        GuidellmFormula::Rate(|request| vec![request.prompt_instant(), request.output_instants()]),
    ),
    metric(
        "output_tokens_per_iteration",
        "tokens",
        GuidellmFormula::PerIteration { with_first: true },
    ),
    metric(
        "iter_tokens_per_iteration",
        "tokens",
        GuidellmFormula::PerIteration { with_first: false },
    ),
];

/// Returns the tokens of the events of a request, with the number of events as weight.
fn per_iteration(request: &GuidellmRequest, with_first: bool) -> impl Iterator<Item = (f64, f64)> {
    let instants = request.output_instants();
    let rest = instants.num.saturating_sub(1) as f64;
    let first = with_first.then_some((instants.head, 1.0));
    let others = (rest > 0.0).then_some((instants.weight, rest));
    first.into_iter().chain(others)
}

/// Distributions over all requests.
pub(super) struct GuidellmMetrics<'a> {
    pub(super) requests: &'a [GuidellmRequest],
    pub(super) window: (f64, f64),
}

impl GuidellmMetrics<'_> {
    fn of(&self, status: Option<RequestStatus>) -> impl Iterator<Item = &GuidellmRequest> + '_ {
        let wanted = move |request: &&GuidellmRequest| status.is_none_or(|status| request.status == status);
        self.requests.iter().filter(wanted)
    }

    fn values(&self, value: impl Fn(&GuidellmRequest) -> Option<(f64, f64)>) -> ByStatus {
        ByStatus::of(|status| GuidellmDistribution::of(self.of(status).filter_map(&value).collect(), None))
    }

    fn rates(&self, instants: impl Fn(&GuidellmRequest) -> Vec<TokenInstants>) -> ByStatus {
        ByStatus::of(|status| {
            let spreads: Vec<TokenInstants> = self.of(status).flat_map(&instants).collect();
            GuidellmDistribution::of_rates(merged(&spreads), self.window)
        })
    }

    /// Returns every metric with its name and unit, in the order of `GenerativeMetrics`.
    pub(super) fn all(&self, scheduled: bool) -> Vec<(&'static str, &'static str, ByStatus)> {
        let metrics = METRICS.iter().filter(|metric| scheduled || !metric.scheduled);
        metrics
            .map(|metric| (metric.name, metric.unit, self.by_status(metric.formula)))
            .collect()
    }

    fn by_status(&self, formula: GuidellmFormula) -> ByStatus {
        match formula {
            GuidellmFormula::Concurrency => self.concurrency(),
            GuidellmFormula::Value(of) => self.values(|request| Some((of(request)?, 1.0))),
            GuidellmFormula::Weighted(of) => self.values(|request| Some(of(request))),
            GuidellmFormula::Rate(of) => self.rates(of),
            GuidellmFormula::PerIteration { with_first } => ByStatus::of(|status| {
                let requests = self.of(status);
                let streamed = requests.filter(|request| with_first || request.first.is_some());
                let values = streamed.flat_map(|request| per_iteration(request, with_first));
                GuidellmDistribution::of(values.collect(), None)
            }),
        }
    }

    fn concurrency(&self) -> ByStatus {
        ByStatus::of(|status| {
            let intervals: Vec<_> = self
                .of(status)
                .map(|request| (request.start, request.end))
                .collect();
            GuidellmDistribution::of_concurrency(&intervals, self.window)
        })
    }

    /// `_compile_goodput`: the share, the number of requests it covers, and the rate.
    pub(super) fn goodput(&self, options: &ViewOptions) -> (Option<f64>, usize, Option<ByStatus>) {
        let bounds = ["ttft", "tpot", "e2el"].map(|metric| options.threshold(metric));
        let mut conforming: Vec<TokenInstants> = Vec::new();
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
                conforming.push(TokenInstants::once(request.end, 1.0));
            }
        }
        if determined == 0 {
            return (None, 0, None);
        }
        let empty = || GuidellmDistribution::of_rates(std::iter::empty(), self.window);
        let rates = GuidellmDistribution::of_rates(merged(&conforming), self.window);
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
