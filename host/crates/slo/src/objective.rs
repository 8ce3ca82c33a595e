//! An objective: what is bounded, how, and by what.

use std::time::Duration;

/// A service-level objective: `p99(ttfc{tier="gold"}, window = 10s) <= 500ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The user's name for it.
    pub name: Option<String>,
    /// What is bounded.
    pub quantity: Quantity,
    /// Which side of the bound is good.
    pub comparison: Comparison,
    /// The bound.
    pub bound: Bound,
}

/// What an objective bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A figure of the whole run, named alone: `error_rate`, `goodput`, `requests_per_second`.
    Figure(String),
    /// A figure of a metric's samples: `p99(ttfc)`, `mean(tpot{tier="gold"})`.
    Samples {
        /// Which figure.
        aggregate: Aggregate,
        /// The metric's name.
        metric: String,
        /// Labels that a sample's request must have, all of them; sorted by name.
        filter: Vec<(String, String)>,
        /// If the figure is taken in each stretch of this length, and the worst one counts.
        window: Option<Duration>,
    },
}

/// A figure of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// `p99`, `p99.9`: 0 to 100. `median` is `p50`.
    Percentile(f64),
    /// `mean`, `avg`
    Mean,
    /// `min`
    Min,
    /// `max`: an upper bound on it bounds each sample.
    Max,
    /// `std`
    Std,
    /// `sum`
    Sum,
    /// `count`
    Count,
}

/// Which side of a bound is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`, `≤`
    AtMost,
    /// `>`
    Above,
    /// `>=`, `≥`
    AtLeast,
}

/// A bound as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Seconds for a time, a share (0.01) for a percentage, else the number itself.
    pub value: f64,
    /// What stood behind the number.
    pub unit: BoundUnit,
}

/// What stood behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundUnit {
    /// Nothing: the number is in the quantity's own unit.
    None,
    /// `ns`, `us`, `µs`, `ms`, `s`, `m`, `h`
    Time,
    /// `%`
    Percent,
}
