//! What a scenario asks for, as far as it can be checked.

use veeksha_model::Nanos;

const MILLISECOND: Nanos = 1_000_000;

/// What a run should have done, and how far off it may be. [`Expected::of`] has the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The load that was asked for.
    pub traffic: Traffic,
    /// `benchmark_timeout`, from the start of the run: what begins later is drained and not checked. `None`: no timeout.
    pub measured_until: Option<Nanos>,
    /// How far the mean gap between the starts of sessions may be from the one asked for, and from that of the arrivals that were
    /// drawn or recorded, as a share of it (0.05: 5 %). Beside it the last session may be late as any request may be, and a rate of
    /// gaps that are drawn may be off by what chance explains: three standard errors of the mean gap. Veeksha allows 15 % of any run,
    /// which fails one Poisson run of 20 sessions in two, and passes a run of 10,000 that misses a tenth of its load.
    pub rate_tolerance: f64,
    /// How late a request may be dispatched after everything that it waited for, what limits kept it back not counted. Veeksha
    /// allows 5 s, longer than most answers take; this is still far above what a working host needs, whose lateness the
    /// certificate judges against each metric.
    pub late: Nanos,
    /// The share of requests that may be later than that.
    pub late_share: f64,
    /// How much earlier than everything that it waited for a request may be dispatched. 0: the scheduler counts from the very
    /// instants that are recorded, so there is no reason for any.
    pub early: Nanos,
    /// How far the tokens of the new messages may be from the target.
    pub prompt: Tolerance,
    /// What is asked of answers' lengths.
    pub output: OutputLength,
    /// Of [`OutputLength::Exact`]: the share of answers that may end early all the same. A server that is asked for `ignore_eos` may
    /// still end at a stop string or at the end of its context, and one answer in hundreds is no other load; Veeksha fails a run for
    /// a single one, by more than 15 tokens.
    pub short_share: f64,
    /// Of concurrent traffic: the share of the session-seconds asked for that may be missing while the load should be full, from
    /// the end of the ramp until the last session began (later there is none left to begin). Veeksha never fails for too few.
    /// Seconds below the target say little: of 1000 short sessions one is always being replaced.
    pub undershoot: f64,
    /// The largest share of about a second that a client's or dispatcher's thread may be on a processor: above it, work queues up
    /// and the client is what is measured.
    pub busy: f64,
    /// What the server's prefix cache may know; `None` where a warm cache is wanted, or nothing is to be said of it.
    pub cold_cache: Option<ColdCache>,
}

impl Expected {
    /// The defaults for a kind of traffic: rates to 5 %, requests at most 100 ms late, prompts to 2 % of the target, answers no
    /// longer than asked for (and where they must not be shorter, 1 % of them all the same), at most 5 % of the concurrent sessions missing, threads busy for at most 90 % of a second,
    /// nothing said of the cache.
    pub fn of(traffic: Traffic) -> Expected {
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

/// The load that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Open loop: sessions start at a rate.
    Rate {
        /// How many in a second.
        sessions_per_second: f64,
        /// How their gaps vary.
        gaps: Gaps,
    },
    /// Closed loop: so many sessions run at a time.
    Concurrent {
        /// How many.
        target: u32,
        /// The time in which their number grows from none to the target: at `t` it may be `floor(target * t / ramp)`.
        ramp: Nanos,
    },
    /// Open loop by a recording: sessions start when the record of the trace says so, which stands in every event as the instant
    /// that was intended.
    FixedSchedule,
}

/// How gaps vary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaps {
    /// They are equal.
    Even,
    /// They are drawn, independently of each other.
    Drawn {
        /// Standard deviation divided by mean: 1 of a Poisson process.
        variation: f64,
    },
}

impl Gaps {
    /// Standard deviation divided by mean.
    pub(crate) fn variation(self) -> f64 {
        match self {
            Gaps::Even => 0.0,
            Gaps::Drawn { variation } => variation,
        }
    }
}

/// How far a number of tokens may be from another. Relative, because a fixed one of 15 tokens, as Veeksha's, lets a prompt of 15
/// tokens be empty or twice as long, and fails a prompt of 100,000 for what no server notices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// As a share of what was asked for.
    pub relative: f64,
    /// But so many tokens always.
    pub tokens: u32,
}

impl Default for Tolerance {
    /// 2 %, and one token.
    fn default() -> Self {
        Tolerance {
            relative: 0.02,
            tokens: 1,
        }
    }
}

impl Tolerance {
    /// How many tokens it allows for a target.
    pub(crate) fn of(self, target: u32) -> f64 {
        (self.relative * f64::from(target)).max(f64::from(self.tokens))
    }
}

/// What is asked of answers' lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutputLength {
    /// The server is made to generate as many tokens as asked for (`ignore_eos`, minimum tokens).
    Exact(Tolerance),
    /// The server may end an answer early; it may not go on beyond what was asked for.
    AtMost(Tolerance),
}

/// What a prefix cache that began the run empty may know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColdCache {
    /// The share of all prompt tokens that may come from the cache without a reason in this run.
    pub allowed_share: f64,
    /// Tokens of each prompt that are not counted: the beginning of the server's chat template, which every prompt shares, and the
    /// rest of a block of the cache.
    pub slack: u32,
    /// What is known of a request whose record says nothing of earlier prompts (`ideal_cached_tokens`).
    pub without_account: WithoutAccount,
}

/// What is known of a request if nobody compared its prompt with the earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutAccount {
    /// It begins like none of them but those of its own conversation: the workload makes such prompts.
    #[default]
    BeginsAnew,
    /// Nothing: it is not judged.
    Unknown,
}

impl Default for ColdCache {
    /// 1 % of the prompt tokens, not counting 64 of each prompt; prompts begin anew.
    fn default() -> Self {
        ColdCache {
            allowed_share: 0.01,
            slack: 64,
            without_account: WithoutAccount::default(),
        }
    }
}
