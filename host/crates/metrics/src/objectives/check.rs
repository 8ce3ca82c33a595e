//! Validation of objectives before the run.

use std::time::Duration;

use veeksha_model::Nanos;
use veeksha_slo::{Aggregate, BoundUnit, Objective, Quantity};

use super::ask::{Limit, SampleQuery, SampleStatistic};
use super::checked::{Checked, Condition, ObjectiveTarget};
use super::error::{ObjectiveError, ObjectiveProblem as Problem};
use super::range::fits;
use super::stated::{ConstantSlo, Stated};
use crate::catalogue::Catalogue;
use crate::run_metric::RunMetric;
use veeksha_definitions::Scope;

/// The objectives of a run, all of which can be evaluated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objectives {
    pub(crate) checked: Vec<Checked>,
    /// The conditions that a good request meets.
    pub(crate) conditions: Vec<Condition>,
    /// The plugins that judge requests.
    pub(crate) judges: Vec<String>,
}

impl Objectives {
    /// Checks objectives, and the conditions of goodput (`max(ttfc) <= 0.5`: bounds on the samples
    /// of a single request), against the metrics that are available in the run. `judges` are the
    /// plugins that judge each request; a request that one of them does not judge is not good.
    ///
    /// Without conditions, a good request must individually meet every objective on a percentile,
    /// mean, minimum or maximum of a request metric: by its value, or for gaps by the same
    /// statistic over its gaps.
    ///
    /// # Errors
    /// Returns one error for each objective and condition that cannot be evaluated: unknown names,
    /// units that do not match, metrics that are unavailable in this run ([`Catalogue::exclude`]),
    /// goodput without any condition on a good request.
    pub fn check(
        slos: Vec<Stated>,
        goodput: Vec<Objective>,
        judges: Vec<String>,
        catalogue: &Catalogue,
    ) -> Result<Objectives, Vec<ObjectiveError>> {
        let mut errors = Vec::new();
        let (mut checked, mut conditions) = (Vec::new(), Vec::new());
        for (place, stated) in slos.into_iter().enumerate() {
            let objective = stated.to_string();
            match check(stated, catalogue) {
                Ok(found) => checked.push((place, found)),
                Err(problem) => errors.push(ObjectiveError {
                    objective,
                    place,
                    is_condition: false,
                    problem,
                }),
            }
        }
        let explicit = !goodput.is_empty();
        for (place, objective) in goodput.into_iter().enumerate() {
            match condition(&objective, catalogue) {
                Ok(found) => conditions.push(found),
                Err(problem) => errors.push(ObjectiveError {
                    objective: objective.condition_text(),
                    place,
                    is_condition: true,
                    problem,
                }),
            }
        }
        if !explicit {
            let implied = |(_, found): &(usize, Checked)| implied_condition(found, catalogue);
            conditions.extend(checked.iter().filter_map(implied));
        }
        if conditions.is_empty() && judges.is_empty() && !explicit {
            let needs = |found: &Checked| {
                matches!(
                    found.target,
                    ObjectiveTarget::Run(RunMetric::Goodput | RunMetric::GoodRequestsPerSecond)
                )
            };
            let without = checked.iter().filter(|(_, found)| needs(found));
            errors.extend(without.map(|(place, found)| ObjectiveError {
                objective: found.stated.to_string(),
                place: *place,
                is_condition: false,
                problem: Problem::NoConditions,
            }));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Objectives {
            checked: checked.into_iter().map(|(_, found)| found).collect(),
            conditions,
            judges,
        })
    }

    /// Creates objectives from Veeksha's only. They refer to built-in metrics, so they are always
    /// valid.
    pub fn constants(slos: Vec<ConstantSlo>) -> Objectives {
        let checked: Vec<Checked> = slos.into_iter().map(constant).collect();
        let catalogue = Catalogue::built_in();
        Objectives {
            conditions: checked
                .iter()
                .filter_map(|found| implied_condition(found, &catalogue))
                .collect(),
            checked,
            judges: Vec::new(),
        }
    }

    /// Returns true if they define good requests: by a condition or by a plugin that judges
    /// requests.
    pub fn define_good_requests(&self) -> bool {
        !self.conditions.is_empty() || !self.judges.is_empty()
    }

    /// Returns the objectives as stated.
    pub fn stated(&self) -> impl Iterator<Item = &Stated> {
        self.checked.iter().map(|found| &found.stated)
    }
}

fn constant(slo: ConstantSlo) -> Checked {
    let upper = slo.metric.lower_is_better();
    // "A share p reaches it" is a bound on the (1 - p)-quantile.
    let of = SampleStatistic::Quantile(if upper {
        slo.percentile
    } else {
        1.0 - slo.percentile
    });
    Checked {
        target: ObjectiveTarget::Samples {
            samples: SampleQuery {
                metric: slo.metric.name().to_owned(),
                of,
                filter: Vec::new(),
            },
            window: None,
        },
        limit: Limit {
            comparison: slo.objective().comparison,
            value: slo.value,
        },
        unit: slo.metric.unit().to_owned(),
        stated: Stated::Constant(slo),
    }
}

