//! Statistical comparison of runs: effect sizes with bootstrap intervals, verdicts, and
//! machine-readable reports. Pure.
//!
//! # Method
//!
//! [`compare`] takes the runs of two or more sides as plain data ([`CompareSide`], [`RunData`]) and
//! compares every further side with the first one: mean, P50, P90 and P99 of each metric, other
//! statistics on request, and the values of the whole run.
//!
//! * **One scale per row** ([`ComparisonScale`]). Estimate, interval, probability and verdict of a
//!   row come from one statistic. It is the logarithm of candidate ÷ baseline, because changes and
//!   noise of a latency or a rate are proportional to it. For shares, and where a value is 0 or
//!   negative, it is candidate − baseline. An interval therefore excludes "no change" exactly where
//!   the difference, judged by itself, is significant.
//! * **Several runs per side** are repeats. Each run is one value, and the differences of the
//!   values are the noise: Welch's test, which permits different variances of the sides. A side of
//!   one run is assumed to vary like the other one.
//! * **One run on each side**: only the error within the runs is known, which a remark reports.
//!   The samples of a run are correlated: a busy second affects neighboring requests alike. Errors
//!   therefore come from a *block bootstrap over time*: the run is divided into at most 256 cells
//!   in the order of time, blocks of cells are drawn with replacement until the run has its length
//!   again, and the statistic is computed for each resample (circular blocks: Politis and Romano
//!   1992). The block length is chosen for each statistic from the data (Politis and White 2004,
//!   corrected 2009). Draws come from a seeded counter-based generator: equal runs give equal
//!   results.
//! * **The same requests on both sides** ([`TimedSamples::push_keyed`], and equal workload digests)
//!   are drawn together, so that their common properties, above all the length of an answer, cancel
//!   in the error of the difference. Otherwise runs are treated as independent, which is
//!   conservative if they are not.
//! * **Shares of requests** ([`ValueParts::Outcomes`]: `error_rate`, `goodput`) are also judged by
//!   the number of requests: their error is that of the bootstrap, or for several runs the one
//!   between them, and never less than that of as many independent requests (Agresti and Caffo
//!   2000). Runs that agree exactly, 0 of 120 and 0 of 120, therefore count as strong evidence. A
//!   difference that is large by the number of requests, all of which failed within a short time,
//!   has [`DifferenceVerdict::TooFewRuns`], because they may be one event.
//! * **Requests without an answer** have no samples. They rank behind the slowest answer, so that
//!   for metrics of answers (and means over them) the side that lost more requests is not called
//!   better, but has [`DifferenceVerdict::SurvivorsOnly`] ([`Answered`]): if the answered shares
//!   differ by a point or, for percentiles, by more than half of the samples beyond them. "No
//!   difference" is revoked in the same way if the losses differ significantly. A side that lost
//!   more and is slower nevertheless is worse.
//! * **Different states of the cache** ([`CachedShares`]): if the cached shares of prompt tokens
//!   differ by more than 5 points although the sides did the same work, times that contain prefill
//!   ([`MetricData::contains_prefill`]) have [`DifferenceVerdict::CacheStatesDiffer`], unless the
//!   side with more cached tokens is worse nevertheless.
//! * **Different loads** ([`RequestedLoad`]): if one of them is an arrival rate, rates and counts
//!   ([`RunValueData::grows_with_load`]) follow it. They are shown without a verdict.
//! * **Runs that agree exactly** in any other value have no noise between them; the errors of their
//!   samples are used.
//! * **Copies** of a run (records with one name; or all samples equal to the nanosecond, as in
//!   simulated runs with one seed) count as one run.
//! * **Intervals** are Student's, from these standard errors, with degrees of freedom by
//!   Satterthwaite; 95 % by default; each row by itself.
//! * **Verdicts** ([`DifferenceVerdict`]) allow for the number of rows (Holm's procedure over all
//!   rows of a candidate that have a better side; see [`Correction`]). A significant difference is
//!   not called better or worse if it is within the measurement error of both clients (from the
//!   certificates), or smaller than what matters ([`CompareOptions::smallest`]). A candidate at
//!   twice or half of the baseline, for which only the number of runs prevents a verdict, has
//!   [`DifferenceVerdict::TooFewRuns`], not [`DifferenceVerdict::NoDifference`].
//! * **Whole requests**: the samples of a request (the gaps of its answer) are never divided: they
//!   are in one cell and are drawn together.
//! * **Enough data** of single runs are 20 samples of 20 requests, because all samples of a request
//!   share its fate. A percentile needs as many samples as leave 5 beyond it: 500 for a P99. Rates
//!   are judged by the distribution of their amounts over the run ([`ValueParts::Amounts`]). A
//!   run-level value without contributions has an error from several runs only.
//! * **Not comparable** are runs whose workload digests differ, runs that are INVALID as a whole,
//!   and single metrics that are INVALID ([`Invalid`]). Their values are shown without a verdict.
//! * **Sweeps** are compared cell by cell ([`compare_cell`], [`join`]).
//!
//! # Failure conditions
//!
//! [`FailIf`] is the language of `--fail-if`:
//!
//! ```text
//! fail-if  := all ("or" all)*
//! all      := term ("and" term)*
//! term     := "not" term | "(" fail-if ")" | "not_comparable" | judged | measured
//! judged   := ("worse" | "better" | "differs") "(" ("any" | NAME | aggregate "(" METRIC ")") ")"
//! measured := (RUN_METRIC | aggregate "(" METRIC ")") comparison bound
//! ```
//!
//! Aggregates, comparisons and bounds are those of [`veeksha_slo`].
//!
//! * `worse(ttfc)`: the verdict on any statistic of `ttfc` is worse; `worse(p99(ttfc))`: the
//!   verdict on this one; `worse(any)`: the verdict on any row.
//! * `p99(ttfc) > +5%`: a percentage with a sign bounds the relative change, (candidate − baseline)
//!   ÷ baseline. It is the measured change, significant or not; `worse(p99(ttfc)) and p99(ttfc) >
//!   +5%` requires both.
//! * `p99(ttfc) > +20ms`: any other bound with a sign bounds the difference, candidate − baseline.
//! * `error_rate > 1%`, `p99(ttfc) > 500ms`: a bound without a sign bounds the candidate's value.
//!   (A value therefore cannot be compared with a negative one.) It is undecided for a value that
//!   the candidate's certificate calls INVALID, whether the value exceeds the bound or not.
//! * `not_comparable`: the runs did not do the same work, or are INVALID as a whole.
//!
//! `worse(ttfc)` is undecided if it is known for the survivors among the requests only, unless the
//! baseline lost more of them and the candidate does not look worse. A change that does not reach
//! its bound among the survivors is also undecided. `worse(any)` is undecided, too, if a share of
//! the whole run (`error_rate`, `goodput`) is numerically worse and could not be judged. An
//! undecided part (too little data for every row in question, a missing value, or sides that are
//! not comparable) is neither true nor false; it matters only if the other parts do not decide
//! (Kleene's logic). An expression that remains undecided counts as a failure: `worse(ttfc) or
//! not_comparable` fails for runs that are not comparable with the better reason, and `worse(ttfc)`
//! does not let them pass.
//!
//! # Example
//!
//! ```
//! use veeksha_compare::{
//!     CompareOptions, CompareSide, DifferenceVerdict, FailIf, KnownName, MetricData, RunData,
//!     TimedSamples, compare,
//! };
//! use veeksha_model::Better;
//!
//! let side = |label: &str, slower: f64| {
//!     let mut samples = TimedSamples::new();
//!     for i in 0..200u64 {
//!         samples.push(i * 10_000_000, slower * (0.3 + 0.001 * (i * 37 % 100) as f64));
//!     }
//!     let ttfc = MetricData::new("ttfc", "s", Better::Less, samples);
//!     CompareSide {
//!         label: label.into(),
//!         runs: vec![RunData { label: label.into(), metrics: vec![ttfc], ..RunData::default() }],
//!     }
//! };
//! let sides = [side("A", 1.0), side("B", 1.2)];
//! let mut fail_if = FailIf::parse("worse(ttfc) and mean(ttfc) > +5%")?;
//! fail_if.check(&KnownName::of(&sides))?;
//! let comparison = compare(&sides, &fail_if.statistics(), &CompareOptions::default())?;
//! assert_eq!(comparison.candidates[0].rows[0].verdict, DifferenceVerdict::Worse);
//! assert!(fail_if.decide(&comparison).fails());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod annotations;
mod answered;
mod axis;
mod binned;
mod block_length;
mod bootstrap;
mod caches;
mod comparable;
mod comparison;
mod copies;
mod decisions;
mod effect;
mod ends;
mod error;
mod fail_if;
mod forest;
mod html;
mod input;
mod json;
mod judge;
mod junit;
mod lack;
mod load;
mod loads;
mod markup;
mod measured;
mod options;
mod paired;
mod remark;
mod request_share;
mod resample;
mod row;
mod sample;
mod series;
mod statistic;
mod student;
mod table;
mod text;
mod timed_samples;
mod untrusted;
mod verdict;
mod whole_run;

pub use answered::Answered;
pub use caches::CachedShares;
pub use comparable::SettingDifference;
pub use comparison::{ComparedSide, Comparison, SideLabels, compare, compare_cell, join};
pub use decisions::DecisionDifferences;
pub use effect::{ComparisonScale, RunSpread};
pub use error::CompareError;
pub use fail_if::{CandidateDecision, Decision, FailIf, FailOutcome, KnownKind, KnownName};
pub use input::{
    ClientError, CompareSide, GoodRequests, MetricData, RunData, RunValueData, ScenarioLabel, SentSoFar,
    Trust, Validity, ValueParts,
};
pub use load::RequestedLoad;
pub use options::{CompareOptions, Correction, Invalid};
pub use remark::{DifferentLoads, LostRequests, REMARK_KINDS, Remark, RemarkKind};
pub use request_share::RequestShare;
pub use row::{ComparisonRow, SideValue};
pub use statistic::Statistic;
pub use table::{ComparisonTable, TableRow};
pub use timed_samples::{EXACT_SAMPLES, TimedSamples};
pub use untrusted::Untrusted;
pub use verdict::DifferenceVerdict;
