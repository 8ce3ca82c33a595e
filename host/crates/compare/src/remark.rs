//! Remarks for the reader: their kinds with documentation, and their texts. Terminal, JSON, HTML,
//! JUnit and `docs/comparing.md` derive from this file.

use std::fmt;

use veeksha_stats::{duration, number, share};

use crate::input::Validity;
use crate::loads::Loads;
use crate::request_share::RequestShare;

/// Kind of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemarkKind {
    /// Snake-case name used in files.
    pub name: &'static str,
    /// Occasion and consequence of the remark.
    pub meaning: &'static str,
}

const fn kind(name: &'static str, meaning: &'static str) -> RemarkKind {
    RemarkKind { name, meaning }
}

const REDACTED: RemarkKind = kind(
    "redacted_settings",
    "the cells of a sweep differ in a redacted value; cells are matched by their other settings",
);
const LOST_REQUESTS: RemarkKind = kind(
    "lost_requests",
    "the sides answered different shares of their due requests; metrics of answered requests favor the side that lost more",
);
const SLOS: RemarkKind = kind(
    "slos_left_out",
    "a run has no SLOs that define good requests, or they are unknown: `goodput` and `good_requests_per_second` are not compared",
);
const LOADS: RemarkKind = kind(
    "different_loads",
    "the requested loads differ; of open loops, rates and counts are not judged",
);
const LONGER_WORKLOAD: RemarkKind = kind(
    "longer_workload",
    "the workloads agree as far as both runs go, and one run continues",
);
const UNKNOWN_WORKLOAD: RemarkKind = kind(
    "unknown_workload",
    "a record without workload digest: the runs may have done different work",
);
const DIFFERENT_REQUESTS: RemarkKind = kind(
    "different_requests",
    "runs with the same workload sent other bodies: another tokenizer, salt, model name or parameter, or conversations with other answers",
);
const SAME_RUN: RemarkKind = kind("same_run", "a run, or a copy of it, is on both sides");
const SAME_SAMPLES: RemarkKind = kind(
    "same_samples",
    "a run of each side agrees in every sample, as simulated runs with one seed do",
);
const CERTIFICATE: RemarkKind = kind(
    "certificate",
    "a certificate calls a run or a metric DEGRADED or INVALID",
);
const DROPPED_VALUES: RemarkKind = kind(
    "dropped_values",
    "values that are not finite numbers were left out",
);
const LENGTHS: RemarkKind = kind(
    "different_lengths",
    "the runs lasted more than 10 % longer or shorter",
);
const CACHES: RemarkKind = kind(
    "cache_states",
    "the shares of cached prompt tokens differ by more than a point; such runs are not repeats",
);
const COPIES: RemarkKind = kind(
    "copies",
    "runs of a side are copies of one another and count as one",
);
const NOISE: RemarkKind = kind(
    "noise",
    "the source of the noise between runs: unknown for one run on each side, else measured",
);
const SPREAD: RemarkKind = kind("spread", "the meaning of the ± sign in the table");
const PAIRED: RemarkKind = kind(
    "paired",
    "the same requests of both sides were compared one by one",
);
const JUDGED_VALUES: RemarkKind = kind(
    "judged_values",
    "the number of judged values, and the correction for it",
);
const CELLS: RemarkKind = kind("cells", "the number of compared cells of a sweep");

/// Every kind, in the order in which remarks are printed.
pub const REMARK_KINDS: [RemarkKind; 19] = [
    REDACTED,
    LOST_REQUESTS,
    LOADS,
    LONGER_WORKLOAD,
    UNKNOWN_WORKLOAD,
    DIFFERENT_REQUESTS,
    SAME_RUN,
    SAME_SAMPLES,
    CERTIFICATE,
    DROPPED_VALUES,
    SLOS,
    LENGTHS,
    CACHES,
    COPIES,
    NOISE,
    SPREAD,
    PAIRED,
    JUDGED_VALUES,
    CELLS,
];