fn check(stated: Stated, catalogue: &Catalogue) -> Result<Checked, Problem> {
    let objective = match stated {
        Stated::Constant(slo) => {
            present(slo.metric.name(), catalogue)?;
            if !(0.0..=1.0).contains(&slo.percentile) {
                return Err(Problem::Percentile {
                    value: slo.percentile.to_string(),
                    max: 1,
                });
            }
            if !slo.value.is_finite() {
                return Err(Problem::Bound);
            }
            let objective = slo.objective();
            let checked = constant(slo);
            fits(&objective, &checked.target, checked.limit, catalogue)?;
            return Ok(checked);
        }
        Stated::Expression(objective) => objective,
    };
    let (target, unit) = match &objective.quantity {
        Quantity::RunMetric(name) => run_metric(name, catalogue)?,
        Quantity::Samples {
            aggregate,
            metric,
            filter,
            window,
        } => {
            let (samples, unit) = samples(*aggregate, metric, filter, catalogue)?;
            let window = window.map(nanos);
            (ObjectiveTarget::Samples { samples, window }, unit)
        }
    };
    let limit = limit(&objective, &target, &unit)?;
    fits(&objective, &target, limit, catalogue)?;
    Ok(Checked {
        target,
        limit,
        unit,
        stated: Stated::Expression(objective),
    })
}

fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX).max(1)
}

fn present(name: &str, catalogue: &Catalogue) -> Result<(), Problem> {
    match catalogue.excluded(name) {
        None => Ok(()),
        Some(why) => Err(Problem::Absent {
            name: name.to_owned(),
            why: why.to_owned(),
        }),
    }
}

fn run_metric(name: &str, catalogue: &Catalogue) -> Result<(ObjectiveTarget, String), Problem> {
    let Some(info) = catalogue.run_metric(name) else {
        return Err(match catalogue.get(name) {
            Some(metric) => Problem::MetricWithoutAggregate {
                name: metric.name.clone(),
            },
            None => Problem::UnknownRunMetric {
                name: name.to_owned(),
                nearest: catalogue.nearest(name).map(str::to_owned),
            },
        });
    };
    present(name, catalogue)?;
    Ok((ObjectiveTarget::Run(info.metric), info.unit.to_owned()))
}

fn samples(
    aggregate: Aggregate,
    metric: &str,
    filter: &[(String, String)],
    catalogue: &Catalogue,
) -> Result<(SampleQuery, String), Problem> {
    let Some(info) = catalogue.get(metric) else {
        let name = metric.to_owned();
        return Err(match catalogue.run_metric(metric) {
            Some(_) => Problem::RunMetricWithAggregate { name },
            None => Problem::UnknownMetric {
                name,
                nearest: catalogue.nearest(metric).map(str::to_owned),
            },
        });
    };
    present(metric, catalogue)?;
    if let Aggregate::Percentile(percent) = aggregate
        && !(0.0..=100.0).contains(&percent)
    {
        return Err(Problem::Percentile {
            value: percent.to_string(),
            max: 100,
        });
    }
    let samples = SampleQuery {
        metric: info.name.clone(),
        of: SampleStatistic::aggregate(aggregate),
        filter: filter.to_vec(),
    };
    Ok((samples, aggregate.unit(&info.unit).to_owned()))
}

fn limit(objective: &Objective, target: &ObjectiveTarget, unit: &str) -> Result<Limit, Problem> {
    let bound = objective.bound;
    if !bound.value.is_finite() {
        return Err(Problem::Bound);
    }
    let counts =
        matches!(target, ObjectiveTarget::Samples { samples, .. } if samples.of == SampleStatistic::Count);
    if counts && bound.unit != BoundUnit::None {
        return Err(Problem::UnitOfCount);
    }
    // A time per token is a time.
    let unit = if bound.unit == BoundUnit::Time {
        unit.strip_suffix("/token").unwrap_or(unit)
    } else {
        unit
    };
    Ok(Limit {
        comparison: objective.comparison,
        value: bound.in_unit(unit)?,
    })
}

fn condition(objective: &Objective, catalogue: &Catalogue) -> Result<Condition, Problem> {
    let (name, window) = match &objective.quantity {
        Quantity::RunMetric(name) => (name, &None),
        Quantity::Samples { metric, window, .. } => (metric, window),
    };
    if window.is_some() {
        return Err(Problem::ConditionWithWindow);
    }
    // A condition has the same syntax as an objective on a run metric. If the name is a run metric,
    // the error is the name, not the syntax.
    if catalogue.get(name).is_none() && catalogue.run_metric(name).is_some() {
        return Err(Problem::NotOfRequests { name: name.clone() });
    }
    let found = check(Stated::Expression(objective.clone()), catalogue)?;
    match (found.target, catalogue.get(name).map(|info| info.scope)) {
        (ObjectiveTarget::Samples { samples, .. }, Some(scope)) if scope.is_within_request() => {
            Ok(Condition {
                text: objective.condition_text(),
                samples,
                limit: found.limit,
            })
        }
        _ => Err(Problem::NotOfRequests { name: name.clone() }),
    }
}

/// Returns the condition that an objective implies for a single request, if any.
fn implied_condition(checked: &Checked, catalogue: &Catalogue) -> Option<Condition> {
    let ObjectiveTarget::Samples { samples, .. } = &checked.target else {
        return None;
    };
    let scope = catalogue.get(&samples.metric).map(|info| info.scope);
    let of_a_request = scope.is_some_and(Scope::is_within_request)
        && matches!(
            samples.of,
            SampleStatistic::Quantile(_)
                | SampleStatistic::Mean
                | SampleStatistic::Min
                | SampleStatistic::Max
        );
    of_a_request.then(|| Condition {
        text: checked.stated.to_string(),
        samples: samples.clone(),
        limit: checked.limit,
    })
}
