//! Configuration: the offered traffic, its shards, and the end of the run.

use veeksha_model::Nanos;

use crate::tools::ToolClass;

/// Everything that decides when sessions start and when the run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// The rule by which sessions are admitted.
    pub traffic: TrafficRule,
    /// Limits on concurrent work.
    pub limits: ConcurrencyLimits,
    /// After a failure, withdraw what a planned session has not sent yet. Reactive sessions are
    /// asked instead: their agent sees the failure and may try again.
    pub cancel_session_on_failure: bool,
    /// Sessions of the whole run, over all shards; `None`: as many as the source has.
    pub max_sessions: Option<u64>,
    /// Requests dispatched from this instant on are not measured; `None`: the run has no such
    /// limit.
    pub benchmark_timeout: Option<Nanos>,
    /// Time that requests dispatched before the timeout may still take.
    pub grace: GracePeriod,
    /// The seed of the arrivals.
    pub seed: u64,
    /// The part of the sessions that this scheduler drives.
    pub shard: Shard,
    /// The classes of tools. Their servers are not divided: a run with tools has one shard.
    pub tools: Vec<ToolClass>,
}

impl SchedulerConfig {
    /// Returns the maximum number of shards: each needs a slot of the concurrency target and a part
    /// of every limit. A shard whose index is not below this takes no sessions and is done at once.
    pub fn most_shards(&self) -> u32 {
        self.traffic.most_shards().min(self.limits.most_shards())
    }
}

/// The rule by which sessions are admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficRule {
    /// Open loop: sessions arrive by a schedule, however slow the target is. The first arrives at
    /// 0.
    Rate(Interval),
    /// Open loop by given arrivals: each session starts at its own
    /// [`crate::SessionPlan::arrives_at`]. Sessions may be delivered in any order; one that comes
    /// after its arrival starts at once, counted from its arrival.
    Scheduled {
        /// True if each node also waits for its recorded instant,
        /// [`crate::NodePlan::not_before`].
        replays: bool,
    },
    /// Closed loop: a number of sessions is kept active. A session is active until its last node is
    /// over, think time included.
    Concurrent {
        /// Sessions that are active at once after the ramp, over all shards.
        target: u32,
        /// The target grows linearly from 0 to `target` over this time, in whole sessions; 0: full
        /// from the start.
        ramp: Nanos,
    },
}

impl TrafficRule {
    /// Returns the number of sessions that are active at once; `None` for open loops.
    pub fn target(&self) -> Option<u32> {
        match self {
            TrafficRule::Concurrent { target, .. } => Some(*target),
            TrafficRule::Rate(_) | TrafficRule::Scheduled { .. } => None,
        }
    }

    /// Returns true if sessions and nodes start at their recorded instants.
    pub fn replays(&self) -> bool {
        match self {
            TrafficRule::Scheduled { replays } => *replays,
            TrafficRule::Rate(_) | TrafficRule::Concurrent { .. } => false,
        }
    }

    /// Returns the maximum number of shards. A shard of concurrent traffic needs at least one slot:
    /// one whose index is not below the target has none, takes no sessions and is done at once.
    pub fn most_shards(&self) -> u32 {
        self.target().unwrap_or(u32::MAX)
    }
}

/// Limits on concurrent work, over all shards; `None`: unlimited. A limit does not move arrivals: a
/// request that it holds back stays due at its scheduled instant, waits in the order of those
/// instants, and records for how long it was held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConcurrencyLimits {
    /// Sessions that run. Of open-loop traffic, a session that arrives when as many are running
    /// waits; the target of [`TrafficRule::Concurrent`] is at most this.
    pub sessions: Option<u32>,
    /// Requests that were dispatched and have no result yet.
    pub in_flight: Option<u32>,
    /// Requests that were dispatched and whose first generated chunk has not come.
    pub in_prefill: Option<u32>,
}

impl ConcurrencyLimits {
    /// Returns the maximum number of shards: each needs a part of every limit.
    pub fn most_shards(&self) -> u32 {
        let limits = [self.sessions, self.in_flight, self.in_prefill];
        limits.into_iter().flatten().min().unwrap_or(u32::MAX)
    }
}

/// The gap between two arrivals. No distribution is clipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interval {
    /// Always the same gap; arrival `i` is exactly `i * interval`.
    Fixed {
        /// Seconds.
        interval: f64,
    },
    /// Exponential gaps: a Poisson process.
    Poisson {
        /// Mean arrivals per second.
        rate: f64,
    },
    /// Gamma gaps with shape `1 / cv^2` and scale `1 / (rate * shape)`: mean `1 / rate`,
    /// coefficient of variation `cv`.
    Gamma {
        /// Mean arrivals per second.
        rate: f64,
        /// Coefficient of variation of the gaps; 1 is Poisson, above 1 is burstier.
        cv: f64,
    },
}

/// Time that the run waits, after the timeout, for requests dispatched before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracePeriod {
    /// Until each of them has its result.
    Unbounded,
    /// At most this long; 0 leaves at once.
    Bounded(Nanos),
}

/// The sessions that a scheduler owns: those whose id is `index` modulo `count`.
///
/// All shards together do exactly what one scheduler alone would do: arrivals are a function of the
/// session's id, and the concurrent target is split so that the parts always add up to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// This shard, from 0.
    pub index: u32,
    /// Number of shards; 0 is taken as 1.
    pub count: u32,
}

impl Shard {
    /// The only shard.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// Returns the number of shards, never 0.
    pub(crate) fn parts(self) -> u64 {
        u64::from(self.count.max(1))
    }

    /// This shard's part of a number that is split over all: the parts add up to it, and those of
    /// lower shards are not smaller.
    pub(crate) fn part_of(self, whole: u32) -> u32 {
        let before = u64::from(whole) + self.parts() - 1;
        (before.saturating_sub(u64::from(self.index)) / self.parts()) as u32
    }

    /// Returns true if the shard drives the session of this id.
    pub fn owns(self, id: u64) -> bool {
        id % self.parts() == u64::from(self.index)
    }
}
