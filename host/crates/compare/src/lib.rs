//! Whether runs differ, and by how much: effect sizes with bootstrap intervals, verdicts, reports
//! for machines. Pure.
//!
//! # How
//!
//! [`compare`] takes the runs of two or more sides as plain data ([`Side`], [`RunData`]) and sets
//! every further side against the first one. For each metric it compares mean, P50, P90 and P99
//! (and what else is asked for), for the whole run each figure.
//!
//! * **One scale a figure** ([`Scale`]). Estimate, interval, probability and verdict of a figure
//!   come from one statistic: the logarithm of candidate ÷ baseline, for what servers do to a
//!   latency or a rate, and what it varies by, is in proportion to it; of shares, and where a value
//!   is 0 or negative, candidate less baseline. An interval thus leaves out "no change" exactly
//!   where the figure, looked at by itself, differs by more than chance.
//! * **Several runs on a side** are its repeats. Each run is one value, and what the values differ
//!   by is the noise: Welch's test, which lets the sides vary differently. A side of one run is
//!   taken to vary as the other one does.
//! * **One run on each side**: only the chance within the runs is known, and the comparison says
//!   so. Samples of one run hang together: what a busy second does to one request it does to its
//!   neighbours. So errors come from a *block bootstrap over time*: the run is cut into at most 256
//!   cells in the order of time, stretches of cells are drawn with replacement until the run has
//!   its length again, and the statistic is taken each time (circular blocks: Politis and Romano
//!   1992). How long the stretches are is chosen for each statistic from the data (Politis and
//!   White 2004, corrected 2009). The draws are those of a seeded counter-based generator: the same
//!   runs give the same figures.
//! * **The same requests on both sides** ([`TimedSamples::push_keyed`], and workload digests that
//!   agree) are drawn together, so that what they have in common, the length of an answer above
//!   all, falls out of the error of the difference. Else runs are taken as independent, which errs
//!   to the safe side where they are not.
//! * **Shares of requests** ([`Parts::Outcomes`]: `error_rate`, `goodput`) are judged by their
//!   requests too: their error is that of the bootstrap, of several runs that between them, and
//!   never less than that of so many requests (Agresti and Caffo 2000). Runs that agree exactly, 0
//!   of 120 and 0 of 120, thus are the strong evidence that they are. Requests that make a large
//!   difference by their number, and came together in time, have [`Verdict::TooFewRuns`]: they may
//!   be one event.
//! * **Requests without an answer** have no samples. They belong behind the slowest answer, so that
//!   of metrics (and means over answers) the side that lost more requests is not called better, and
//!   has [`Verdict::SurvivorsOnly`] ([`Answered`]): from a difference of a point between the
//!   answered shares, for percentiles of more than half of what lies beyond them. "No difference"
//!   is taken back in the same way where the losses differ by more than chance. A side that lost
//!   more and is slower all the same is worse.
//! * **Different loads** ([`Load`]): where one of them is a pace of arrivals, rates and counts
//!   ([`FigureData::grows_with_load`]) are what was asked for. They are shown, and no verdict is
//!   given.
//! * **Runs that agree exactly** in something else have no noise between them to judge by: the
//!   errors of their samples are taken.
//! * **Copies** of a run (records that bear one name; or all samples the same, to the nanosecond:
//!   simulated runs of one seed) count as one run.
//! * **Intervals** are Student's, by those standard errors, with degrees of freedom by
//!   Satterthwaite; 95 % unless asked otherwise; each figure by itself.
//! * **Verdicts** ([`Verdict`]) allow for the number of figures looked at (Holm's procedure over
//!   all figures of a candidate that have a better side; see [`Correction`]). A difference that is
//!   more than chance is still not called better or worse if it is within what both clients may be
//!   wrong by (the certificates' errors), or smaller than what matters ([`Options::smallest`]). A
//!   candidate that is twice or half of the baseline, and of which only the number of runs keeps
//!   one from saying so, has [`Verdict::TooFewRuns`], not [`Verdict::NoDifference`].
//! * **Whole requests**: the samples of a request (the gaps of its answer) are never divided: they
//!   lie in one cell and are drawn together.
//! * **Enough data** of single runs are 20 samples, and of 20 requests: what happens to one happens
//!   to all its samples. For a percentile as many samples as leave 5 beyond it: 500 for a P99.
//!   Rates are judged by how the amounts were spread over the run ([`Parts::Amounts`]). A figure of
//!   the whole run that is nothing but one number has its error from several runs only.
//! * **Not comparable** are runs whose workload digests differ, runs that are INVALID as a whole,
//!   and single metrics that are ([`Invalid`]). Their figures are shown, and no verdict is given.
//! * **Sweeps** are compared cell by cell ([`compare_cell`], [`join`]).
//!
//! # When a comparison fails
//!
//! [`FailIf`] is the language of `--fail-if`:
//!
//! ```text
//! fail-if  := all ("or" all)*
//! all      := term ("and" term)*
//! term     := "not" term | "(" fail-if ")" | "not_comparable" | judged | measured
//! judged   := ("worse" | "better" | "differs") "(" ("any" | NAME | aggregate "(" METRIC ")") ")"
//! measured := (FIGURE | aggregate "(" METRIC ")") comparison bound
//! ```
//!
//! Aggregates, comparisons and bounds are those of [`veeksha_slo`].
//!
//! * `worse(ttfc)`: the verdict on any statistic of `ttfc` is worse; `worse(p99(ttfc))`: on this
//!   one; `worse(any)`: on any figure.
//! * `p99(ttfc) > +5%`: a percentage with a sign bounds the relative change, candidate ÷ baseline -
//!   1. It is the change that was seen, whether it is more than chance or not; `worse(p99(ttfc))
//!      and p99(ttfc) > +5%` asks for both.
//! * `p99(ttfc) > +20ms`: another bound with a sign bounds the difference, candidate less baseline.
//! * `error_rate > 1%`, `p99(ttfc) > 500ms`: a bound without a sign bounds the candidate's value.
//!   (So a value cannot be set against a negative one.) Nothing is told of a value that the
//!   candidate's certificate calls INVALID, whether it lies beyond the bound or not.
//! * `not_comparable`: the runs did not do the same work, or are INVALID as a whole.
//!
//! `worse(ttfc)` is not told where it is known of the survivors among the requests only, unless it
//! is the baseline that lost more of them and the candidate does not look worse; nor is a change
//! that does not reach its bound among them. `worse(any)` is not told either where a share of the
//! whole run (`error_rate`, `goodput`) got worse as it stands and could not be judged. What cannot
//! be told (there is not enough data to judge any of what is meant, a figure is missing, the sides
//! are not comparable) is neither true nor false; it decides only where the other parts do not
//! (Kleene's logic). An expression that stays undecided counts as a failure: `worse(ttfc) or
//! not_comparable` fails for runs that cannot be compared with the better reason, and `worse(ttfc)`
//! does not let them pass.
//!
//! # Example
//!
//! ```
//! use veeksha_compare::{FailIf, Known, MetricData, Options, RunData, Side, TimedSamples, Verdict, compare};
//! use veeksha_model::Better;
//!
//! let side = |label: &str, slower: f64| {
//!     let mut samples = TimedSamples::new();
//!     for i in 0..200u64 {
//!         samples.push(i * 10_000_000, slower * (0.3 + 0.001 * (i * 37 % 100) as f64));
//!     }
//!     let ttfc = MetricData::new("ttfc", "s", Better::Less, samples);
//!     Side {
//!         label: label.into(),
//!         runs: vec![RunData { label: label.into(), metrics: vec![ttfc], ..RunData::default() }],
//!     }
//! };
//! let sides = [side("A", 1.0), side("B", 1.2)];
//! let mut fail_if = FailIf::parse("worse(ttfc) and mean(ttfc) > +5%")?;
//! fail_if.check(&Known::of(&sides))?;
//! let comparison = compare(&sides, &fail_if.statistics(), &Options::default())?;
//! assert_eq!(comparison.candidates[0].rows[0].verdict, Verdict::Worse);
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
mod load;
mod measured;
mod options;
mod paired;
mod resample;
mod row;
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
pub use comparable::SettingDifference;
pub use comparison::{Candidate, Comparison, SideLabels, compare, compare_cell, join};
pub use effect::{Scale, Spread};
pub use error::CompareError;
pub use fail_if::{CandidateDecision, Decision, FailIf, Known, KnownKind, Outcome};
pub use input::{ClientError, FigureData, MetricData, Parts, RunData, Side, Trust, Validity};
pub use load::Load;
pub use options::{Correction, Invalid, Options};
pub use row::{Row, SideValue};
pub use statistic::Statistic;
pub use table::{Table, TableRow};
pub use timed_samples::{EXACT_SAMPLES, TimedSamples};
pub use untrusted::Untrusted;
pub use verdict::Verdict;
pub use whole_run::Counted;
