//! The figures of one side, run by run, each with its error.

use veeksha_model::Better;
use veeksha_slo::Aggregate;
use veeksha_stats::RandomStream;

use crate::bootstrap::{Estimate, estimate};
use crate::effect::{Spread, spread};
use crate::statistic::{Statistic, USUAL, enough, resampled, value_of};
use crate::{ClientError, MetricData, Options, RunData, Side};

/// A figure of one side.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) statistic: Statistic,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// One for each run that has the figure.
    pub(crate) runs: Vec<Estimate>,
    /// Samples over all runs; of a figure of the whole run, runs.
    pub(crate) samples: u64,
    pub(crate) approximate: bool,
    pub(crate) client_error: Option<ClientError>,
    /// Why the side cannot be judged by this figure, if it cannot.
    pub(crate) lacks: Option<Lack>,
}

/// Why a side cannot be judged by a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lack {
    /// The smallest run has fewer samples than it takes.
    Samples { has: u64, needs: u64 },
    /// The samples hang together over so long a time that they are next to one.
    Blocks,
    /// No error is known for this statistic.
    NoError,
}

impl Measured {
    /// The mean over the runs.
    pub(crate) fn value(&self) -> f64 {
        self.runs.iter().map(|run| run.value).sum::<f64>() / self.runs.len() as f64
    }

    pub(crate) fn spread(&self) -> Option<Spread> {
        spread(&self.runs)
    }

    /// The random numbers of this figure: the same for every run, so that A against B mirrors B against A.
    pub(crate) fn stream(&self, options: &Options) -> RandomStream {
        RandomStream::new(
            options.seed,
            0,
            &format!("compare/{}/{}", self.name, self.statistic),
        )
    }

    pub(crate) fn is(&self, name: &str, statistic: Statistic) -> bool {
        self.name == name && self.statistic == statistic
    }
}

/// All figures of a side: metrics first, in the order in which they were given. `asked` are statistics beyond the usual ones.
pub(crate) fn measure(side: &Side, asked: &[(String, Statistic)], options: &Options) -> Vec<Measured> {
    let mut all = Vec::new();
    for (name, first) in metrics(&side.runs) {
        let of_this = asked.iter().filter(|(metric, _)| *metric == name);
        let mut statistics: Vec<Aggregate> = Vec::new();
        for statistic in USUAL.into_iter().chain(of_this.map(|(_, statistic)| *statistic)) {
            if let Statistic::OfSamples(aggregate) = statistic
                && !statistics.contains(&aggregate)
            {
                statistics.push(aggregate);
            }
        }
        all.extend(measure_metric(side, first, &statistics, options));
    }
    let mut figures: Vec<Measured> = Vec::new();
    for figure in side.runs.iter().flat_map(|run| &run.figures) {
        if !figure.value.is_finite() {
            continue;
        }
        let run = certain(figure.value);
        match figures.iter_mut().find(|known| known.name == figure.name) {
            Some(known) => {
                known.runs.push(run);
                known.samples += 1;
            }
            None => figures.push(Measured {
                name: figure.name.clone(),
                statistic: Statistic::Value,
                unit: figure.unit.clone(),
                better: figure.better,
                runs: vec![run],
                samples: 1,
                approximate: false,
                client_error: None,
                lacks: None,
            }),
        }
    }
    all.extend(figures);
    all
}

/// A value of which only other runs can tell the error.
fn certain(value: f64) -> Estimate {
    Estimate {
        value,
        variance: 0.0,
        freedom: f64::INFINITY,
    }
}

/// The names of all metrics, each with the first one of that name.
fn metrics(runs: &[RunData]) -> Vec<(&str, &MetricData)> {
    let mut known: Vec<(&str, &MetricData)> = Vec::new();
    for metric in runs.iter().flat_map(|run| &run.metrics) {
        if !known.iter().any(|(name, _)| *name == metric.name) {
            known.push((&metric.name, metric));
        }
    }
    known
}

fn measure_metric(
    side: &Side,
    first: &MetricData,
    statistics: &[Aggregate],
    options: &Options,
) -> Vec<Measured> {
    let blank = |aggregate: &Aggregate| Measured {
        name: first.name.clone(),
        statistic: Statistic::OfSamples(*aggregate),
        unit: first.unit.clone(),
        better: first.better,
        runs: Vec::new(),
        samples: 0,
        approximate: false,
        client_error: None,
        lacks: None,
    };
    let mut all: Vec<Measured> = statistics.iter().map(blank).collect();
    let several = side.runs.len() > 1;
    for metric in side
        .runs
        .iter()
        .flat_map(|run| run.metrics.iter().filter(|metric| metric.name == first.name))
    {
        let series = metric.samples.series();
        for (measured, aggregate) in all.iter_mut().zip(statistics) {
            let Some(value) = value_of(&series, *aggregate).filter(|value| value.is_finite()) else {
                continue;
            };
            measured.samples += series.count();
            measured.approximate |= series.is_approximate();
            measured.client_error = worse_error(measured.client_error, metric.client_error);
            let stream = measured.stream(options);
            let (run, lack) = match resampled(*aggregate) {
                None => (None, Lack::NoError),
                Some(of) if (series.count() as f64) < enough(of) => {
                    let (has, needs) = (series.count(), enough(of) as u64);
                    (None, Lack::Samples { has, needs })
                }
                Some(of) => (estimate(&series, of, options.resamples, stream), Lack::Blocks),
            };
            // Of several runs, their spread tells the error where one run cannot.
            if run.is_none() && (!several || lack == Lack::NoError) {
                measured.lacks = Some(lack);
            }
            measured.runs.push(run.unwrap_or_else(|| certain(value)));
        }
    }
    all.retain(|measured| !measured.runs.is_empty());
    all
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
