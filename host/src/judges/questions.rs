//! What a check asks of a run's results: a slip in a name gives no samples, and must not look like a quiet run.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use veeksha_metrics::{Catalogue, RunSamples};
use veeksha_model::{Label, Nanos};
use veeksha_ports::{RunResults, Stats, WindowStats};

/// Names that are told; a check may ask for thousands.
const TOLD: usize = 4;
/// Names that are kept.
const KEPT: usize = 1000;

/// The results of a run, and which names a check asked for that are none.
pub(super) struct Questions {
    samples: Arc<RunSamples>,
    unknown: Mutex<BTreeSet<String>>,
}

impl Questions {
    pub(super) fn about(samples: Arc<RunSamples>) -> Self {
        Questions {
            samples,
            unknown: Mutex::default(),
        }
    }

    /// Which names are neither a metric nor a figure, in words, each with the nearest one; `None` if all are.
    pub(super) fn slips(&self) -> Option<String> {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let catalogue = self.samples.catalogue();
        let told: Vec<String> = unknown
            .iter()
            .take(TOLD)
            .map(|name| slip(name, catalogue))
            .collect();
        if told.is_empty() {
            return None;
        }
        let more = match unknown.len() - told.len() {
            0 => String::new(),
            more if unknown.len() == KEPT => format!(", and at least {more} more such names"),
            more => format!(", and {more} more such names"),
        };
        Some(format!("it asked for {}{more}", told.join(", ")))
    }

    fn metric<'a>(&self, name: &'a str) -> &'a str {
        // A record may have samples without a definition.
        let is_known = self.samples.catalogue().get(name).is_some() || self.samples.summary(name).is_some();
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

fn slip(name: &str, catalogue: &Catalogue) -> String {
    if catalogue.figure(name).is_some() {
        return format!("samples of `{name}`, which is a figure of the whole run");
    }
    if catalogue.get(name).is_some() {
        return format!("the figure `{name}`, which is a metric");
    }
    match catalogue.nearest(name) {
        Some(nearest) => format!("`{name}`, which does not exist (did you mean `{nearest}`?)"),
        None => format!("`{name}`, which does not exist"),
    }
}

impl RunResults for Questions {
    fn metrics(&self) -> Vec<String> {
        self.samples.metrics()
    }

    fn figure(&self, name: &str) -> Option<f64> {
        let is_known = self.samples.catalogue().figure(name).is_some();
        self.samples.figure(self.note(name, is_known))
    }

    fn stats(&self, metric: &str, filter: &[Label]) -> Stats {
        self.samples.stats(self.metric(metric), filter)
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[Label]) -> Option<f64> {
        self.samples.percentile(self.metric(metric), percent, filter)
    }

    fn windows(&self, metric: &str, filter: &[Label], length: Nanos) -> Vec<WindowStats> {
        self.samples.windows(self.metric(metric), filter, length)
    }
}
