//! Comparison as strict JSON: unknown values are `null`.

use serde::Serialize;
use serde_json::Value;

use crate::answered::Answered;
use crate::comparable::SettingDifference;
use crate::comparison::{ComparedSide, Comparison};
use crate::effect::RunSpread;
use crate::fail_if::{CandidateDecision, Decision};
use crate::input::ScenarioLabel;
use crate::options::Correction;
use crate::request_share::RequestShare;
use crate::row::{ComparisonRow, SideValue};

impl Comparison {
    /// Returns `comparison.json`. Times are in seconds; shares and relative changes are fractions.
    ///
    /// # Errors
    /// Never for the types of this crate; the signature is that of [`serde_json::to_value`].
    pub fn json(&self, decision: Option<&Decision>) -> Result<Value, serde_json::Error> {
        serde_json::to_value(ComparisonJson {
            baseline: SideJson {
                label: &self.baseline.label,
                runs: &self.baseline.runs,
                scenarios: scenarios(&self.baseline.scenarios),
            },
            confidence: self.options.confidence,
            resamples: self.options.resamples,
            seed: self.options.seed,
            smallest_change: self.options.smallest,
            correction: match self.options.correction {
                Correction::Holm => "holm",
                Correction::Each => "none",
            },
            remarks: texts(&self.remarks),
            candidates: self.candidates.iter().map(CandidateJson::of).collect(),
            fail_if: decision.map(DecisionJson::of),
        })
    }
}

fn texts(remarks: &[crate::remark::Remark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

fn scenarios(labels: &[ScenarioLabel]) -> Vec<ScenarioJson<'_>> {
    let each = labels.iter().map(|label| ScenarioJson {
        name: label.name.as_deref(),
        description: label.description.as_deref(),
        tags: &label.tags,
    });
    each.collect()
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    baseline: SideJson<'a>,
    confidence: f64,
    resamples: usize,
    seed: u64,
    smallest_change: Option<f64>,
    correction: &'static str,
    remarks: Vec<String>,
    candidates: Vec<CandidateJson<'a>>,
    fail_if: Option<DecisionJson<'a>>,
}

#[derive(Serialize)]
struct SideJson<'a> {
    label: &'a str,
    runs: &'a [String],
    scenarios: Vec<ScenarioJson<'a>>,
}

#[derive(Serialize)]
struct ScenarioJson<'a> {
    name: Option<&'a str>,
    description: Option<&'a str>,
    tags: &'a [String],
}

#[derive(Serialize)]
struct DecisionJson<'a> {
    expression: &'a str,
    fails: bool,
    candidates: Vec<CandidateDecisionJson<'a>>,
}

impl<'a> DecisionJson<'a> {
    fn of(decision: &'a Decision) -> Self {
        let candidate = |candidate: &'a CandidateDecision| CandidateDecisionJson {
            label: &candidate.label,
            cell: candidate.cell.as_deref(),
            outcome: candidate.outcome.name(),
            reasons: &candidate.reasons,
        };
        DecisionJson {
            expression: &decision.expression,
            fails: decision.fails(),
            candidates: decision.candidates.iter().map(candidate).collect(),
        }
    }
}

#[derive(Serialize)]
struct CandidateDecisionJson<'a> {
    label: &'a str,
    cell: Option<&'a str>,
    outcome: &'static str,
    reasons: &'a [String],
}

#[derive(Serialize)]
struct CandidateJson<'a> {
    label: &'a str,
    runs: &'a [String],
    scenarios: Vec<ScenarioJson<'a>>,
    cell: Option<&'a str>,
    baseline_runs: &'a [String],
    comparable: bool,
    obstacles: &'a [String],
    remarks: Vec<String>,
    /// Name of the kind of each remark.
    remark_kinds: Vec<&'static str>,
    answered: Option<AnsweredJson>,
    certificates: &'a [String],
    settings: Vec<SettingJson<'a>>,
    /// `null` if a side has no recorded decisions of agents.
    decisions: Option<&'a Value>,
    rows: Vec<RowJson<'a>>,
}

