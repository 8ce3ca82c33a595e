//! The delivered throughput.

use veeksha_events::RequestRecord;
use veeksha_model::Nanos;

use crate::run_metric::RunMetric;
use veeksha_definitions::cached_share;
use veeksha_definitions::seconds_between;

/// Rates over the measured window: from the earliest scheduled instant of a measured request to the
/// last completion of a measured request, answered or failed. Only answered requests are counted. A
/// rate is `None` if there is no window or nothing was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Length of the window in seconds.
    pub window_seconds: Option<f64>,
    /// Answered requests / s.
    pub requests_per_second: Option<f64>,
    /// Prompt tokens (history and new messages) of answered requests / s.
    pub input_tokens_per_second: Option<f64>,
    /// Output tokens of answered requests / s.
    pub output_tokens_per_second: Option<f64>,
    /// Prompt and output tokens / s.
    pub total_tokens_per_second: Option<f64>,
    /// Prompt tokens of answered requests.
    pub input_tokens: u64,
    /// Output tokens of answered requests.
    pub output_tokens: u64,
    /// Prompt tokens from the servers' prefix caches; `None` if no answer reported them.
    pub cached_tokens: Option<u64>,
    /// The prompt tokens of the same answers by the servers' count, which includes `cached_tokens`.
    /// The cached tokens may exceed `input_tokens`, which is the host's count, because a server
    /// also counts its chat template.
    pub cached_of_tokens: Option<u64>,
    /// Veeksha's `tpot_based_throughput`: 1 / mean TPOT, in tokens/s of one request.
    pub tpot_based: Option<f64>,
    /// Veeksha's `tbc_based_throughput`: 1 / P99 TBC, in chunks/s of one request.
    pub tbc_based: Option<f64>,
}

impl Throughput {
    /// Returns the rates that objectives can name.
    pub(crate) fn run_metrics(&self) -> [(RunMetric, Option<f64>); 5] {
        [
            (RunMetric::WindowSeconds, self.window_seconds),
            (RunMetric::RequestsPerSecond, self.requests_per_second),
            (RunMetric::InputTokensPerSecond, self.input_tokens_per_second),
            (RunMetric::OutputTokensPerSecond, self.output_tokens_per_second),
            (RunMetric::TotalTokensPerSecond, self.total_tokens_per_second),
        ]
    }
}

/// Sums from which [`Throughput`] is computed.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    window: Option<(Nanos, Nanos)>,
    answered: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: Option<u64>,
    /// Prompt tokens by the servers' count, of the answers that report cached tokens.
    counted_prompt_tokens: u64,
    requests: u64,
    dispatches: Option<(Nanos, Nanos)>,
}

impl Totals {
    pub(crate) fn add_measured(&mut self, record: &RequestRecord) {
        self.requests += 1;
        let at = record.dispatched_at;
        let (first, last) = self.dispatches.unwrap_or((at, at));
        self.dispatches = Some((first.min(at), last.max(at)));
        let (begin, end) = self.window.unwrap_or((record.intended, record.completed_at));
        self.window = Some((begin.min(record.intended), end.max(record.completed_at)));
        if record.is_ok() {
            self.answered += 1;
            self.input_tokens += u64::from(record.total_prompt_tokens);
            self.output_tokens += u64::from(record.output_tokens);
            let reported = record.usage.and_then(|usage| Some((usage, usage.cached?)));
            if let Some((usage, cached)) =
                reported.filter(|(usage, cached)| cached_share(*cached, usage.prompt).is_some())
            {
                *self.cached_tokens.get_or_insert(0) += u64::from(cached);
                self.counted_prompt_tokens += u64::from(usage.prompt);
            }
        }
    }

    /// Returns the first intended instant of a measured request and the last completion of one, if
    /// the interval is not empty.
    pub(crate) fn window(&self) -> Option<(Nanos, Nanos)> {
        self.window.filter(|(begin, end)| begin < end)
    }

    /// Returns the aggregates that are available from the totals only.
    pub(crate) fn run_metrics(&self) -> [(RunMetric, Option<f64>); 2] {
        let counted = self.counted_prompt_tokens;
        let cached = self.cached_tokens.filter(|_| counted > 0);
        let spread = self.dispatches.map(|(first, last)| seconds_between(first, last));
        let rate = spread
            .filter(|spread| self.requests > 1 && *spread > 0.0)
            .map(|spread| (self.requests - 1) as f64 / spread);
        [
            (
                RunMetric::OverallCachedTokenShare,
                cached.map(|cached| cached as f64 / counted as f64),
            ),
            (RunMetric::RequestDispatchRate, rate),
        ]
    }

    /// Returns the throughput. `tpot_mean` and `tbc_p99` are in seconds.
    pub(crate) fn throughput(&self, tpot_mean: Option<f64>, tbc_p99: Option<f64>) -> Throughput {
        let window = self.window().map(|(begin, end)| seconds_between(begin, end));
        let rate = |amount: u64| {
            window
                .filter(|_| self.answered > 0)
                .map(|window| amount as f64 / window)
        };
        let inverse = |seconds: Option<f64>| seconds.filter(|seconds| *seconds > 0.0).map(f64::recip);
        Throughput {
            window_seconds: window,
            requests_per_second: rate(self.answered),
            input_tokens_per_second: rate(self.input_tokens),
            output_tokens_per_second: rate(self.output_tokens),
            total_tokens_per_second: rate(self.input_tokens + self.output_tokens),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cached_tokens: self.cached_tokens,
            cached_of_tokens: self.cached_tokens.map(|_| self.counted_prompt_tokens),
            tpot_based: inverse(tpot_mean),
            tbc_based: inverse(tbc_p99),
        }
    }
}