/// A remark for the reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Remark {
    /// Settings whose values are redacted in the manifests of the compared sweeps.
    RedactedSettings(Vec<String>),
    /// The sides answered different shares of their requests.
    LostRequests(LostRequests),
    /// The requested loads differ.
    DifferentLoads(DifferentLoads),
    /// Two runs agree in their first sessions, and one of them continues.
    LongerWorkload {
        /// Both runs.
        runs: [String; 2],
        /// Number of common sessions.
        sessions: u64,
        /// The longer run.
        longer: String,
    },
    /// A run without workload digest.
    UnknownWorkload {
        /// The run.
        run: String,
    },
    /// Runs did the same work and sent different requests.
    DifferentRequests {
        /// The run that the others are compared with.
        reference: String,
        /// The run that differs, or the number of several ones.
        others: String,
        /// Number of leading sessions that contain a difference.
        sessions: u64,
    },
    /// Locations of a run that is on both sides; the two differ for a copy.
    SameRun([String; 2]),
    /// Locations of two runs with equal samples.
    SameSamples([String; 2]),
    /// The certificates' verdict on runs, with the same reasons.
    RunValidity {
        /// The runs.
        runs: Vec<String>,
        /// The verdict.
        validity: Validity,
        /// Reasons, each after a separator.
        why: String,
    },
    /// The certificates' verdict on a metric.
    MetricValidity(String),
    /// Values that are not finite numbers.
    DroppedValues {
        /// The run.
        run: String,
        /// Number of values.
        count: u64,
    },
    /// Runs without known good requests, each with the reason.
    SlosLeftOut(Vec<(String, String)>),
    /// Label, shortest and longest duration in seconds of each side.
    DifferentLengths([(String, f64, f64); 2]),
    /// Label, least and greatest cached share of each side.
    CacheStates([(String, Option<(f64, f64)>); 2]),
    /// Copies within a side.
    Copies {
        /// The side.
        side: String,
        /// Number of runs.
        runs: usize,
        /// Number of distinct runs.
        distinct: usize,
    },
    /// Labels of both sides with their numbers of distinct runs.
    Noise([(String, usize); 2]),
    /// A value has a ± sign.
    Spread,
    /// Requests were compared one by one.
    Paired,
    /// Number of judged values.
    JudgedValues {
        /// The number.
        count: usize,
        /// Expected number of false verdicts; `None` if verdicts allow for the number.
        false_verdicts: Option<f64>,
    },
    /// Cells of a sweep.
    Cells {
        /// Their number.
        count: usize,
        /// Expected number of cells with a false verdict.
        false_cells: f64,
    },
}

/// Answered requests of two sides that lost different shares.
#[derive(Clone, Debug, PartialEq)]
pub struct LostRequests {
    pub(crate) baseline: (String, RequestShare),
    pub(crate) candidate: (String, RequestShare),
    /// Label of the side that lost more.
    pub(crate) loser: String,
}

/// Different loads of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct DifferentLoads {
    pub(crate) loads: Loads,
    pub(crate) labels: [String; 2],
}

