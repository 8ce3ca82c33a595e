//! The figures of one side, run by run, each with its error.

use veeksha_model::Better;
use veeksha_slo::Aggregate;
use veeksha_stats::RandomStream;

use crate::bootstrap::{Chance, chance};
use crate::statistic::{Statistic, USUAL, enough, resampled, value_of};
use crate::{ClientError, MetricData, Options, RunData, Side, Validity};

/// A figure of one side.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) statistic: Statistic,
    pub(crate) unit: String,
    pub(crate) better: Better,
    /// One for each run that has the figure.
    pub(crate) values: Vec<f64>,
    /// Samples over all runs; of a figure of the whole run, runs.
    pub(crate) samples: u64,
    pub(crate) approximate: bool,
    pub(crate) client_error: Option<ClientError>,
    /// How far the value of a single run may be off; of several runs their values tell it.
    pub(crate) own: Result<Chance, Lack>,
    /// Runs whose certificates call the metric INVALID.
    pub(crate) invalid_in: Vec<String>,
    /// Why the figure is not judged whatever its values are.
    pub(crate) not_judged: Option<String>,
}

/// Why nothing is known of how far the value of a run may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Lack {
    /// The run has fewer samples than it takes.
    Samples { has: u64, needs: u64 },
    /// The samples hang together over so long a time that they are next to one.
    Blocks,
    /// No error is known for this statistic.
    NoError,
    /// It is one value, not one of samples.
    OneValue,
    /// There are several runs.
    Several,
}

impl Measured {
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
    all.extend(measure_figures(&side.runs));
    all
}

/// Figures of whole runs, of which only other runs can tell the error.
fn measure_figures(runs: &[RunData]) -> Vec<Measured> {
    let mut figures: Vec<Measured> = Vec::new();
    for figure in runs.iter().flat_map(|run| &run.figures) {
        if !figure.value.is_finite() {
            continue;
        }
        match figures.iter_mut().find(|known| known.name == figure.name) {
            Some(known) => {
                known.values.push(figure.value);
                known.samples += 1;
            }
            None => figures.push(Measured {
                name: figure.name.clone(),
                statistic: Statistic::Value,
                unit: figure.unit.clone(),
                better: figure.better,
                values: vec![figure.value],
                samples: 1,
                approximate: false,
                client_error: None,
                own: Err(Lack::OneValue),
                invalid_in: Vec::new(),
                not_judged: None,
            }),
        }
    }
    figures
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
        values: Vec::new(),
        samples: 0,
        approximate: false,
        client_error: None,
        own: Err(Lack::Several),
        invalid_in: Vec::new(),
        not_judged: first.not_judged.clone(),
    };
    let mut all: Vec<Measured> = statistics.iter().map(blank).collect();
    let of_this = |run: &'_ RunData| run.metrics.iter().position(|metric| metric.name == first.name);
    let runs: Vec<(&RunData, &MetricData)> = side
        .runs
        .iter()
        .filter_map(|run| of_this(run).map(|place| (run, &run.metrics[place])))
        .collect();
    for (run, metric) in &runs {
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
            if runs.len() > 1 {
                continue;
            }
            measured.own = match resampled(*aggregate) {
                None => Err(Lack::NoError),
                Some(of) if (series.count() as f64) < enough(of) => Err(Lack::Samples {
                    has: series.count(),
                    needs: enough(of) as u64,
                }),
                Some(of) => {
                    let stream = measured.stream(options);
                    chance(&series, of, options.resamples, stream).ok_or(Lack::Blocks)
                }
            };
        }
    }
    all.retain(|measured| !measured.values.is_empty());
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
