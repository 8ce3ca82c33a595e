//! `veeksha-host compare`: whether runs differ, and by how much.

use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_compare::{
    ClientError, Comparison, FailIf, FigureData, Known, KnownKind, MetricData, Options, RunData, Side, Table,
    TableRow, TimedSamples, Validity, Verdict, compare as compared,
};
use veeksha_evaluate::{Catalogue, Certificate, Evaluation, Evaluator, Verdict as Trust, certify};
use veeksha_report::{Colour, Mark, Row, Section, summary_table};
use veeksha_scenario::Document;

use crate::cli::args::CompareArgs;
use crate::failure::Failure;
use crate::old_run::OldRun;
use crate::{evaluators, exit, objectives, results, say};

/// Width of the table where the terminal's is not known.
const WIDTH: usize = 140;

/// What most people look at first.
const SHOWN: [&str; 10] = [
    "ttfc",
    "ttfc_from_intended",
    "tbc",
    "tpot",
    "end_to_end_latency",
    "e2e_from_intended",
    "requests_per_second",
    "output_tokens_per_second",
    "error_rate",
    "goodput",
];

/// Keys that differ from run to run and say nothing of what was measured.
const BESIDE: [&str; 1] = ["output_dir"];

pub(super) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let mut fail_if = args
        .fail_if
        .as_deref()
        .map(FailIf::parse)
        .transpose()
        .map_err(|error| Failure::usage(format!("--fail-if: {error}")))?;
    if args.github && args.json.as_deref() == Some(Path::new("-")) {
        return Err(
            Failure::usage("--json - and --github both write to standard output")
                .hinted("--json FILE writes the comparison to a file"),
        );
    }
    let mut sides = Vec::new();
    for (place, path) in args.runs.iter().enumerate() {
        sides.push(side(path, place, args)?);
    }
    if let Some(fail_if) = &mut fail_if {
        fail_if
            .check(&known(&sides))
            .map_err(|error| Failure::usage(format!("--fail-if: {error}")))?;
    }
    let asked = fail_if.as_ref().map_or_else(Vec::new, FailIf::statistics);
    let options = Options {
        confidence: args.confidence,
        seed: args.seed,
        smallest: (args.ignore_below > 0.0).then_some(args.ignore_below),
        ..Options::default()
    };
    let comparison = compared(&sides, &asked, &options).map_err(Failure::usage)?;
    let decision = fail_if.map(|fail_if| fail_if.decide(&comparison));
    let json = comparison.json(decision.as_ref());
    let prints_json = args.json.as_deref() == Some(Path::new("-"));
    if prints_json {
        say::out(pretty(&json)?);
    } else {
        show(&comparison, args);
    }
    if let Some(path) = args.json.as_deref().filter(|_| !prints_json) {
        write(path, &pretty(&json)?)?;
    }
    if let Some(path) = &args.html {
        write(path, &comparison.html(decision.as_ref()))?;
    }
    if let Some(path) = &args.junit {
        write(
            path,
            &comparison.junit(decision.as_ref()).map_err(Failure::internal)?,
        )?;
    }
    if args.github {
        say::out(comparison.annotations(decision.as_ref()).trim_end());
    }
    match decision {
        Some(decision) if decision.fails() => {
            for candidate in decision
                .candidates
                .iter()
                .filter(|candidate| !candidate.reasons.is_empty())
            {
                say::err(format!("{}: {}", candidate.label, candidate.reasons.join("; ")));
            }
            say::err(format!("--fail-if {}: fails", decision.expression));
            Ok(exit::SLO_FAILED)
        }
        _ => Ok(exit::DONE),
    }
}

fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(Failure::internal)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}

/// A side: one run, or all the runs in a folder. Sides of one name are told apart by their place.
fn side(path: &Path, place: usize, args: &CompareArgs) -> Result<Side, Failure> {
    let label = |path: &Path| {
        let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        name.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    let mut side_label = label(path);
    let before = args.runs.iter().take(place);
    if before
        .map(|earlier| label(earlier))
        .any(|earlier| earlier == side_label)
    {
        side_label = format!("{side_label} ({})", place + 1);
    }
    let runs: Vec<PathBuf> = match is_run(path) {
        true => vec![path.to_owned()],
        false => runs_in(path),
    };
    if runs.is_empty() {
        // Opening it says what is missing.
        OldRun::open(path, true)?;
    }
    let runs = runs.iter().map(|run| read(run, label(run), args));
    Ok(Side {
        label: side_label,
        runs: runs.collect::<Result<_, _>>()?,
    })
}

fn is_run(path: &Path) -> bool {
    path.join("record").is_dir()
}

/// The runs within a folder, by name; the link to the latest one is none of its own.
fn runs_in(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| !path.is_symlink() && is_run(path))
        .collect();
    runs.sort();
    runs
}