impl Remark {
    /// Returns its kind.
    pub fn kind(&self) -> RemarkKind {
        match self {
            Remark::RedactedSettings(_) => REDACTED,
            Remark::LostRequests(_) => LOST_REQUESTS,
            Remark::DifferentLoads(_) => LOADS,
            Remark::LongerWorkload { .. } => LONGER_WORKLOAD,
            Remark::UnknownWorkload { .. } => UNKNOWN_WORKLOAD,
            Remark::DifferentRequests { .. } => DIFFERENT_REQUESTS,
            Remark::SameRun(_) => SAME_RUN,
            Remark::SameSamples(_) => SAME_SAMPLES,
            Remark::RunValidity { .. } | Remark::MetricValidity(_) => CERTIFICATE,
            Remark::DroppedValues { .. } => DROPPED_VALUES,
            Remark::SlosLeftOut(_) => SLOS,
            Remark::DifferentLengths(_) => LENGTHS,
            Remark::CacheStates(_) => CACHES,
            Remark::Copies { .. } => COPIES,
            Remark::Noise(_) => NOISE,
            Remark::Spread => SPREAD,
            Remark::Paired => PAIRED,
            Remark::JudgedValues { .. } => JUDGED_VALUES,
            Remark::Cells { .. } => CELLS,
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::RedactedSettings(settings) => write!(
                f,
                "{} is redacted in sweep manifests: whether both sides have the same value is unknown",
                settings.join(" and ")
            ),
            Remark::LostRequests(lost) => lost.fmt(f),
            Remark::DifferentLoads(different) => different.fmt(f),
            Remark::LongerWorkload {
                runs: [one, other],
                sessions,
                longer,
            } => write!(
                f,
                "{one} and {other} planned the same work for their {}; {longer} continues after that",
                first_sessions(*sessions)
            ),
            Remark::UnknownWorkload { run } => write!(
                f,
                "cannot check that the runs did the same work: {run} has no workload digest"
            ),
            Remark::DifferentRequests {
                reference,
                others,
                sessions,
            } => write!(
                f,
                "{reference} and {others} did the same work, but sent different requests within the {}: tokenizer, salt, \
                 model name, parameters or the answers in conversations differ",
                first_sessions(*sessions)
            ),
            Remark::SameRun([one, other]) => {
                if one == other {
                    write!(f, "{one} is on both sides")?;
                } else {
                    write!(f, "{one} and {other} are copies of one run, which is on both sides")?;
                }
                f.write_str(": a run does not differ from itself, and other runs may")
            }
            Remark::SameSamples([one, other]) => write!(
                f,
                "{one} and {other} agree in every sample, as copies and simulated runs with one seed do: other runs may differ"
            ),
            Remark::RunValidity { runs, validity, why } => {
                let judged = match validity {
                    Validity::Invalid => " and judged nevertheless",
                    Validity::Valid | Validity::Degraded => "",
                };
                let are = if runs.len() == 1 { "is" } else { "are" };
                write!(f, "{} {are} {}{judged}{why}", runs.join(" and "), validity.name())
            }
            Remark::MetricValidity(text) => f.write_str(text),
            Remark::DroppedValues { run, count } => write!(
                f,
                "{run}: {count} {} left out because not a finite number",
                if *count == 1 { "value was" } else { "values were" }
            ),
            Remark::SlosLeftOut(runs) => {
                let runs: Vec<String> = runs.iter().map(|(run, why)| format!("{run}: {why}")).collect();
                write!(
                    f,
                    "SLOs are left out, so goodput and good_requests_per_second are not compared: {}",
                    runs.join("; ")
                )
            }
            Remark::DifferentLengths([one, other]) => {
                let text = |(label, shortest, longest): &(String, f64, f64)| {
                    if shortest == longest {
                        format!("{label} lasted {}", duration(*longest))
                    } else {
                        format!("{label} lasted {} to {}", duration(*shortest), duration(*longest))
                    }
                };
                write!(
                    f,
                    "from the first request to the end of the last answer, {} and {}",
                    text(one),
                    text(other)
                )
            }
            Remark::CacheStates(sides) => cache_states(f, sides),
            Remark::Copies { side, runs, distinct } => copies(f, side, *runs, *distinct),
            Remark::Noise(sides) => noise(f, sides),
            Remark::Spread => f.write_str(
                "± is the standard deviation between the runs of a side; the interval of the difference has its own column",
            ),
            Remark::Paired => f.write_str(
                "both sides did the same work (of agents: began with it): where possible their requests were compared one by one, so that their common properties are not noise",
            ),
            Remark::JudgedValues { count, false_verdicts } => judged_values(f, *count, *false_verdicts),
            Remark::Cells { count, false_cells } => write!(
                f,
                "{count} cells were compared individually: verdicts allow for the number of values in a cell, not for the number of cells; about {} of as many equal cells would have a false verdict",
                number(*false_cells)
            ),
        }
    }
}

