//! Plugins that judge a run by its results.
//!
//! Common objectives need no plugin (`p99(ttfc) < 500ms`). A plugin covers what such a line
//! cannot: here, that no ten seconds of the run were much worse than the run.
//!
//! ```
//! use std::time::Duration;
//!
//! use veeksha_plugin::{Error, Plugin};
//! use veeksha_plugin::slo::{Results, SloCheck, Verdict};
//!
//! struct Steady;
//!
//! impl Plugin for Steady {
//!     type Config = ();
//!     const NAME: &'static str = "steady";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "no ten seconds are twice as slow as the run";
//! }
//!
//! impl SloCheck for Steady {
//!     fn open(_config: ()) -> Result<Self, Error> {
//!         Ok(Steady)
//!     }
//!
//!     fn check(&self, results: &dyn Results) -> Result<Vec<Verdict>, Error> {
//!         let allowed = 2.0 * results.stats("ttfc", &[]).p50;
//!         let windows = results.windows("ttfc", &[], Duration::from_secs(10));
//!         let measured = windows.iter().filter(|w| w.stats.count > 0);
//!         let worst = measured.map(|w| w.stats.p50).reduce(f64::max);
//!         Ok(vec![Verdict::at_most("steady", worst, allowed)])
//!     }
//! }
//!
//! veeksha_plugin::export_slo_check!(Steady);
//! ```

use std::marker::PhantomData;
use std::time::Duration;

use crate::bindings::slo_check::exports::veeksha::plugin::slo_check as contract;
use crate::bindings::slo_check::veeksha::plugin::results as host;
use crate::frame;
use crate::plugin::Plugin;
use crate::types::Error;

pub use contract::Verdict;
pub use host::{Stats, Window};

/// Judges runs. Its verdicts must depend on (configuration, results) alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an SLO check",
    label = "does not implement `SloCheck`",
    note = "write `impl SloCheck for {Self} {{ .. }}`; the documentation of `SloCheck` has a whole one"
)]
pub trait SloCheck: Plugin {
    /// Opens the check.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Its verdicts: at least one, each with a distinct name.
    ///
    /// # Errors
    /// It cannot judge this run.
    fn check(&self, results: &dyn Results) -> Result<Vec<Verdict>, Error>;
}

/// The results of a run. A `filter` takes the samples of requests that have all these labels, each
/// a name and a value; an empty one takes all. The host has the real ones; a test may implement its
/// own.
pub trait Results {
    /// The names of all metrics that have samples.
    fn metrics(&self) -> Vec<String>;

    /// An aggregate of the whole run: `error_rate`, `goodput`, `requests_per_second`, ...
    fn aggregate(&self, name: &str) -> Option<f64>;

    /// The statistics of a metric; `count` 0, and all others too, where it has no samples.
    fn stats(&self, metric: &str, filter: &[(&str, &str)]) -> Stats;

    /// Any percentile, from 0 to 100; `None` where there are no samples.
    fn percentile(&self, metric: &str, percent: f64, filter: &[(&str, &str)]) -> Option<f64>;

    /// The statistics of a metric in windows of this length, more than 0, from the first intended
    /// instant on. Where there would be more than 100,000 windows, those without samples are left
    /// out.
    fn windows(&self, metric: &str, filter: &[(&str, &str)], length: Duration) -> Vec<Window>;
}

impl Verdict {
    /// That something observed is at most `threshold`. Not met where there was nothing to observe.
    pub fn at_most(name: impl Into<String>, observed: Option<f64>, threshold: f64) -> Self {
        Verdict {
            name: name.into(),
            met: observed.is_some_and(|observed| observed <= threshold),
            observed,
            threshold,
            detail: String::new(),
        }
    }

    /// As [`at_most`](Self::at_most), that it is at least `threshold`.
    pub fn at_least(name: impl Into<String>, observed: Option<f64>, threshold: f64) -> Self {
        Verdict {
            met: observed.is_some_and(|observed| observed >= threshold),
            ..Verdict::at_most(name, observed, threshold)
        }
    }

    /// Adds one line for a person.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// A filter as the contract has it.
fn labels(filter: &[(&str, &str)]) -> Vec<(String, String)> {
    filter
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The host's results.
struct OfHost(host::Results);

impl Results for OfHost {
    fn metrics(&self) -> Vec<String> {
        self.0.metrics()
    }

    fn aggregate(&self, name: &str) -> Option<f64> {
        self.0.aggregate(name)
    }

    fn stats(&self, metric: &str, filter: &[(&str, &str)]) -> Stats {
        self.0.stats(metric, &labels(filter))
    }

    fn percentile(&self, metric: &str, percent: f64, filter: &[(&str, &str)]) -> Option<f64> {
        self.0.percentile(metric, percent, &labels(filter))
    }

    fn windows(&self, metric: &str, filter: &[(&str, &str)], length: Duration) -> Vec<Window> {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.0.windows(metric, &labels(filter), nanos)
    }
}

/// A check as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open check as the contract sees it.
pub struct Open<T>(T);

impl<T: SloCheck> contract::Guest for Exported<T> {
    type Checker = Open<T>;

    frame::describe!(T);
}

impl<T: SloCheck> contract::GuestChecker for Open<T> {
    fn open(config: String) -> Result<contract::Checker, Error> {
        Ok(contract::Checker::new(Open(frame::open(&config, T::open)?)))
    }

    fn check(&self, results: host::Results) -> Result<Vec<Verdict>, Error> {
        self.0.check(&OfHost(results))
    }
}

/// Makes a type that is an [`SloCheck`](crate::slo::SloCheck) the SLO check of this component. One
/// component may also export a metric and a request check.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_slo_check {
    ($check:ty) => {
        $crate::__export!($check, $crate::slo::SloCheck, ExportedSloCheck, slo_check);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_met_on_its_own_side_and_at_the_bound() {
        let met = |verdict: Verdict| verdict.met;
        assert!(met(Verdict::at_most("a", Some(1.0), 1.0)));
        assert!(!met(Verdict::at_most("a", Some(1.1), 1.0)));
        assert!(met(Verdict::at_least("a", Some(1.0), 1.0)));
        assert!(!met(Verdict::at_least("a", Some(0.9), 1.0)));
        assert!(
            !met(Verdict::at_most("a", None, 1.0)),
            "nothing observed is nothing met"
        );
        assert!(!met(Verdict::at_least("a", None, -1.0)));
        assert_eq!(Verdict::at_least("a", None, 1.0).detail("why").detail, "why");
    }
}
