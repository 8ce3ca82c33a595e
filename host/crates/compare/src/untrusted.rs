//! Figures of a side that its certificates call INVALID: what they are proves nothing, also where nothing is compared with them.

use crate::comparable::because;
use crate::input::{Side, Validity};
use crate::options::Invalid;

/// Figures that are INVALID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The metric that they are of; `None`: all figures of a run.
    pub metric: Option<String>,
    /// Whose and why, in words.
    pub why: String,
}

impl Untrusted {
    /// Those of a side, if they are not to be judged all the same.
    pub(crate) fn of(side: &Side, invalid: Invalid) -> Vec<Untrusted> {
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

    /// Whether a metric's or a whole run's figures of this name are among them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.metric.as_ref().is_none_or(|metric| metric == name)
    }
}
