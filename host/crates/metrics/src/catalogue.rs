//! Everything that can be measured in a run, by name: built-in metrics, metrics of plugins, figures of the whole run.

use std::collections::BTreeMap;

use veeksha_definitions::{Metric, Scope, canonical_name};
use veeksha_model::{Better, MetricDefinition};
use veeksha_slo::Range;

use crate::run_metric::{RunMetric, RunMetricInfo};

/// What is to be known of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Its name in configuration, files and objectives.
    pub name: String,
    /// Its name for people, and in the keys of `summary_stats.json`; a plugin's metric has only its name.
    pub display: String,
    /// The unit of its values; `1` for a ratio.
    pub unit: String,
    /// Which way it is good.
    pub better: Better,
    /// What one sample describes. A plugin's metric is taken for one of requests.
    pub scope: Scope,
    /// One line: what it is and how it is computed.
    pub definition: String,
    /// Whose definition it is, or where its formula comes from; of a plugin's metric, the plugin.
    pub source: String,
    /// Which one it is, if it is built in.
    pub metric: Option<Metric>,
    /// The plugin that measures it, if it is not.
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

    /// The values that the metric can have. A plugin's metric can have any.
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

/// Why a metric cannot be defined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The name is none.
    #[error(
        "`{name}`, a metric of the plugin {plugin}, is no name: use lower-case letters, digits and `_`, and begin with a letter"
    )]
    IllFormed {
        /// The name.
        name: String,
        /// The plugin.
        plugin: String,
    },
    /// The name is a built-in metric's or figure's.
    #[error(
        "the plugin {plugin} measures `{name}`, which is a built-in {kind}; give its metric another name"
    )]
    BuiltIn {
        /// The name.
        name: String,
        /// The plugin.
        plugin: String,
        /// `metric` or `figure`.
        kind: &'static str,
    },
    /// The name is another plugin's, or the same plugin's with another meaning.
    #[error("the plugins {plugin} and {other} both measure `{name}`; give one of the metrics another name")]
    Taken {
        /// The name.
        name: String,
        /// The plugin that came second.
        plugin: String,
        /// The plugin that came first.
        other: String,
    },
}

/// The metrics and figures of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    metrics: Vec<MetricInfo>,
    /// Names that exist, but not in this run, and why.
    absent: BTreeMap<String, String>,
}

impl Catalogue {
    /// What is there without any plugin.
    pub fn built_in() -> Self {
        Catalogue {
            metrics: Metric::all().map(MetricInfo::built_in).collect(),
            absent: BTreeMap::new(),
        }
    }

    /// Adds a plugin's metric. The same definition twice counts once.
    ///
    /// # Errors
    /// If the name is ill-formed, or a built-in metric, a figure or another plugin's metric has it.
    pub fn define(&mut self, definition: MetricDefinition) -> Result<(), CatalogueError> {
        let MetricDefinition { name, plugin, .. } = &definition;
        let (name, plugin) = (name.clone(), plugin.clone());
        if !is_name(&name) {
            return Err(CatalogueError::IllFormed { name, plugin });
        }
        if RunMetric::of_name(&name).is_some() {
            let kind = "figure";
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

    /// Says that a metric or figure cannot exist in this run, and why (`the answers are not streamed`): an objective on it is refused
    /// before the run starts.
    pub fn exclude(&mut self, name: &str, why: impl Into<String>) {
        self.absent.insert(canonical_name(name).to_owned(), why.into());
    }

    /// Why a metric or figure cannot exist in this run, if it cannot.
    pub fn excluded(&self, name: &str) -> Option<&str> {
        self.absent.get(canonical_name(name)).map(String::as_str)
    }

    /// The metric of a name; also by the further names `e2e` and `end_to_end_latency_from_intended`.
    pub fn get(&self, name: &str) -> Option<&MetricInfo> {
        let own = canonical_name(name);
        self.metrics.iter().find(|info| info.name == own)
    }

    /// The figure of the whole run of a name.
    pub fn figure(&self, name: &str) -> Option<&'static RunMetricInfo> {
        RunMetric::of_name(name).map(RunMetric::info)
    }

    /// All metrics: the built-in ones in the order of the files, then those of plugins in the order in which they were defined.
    pub fn iter(&self) -> impl Iterator<Item = &MetricInfo> {
        self.metrics.iter()
    }

    /// All figures of the whole run.
    pub fn figures(&self) -> impl Iterator<Item = &'static RunMetricInfo> {
        RunMetric::all().map(RunMetric::info)
    }

    /// The name of the metric or figure that a mistyped one probably means.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let mut names: Vec<&str> = self.metrics.iter().map(|info| info.name.as_str()).collect();
        RunMetric::all().for_each(|figure| names.push(figure.name()));
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
            summary: "what it says".into(),
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
        assert!(text(catalogue.define(definition("goodput", "p"))).contains("a built-in figure"));
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
