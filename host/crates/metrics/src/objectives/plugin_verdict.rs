//! Plugins' verdicts on a run, with the units of their numbers.

use serde_json::{Value, json};
use veeksha_ports::SloVerdict;
use veeksha_slo::{Aggregate, Objective, Quantity};

use crate::catalogue::Catalogue;

/// A plugin's verdict on the run.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginVerdict {
    /// The plugin.
    pub plugin: String,
    /// The verdict.
    pub verdict: SloVerdict,
    /// The unit of bound and observed value, if the verdict's name is an objective's target
    /// (`p99(ttfc{tier="gold"})`, `error_rate`): a verdict itself has no unit.
    pub unit: Option<String>,
}

impl PluginVerdict {
    pub(crate) fn new(plugin: &str, verdict: SloVerdict, catalogue: &Catalogue) -> Self {
        PluginVerdict {
            plugin: plugin.to_owned(),
            unit: unit_of(&verdict.name, catalogue),
            verdict,
        }
    }

    pub(crate) fn json(&self) -> Value {
        let verdict = &self.verdict;
        json!({
            "met": verdict.met,
            "slo_metric_key": verdict.name,
            "observed_value": verdict.observed,
            "threshold": verdict.threshold,
            "percentile": Value::Null,
            "metric": verdict.name,
            "name": verdict.name,
            // A verdict does not contain the direction of its bound.
            "lower_is_better": Value::Null,
            "sample_count": Value::Null,
            "objective": Value::Null,
            "unit": self.unit,
            "too_few_samples": false,
            "worst_window": Value::Null,
            "plugin": self.plugin,
            "detail": verdict.detail,
        })
    }
}

/// Returns the unit of a target in the syntax of objectives; `None` for any other text.
fn unit_of(name: &str, catalogue: &Catalogue) -> Option<String> {
    match Objective::parse(&format!("{name} < 0")).ok()?.quantity {
        Quantity::RunMetric(name) => {
            let run_metric = catalogue.run_metric(&name).map(|info| info.unit.to_owned());
            run_metric.or_else(|| catalogue.get(&name).map(|info| info.unit.clone()))
        }
        Quantity::Samples {
            aggregate: Aggregate::Count,
            ..
        } => Some("samples".to_owned()),
        Quantity::Samples { metric, .. } => catalogue.get(&metric).map(|info| info.unit.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str) -> PluginVerdict {
        let verdict = SloVerdict {
            name: name.to_owned(),
            met: true,
            observed: None,
            threshold: 0.5,
            detail: String::new(),
        };
        PluginVerdict::new("judge", verdict, &Catalogue::built_in())
    }

    #[test]
    fn a_name_that_is_a_quantity_has_its_unit() {
        let unit = |name: &str| verdict(name).unit;
        assert_eq!(unit("p99(ttfc{tier=\"gold\"})").as_deref(), Some("s"));
        assert_eq!(unit("ttfc").as_deref(), Some("s"));
        assert_eq!(unit("count(ttfc)").as_deref(), Some("samples"));
        assert_eq!(unit("error_rate").as_deref(), Some("1"));
        assert_eq!(unit("hardly any stalls"), None);
        assert_eq!(unit("p99(qwertz)"), None);
    }
}