/// A run, as far as it is compared.
fn read(path: &Path, label: String, args: &CompareArgs) -> Result<RunData, Failure> {
    let mut run = OldRun::open(path, true)?;
    let definitions = run.definitions()?;
    let scenario = run.loaded.scenario.clone();
    let catalogue = objectives::catalogue(&definitions)?;
    // What a good request is stands in the scenario; objectives of plugins that are gone cannot be asked again.
    let objectives =
        objectives::of_scenario(&scenario, run.lua_judges.clone(), &catalogue).unwrap_or_default();
    let mut evaluator =
        Evaluator::new(evaluators::setup(&scenario, objectives, &definitions, None)?).without_live();
    let mut simulated = false;
    run.for_each(|event| {
        if let veeksha_events::Event::RunStarted(info) = event {
            simulated = info.epoch_wall_nanos == 0;
        }
        evaluator.on(event);
    })?;
    for note in run.notes.iter().chain(&run.about_scenario) {
        say::err(format!("note: {}: {note}", path.display()));
    }
    let evaluation = evaluator.finish();
    let thresholds = results::thresholds(&scenario);
    let certificate = match simulated {
        true => Certificate::simulated(&evaluation, &thresholds),
        false => certify(&evaluation, &thresholds, None),
    };
    Ok(RunData {
        label,
        workload: evaluation
            .workload
            .as_ref()
            .map(|workload| workload.prefixes.clone()),
        settings: settings(&run.config),
        window: evaluation.curves.window,
        validity: match certificate.verdict {
            Trust::Valid => Validity::Valid,
            Trust::Degraded => Validity::Degraded,
            Trust::Invalid => Validity::Invalid,
        },
        figures: figures(&evaluation),
        metrics: metrics(&evaluation, &certificate, args)?,
    })
}

fn figures(evaluation: &Evaluation) -> Vec<FigureData> {
    let figures = evaluation.figures.iter().map(|(figure, value)| {
        let info = figure.info();
        FigureData {
            name: info.name.to_owned(),
            unit: info.unit.to_owned(),
            better: info.better,
            value: *value,
        }
    });
    figures.collect()
}

fn metrics(
    evaluation: &Evaluation,
    certificate: &Certificate,
    args: &CompareArgs,
) -> Result<Vec<MetricData>, Failure> {
    let samples = &evaluation.samples;
    let catalogue = samples.catalogue();
    for wanted in &args.metrics {
        if catalogue.get(wanted).is_none() {
            let failure = Failure::usage(format!("--metrics: there is no metric `{wanted}`"));
            return Err(match catalogue.nearest(wanted) {
                Some(nearest) => failure.hinted(format!("did you mean `{nearest}`?")),
                None => failure.hinted("`veeksha-host metrics` lists them"),
            });
        }
    }
    let is_wanted = |name: &str| {
        let named = |wanted: &String| catalogue.get(wanted).is_some_and(|info| info.name == name);
        args.metrics.is_empty() || args.metrics.iter().any(named)
    };
    // Where every chunk carries one token, the times between tokens are those between chunks.
    let is_repeated = |name: &str| name == "itl" && samples.itl_is_tbc() && args.metrics.is_empty();
    let infos = catalogue.iter().filter(|info| {
        samples.summary(&info.name).is_some() && is_wanted(&info.name) && !is_repeated(&info.name)
    });
    let data = infos.map(|info| {
        let mut timed = TimedSamples::new();
        samples.each_keyed_sample(&info.name, |at, value, weight, key| match key {
            Some(key) => timed.push_keyed(at, value, weight, key),
            None => timed.push_weighted(at, value, weight),
        });
        let bound = info.metric.and_then(|metric| certificate.bound(metric));
        MetricData {
            name: info.name.clone(),
            unit: info.unit.clone(),
            better: info.better,
            samples: timed,
            client_error: bound.map(|bound| ClientError {
                mean: bound.mean_error,
                p99: bound.p99_error,
            }),
        }
    });
    Ok(data.collect())
}

/// The configuration, flattened to paths and values.
fn settings(config: &str) -> Vec<(String, String)> {
    let Ok(document) = Document::from_yaml(config, "config.yml") else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    flatten("", &document.root.to_json(), &mut settings);
    settings.retain(|(path, _)| !BESIDE.contains(&path.as_str()));
    settings
}