impl<'a> CandidateJson<'a> {
    fn of(candidate: &'a ComparedSide) -> Self {
        let setting = |setting: &'a SettingDifference| SettingJson {
            name: &setting.name,
            baseline: setting.baseline.as_deref(),
            candidate: setting.candidate.as_deref(),
        };
        CandidateJson {
            label: &candidate.side.label,
            runs: &candidate.side.runs,
            scenarios: scenarios(&candidate.side.scenarios),
            cell: candidate.cell.as_deref(),
            baseline_runs: &candidate.baseline.runs,
            comparable: candidate.obstacles.is_empty(),
            obstacles: &candidate.obstacles,
            remarks: candidate.remark_texts(),
            remark_kinds: candidate
                .remarks
                .iter()
                .map(|remark| remark.kind().name)
                .collect(),
            answered: candidate.answered.map(AnsweredJson::of),
            certificates: &candidate.certificates,
            settings: candidate.settings.iter().map(setting).collect(),
            decisions: candidate.decisions.as_ref().map(|decisions| &decisions.json),
            rows: candidate.rows.iter().map(RowJson::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct AnsweredJson {
    baseline: RequestShareJson,
    candidate: RequestShareJson,
}

impl AnsweredJson {
    fn of(answered: Answered) -> Self {
        let share = |RequestShare { part, whole }| RequestShareJson { part, whole };
        AnsweredJson {
            baseline: share(answered.baseline),
            candidate: share(answered.candidate),
        }
    }
}

#[derive(Serialize)]
struct RequestShareJson {
    part: u64,
    whole: u64,
}

#[derive(Serialize)]
struct SettingJson<'a> {
    name: &'a str,
    baseline: Option<&'a str>,
    candidate: Option<&'a str>,
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    statistic: String,
    unit: &'a str,
    better: &'static str,
    baseline: Option<SideValueJson>,
    candidate: Option<SideValueJson>,
    scale: &'static str,
    difference: Option<f64>,
    interval: Option<(f64, f64)>,
    relative: Option<f64>,
    relative_interval: Option<(f64, f64)>,
    paired: bool,
    p: Option<f64>,
    p_adjusted: Option<f64>,
    freedom: Option<f64>,
    client_error: Option<f64>,
    verdict: &'static str,
    remark: Option<&'a str>,
}

impl<'a> RowJson<'a> {
    fn of(row: &'a ComparisonRow) -> Self {
        RowJson {
            name: &row.name,
            statistic: row.statistic.to_string(),
            unit: &row.unit,
            better: row.better.name(),
            baseline: row.baseline.map(SideValueJson::of),
            candidate: row.candidate.map(SideValueJson::of),
            scale: row.scale.name(),
            difference: row.difference,
            interval: row.interval,
            relative: row.relative,
            relative_interval: row.relative_interval,
            paired: row.paired,
            p: row.p,
            p_adjusted: row.p_adjusted,
            freedom: row.freedom,
            client_error: row.client_error,
            verdict: row.verdict.name(),
            remark: row.remark.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct SideValueJson {
    value: f64,
    samples: u64,
    part: Option<u64>,
    whole: Option<u64>,
    approximate: bool,
    between_runs: Option<RunSpreadJson>,
}

impl SideValueJson {
    fn of(side: SideValue) -> Self {
        SideValueJson {
            value: side.value,
            samples: side.samples,
            part: side.counted.map(|counted| counted.part),
            whole: side.counted.map(|counted| counted.whole),
            approximate: side.approximate,
            between_runs: side.spread.map(RunSpreadJson::of),
        }
    }
}

#[derive(Serialize)]
struct RunSpreadJson {
    runs: usize,
    min: f64,
    max: f64,
    std: f64,
}

impl RunSpreadJson {
    fn of(spread: RunSpread) -> Self {
        RunSpreadJson {
            runs: spread.runs,
            min: spread.min,
            max: spread.max,
            std: spread.std,
        }
    }
}
