//! Comparison as strict JSON: unknown values are `null`.

use serde_json::{Value, json};

use crate::comparison::SideLabels;
use crate::comparison::{Candidate, Comparison};
use crate::fail_if::Decision;
use crate::options::Correction;
use crate::row::{Row, SideValue};
use crate::whole_run::Counted;

impl Comparison {
    /// Returns `comparison.json`. Times are in seconds; shares and relative changes are fractions.
    pub fn json(&self, decision: Option<&Decision>) -> Value {
        json!({
            "baseline": labels(&self.baseline),
            "confidence": self.options.confidence,
            "resamples": self.options.resamples,
            "seed": self.options.seed,
            "smallest_change": self.options.smallest,
            "correction": match self.options.correction {
                Correction::Holm => "holm",
                Correction::Each => "none",
            },
            "remarks": self.remarks,
            "candidates": self.candidates.iter().map(candidate).collect::<Vec<_>>(),
            "fail_if": decision.map(|decision| json!({
                "expression": decision.expression,
                "fails": decision.fails(),
                "candidates": decision.candidates.iter().map(|candidate| json!({
                    "label": candidate.label,
                    "cell": candidate.cell,
                    "outcome": candidate.outcome.name(),
                    "reasons": candidate.reasons,
                })).collect::<Vec<_>>(),
            })),
        })
    }
}

fn labels(side: &SideLabels) -> Value {
    json!({ "label": side.label, "runs": side.runs })
}

fn candidate(candidate: &Candidate) -> Value {
    let settings: Vec<Value> = candidate
        .settings
        .iter()
        .map(|setting| {
            json!({
                "name": setting.name,
                "baseline": setting.baseline,
                "candidate": setting.candidate,
            })
        })
        .collect();
    json!({
        "label": candidate.side.label,
        "runs": candidate.side.runs,
        "cell": candidate.cell,
        "baseline_runs": candidate.baseline.runs,
        "comparable": candidate.obstacles.is_empty(),
        "obstacles": candidate.obstacles,
        "remarks": candidate.remarks,
        "answered": candidate.answered.map(|answered| json!({
            "baseline": counted(answered.baseline),
            "candidate": counted(answered.candidate),
        })),
        "certificates": candidate.certificates,
        "settings": settings,
        "figures": candidate.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn counted(counted: Counted) -> Value {
    json!({ "part": counted.part, "whole": counted.whole })
}

fn row(row: &Row) -> Value {
    let interval = |interval: Option<(f64, f64)>| interval.map(|(low, high)| [low, high]);
    json!({
        "name": row.name,
        "statistic": row.statistic.to_string(),
        "unit": row.unit,
        "better": row.better.name(),
        "baseline": row.baseline.as_ref().map(side),
        "candidate": row.candidate.as_ref().map(side),
        "scale": row.scale.name(),
        "difference": row.difference,
        "interval": interval(row.interval),
        "relative": row.relative,
        "relative_interval": interval(row.relative_interval),
        "paired": row.paired,
        "p": row.p,
        "p_adjusted": row.p_adjusted,
        "freedom": row.freedom,
        "client_error": row.client_error,
        "verdict": row.verdict.name(),
        "remark": row.remark,
    })
}

fn side(side: &SideValue) -> Value {
    json!({
        "value": side.value,
        "samples": side.samples,
        "part": side.counted.map(|counted| counted.part),
        "whole": side.counted.map(|counted| counted.whole),
        "approximate": side.approximate,
        "between_runs": side.spread.map(|spread| json!({
            "runs": spread.runs,
            "min": spread.min,
            "max": spread.max,
            "std": spread.std,
        })),
    })
}
