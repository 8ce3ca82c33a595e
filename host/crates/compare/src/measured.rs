//! Values of one side with their errors, run by run.

use veeksha_model::Better;
use veeksha_slo::Aggregate;
use veeksha_stats::RandomStream;

use crate::bootstrap::{Chance, chance};
use crate::effect::{ComparisonScale, Floor, Noise, Variance};
use crate::input::{ClientError, MetricData, RunData, RunValueData, Validity, ValueParts};
use crate::lack::Lack;
use crate::options::CompareOptions;
use crate::request_share::RequestShare;
use crate::series::Series;
use crate::statistic::{ENOUGH, Statistic, USUAL, enough, resampled, value_of};
use crate::whole_run::{chance_of, counted};

/// Population that a value covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Population {
    /// Answered requests only.
    Answers,
    /// An amount, which grows with the requested load.
    Amount,
    /// All requests, or the run.
    Run,
}

impl Population {
    fn of(run_metric: &RunValueData) -> Population {
        match run_metric.parts {
            _ if run_metric.grows_with_load => Population::Amount,
            Some(ValueParts::Mean(_)) => Population::Answers,
            _ => Population::Run,
        }
    }
}

/// A value of one side.
#[derive(Clone, Debug)]
pub(crate) struct SideMeasurement {
    pub(crate) name: String,
    pub(crate) statistic: Statistic,
    pub(crate) unit: String,
    pub(crate) is_share: bool,
    pub(crate) better: Better,
    pub(crate) subject: Population,
    /// One value for each run that has it.
    pub(crate) values: Vec<f64>,
    /// Samples over all runs; for a run-level value, the number of runs.
    pub(crate) samples: u64,
    pub(crate) approximate: bool,
    pub(crate) client_error: Option<ClientError>,
    /// Error of each run's value, estimated within the run. Unknown for several runs with different
    /// values, whose differences show it; shares of requests always have it.
    pub(crate) own: Vec<Result<Chance, Lack>>,
    /// For a share of requests: counts over all runs.
    pub(crate) counted: Option<RequestShare>,
    /// Runs whose certificates call the metric INVALID.
    pub(crate) invalid_in: Vec<String>,
    /// Reason why the value is not judged.
    pub(crate) not_judged: Option<String>,
    /// True if it contains the prefill of prompts.
    pub(crate) contains_prefill: bool,
}

impl SideMeasurement {
    /// Returns the random stream of this value: the same for every run, so that A against B mirrors
    /// B against A.
    pub(crate) fn stream(&self, options: &CompareOptions) -> RandomStream {
        RandomStream::new(
            options.seed,
            0,
            &format!("compare/{}/{}", self.name, self.statistic),
        )
    }

    /// Returns the error of the mean of all runs, estimated within them.
    pub(crate) fn within(&self, scale: ComparisonScale) -> Result<Variance, Lack> {
        let runs = self.own.len() as f64;
        let mut sum: Option<Variance> = None;
        let mut lack = (runs == 0.0).then_some(Lack::Several);
        for own in &self.own {
            match own.and_then(|own| own.on(scale).ok_or(Lack::NoError)) {
                Ok(own) => sum = Some(sum.map_or(own, |sum| sum.with(own))),
                Err(why) => lack = Some(why),
            }
        }
        let of_mean = |sum: Variance| Variance {
            variance: sum.variance / runs.powi(2),
            ..sum
        };
        let resampled = sum.filter(|_| lack.is_none()).map(of_mean);
        let least = self.counted.and_then(RequestShare::variance);
        match (least, resampled) {
            (Some(least), Some(resampled)) if resampled.variance > least.variance => Ok(resampled),
            (Some(least), _) => Ok(least),
            (None, resampled) => resampled.ok_or(lack.unwrap_or(Lack::NoError)),
        }
    }