fn flatten(path: &str, value: &Value, settings: &mut Vec<(String, String)>) {
    let join = |key: &str| match path.is_empty() {
        true => key.to_owned(),
        false => format!("{path}.{key}"),
    };
    match value {
        Value::Object(entries) => entries
            .iter()
            .for_each(|(key, value)| flatten(&join(key), value, settings)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| flatten(&format!("{path}[{index}]"), value, settings)),
        Value::String(text) => settings.push((path.to_owned(), text.clone())),
        other => settings.push((path.to_owned(), other.to_string())),
    }
}

/// What an expression may name: what is built in, whether these runs have it or not, and what the runs have.
fn known(sides: &[Side]) -> Vec<Known> {
    let catalogue = Catalogue::built_in();
    let metrics = catalogue.iter().map(|info| Known {
        name: info.name.clone(),
        aliases: info
            .metric
            .map(|metric| metric.slo_name().to_owned())
            .into_iter()
            .filter(|alias| *alias != info.name)
            .collect(),
        unit: info.unit.clone(),
        kind: KnownKind::Metric,
    });
    let figures = catalogue.figures().map(|figure| Known {
        name: figure.name.to_owned(),
        aliases: Vec::new(),
        unit: figure.unit.to_owned(),
        kind: KnownKind::Figure,
    });
    let mut known: Vec<Known> = metrics.chain(figures).collect();
    for seen in Known::of(sides) {
        if !known.iter().any(|known| known.name == seen.name) {
            known.push(seen);
        }
    }
    known
}

fn show(comparison: &Comparison, args: &CompareArgs) {
    for (place, table) in comparison.tables().iter().enumerate() {
        let sections = sections(table, place + 1, args);
        say::out(summary_table(&sections, WIDTH, Colour::of_stdout()));
    }
}

/// The name of a side in the headings: `A` for the baseline, `B`, `C`, ... for those held against it.
fn letter(place: usize) -> String {
    char::from_u32('A' as u32 + place as u32)
        .filter(char::is_ascii_uppercase)
        .map_or_else(|| format!("#{}", place + 1), String::from)
}

/// Whether a row is shown without being asked for.
fn stands_out(row: &TableRow, built_in: &Catalogue) -> bool {
    let name = row.name.split(' ').next().unwrap_or_default();
    let known = built_in.get(name).is_some() || built_in.figure(name).is_some();
    let judged = matches!(row.verdict, Verdict::Better | Verdict::Worse | Verdict::Differs);
    judged || SHOWN.contains(&name) || !known
}

fn sections(table: &Table, place: usize, args: &CompareArgs) -> Vec<Section> {
    let sentence = |text: &String, mark: Mark| Row {
        name: text.clone(),
        mark,
        ..Row::default()
    };
    let lines = |title: &str, texts: &[String], mark: Mark| {
        (!texts.is_empty()).then(|| Section {
            title: title.to_owned(),
            columns: Vec::new(),
            rows: texts.iter().map(|text| sentence(text, mark)).collect(),
        })
    };
    let built_in = Catalogue::built_in();
    let everything = args.all || !args.metrics.is_empty();
    let (shown, left): (Vec<&TableRow>, Vec<&TableRow>) = table
        .rows
        .iter()
        .partition(|row| everything || stands_out(row, &built_in));
    let mut rows: Vec<Row> = shown
        .into_iter()
        .map(|row| Row {
            name: row.name.clone(),
            cells: row.cells.clone(),
            note: row.note.clone(),
            mark: match row.verdict {
                Verdict::Worse => Mark::Bad,
                Verdict::Better => Mark::Good,
                Verdict::Differs => Mark::Warning,
                _ => Mark::Plain,
            },
        })
        .collect();
    if !left.is_empty() {
        let further = say::counted(left.len() as u64, "further figure");
        rows.push(sentence(
            &format!("{further} without a difference: --all shows them"),
            Mark::Plain,
        ));
    }
    let mut columns = table.columns.clone();
    let sides = [letter(0), letter(place)];
    let names: Vec<String> = sides
        .iter()
        .zip(&mut columns)
        .map(|(letter, column)| format!("{letter} is {}", std::mem::replace(column, letter.clone())))
        .collect();
    let figures = Section {
        title: format!("{} against {}", sides[1], sides[0]),
        columns,
        rows,
    };
    let sections = [
        lines("Compared", &names, Mark::Plain),
        lines("Not comparable", &table.obstacles, Mark::Bad),
        Some(figures),
        lines("Settings that differ", &table.settings, Mark::Plain),
        lines("Remarks", &table.remarks, Mark::Plain),
    ];
    sections.into_iter().flatten().collect()
}
