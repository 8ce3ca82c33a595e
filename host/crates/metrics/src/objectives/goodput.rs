//! Classification of good requests.

use std::collections::BTreeMap;

use veeksha_stats::WeightedSample;

use super::checked::Condition;
use super::judge::SortedJudgements;
use crate::counts::RunCounts;
use crate::label_sets::Matching;
use crate::objectives::check::Objectives;
use crate::objectives::judge::Judgements;
use crate::objectives::unknown::Unknown;
use crate::pooled::{GapSet, RowSelection, TokenSet};
use crate::row::RequestRow;
use crate::run_metric::RunMetric;
use crate::run_samples::RunSamples;
use crate::sample_set::SampleSet;
use veeksha_definitions::{Metric, Samples};

/// The number of good requests.
#[derive(Debug, Default)]
pub(crate) struct Good {
    /// The number; `None` if good requests are not defined, or if the number is unknown.
    pub(crate) count: Option<u64>,
    /// The reason why the number is unknown.
    pub(crate) unknown: Option<String>,
}

/// The share of good requests, and their rate.
#[derive(Debug, Default)]
pub(crate) struct GoodputResult {
    /// The number of good requests; `None` if they are not defined, or if the number is unknown.
    pub(crate) good: Option<u64>,
    /// The reason why the number is unknown.
    pub(crate) good_unknown: Option<String>,
    /// Good requests ÷ requests that were due.
    pub(crate) share: Option<f64>,
    /// The reason why the share is unknown.
    pub(crate) share_unknown: Option<String>,
    /// Good requests per second of the measured window.
    pub(crate) per_second: Option<f64>,
}

impl GoodputResult {
    /// Computes the share over all requests that were due. Sessions whose agent failed would have
    /// sent further requests; their number is unknown, and so is the share.
    pub(crate) fn of(good: Good, counts: &RunCounts, window_seconds: Option<f64>) -> Self {
        let due = counts.intended();
        let lost = counts.failed_agent_sessions;
        let count = good.count.filter(|_| due > 0 || lost > 0);
        let lost_requests = good.count.filter(|_| lost > 0).map(|_| {
            format!(
                "the agents of {} failed, so the number of requests that were due is unknown",
                veeksha_stats::counted(lost, "session")
            )
        });
        GoodputResult {
            good: good.count,
            good_unknown: good.unknown.clone(),
            share: count.filter(|_| lost == 0).map(|good| good as f64 / due as f64),
            share_unknown: good.unknown.or(lost_requests),
            per_second: count
                .zip(window_seconds)
                .map(|(good, window)| good as f64 / window),
        }
    }

    /// Returns the run metrics that objectives can name.
    pub(crate) fn run_metrics(&self) -> [(RunMetric, Option<f64>); 2] {
        [
            (RunMetric::Goodput, self.share),
            (RunMetric::GoodRequestsPerSecond, self.per_second),
        ]
    }
}

/// Marks the good requests and returns their number. A good request has a non-empty answer, meets
/// every condition individually, and is judged good by every judge. A request without a sample of a
/// condition's metric (one chunk has no gaps), or without its labels, meets the condition.
///
/// If a plugin that contributes to the result failed, or has not judged all answers, the number is
/// unknown: requests that were not judged are neither good nor bad.
pub(crate) fn count_good(
    samples: &mut RunSamples,
    objectives: &Objectives,
    judgements: Judgements,
    of_plugins: &Unknown<'_>,
) -> Good {
    let judged = judgements.sorted(&objectives.judges);
    if objectives.conditions.is_empty() && !judged.has_judges() {
        return Good::default();
    }
    let unknown = of_plugins.goodput(objectives, samples.catalogue()).or_else(|| {
        let answered = samples.requests.rows.iter().filter(|row| is_answered(row));
        let answers = answered.clone().count() as u64;
        let (judge, missing) = judged.silent_on(answered.map(|row| row.id))?;
        let judged = answers - missing;
        Some(format!(
            "the plugin `{judge}` judged {judged} of {answers} answers"
        ))
    });
    if unknown.is_some() {
        return Good { count: None, unknown };
    }
    let good = good(samples, objectives, &judged);
    let count = good.iter().filter(|good| **good).count();
    for (row, good) in samples.requests.rows.iter_mut().zip(good) {
        row.good = good;
    }
    Good {
        count: Some(count as u64),
        unknown: None,
    }
}

/// Returns true if the request has an answer to judge.
fn is_answered(row: &RequestRow) -> bool {
    row.counts() && row.observed.has_output()
}

fn good(samples: &RunSamples, objectives: &Objectives, judged: &SortedJudgements) -> Vec<bool> {
    let conditions: Vec<Asked<'_>> = objectives
        .conditions
        .iter()
        .map(|condition| Asked::new(condition, samples))
        .collect();
    let rows = samples.requests.rows.iter().zip(0u32..);
    rows.map(|(row, place)| {
        is_answered(row) && conditions.iter().all(|asked| asked.is_kept_by(place)) && judged.all_good(row.id)
    })
    .collect()
}

/// A condition with the data that it needs.
struct Asked<'a> {
    condition: &'a Condition,
    samples: &'a RunSamples,
    matching: Matching,
    metric: Option<Metric>,
    /// Samples of a plugin metric.
    by_row: BTreeMap<u32, Vec<WeightedSample>>,
}

impl<'a> Asked<'a> {
    fn new(condition: &'a Condition, samples: &'a RunSamples) -> Self {
        let name = &condition.samples.metric;
        Asked {
            matching: samples.matching(&condition.samples.filter),
            metric: samples.catalogue().get(name).and_then(|info| info.metric),
            by_row: samples
                .custom
                .get(name)
                .map(|samples| samples.by_row())
                .unwrap_or_default(),
            condition,
            samples,
        }
    }

    fn is_kept_by(&self, place: u32) -> bool {
        let row = &self.samples.requests.rows[place as usize];
        if !self.matching.has(row.labels) {
            return true;
        }
        let own = self.condition.samples.of.observe(&self.own(place));
        own.is_none_or(|own| self.condition.limit.is_kept_by(own))
    }

    /// Returns the samples of one request.
    fn own(&self, place: u32) -> SampleSet<'a> {
        let requests = &self.samples.requests;
        let Some(metric) = self.metric else {
            return SampleSet::weighted(self.by_row.get(&place).cloned().unwrap_or_default());
        };
        match metric.definition_of().samples {
            Samples::ChunkGaps => SampleSet::Gaps(GapSet::new(requests, RowSelection::These(vec![place]))),
            Samples::TokenGaps => {
                SampleSet::Tokens(TokenSet::new(requests, RowSelection::These(vec![place])))
            }
            Samples::Request(_) => {
                let value = requests.rows[place as usize].sample(metric);
                SampleSet::Plain(value.into_iter().collect())
            }
            // No request has a sample of these alone; they are not conditions of goodput.
            Samples::Session | Samples::ThinkTimes | Samples::ToolRun(_) => SampleSet::Plain(Vec::new()),
        }
    }
}
