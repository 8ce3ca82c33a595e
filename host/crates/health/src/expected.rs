//! Expectations derived from a scenario, as far as they can be checked.

use veeksha_model::Nanos;

const MILLISECOND: Nanos = 1_000_000;

/// Expected behavior of a run and its tolerances. [`Expected::of`] returns the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Requested load.
    pub traffic: ExpectedTraffic,
    /// `benchmark_timeout`, since the start of the run: later requests are drained and not checked.
    /// `None`: no timeout.
    pub measured_until: Option<Nanos>,
    /// Allowed relative error of the mean gap between session starts, against the requested gap and
    /// against the drawn or recorded arrivals (0.05: 5 %). In addition, the last session may be as
    /// late as any request may be, and a rate with drawn gaps may deviate by three standard errors
    /// of the mean gap. Veeksha allows 15 % for every run, which fails one Poisson run of 20
    /// sessions in two and passes a run of 10,000 that misses a tenth of its load.
    pub rate_tolerance: f64,
    /// Allowed delay of a dispatch after everything it waited for, excluding time held back by
    /// limits. Veeksha allows 5 s, longer than most answers take. This default is still far above
    /// what a working host needs; the certificate judges its lateness against each metric.
    pub late: Nanos,
    /// Share of requests that may exceed `late`.
    pub late_share: f64,
    /// Allowed time by which a dispatch may precede what it waited for. 0: the scheduler computes
    /// due times from the recorded instants, so no request has a reason to be early.
    pub early: Nanos,
    /// Allowed deviation of the new messages' token count from the target.
    pub prompt: Tolerance,
    /// Expectation for answer lengths.
    pub output: OutputLength,
    /// For [`OutputLength::Exact`]: share of answers that may end early. A server with `ignore_eos`
    /// may still end at a stop string or at the end of its context, and one such answer in hundreds
    /// does not change the load. Veeksha fails a run for a single answer that is more than 15
    /// tokens short.
    pub short_share: f64,
    /// For concurrent traffic: share of the requested session-seconds that may be missing at full
    /// load, from the end of the ramp until the last session begins (afterwards none is left to
    /// begin). Veeksha never fails for too few sessions. Time below the target alone means little:
    /// with 1000 short sessions, one is always being replaced.
    pub undershoot: f64,
    /// Largest share of about one second that a client or dispatcher thread may be on a processor.
    /// Above it, work queues up and the client itself is measured.
    pub busy: f64,
    /// Bound on the server's cached tokens; `None` if a warm cache is wanted or no claim is made.
    pub cold_cache: Option<ColdCache>,
}

impl Expected {
    /// Returns the defaults for a kind of traffic: rates within 5 %, requests at most 100 ms late,
    /// prompts within 2 % of the target, answers not above their limit, at most 1 % of exact
    /// answers short, at most 5 % of concurrent sessions missing, threads busy for at most 90 % of
    /// a second, no claim about the cache.
    pub fn of(traffic: ExpectedTraffic) -> Expected {
        Expected {
            traffic,
            measured_until: None,
            rate_tolerance: 0.05,
            late: 100 * MILLISECOND,
            late_share: 0.01,
            early: 0,
            prompt: Tolerance::default(),
            output: OutputLength::AtMost(Tolerance::default()),
            short_share: 0.01,
            undershoot: 0.05,
            busy: 0.9,
            cold_cache: None,
        }
    }
}

/// Requested load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpectedTraffic {
    /// Open loop: sessions start at a rate.
    Rate {
        /// Sessions started per second.
        sessions_per_second: f64,
        /// Distribution of the gaps.
        gaps: GapVariation,
    },
    /// Closed loop: a fixed number of sessions runs concurrently.
    Concurrent {
        /// Number of sessions.
        target: u32,
        /// Time over which the number of sessions grows to the target: at `t` it may be
        /// `floor(target * t / ramp)`.
        ramp: Nanos,
    },
    /// Open loop from a recording: sessions start at the trace's instants, which every event
    /// carries as its intended instant.
    FixedSchedule,
    /// Open loop by a plugin: sessions start at the instants that it returns, at a rate that is not
    /// known before.
    ArrivalProcess,
}

/// Variation of the gaps between session starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GapVariation {
    /// Equal gaps.
    Even,
    /// Independently drawn gaps.
    Drawn {
        /// Standard deviation divided by mean: 1 for a Poisson process.
        variation: f64,
    },
}

impl GapVariation {
    /// Returns standard deviation divided by mean.
    pub(crate) fn variation(self) -> f64 {
        match self {
            GapVariation::Even => 0.0,
            GapVariation::Drawn { variation } => variation,
        }
    }
}

/// Allowed deviation of a token count. Relative, because a fixed bound of 15 tokens (Veeksha's)
/// accepts an empty prompt instead of 15 tokens and fails a prompt of 100,000 for a difference that
/// does not matter to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Allowed deviation as a share of the target.
    pub relative: f64,
    /// Deviation in tokens that is always allowed.
    pub tokens: u32,
}

impl Default for Tolerance {
    /// Returns 2 %, and one token.
    fn default() -> Self {
        Tolerance {
            relative: 0.02,
            tokens: 1,
        }
    }
}

impl Tolerance {
    /// Returns the allowed deviation for a target, in tokens.
    pub(crate) fn of(self, target: u32) -> f64 {
        (self.relative * f64::from(target)).max(f64::from(self.tokens))
    }
}

/// Expectation for answer lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputLength {
    /// The server is forced to generate the requested number of tokens (`ignore_eos`, minimum
    /// tokens) by requests with an exact output length; other requests have an upper limit.
    Exact(Tolerance),
    /// The server may end an answer early but must not exceed the requested limit.
    AtMost(Tolerance),
}

/// Bound on a prefix cache that was empty at the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColdCache {
    /// Share of all prompt tokens that may be cached without an explanation in this run.
    pub allowed_share: f64,
    /// Tokens excluded per prompt: the beginning of the server's chat template, which every prompt
    /// shares, and the rest of a cache block.
    pub slack: u32,
}

impl Default for ColdCache {
    /// Returns 1 % of the prompt tokens, excluding 64 tokens per prompt.
    fn default() -> Self {
        ColdCache {
            allowed_share: 0.01,
            slack: 64,
        }
    }
}