impl fmt::Display for LostRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(label, answered): &(String, RequestShare)| {
            let RequestShare { part, whole } = answered;
            format!(
                "{label} answered {part} of {whole} due requests ({})",
                share(answered.share())
            )
        };
        write!(
            f,
            "{} and {}: latencies and other metrics of answered requests cover the survivors only, and the slowest requests may be among the lost ones, \
             so {} is not called better by them",
            text(&self.baseline),
            text(&self.candidate),
            self.loser
        )
    }
}

impl fmt::Display for DifferentLoads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [baseline, candidate] = &self.labels;
        let [of_baseline, of_candidate] = self.loads.texts();
        write!(
            f,
            "the requested load of {baseline} is {of_baseline}, that of {candidate} {of_candidate}: "
        )?;
        f.write_str(if self.loads.is_open() {
            "rates and counts follow the requested load and are not judged; latencies are those under these loads"
        } else {
            "rates and latencies are those under these loads"
        })
    }
}

fn cache_states(f: &mut fmt::Formatter<'_>, sides: &[(String, Option<(f64, f64)>); 2]) -> fmt::Result {
    let text = |(label, shares): &(String, Option<(f64, f64)>)| {
        let shares = match shares {
            None => "an unknown share".to_owned(),
            Some((least, most)) if least == most => share(*most),
            Some((least, most)) => format!("{} to {}", share(*least), share(*most)),
        };
        format!("{shares} of the prompt tokens of {label}")
    };
    let [one, other] = sides;
    write!(
        f,
        "the server had {} and {} in its prefix cache: cached tokens need almost no prefill, so a run with a warm cache does not repeat one with a cold cache; \
         fix: empty the cache before each run, or restart the server",
        text(one),
        text(other)
    )
}

fn copies(f: &mut fmt::Formatter<'_>, side: &str, runs: usize, distinct: usize) -> fmt::Result {
    let count = runs - distinct;
    if distinct == 1 {
        write!(
            f,
            "the {runs} runs of {side} are copies of one another, as simulated runs with one seed are: they count as one"
        )
    } else {
        write!(
            f,
            "{count} of the {runs} runs of {side} are copies of others, as simulated runs with one seed are, and do not count"
        )
    }
}

fn noise(f: &mut fmt::Formatter<'_>, [baseline, candidate]: &[(String, usize); 2]) -> fmt::Result {
    let borrowed = |f: &mut fmt::Formatter<'_>, (from, runs): &(String, usize), to: &str| {
        write!(
            f,
            "the noise between runs is known for {from} only ({runs} runs) and assumed for {to}"
        )
    };
    match (baseline.1, candidate.1) {
        (1, 1) => f.write_str(
            "one run on each side: the noise between runs is unknown, so small differences are found too often; fix: run each side several times",
        ),
        (_, 1) => borrowed(f, baseline, &candidate.0),
        (1, _) => borrowed(f, candidate, &baseline.0),
        (first, second) => write!(
            f,
            "{} has {first} runs and {} {second}: each run is one value, and the differences within a side are the noise (Welch's test)",
            baseline.0, candidate.0
        ),
    }
}

fn judged_values(f: &mut fmt::Formatter<'_>, count: usize, false_verdicts: Option<f64>) -> fmt::Result {
    match count {
        0 => return f.write_str("none of the values with a better side could be judged"),
        1 => return f.write_str("1 value with a better side was judged"),
        _ => write!(f, "{count} values with a better side were judged")?,
    }
    match false_verdicts {
        None => f.write_str("; verdicts allow for their number (Holm), intervals do not"),
        Some(expected) => write!(
            f,
            " individually: about {} of as many equal values would be called better or worse",
            number(expected)
        ),
    }
}

/// `first session`, `first 8 sessions`.
pub(crate) fn first_sessions(sessions: u64) -> String {
    match sessions {
        1 => "first session".to_owned(),
        _ => format!("first {sessions} sessions"),
    }
}