    /// Returns the sources of the error of the side's value.
    pub(crate) fn noise(&self, scale: ComparisonScale) -> Noise<'_> {
        Noise {
            values: &self.values,
            within: self.within(scale).ok(),
            floor: match self.counted {
                Some(_) => Floor::Always,
                None => Floor::WhereRunsAgree,
            },
            singly: self.counted.and_then(RequestShare::variance),
        }
    }

    /// Returns true if the errors of its runs exist on a scale.
    pub(crate) fn has(&self, scale: ComparisonScale) -> bool {
        let mut known = self.own.iter().flatten();
        known.all(|own| own.on(scale).is_some())
    }

    /// Returns true if all runs have the same value.
    fn agrees(&self) -> bool {
        let first = self.values.first().copied().unwrap_or_default();
        let mut others = self.values.iter();
        others.all(|value| ComparisonScale::Difference.step(first, *value) == 0.0)
    }

    pub(crate) fn is(&self, name: &str, statistic: Statistic) -> bool {
        self.name == name && self.statistic == statistic
    }
}

/// Returns all values of the runs of a side: metrics first, in the given order. `asked` are
/// additional statistics.
pub(crate) fn measure(
    runs: &[&RunData],
    asked: &[(String, Statistic)],
    options: &CompareOptions,
) -> Vec<SideMeasurement> {
    let mut all = Vec::new();
    for (name, first) in metrics(runs) {
        let of_this = asked.iter().filter(|(metric, _)| *metric == name);
        let mut statistics: Vec<Aggregate> = Vec::new();
        for statistic in USUAL.into_iter().chain(of_this.map(|(_, statistic)| *statistic)) {
            if let Statistic::OfSamples(aggregate) = statistic
                && !statistics.contains(&aggregate)
            {
                statistics.push(aggregate);
            }
        }
        all.extend(measure_metric(runs, first, &statistics, options));
    }
    all.extend(measure_run_values(runs, options));
    all
}

/// Returns the values of whole runs.
fn measure_run_values(runs: &[&RunData], options: &CompareOptions) -> Vec<SideMeasurement> {
    let mut run_metrics: Vec<SideMeasurement> = Vec::new();
    let mut parts: Vec<Vec<&RunValueData>> = Vec::new();
    for run_metric in runs.iter().flat_map(|run| &run.run_metrics) {
        if !run_metric.value.is_finite() {
            continue;
        }
        match run_metrics.iter().position(|known| known.name == run_metric.name) {
            Some(place) => {
                run_metrics[place].values.push(run_metric.value);
                parts[place].push(run_metric);
            }
            None => {
                run_metrics.push(SideMeasurement {
                    name: run_metric.name.clone(),
                    statistic: Statistic::Value,
                    unit: run_metric.unit.clone(),
                    is_share: run_metric.is_share(),
                    better: run_metric.better,
                    subject: Population::of(run_metric),
                    values: vec![run_metric.value],
                    samples: 0,
                    approximate: false,
                    client_error: None,
                    own: Vec::new(),
                    counted: None,
                    invalid_in: Vec::new(),
                    not_judged: None,
                    contains_prefill: false,
                });
                parts.push(vec![run_metric]);
            }
        }
    }
    for (measured, of_runs) in run_metrics.iter_mut().zip(&parts) {
        add_own_errors(measured, of_runs, options);
    }
    run_metrics
}

/// Derives the error of a run-level value from its contributions.
fn add_own_errors(measured: &mut SideMeasurement, of_runs: &[&RunValueData], options: &CompareOptions) {
    let counts: Option<Vec<RequestShare>> = of_runs
        .iter()
        .map(|run_metric| run_metric.parts.as_ref().and_then(counted))
        .collect();
    measured.counted = counts.and_then(|counts| counts.into_iter().reduce(RequestShare::and));
    measured.samples = measured
        .counted
        .map_or(of_runs.len() as u64, |counted| counted.whole);
    if measured.counted.is_some() || measured.agrees() {
        let stream = measured.stream(options);
        let own =
            |run_metric: &&RunValueData| chance_of(run_metric.parts.as_ref(), options.resamples, stream);
        measured.own = of_runs.iter().map(own).collect();
    }
}

