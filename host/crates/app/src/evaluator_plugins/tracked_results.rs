//! Results of a run for an SLO check, with a list of the unknown names that it requested: a
//! misspelled name has no samples, which must not look like a run without requests.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use veeksha_metrics::Catalogue;
use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, RunResults, WindowStats};

/// Maximum number of names in a message; a check may request thousands.
const LISTED: usize = 4;
/// Maximum number of names that are stored.
const KEPT: usize = 1000;

/// Results of a run, and the unknown names that a check requested.
pub(super) struct TrackedResults {
    results: Arc<dyn RunResults>,
    catalogue: Catalogue,
    unknown: Mutex<BTreeSet<String>>,
}

impl TrackedResults {
    pub(super) fn new(results: Arc<dyn RunResults>, catalogue: Catalogue) -> Self {
        TrackedResults {
            results,
            catalogue,
            unknown: Mutex::default(),
        }
    }

    /// Returns results without samples, for a run that has not begun.
    pub(super) fn without_samples(catalogue: Catalogue) -> Self {
        TrackedResults::new(Arc::new(NoSamples), catalogue)
    }

    /// Describes the names that are neither a metric nor a run-level metric, each with the nearest
    /// known name; `None` if there are none.
    pub(super) fn unknown_names(&self) -> Option<String> {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let listed: Vec<String> = unknown
            .iter()
            .take(LISTED)
            .map(|name| describe(name, &self.catalogue))
            .collect();
        if listed.is_empty() {
            return None;
        }
        let more = match unknown.len() - listed.len() {
            0 => String::new(),
            more if unknown.len() == KEPT => format!(", and at least {more} more such names"),
            more => format!(", and {more} more such names"),
        };
        Some(format!("it asked for {}{more}", listed.join(", ")))
    }

    fn metric<'a>(&self, name: &'a str) -> &'a str {
        // A record may have samples without a definition.
        let is_known =
            self.catalogue.get(name).is_some() || self.results.metrics().iter().any(|known| known == name);
        self.note(name, is_known)
    }

    fn note<'a>(&self, name: &'a str, is_known: bool) -> &'a str {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_known && unknown.len() < KEPT {
            unknown.insert(name.chars().take(100).collect());
        }
        name
    }
}

fn describe(name: &str, catalogue: &Catalogue) -> String {
    if catalogue.run_metric(name).is_some() {
        return format!("samples of `{name}`, which is a run metric");
    }
    if catalogue.get(name).is_some() {
        return format!("the run metric `{name}`, which is a metric");
    }
    match catalogue.nearest(name) {
        Some(nearest) => format!("`{name}`, which does not exist (did you mean `{nearest}`?)"),
        None => format!("`{name}`, which does not exist"),
    }
}

impl RunResults for TrackedResults {
    fn metrics(&self) -> Vec<String> {
        self.results.metrics()
    }

    fn run_metric(&self, name: &str) -> Option<f64> {
        let is_known = self.catalogue.run_metric(name).is_some();
        self.results.run_metric(self.note(name, is_known))
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> MetricStats {
        self.results.stats(self.metric(metric), filter)
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        self.results.percentile(self.metric(metric), percent, filter)
    }

    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats> {
        self.results.windows(self.metric(metric), filter, length)
    }
}

/// The results of a run without requests.
struct NoSamples;

impl RunResults for NoSamples {
    fn metrics(&self) -> Vec<String> {
        Vec::new()
    }

    fn run_metric(&self, _name: &str) -> Option<f64> {
        None
    }

    fn stats(&self, _metric: &str, _filter: &[Label]) -> MetricStats {
        MetricStats::default()
    }

    fn percentile(&self, _metric: &str, _percent: f64, _filter: &[Label]) -> Option<f64> {
        None
    }

    fn windows(&self, _metric: &str, _filter: &[Label], _length: Nanos) -> Vec<WindowStats> {
        Vec::new()
    }
}
