//! `veeksha-host metrics`: lists and explains the metrics.

use serde_json::{Value, json};
use veeksha_metrics::{Catalogue, MetricInfo, RunMetricInfo, Scope};
use veeksha_model::MetricDefinition;
use veeksha_report::{ColorMode, Section, SummaryRow, summary_table};

use crate::cli::args::MetricsArgs;
use veeksha_app::CommandFailure;
use veeksha_app::{Source, collect_errors};
use veeksha_app::{evaluator_plugins, objectives, tokenizers};
use veeksha_present::terminal;

const WIDTH: usize = 110;

pub(super) fn metrics(args: &MetricsArgs) -> Result<u8, CommandFailure> {
    let catalogue = objectives::catalogue(&definitions(args)?)?;
    match &args.name {
        None if args.json => terminal::out(pretty(&all(&catalogue))?),
        None => terminal::out(list(&catalogue)),
        Some(name) => explain(&catalogue, name, args.json)?,
    }
    Ok(veeksha_exit::DONE)
}

/// Returns the metrics of the plugins on the command line.
fn definitions(args: &MetricsArgs) -> Result<Vec<MetricDefinition>, CommandFailure> {
    if args.plugins.is_empty() && args.scenario.is_none() {
        return Ok(Vec::new());
    }
    let source = match &args.scenario {
        Some(path) => Source::read(path)?,
        None => Source::nothing()?,
    };
    let mut definitions: Vec<MetricDefinition> = Vec::new();
    for cell in collect_errors(source.variants(&[], &[], args.no_cache)?)? {
        let loaded = cell.loaded;
        let tokenizer = tokenizers::tokenizer(&loaded, &mut Vec::new())?.tokenizer;
        let mut opened = evaluator_plugins::open_scenario(&loaded, &tokenizer)?;
        evaluator_plugins::open_files(
            &mut opened,
            &loaded,
            &args.plugins,
            &args.plugin_config,
            &tokenizer,
        )?;
        // The scenarios of a sweep share most of their plugins.
        for definition in opened.definitions()? {
            if !definitions.contains(&definition) {
                definitions.push(definition);
            }
        }
    }
    Ok(definitions)
}

fn pretty(value: &Value) -> Result<String, CommandFailure> {
    serde_json::to_string_pretty(value).map_err(CommandFailure::internal)
}

fn list(catalogue: &Catalogue) -> String {
    let metric = |metric: &MetricInfo| SummaryRow {
        name: metric.name.clone(),
        cells: vec![metric.unit.clone(), metric.better.name().to_owned()],
        note: Some(metric.display.clone()),
        ..SummaryRow::default()
    };
    let of = |title: &str, scope: Scope| Section {
        title: title.to_owned(),
        columns: ["unit", "better"].map(String::from).to_vec(),
        rows: catalogue
            .iter()
            .filter(|metric| metric.scope == scope && metric.plugin.is_none())
            .map(metric)
            .collect(),
    };
    let run_metrics = catalogue.run_metrics().map(|run_metric| SummaryRow {
        name: run_metric.name.to_owned(),
        cells: vec![run_metric.unit.to_owned(), run_metric.better.name().to_owned()],
        ..SummaryRow::default()
    });
    let of_plugins = Section {
        title: "Plugin metrics".to_owned(),
        columns: ["unit", "better"].map(String::from).to_vec(),
        rows: catalogue
            .iter()
            .filter(|info| info.plugin.is_some())
            .map(metric)
            .collect(),
    };
    let mut sections = vec![
        of("Request metrics, as in p99(ttfc)", Scope::Request),
        of("Metrics of gaps between chunks", Scope::Gap),
        of("Session metrics", Scope::Session),
        of("Metrics of tool runs", Scope::ToolRun),
        Section {
            title: "Run-level metrics, as in goodput > 0.95".to_owned(),
            columns: ["unit", "better"].map(String::from).to_vec(),
            rows: run_metrics.collect(),
        },
    ];
    if !of_plugins.rows.is_empty() {
        sections.push(of_plugins);
    }
    let table = summary_table(&sections, WIDTH, ColorMode::from_stdout());
    format!(
        "{table}\n`veeksha-host metrics NAME` explains a metric. Plugins define further metrics: include them with --plugin FILE or --scenario FILE."
    )
}

fn explain(catalogue: &Catalogue, name: &str, as_json: bool) -> Result<(), CommandFailure> {
    let value = match (catalogue.get(name), catalogue.run_metric(name)) {
        (Some(metric), _) => of_metric(metric),
        (None, Some(run_metric)) => of_run_metric(run_metric),
        (None, None) => {
            let failure = CommandFailure::usage(format!("unknown metric `{name}`"));
            return Err(match catalogue.nearest(name) {
                Some(nearest) => failure.hinted(format!("did you mean `{nearest}`?")),
                None => failure.hinted("`veeksha-host metrics` lists all metrics"),
            });
        }
    };
    if as_json {
        terminal::out(pretty(&value)?);
        return Ok(());
    }
    terminal::out(explanation(&value));
    Ok(())
}

fn explanation(value: &Value) -> String {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut lines = vec![text("name").to_owned()];
    for (label, key) in [
        ("name", "display"),
        ("unit", "unit"),
        ("better", "better"),
        ("scope", "scope"),
        ("definition", "definition"),
        ("source", "source"),
    ] {
        if !text(key).is_empty() {
            lines.push(format!("  {label:<11} {}", text(key)));
        }
    }
    lines.join("\n")
}

fn of_metric(metric: &MetricInfo) -> Value {
    json!({
        "name": metric.name,
        "kind": "metric",
        "display": metric.display,
        "unit": metric.unit,
        "better": metric.better.name(),
        "scope": metric.scope.name(),
        "definition": metric.definition,
        "source": metric.source,
        "plugin": metric.plugin,
    })
}

fn of_run_metric(run_metric: &RunMetricInfo) -> Value {
    json!({
        "name": run_metric.name,
        "kind": "run_metric",
        "unit": run_metric.unit,
        "better": run_metric.better.name(),
        "scope": "run",
        "definition": run_metric.definition,
    })
}

fn all(catalogue: &Catalogue) -> Value {
    let metrics = catalogue.iter().map(of_metric);
    metrics
        .chain(catalogue.run_metrics().map(of_run_metric))
        .collect()
}
