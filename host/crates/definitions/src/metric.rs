//! Lookup of metrics by name, and shorthands for their definitions.

use std::fmt;
use std::str::FromStr;

use veeksha_model::{Better, RequestRecord};

use crate::definition::{Certification, Definition};
use crate::observation::Observation;
use crate::scope::{Samples, Scope};
use crate::table::Metric;

impl Metric {
    /// Returns all metrics, in the order of files and tables.
    pub fn all() -> impl Iterator<Item = Metric> {
        Metric::ALL.iter().copied()
    }

    /// Returns the metrics whose client error is bounded by the certificate, in the order of
    /// [`Metric::all`].
    pub fn certified() -> impl Iterator<Item = Metric> {
        Metric::all().filter(|metric| matches!(metric.definition_of().certification, Certification::Own))
    }

    /// Returns the metric whose error bound covers this one: for most, itself.
    pub fn certified_as(self) -> Metric {
        match self.definition_of().certification {
            Certification::As(name) => name.parse().unwrap_or(self),
            Certification::Own | Certification::Exempt => self,
        }
    }

    /// Returns the metrics that match a condition, ranked ones first.
    fn by_rank(condition: impl Fn(&Definition) -> bool) -> Vec<Metric> {
        let mut metrics: Vec<Metric> = Metric::all()
            .filter(|metric| condition(metric.definition_of()))
            .collect();
        metrics.sort_by_key(|metric| metric.definition_of().rank.unwrap_or(u8::MAX));
        metrics
    }

    /// Returns the metrics of the summary table on the terminal, in its order.
    pub fn ranked() -> Vec<Metric> {
        Metric::by_rank(|definition| definition.rank.is_some())
    }

    /// Returns the metrics that time slices summarize, ranked ones first.
    pub fn in_slices() -> Vec<Metric> {
        Metric::by_rank(|definition| definition.in_slices)
    }

    /// Returns the metrics with per-request values on the report page, ranked ones first.
    pub fn charted() -> Vec<Metric> {
        Metric::by_rank(|definition| definition.charted)
    }

