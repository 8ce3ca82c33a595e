//! INVALID metrics of a side, which prove nothing even without a comparison.

use crate::comparable::because;
use crate::input::{CompareSide, Validity};
use crate::options::Invalid;

/// INVALID metrics of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The metric; `None` for all metrics of a run.
    pub metric: Option<String>,
    /// Affected runs and reasons.
    pub why: String,
}

impl Untrusted {
    /// Returns those of a side, unless they are to be judged anyway.
    pub(crate) fn of(side: &CompareSide, invalid: Invalid) -> Vec<Untrusted> {
        if invalid == Invalid::Judged {
            return Vec::new();
        }
        let mut found = Vec::new();
        for run in &side.runs {
            let runs = std::iter::once((None, &run.trust));
            let metrics = run
                .metrics
                .iter()
                .map(|metric| (Some(&metric.name), &metric.trust));
            for (metric, trust) in runs.chain(metrics) {
                if trust.validity == Validity::Invalid {
                    let whose = match metric {
                        Some(name) => format!("{name} of {}", run.label),
                        None => run.label.clone(),
                    };
                    found.push(Untrusted {
                        metric: metric.cloned(),
                        why: format!("{whose} is INVALID{}", because(trust)),
                    });
                }
            }
        }
        found
    }

    /// Returns true if a metric or run-level value of this name is among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.metric.as_ref().is_none_or(|metric| metric == name)
    }
}
