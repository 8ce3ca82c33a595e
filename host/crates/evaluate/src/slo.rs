//! Service-level objectives: what was asked of the run, and what it did.

use veeksha_events::{Latencies, RequestRecord};
use veeksha_stats::percentile;

use crate::samples::{SortedSamples, single_value};
use crate::{Metric, Scope};

/// "The `percentile` of `metric` is at most `value`"; for a metric of which more is better (output throughput): "a share
/// `percentile` of all samples is at least `value`".
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// The user's name for it.
    pub name: Option<String>,
    /// What is bounded.
    pub metric: Metric,
    /// `0.0..=1.0`.
    pub percentile: f64,
    /// The bound, in the metric's unit.
    pub value: f64,
}

/// Equal within this relative error counts as met, as in Veeksha: a bound that is hit exactly is not missed by rounding.
const RELATIVE_EQUALITY: f64 = 1e-9;

impl Slo {
    /// `ttfc_p99`, `tbc_p99.9`: Veeksha's `slo_metric_key`.
    pub fn key(&self) -> String {
        // Ten digits hide that 0.999 * 100 is 99.90000000000001 in binary.
        let percent = (self.percentile * 100.0 * 1e10).round() / 1e10;
        format!("{}_p{percent}", self.metric.slo_name())
    }

    /// Whether an observed value keeps the bound.
    pub fn is_met_by(&self, observed: f64) -> bool {
        let close = (observed - self.value).abs() <= RELATIVE_EQUALITY * observed.abs().max(self.value.abs());
        close
            || if self.metric.lower_is_better() {
                observed < self.value
            } else {
                observed > self.value
            }
    }

    /// The percentile to read from samples in ascending order.
    fn rank(&self) -> f64 {
        if self.metric.lower_is_better() {
            self.percentile
        } else {
            1.0 - self.percentile
        }
    }

    /// Whether one answered request with something generated keeps the bound by itself: its own value, and for `tbc` the
    /// same percentile of its own gaps. A request that has no such value (one chunk has no gaps) does not break it.
    fn is_met_by_request(&self, record: &RequestRecord, latencies: &Latencies) -> bool {
        let own = if self.metric == Metric::Tbc {
            let mut gaps = latencies.tbc.clone();
            gaps.sort_unstable_by(f64::total_cmp);
            percentile(&gaps, self.rank())
        } else {
            single_value(self.metric, record, latencies)
        };
        own.is_none_or(|own| self.is_met_by(own))
    }
}

/// What one SLO came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SloResult {
    /// What was asked.
    pub slo: Slo,
    /// Whether it was met; without samples it was not.
    pub met: bool,
    /// The percentile observed; `None` without samples.
    pub observed: Option<f64>,
    /// On how many samples that rests.
    pub sample_count: usize,
}

/// What all SLOs came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SloResults {
    /// One for each SLO, in the order in which they were given.
    pub results: Vec<SloResult>,
    /// Measured requests that met every SLO of scope [`Scope::Request`] by themselves ÷ all requests that the schedule
    /// asked for ([`crate::Counts::intended`]). A failed, withdrawn, withheld or empty one is not good. `None` if there is
    /// no such SLO, or no request.
    pub goodput: Option<f64>,
    /// The good requests per second of the measured window; `None` where `goodput` or the window is.
    pub good_requests_per_second: Option<f64>,
}

impl SloResults {
    /// Whether every SLO was met; true if none was asked for.
    pub fn all_met(&self) -> bool {
        self.results.iter().all(|result| result.met)
    }
}

/// The SLOs of a run, applied request by request.
#[derive(Debug)]
pub(crate) struct Slos {
    slos: Vec<Slo>,
    good: u64,
}

impl Slos {
    pub(crate) fn new(slos: Vec<Slo>) -> Self {
        Slos { slos, good: 0 }
    }

    fn of_requests(&self) -> impl Iterator<Item = &Slo> {
        self.slos
            .iter()
            .filter(|slo| slo.metric.scope() == Scope::Request)
    }

    /// Takes an answered, measured request.
    pub(crate) fn add_request(&mut self, record: &RequestRecord, latencies: &Latencies) {
        let keeps_all = || {
            self.of_requests()
                .all(|slo| slo.is_met_by_request(record, latencies))
        };
        let good = latencies.ttfc.is_some() && keeps_all();
        self.good += u64::from(good);
    }

    pub(crate) fn results(self, samples: &SortedSamples, intended: u64, window: Option<f64>) -> SloResults {
        let has_goodput = intended > 0 && self.of_requests().next().is_some();
        let good = has_goodput.then_some(self.good as f64);
        let results = self.slos.into_iter().map(|slo| {
            let observed = samples.percentile(slo.metric, slo.rank());
            let met = observed.is_some_and(|observed| slo.is_met_by(observed));
            SloResult {
                met,
                observed,
                sample_count: samples.count(slo.metric),
                slo,
            }
        });
        SloResults {
            results: results.collect(),
            goodput: good.map(|good| good / intended as f64),
            good_requests_per_second: good.zip(window).map(|(good, window)| good / window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slo(metric: Metric, percentile: f64, value: f64) -> Slo {
        Slo {
            name: None,
            metric,
            percentile,
            value,
        }
    }

    #[test]
    fn keys_are_veekshas() {
        assert_eq!(slo(Metric::Ttfc, 0.99, 1.0).key(), "ttfc_p99");
        assert_eq!(slo(Metric::EndToEnd, 0.5, 1.0).key(), "e2e_p50");
        assert_eq!(slo(Metric::Tbc, 0.999, 1.0).key(), "tbc_p99.9");
        assert_eq!(slo(Metric::Tbc, 0.29, 1.0).key(), "tbc_p29");
    }

    #[test]
    fn a_bound_that_is_hit_is_met() {
        let bound = slo(Metric::Ttfc, 0.99, 0.3);
        assert!(bound.is_met_by(0.1 + 0.2));
        assert!(bound.is_met_by(0.3 * (1.0 + 0.9e-9)));
        assert!(!bound.is_met_by(0.3 * (1.0 + 1.1e-9)));
        assert!(bound.is_met_by(0.0));
    }

    #[test]
    fn throughput_is_bounded_from_below() {
        let bound = slo(Metric::OutputThroughput, 0.9, 20.0);
        assert!(bound.is_met_by(21.0) && bound.is_met_by(20.0) && !bound.is_met_by(19.0));
        // Ninety percent of the samples reach the tenth percentile.
        assert!((bound.rank() - 0.1).abs() < 1e-12);
    }
}