    /// Returns the name used in configuration and files.
    pub fn name(self) -> &'static str {
        self.definition_of().name
    }

    /// Returns the name used in Veeksha's `slo_results.json`.
    pub fn slo_name(self) -> &'static str {
        let definition = self.definition_of();
        definition.slo_name.unwrap_or(definition.name)
    }

    /// Returns the name used in the keys of `summary_stats.json`.
    pub fn display_name(self) -> &'static str {
        self.definition_of().display
    }

    /// Returns the name used in terminal tables and plots, in industry terms.
    pub fn title(self) -> &'static str {
        self.definition_of().title
    }

    /// Returns the abbreviation used in messages: `TTFC`.
    pub fn short_name(self) -> &'static str {
        self.definition_of().short
    }

    /// Returns the unit of the values; `1` for a ratio.
    pub fn unit(self) -> &'static str {
        self.definition_of().unit
    }

    /// Returns true if the values are shares, from 0 to 1.
    pub fn is_share(self) -> bool {
        self.definition_of().is_share
    }

    /// Returns the formula in prose, on one line.
    pub fn definition(self) -> &'static str {
        self.definition_of().definition
    }

    /// Returns the author of the definition, or the origin of the formula.
    pub fn source(self) -> &'static str {
        self.definition_of().source
    }

    /// Returns the entity that one sample describes.
    pub fn scope(self) -> Scope {
        self.definition_of().scope
    }

    /// Returns the direction in which the metric improves.
    pub fn better(self) -> Better {
        self.definition_of().better
    }

    /// Returns true if an SLO in Veeksha's format bounds the metric from above.
    pub fn lower_is_better(self) -> bool {
        self.better() != Better::Higher
    }

    /// Returns the sample of a request, in the metric's unit. `None` if the request has no sample,
    /// and for metrics that are not [`Samples::Request`].
    pub fn sample(self, observation: &Observation) -> Option<f64> {
        let Definition {
            samples,
            of_failed,
            of_cancelled,
            ..
        } = self.definition_of();
        let Samples::Request(formula) = samples else {
            return None;
        };
        let counts = match (observation.is_answered, observation.is_cancelled) {
            (true, _) => true,
            (false, true) => *of_cancelled,
            (false, false) => *of_failed,
        };
        if counts { formula(observation) } else { None }
    }

    /// Returns the sample of a request's record, as [`Metric::sample`] does. `None` for metrics
    /// that depend on settings of the run (deadlines).
    pub fn sample_of(self, record: &RequestRecord) -> Option<f64> {
        self.sample(&Observation::of(record))
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that does not match any metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown metric `{name}`; the metrics are {}", known_names())]
pub struct UnknownMetric {
    /// The name that was given.
    pub name: String,
}

fn known_names() -> String {
    Metric::all().map(Metric::name).collect::<Vec<_>>().join(", ")
}

/// Returns the canonical name for any name or alias of a metric, and other names unchanged.
pub fn canonical_name(name: &str) -> &str {
    let has_alias = |metric: &Metric| metric.definition_of().aliases.contains(&name);
    match Metric::all().find(has_alias) {
        Some(metric) => metric.name(),
        None => name,
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    /// Accepts [`Metric::name`] and the aliases of the definition.
    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        let own = canonical_name(name);
        Metric::all()
            .find(|metric| metric.name() == own)
            .ok_or_else(|| UnknownMetric {
                name: name.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_belongs_to_one_metric() {
        let mut names = BTreeSet::new();
        let mut displays = BTreeSet::new();
        for metric in Metric::all() {
            let definition = metric.definition_of();
            for name in definition.aliases.iter().copied().chain([definition.name]) {
                assert!(names.insert(name), "{name} names two metrics");
                assert_eq!(name.parse(), Ok(metric));
            }
            assert_eq!(metric.slo_name().parse(), Ok(metric));
            assert!(displays.insert(definition.display), "{}", definition.display);
        }
    }

    #[test]
    fn definitions_are_complete() {
        for metric in Metric::all() {
            let definition = metric.definition_of();
            for text in [
                definition.name,
                definition.display,
                definition.title,
                definition.short,
                definition.unit,
                definition.definition,
                definition.source,
            ] {
                assert!(!text.is_empty(), "{metric:?} lacks a text");
            }
            if let Certification::As(name) = definition.certification {
                let other = metric.certified_as();
                assert_eq!(other.name(), name);
                assert_eq!(
                    other.definition_of().certification,
                    Certification::Own,
                    "{metric}"
                );
            }
            let scope = match definition.samples {
                Samples::Request(_) => Scope::Request,
                Samples::ChunkGaps | Samples::TokenGaps => Scope::Gap,
                Samples::Session | Samples::ThinkTimes => Scope::Session,
                Samples::ToolRun(_) => Scope::ToolRun,
            };
            assert_eq!(scope, definition.scope, "{metric}");
            assert!(!definition.charted || scope == Scope::Request, "{metric}");
        }
    }

    #[test]
    fn accepts_names_of_other_tools() {
        for (name, metric) in [
            ("e2e", Metric::EndToEnd),
            ("end_to_end_latency_from_intended", Metric::EndToEndFromIntended),
            ("ttft", Metric::Ttfc),
            ("e2el", Metric::EndToEnd),
            ("inter_token_latency", Metric::Itl),
            ("inter_chunk_latency", Metric::Tbc),
        ] {
            assert_eq!(name.parse(), Ok(metric), "{name}");
        }
    }

    #[test]
    fn lists_the_metrics_for_an_unknown_name() {
        let error = "ttfz".parse::<Metric>().unwrap_err().to_string();
        assert!(
            error.starts_with("unknown metric `ttfz`; the metrics are num_prompt_tokens, "),
            "{error}"
        );
    }
}
