//! All metrics of a run by name: built-in metrics, plugin metrics, and run-level aggregates.

use std::collections::BTreeMap;

use veeksha_definitions::{Metric, Scope, canonical_name};
use veeksha_model::{Better, MetricDefinition};
use veeksha_slo::Range;

use crate::run_metric::{RunMetric, RunMetricInfo};

/// The description of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// The name in configuration, files and objectives.
    pub name: String,
    /// The display name, also in the keys of `summary_stats.json`; a plugin metric uses its name.
    pub display: String,
    /// The unit of its values; `1` for a ratio.
    pub unit: String,
    /// The direction in which the metric improves.
    pub better: Better,
    /// The entity that one sample describes. Plugin metrics are treated as request metrics.
    pub scope: Scope,
    /// One line: the meaning and the formula.
    pub definition: String,
    /// The author of the definition or the origin of the formula; for a plugin metric, the plugin.
    pub source: String,
    /// The built-in metric, if it is one.
    pub metric: Option<Metric>,
    /// The plugin that measures it, if it is not built in.
    pub plugin: Option<String>,
}

impl MetricInfo {
    fn built_in(metric: Metric) -> Self {
        MetricInfo {
            name: metric.name().to_owned(),
            display: metric.display_name().to_owned(),
            unit: metric.unit().to_owned(),
            better: metric.better(),
            scope: metric.scope(),
            definition: metric.definition().to_owned(),
            source: metric.source().to_owned(),
            metric: Some(metric),
            plugin: None,
        }
    }

    /// Returns true if the values are shares, from 0 to 1. A plugin metric without a unit is a
    /// plain ratio.
    pub fn is_share(&self) -> bool {
        self.metric.is_some_and(Metric::is_share)
    }

    /// Returns the range of possible values. The range of a plugin metric is unbounded.
    pub fn range(&self) -> Range {
        match self.metric {
            None => Range::Any,
            Some(metric) if metric.is_share() => Range::Share,
            Some(_) => Range::NotNegative,
        }
    }

    fn of_plugin(definition: MetricDefinition) -> Self {
        MetricInfo {
            display: definition.name.clone(),
            name: definition.name,
            unit: definition.unit,
            better: definition.better,
            scope: Scope::Request,
            definition: definition.summary,
            source: format!("the plugin {}", definition.plugin),
            metric: None,
            plugin: Some(definition.plugin),
        }
    }
}

/// The reasons why a metric cannot be defined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The name is not valid.
    #[error(
        "`{name}`, a metric of the plugin {plugin}, is not a valid name: use lower-case letters, digits and `_`, and begin with a letter"
    )]
    IllFormed {
        /// The name.
        name: String,
        /// The plugin.
        plugin: String,
    },
    /// The name belongs to a built-in metric or aggregate.
    #[error(
        "the plugin {plugin} measures `{name}`, which is a built-in {kind}; give its metric another name"
    )]
    BuiltIn {
        /// The name.
        name: String,
        /// The plugin.
        plugin: String,
        /// `metric` or `run metric`.
        kind: &'static str,
    },
    /// The name belongs to another plugin, or to the same plugin with a different definition.
    #[error("the plugins {plugin} and {other} both measure `{name}`; give one of the metrics another name")]
    Taken {
        /// The name.
        name: String,
        /// The plugin that was rejected.
        plugin: String,
        /// The plugin that defined the name first.
        other: String,
    },
}

/// The metrics and aggregates of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    metrics: Vec<MetricInfo>,
    /// Names that are unavailable in this run, with the reason.
    absent: BTreeMap<String, String>,
}

impl Catalogue {
    /// Returns the catalogue without plugins.
    pub fn built_in() -> Self {
        Catalogue {
            metrics: Metric::all().map(MetricInfo::built_in).collect(),
            absent: BTreeMap::new(),
        }
    }

    /// Adds a plugin metric. Adding the same definition again has no effect.
    ///
    /// # Errors
    /// Returns an error if the name is ill-formed, or if a built-in metric, an aggregate or another
    /// plugin's metric has it.
    pub fn define(&mut self, definition: MetricDefinition) -> Result<(), CatalogueError> {
        let MetricDefinition { name, plugin, .. } = &definition;
        let (name, plugin) = (name.clone(), plugin.clone());
        if !is_name(&name) {
            return Err(CatalogueError::IllFormed { name, plugin });
        }
        if RunMetric::of_name(&name).is_some() {
            let kind = "run metric";
            return Err(CatalogueError::BuiltIn { name, plugin, kind });
        }
        let info = MetricInfo::of_plugin(definition);
        match self.get(&name) {
            None => self.metrics.push(info),
            Some(known) if *known == info => {}
            Some(known) => {
                return Err(match &known.plugin {
                    None => CatalogueError::BuiltIn {
                        name,
                        plugin,
                        kind: "metric",
                    },
                    Some(other) => CatalogueError::Taken {
                        other: other.clone(),
                        name,
                        plugin,
                    },
                });
            }
        }
        Ok(())
    }

