//! A request in GuideLLM's terms.

use super::instants::TokenInstants;

/// Final status of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStatus {
    Successful,
    Incomplete,
    Errored,
}

/// One request. Times in seconds since the run's zero.
#[derive(Clone, Debug)]
pub(super) struct GuidellmRequest {
    pub(super) status: RequestStatus,
    pub(super) targeted: f64,
    pub(super) start: f64,
    pub(super) end: f64,
    /// True if the request has an end; failed requests have none.
    pub(super) ended: bool,
    pub(super) first: Option<f64>,
    pub(super) first_output: Option<f64>,
    pub(super) last: Option<f64>,
    pub(super) events: u64,
    pub(super) iterations: u64,
    pub(super) prompt: u64,
    pub(super) output: Option<u64>,
}

impl GuidellmRequest {
    pub(super) fn latency(&self) -> Option<f64> {
        self.ended.then_some(self.end - self.start)
    }

    pub(super) fn since_start(&self, at: Option<f64>) -> Option<f64> {
        at.map(|at| 1000.0 * (at - self.start))
    }

    /// `time_per_output_token_ms`.
    pub(super) fn tpot(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 0)?;
        Some(1000.0 * (self.last.unwrap_or(self.end) - self.start) / tokens as f64)
    }

    /// `inter_token_latency_ms`.
    pub(super) fn itl(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 1)?;
        Some(1000.0 * (self.last? - self.first?) / (tokens - 1) as f64)
    }

    /// `iter_tokens_per_iteration`.
    pub(super) fn per_iteration(&self) -> Option<f64> {
        let tokens = self.output.filter(|&tokens| tokens > 1)?;
        (self.iterations > 1).then(|| (tokens as f64 - 1.0) / (self.iterations as f64 - 1.0))
    }

    /// `output_tokens_timings`.
    pub(super) fn output_instants(&self) -> TokenInstants {
        let tokens = self.output.unwrap_or(0) as f64;
        match (self.first, self.last) {
            (Some(first), Some(last)) if self.iterations > 1 => {
                let head = if tokens > 0.0 { 1.0 } else { 0.0 };
                let rest = self.per_iteration();
                TokenInstants {
                    first,
                    last,
                    num: if rest.is_some() { self.iterations } else { 1 },
                    weight: rest.unwrap_or(0.0),
                    head,
                }
            }
            _ => TokenInstants::once(self.last.unwrap_or(self.end), tokens),
        }
    }

    pub(super) fn prompt_instant(&self) -> TokenInstants {
        TokenInstants::once(self.first.unwrap_or(self.end), self.prompt as f64)
    }
}
