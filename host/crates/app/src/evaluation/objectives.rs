//! Objectives of a run: those of the scenario or of the command line, validated against the metrics
//! of the run.

use veeksha_metrics::{Catalogue, ConstantSlo, ObjectiveError, Objectives, Stated};
use veeksha_model::MetricDefinition;
use veeksha_scenario::{Evaluator, Performance, Scenario, Slo as Written, SloMap};
use veeksha_slo::Objective;

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;

/// Returns the built-in metrics and those of plugins.
pub fn catalogue(definitions: &[MetricDefinition]) -> Result<Catalogue, CommandFailure> {
    let mut catalogue = Catalogue::built_in();
    for definition in definitions {
        catalogue
            .define(definition.clone())
            .map_err(CommandFailure::usage)?;
    }
    Ok(catalogue)
}

/// Returns the objectives of a scenario; `request_checks` are the names of the plugins that check
/// requests.
pub fn of_scenario(
    loaded: &Loaded,
    request_checks: Vec<String>,
    catalogue: &Catalogue,
) -> Result<Objectives, CommandFailure> {
    let Some((index, performance)) = performance(&loaded.scenario) else {
        return Ok(Objectives::default());
    };
    let slos = performance.slos.iter().map(stated).collect::<Result<_, _>>()?;
    let goodput = conditions(&performance.goodput, "evaluators.goodput")?;
    let at = |error: &ObjectiveError| {
        let list = if error.is_condition { "goodput" } else { "slos" };
        let path = format!("evaluators[{index}].{list}[{}]", error.place);
        match loaded.place(&path) {
            Some(place) => format!("{place}: {path}"),
            None => path,
        }
    };
    Objectives::check(slos, goodput, request_checks, catalogue).map_err(|errors| refused(&errors, at))
}

/// Returns the objectives of the command line, or those of the scenario if there are none.
pub(crate) fn of_arguments(
    slos: &[String],
    goodput: &[String],
    loaded: &Loaded,
    request_checks: Vec<String>,
    catalogue: &Catalogue,
) -> Result<Objectives, CommandFailure> {
    if slos.is_empty() && goodput.is_empty() {
        return of_scenario(loaded, request_checks, catalogue);
    }
    let of_scenario = performance(&loaded.scenario).map(|(_, performance)| performance);
    let stated = match slos {
        [] => of_scenario
            .iter()
            .flat_map(|performance| &performance.slos)
            .map(stated)
            .collect::<Result<Vec<_>, _>>()?,
        texts => texts
            .iter()
            .map(|text| parsed(text, "--slo").map(Stated::from))
            .collect::<Result<_, _>>()?,
    };
    let conditions = match goodput {
        [] => conditions(
            of_scenario.map_or(&[], |performance| &performance.goodput),
            "goodput",
        )?,
        texts => conditions(texts, "--goodput")?,
    };
    let at = |error: &ObjectiveError| {
        if error.is_condition {
            "--goodput".to_owned()
        } else {
            "--slo".to_owned()
        }
    };
    Objectives::check(stated, conditions, request_checks, catalogue).map_err(|errors| refused(&errors, at))
}

/// Returns the built-in evaluator, and its index in `evaluators`.
pub(crate) fn performance(scenario: &Scenario) -> Option<(usize, &Performance)> {
    let evaluators = scenario.evaluators.iter().enumerate();
    evaluators
        .filter_map(|(index, evaluator)| match evaluator {
            Evaluator::Performance(performance) => Some((index, performance)),
            _ => None,
        })
        .next()
}

fn stated(written: &Written) -> Result<Stated, CommandFailure> {
    match written {
        Written::Text(text) => Ok(parsed(text, "evaluators.slos")?.into()),
        Written::Map(SloMap::Expression { objective, name }) => {
            let mut objective = parsed(objective, "evaluators.slos")?;
            objective.name = name.clone();
            Ok(objective.into())
        }
        Written::Map(SloMap::Constant {
            metric,
            percentile,
            value,
            name,
        }) => Ok(ConstantSlo {
            name: name.clone(),
            metric: metric.name().parse().map_err(CommandFailure::usage)?,
            percentile: *percentile,
            value: *value,
        }
        .into()),
    }
}

fn parsed(text: &str, at: &str) -> Result<Objective, CommandFailure> {
    Objective::parse(text).map_err(|error| CommandFailure::usage(format!("{at}: {error}")))
}

fn conditions(texts: &[String], at: &str) -> Result<Vec<Objective>, CommandFailure> {
    let parsed = texts.iter().map(|text| {
        Objective::parse_condition(text).map_err(|error| CommandFailure::usage(format!("{at}: {error}")))
    });
    parsed.collect()
}

fn refused(errors: &[ObjectiveError], at: impl Fn(&ObjectiveError) -> String) -> CommandFailure {
    let lines: Vec<String> = errors
        .iter()
        .map(|error| format!("{}: {error}", at(error)))
        .collect();
    CommandFailure::usage(lines.join("\n"))
}