    /// Marks a metric or aggregate as unavailable in this run, with the reason (`the answers are
    /// not streamed`). An objective on it is rejected before the run starts.
    pub fn exclude(&mut self, name: &str, why: impl Into<String>) {
        self.absent.insert(canonical_name(name).to_owned(), why.into());
    }

    /// Returns the reason why a metric or aggregate is unavailable in this run, if it is.
    pub fn excluded(&self, name: &str) -> Option<&str> {
        self.absent.get(canonical_name(name)).map(String::as_str)
    }

    /// Returns the metric with this name. Also accepts the aliases `e2e` and
    /// `end_to_end_latency_from_intended`.
    pub fn get(&self, name: &str) -> Option<&MetricInfo> {
        let own = canonical_name(name);
        self.metrics.iter().find(|info| info.name == own)
    }

    /// Returns the run-level aggregate with this name.
    pub fn run_metric(&self, name: &str) -> Option<&'static RunMetricInfo> {
        RunMetric::of_name(name).map(RunMetric::info)
    }

    /// Returns all metrics: built-in ones in the order of the files, then plugin metrics in the
    /// order of their definitions.
    pub fn iter(&self) -> impl Iterator<Item = &MetricInfo> {
        self.metrics.iter()
    }

    /// Returns all run-level aggregates.
    pub fn run_metrics(&self) -> impl Iterator<Item = &'static RunMetricInfo> {
        RunMetric::all().map(RunMetric::info)
    }

    /// Returns the metric or aggregate name that is closest to a mistyped one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let mut names: Vec<&str> = self.metrics.iter().map(|info| info.name.as_str()).collect();
        RunMetric::all().for_each(|run_metric| names.push(run_metric.name()));
        Metric::all().for_each(|metric| names.extend(metric.definition_of().aliases));
        veeksha_slo::nearest(name, names)
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Catalogue::built_in()
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, plugin: &str) -> MetricDefinition {
        MetricDefinition {
            name: name.into(),
            unit: "1".into(),
            better: Better::Higher,
            summary: "a metric of the test".into(),
            plugin: plugin.into(),
        }
    }

    #[test]
    fn a_plugins_metric_stands_beside_the_built_in_ones() {
        let mut catalogue = Catalogue::built_in();
        assert_eq!(catalogue.define(definition("smoothness", "smooth")), Ok(()));
        assert_eq!(catalogue.define(definition("smoothness", "smooth")), Ok(()));
        let info = catalogue.get("smoothness").unwrap();
        assert_eq!((info.plugin.as_deref(), info.metric), (Some("smooth"), None));
        assert_eq!(catalogue.iter().filter(|info| info.plugin.is_some()).count(), 1);
        assert_eq!(catalogue.get("e2e").unwrap().metric, Some(Metric::EndToEnd));
    }

    #[test]
    fn names_are_checked_and_taken_once() {
        let mut catalogue = Catalogue::built_in();
        for name in ["", "Fluid", "9lives", "a-b", "größe"] {
            let refused = catalogue.define(definition(name, "p"));
            assert!(matches!(refused, Err(CatalogueError::IllFormed { .. })), "{name}");
        }
        let text = |result: Result<(), CatalogueError>| result.unwrap_err().to_string();
        assert_eq!(
            text(catalogue.define(definition("ttfc", "p"))),
            "the plugin p measures `ttfc`, which is a built-in metric; give its metric another name"
        );
        assert!(text(catalogue.define(definition("goodput", "p"))).contains("a built-in run metric"));
        assert!(text(catalogue.define(definition("e2e", "p"))).contains("a built-in metric"));
        catalogue.define(definition("mine", "p")).unwrap();
        assert_eq!(
            text(catalogue.define(definition("mine", "q"))),
            "the plugins q and p both measure `mine`; give one of the metrics another name"
        );
    }

    #[test]
    fn a_slip_finds_its_name() {
        let mut catalogue = Catalogue::built_in();
        catalogue.define(definition("smoothness", "p")).unwrap();
        for (typed, meant) in [
            ("ttcf", Some("ttfc")),
            ("smothness", Some("smoothness")),
            ("errorrate", Some("error_rate")),
            ("qwertz", None),
        ] {
            assert_eq!(catalogue.nearest(typed), meant, "{typed}");
        }
    }

    #[test]
    fn what_cannot_exist_is_known_by_any_of_its_names() {
        let mut catalogue = Catalogue::built_in();
        catalogue.exclude("e2e", "nothing ends");
        assert_eq!(catalogue.excluded("end_to_end_latency"), Some("nothing ends"));
        assert_eq!(catalogue.excluded("ttfc"), None);
    }
}
