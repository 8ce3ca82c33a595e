//! What is asked of a run: the scenario's objectives, or those of the command line, held against what can be measured.

use veeksha_metrics::{Catalogue, ObjectiveError, Objectives, Slo, Stated};
use veeksha_model::MetricDefinition;
use veeksha_scenario::{Evaluator, Performance, Scenario, Slo as Written, SloMap};
use veeksha_slo::Objective;

use crate::failure::Failure;
use crate::source::Loaded;

/// What can be measured: the built-in metrics, and those that plugins define.
pub fn catalogue(definitions: &[MetricDefinition]) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::built_in();
    for definition in definitions {
        if is_a_files_name(&definition.name) {
            return Err(Failure::usage(format!(
                "the plugin {}: the metric `{}` cannot have that name: a file of every run has it",
                definition.plugin, definition.name
            )));
        }
        catalogue.define(definition.clone()).map_err(Failure::usage)?;
    }
    Ok(catalogue)
}

/// Whether a metric's files would take the place of others in `metrics/`.
fn is_a_files_name(name: &str) -> bool {
    const TAKEN: [&str; 18] = [
        "chrome_trace",
        "concurrency_over_time",
        "curves",
        "decode_window_metrics",
        "decode_window_plot",
        "prefill_by_length",
        "prefill_stats",
        "replay_fidelity",
        "request_level_metrics",
        "request_timeline",
        "session_metrics",
        "slo_results",
        "slowest_requests",
        "summary_stats",
        "throughput_metrics",
        "throughput_over_time",
        "time_slices",
        "ttfc_over_time",
    ];
    TAKEN.contains(&name)
        || name == "ttfc_violin_plot"
        || name.ends_with("_log_x")
        || name.starts_with("dialect_")
}

/// The scenario's objectives; `judges` are the plugins that judge requests.
pub fn of_scenario(
    loaded: &Loaded,
    judges: Vec<String>,
    catalogue: &Catalogue,
) -> Result<Objectives, Failure> {
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
    Objectives::check(slos, goodput, judges, catalogue).map_err(|errors| refused(&errors, at))
}

/// The objectives of the command line, where it names any; else the scenario's.
pub(crate) fn of_arguments(
    slos: &[String],
    goodput: &[String],
    loaded: &Loaded,
    judges: Vec<String>,
    catalogue: &Catalogue,
) -> Result<Objectives, Failure> {
    if slos.is_empty() && goodput.is_empty() {
        return of_scenario(loaded, judges, catalogue);
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
    let at = |error: &ObjectiveError| match error.is_condition {
        true => "--goodput".to_owned(),
        false => "--slo".to_owned(),
    };
    Objectives::check(stated, conditions, judges, catalogue).map_err(|errors| refused(&errors, at))
}

/// The evaluator of the built-in metrics, and its place in the list.
pub(crate) fn performance(scenario: &Scenario) -> Option<(usize, &Performance)> {
    let evaluators = scenario.evaluators.iter().enumerate();
    evaluators
        .filter_map(|(index, evaluator)| match evaluator {
            Evaluator::Performance(performance) => Some((index, performance)),
            _ => None,
        })
        .next()
}

fn stated(written: &Written) -> Result<Stated, Failure> {
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
        }) => Ok(Slo {
            name: name.clone(),
            metric: metric.name().parse().map_err(Failure::usage)?,
            percentile: *percentile,
            value: *value,
        }
        .into()),
    }
}

fn parsed(text: &str, at: &str) -> Result<Objective, Failure> {
    Objective::parse(text).map_err(|error| Failure::usage(format!("{at}: {error}")))
}

fn conditions(texts: &[String], at: &str) -> Result<Vec<Objective>, Failure> {
    let parsed = texts.iter().map(|text| {
        Objective::parse_condition(text).map_err(|error| Failure::usage(format!("{at}: {error}")))
    });
    parsed.collect()
}

fn refused(errors: &[ObjectiveError], at: impl Fn(&ObjectiveError) -> String) -> Failure {
    let lines: Vec<String> = errors
        .iter()
        .map(|error| format!("{}: {error}", at(error)))
        .collect();
    Failure::usage(lines.join("\n"))
}