/// Returns the names of all metrics, each with its first occurrence.
fn metrics<'a>(runs: &[&'a RunData]) -> Vec<(&'a str, &'a MetricData)> {
    let mut known: Vec<(&str, &MetricData)> = Vec::new();
    for metric in runs.iter().flat_map(|run| &run.metrics) {
        if !known.iter().any(|(name, _)| *name == metric.name) {
            known.push((&metric.name, metric));
        }
    }
    known
}

fn measure_metric(
    runs: &[&RunData],
    first: &MetricData,
    statistics: &[Aggregate],
    options: &CompareOptions,
) -> Vec<SideMeasurement> {
    let blank = |aggregate: &Aggregate| SideMeasurement {
        name: first.name.clone(),
        statistic: Statistic::OfSamples(*aggregate),
        unit: aggregate.unit(&first.unit).to_owned(),
        is_share: first.is_share && !matches!(aggregate, Aggregate::Count | Aggregate::Sum),
        better: first.better,
        subject: Population::Answers,
        values: Vec::new(),
        samples: 0,
        approximate: false,
        client_error: None,
        own: Vec::new(),
        counted: None,
        invalid_in: Vec::new(),
        not_judged: first.not_judged.clone(),
        contains_prefill: first.contains_prefill,
    };
    let mut all: Vec<SideMeasurement> = statistics.iter().map(blank).collect();
    let mut of_this: Vec<&MetricData> = Vec::new();
    for run in runs {
        let Some(metric) = run.metrics.iter().find(|metric| metric.name == first.name) else {
            continue;
        };
        of_this.push(metric);
        let series = metric.samples.series();
        for (measured, aggregate) in all.iter_mut().zip(statistics) {
            let Some(value) = value_of(&series, *aggregate).filter(|value| value.is_finite()) else {
                continue;
            };
            measured.values.push(value);
            measured.samples += series.count();
            measured.approximate |= series.is_approximate();
            measured.client_error = worse_error(measured.client_error, metric.client_error);
            if metric.trust.validity == Validity::Invalid {
                measured.invalid_in.push(run.label.clone());
            }
        }
    }
    all.retain(|measured| !measured.values.is_empty());
    // Values that differ show their noise; for a single value, or values that agree, the samples
    // do.
    if all.iter().any(SideMeasurement::agrees) {
        for samples in of_this.iter().map(|metric| &metric.samples) {
            let series = samples.series();
            let agreeing = all.iter_mut().filter(|measured| measured.agrees());
            agreeing.for_each(|measured| {
                let own = own_of(measured, samples.origins(), &series, options);
                measured.own.extend(own);
            });
        }
    }
    all
}

/// Returns the error of a statistic of a run's samples, given the number of their requests; `None`
/// without samples.
fn own_of(
    measured: &SideMeasurement,
    requests: u64,
    series: &Series,
    options: &CompareOptions,
) -> Option<Result<Chance, Lack>> {
    let Statistic::OfSamples(aggregate) = measured.statistic else {
        return None;
    };
    value_of(series, aggregate)?;
    Some(match resampled(aggregate) {
        None => Err(Lack::NoError),
        Some(of) if (series.count() as f64) < enough(of) => Err(Lack::Samples {
            has: series.count(),
            needs: enough(of) as u64,
        }),
        Some(_) if (requests as f64) < ENOUGH => Err(Lack::Requests {
            samples: series.count(),
            has: requests,
            needs: ENOUGH as u64,
        }),
        Some(of) => {
            let stream = measured.stream(options);
            chance(series, of, options.resamples, stream).ok_or(Lack::Blocks)
        }
    })
}

fn worse_error(one: Option<ClientError>, other: Option<ClientError>) -> Option<ClientError> {
    match (one, other) {
        (Some(one), Some(other)) => Some(ClientError {
            mean: one.mean.max(other.mean),
            p99: one.p99.max(other.p99),
        }),
        (known, None) | (None, known) => known,
    }
}
