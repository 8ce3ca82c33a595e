//! The data of a run that is compared.

use std::path::Path;

use serde_json::Value;
use veeksha_certificate::{Certificate, Verdict, certify};
use veeksha_compare::{
    ClientError, GoodRequests, MetricData, RequestShare, RequestedLoad, RunData, RunValueData, ScenarioLabel,
    SentSoFar, TimedSamples, Trust, Validity, ValueParts,
};
use veeksha_metrics::{Evaluation, Metric, Objectives, RunEvaluator, RunMetric};
use veeksha_model::printable;
use veeksha_scenario::{ArrivalPlugin, Document, Traffic};

use veeksha_app::CommandFailure;
use veeksha_app::{RecordedCode, RecordedRun};
use veeksha_app::{builtin_evaluator, objectives};
use veeksha_present::terminal;

use super::wanted::Wanted;

/// Keys that differ from run to run without any effect on the measurement.
const BESIDE: [&str; 1] = ["output_dir"];

/// Reads the record of a run.
pub(super) fn read(path: &Path, wanted: &mut Wanted) -> Result<RunData, CommandFailure> {
    let mut run = RecordedRun::open(path, true)?;
    let definitions = run.definitions()?;
    let scenario = run.loaded.scenario.clone();
    let catalogue = objectives::catalogue(&definitions)?;
    // The conditions of a good request are in the scenario. Objectives on plugins that no longer
    // exist cannot be evaluated again.
    let objectives = objectives::of_scenario(&run.loaded, run.lua_request_checks.clone(), &catalogue);
    let good_requests = good_requests(&run, &objectives);
    let objectives = objectives.unwrap_or_default();
    let mut evaluator =
        RunEvaluator::new(builtin_evaluator::setup(&scenario, objectives, &definitions)?).without_live();
    let mut simulated = false;
    run.for_each(|event| {
        if let veeksha_events::Event::RunStarted(info) = event {
            simulated = info.epoch_wall_nanos == 0;
        }
        evaluator.on(event);
    })?;
    for note in run.notes.iter().chain(&run.about_scenario) {
        let note = format!("note: {}: {note}", path.display());
        terminal::err(printable(&note));
    }
    let mut evaluation = evaluator.finish();
    if run.is_damaged() {
        evaluation.mark_record_damaged();
    }
    let thresholds = veeksha_present::thresholds(&scenario);
    let certificate = if simulated {
        Certificate::simulated(&evaluation, &thresholds)
    } else {
        certify(
            &evaluation,
            &thresholds,
            &veeksha_present::conditions(&scenario, None),
            None,
        )
    };
    let counts = &evaluation.counts;
    let code = RecordedCode::read(path);
    wanted.look_in(evaluation.samples.catalogue());
    Ok(RunData {
        label: super::sides::label(path),
        scenario: ScenarioLabel {
            name: scenario.name.clone(),
            description: scenario.description.clone(),
            tags: scenario.tags.clone(),
        },
        workload: evaluation
            .workload
            .as_ref()
            .map(|workload| workload.prefixes.clone()),
        sent: evaluation.sent.as_ref().map(|sent| {
            let prefixes = sent.prefixes.iter();
            prefixes
                .map(|prefix| SentSoFar {
                    sessions: prefix.sessions,
                    requests: prefix.requests,
                    digest: prefix.digest.clone(),
                })
                .collect()
        }),
        settings: settings(&run.config, &code),
        window: evaluation.curves.window,
        place: path.canonicalize().ok().map(|path| path.display().to_string()),
        cached_share: evaluation.run_metric(RunMetric::OverallCachedTokenShare),
        answered: Some(RequestShare {
            part: counts.completed.saturating_sub(counts.empty_answers),
            whole: counts.intended(),
        }),
        load: Some(load(&scenario.traffic_scheduler, &code)),
        good_requests,
        recorded_as: run.record.info().run.clone(),
        trust: trust(&certificate, None),
        run_metrics: run_metrics(&evaluation, wanted),
        metrics: metrics(&evaluation, &certificate, wanted),
    })
}

/// Returns the definition of good requests by the objectives of a run's scenario.
fn good_requests(run: &RecordedRun, objectives: &Result<Objectives, CommandFailure>) -> GoodRequests {
    match (&run.unknown, objectives) {
        (Some(why), _) => GoodRequests::Unknown(why.clone()),
        (None, Err(failure)) => GoodRequests::Unknown(failure.message.clone()),
        (None, Ok(objectives)) if objectives.define_good_requests() => GoodRequests::Defined,
        (None, Ok(_)) => GoodRequests::Undefined,
    }
}

/// Returns the requested load.
fn load(traffic: &Traffic, code: &RecordedCode) -> RequestedLoad {
    match traffic {
        Traffic::Rate(rate) => RequestedLoad::Arrivals {
            per_second: rate.interval_generator.mean_rate(),
        },
        Traffic::Concurrent(concurrent) => RequestedLoad::Sessions {
            at_a_time: concurrent.target_concurrent_sessions,
        },
        Traffic::FixedSchedule(schedule) => RequestedLoad::Recorded {
            speedup: schedule.speedup,
        },
        Traffic::ArrivalProcess(arrivals) => RequestedLoad::ArrivalProcess {
            digest: digest(&arrivals.process, code),
        },
    }
}

/// Returns a short digest of an arrival process: of its code and its configuration, wherever they
/// were read from. The code of a Lua function is its whole script, because a function may use
/// anything in it.
fn digest(process: &ArrivalPlugin, code: &RecordedCode) -> u32 {
    let mut settings = serde_json::to_value(process).unwrap_or_default();
    let recorded = code.arrival_process();
    if recorded.is_some()
        && let Some(settings) = settings.as_object_mut()
    {
        settings.remove("plugin");
        if let Some(Value::String(function)) = settings.get_mut("arrivals") {
            *function = code.function_text(std::mem::take(function));
        }
    }
    let text = format!("{settings} {}", recorded.unwrap_or_default());
    let bytes = blake3::hash(text.as_bytes());
    let [first, second, third, fourth, ..] = *bytes.as_bytes();
    u32::from_be_bytes([first, second, third, fourth])
}

/// Returns the certificate's verdict on a metric, or on the whole run.
fn trust(certificate: &Certificate, of: Option<Metric>) -> Trust {
    let findings = || {
        certificate
            .findings
            .iter()
            .filter(move |finding| finding.metric == of && finding.verdict != Verdict::Valid)
    };
    Trust {
        validity: match findings()
            .map(|finding| finding.verdict)
            .max()
            .unwrap_or_default()
        {
            Verdict::Valid => Validity::Valid,
            Verdict::Degraded => Validity::Degraded,
            Verdict::Invalid => Validity::Invalid,
        },
        why: findings().map(|finding| finding.what.clone()).collect(),
    }
}

/// Returns the reason why two runs cannot be compared by a metric, if there is one.
fn not_judged(metric: Metric) -> Option<String> {
    metric.definition_of().not_comparable.map(str::to_owned)
}

/// Returns true if a metric contains the prefill of prompts.
fn contains_prefill(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::Ttfc
            | Metric::TtfcFromIntended
            | Metric::TtfcContent
            | Metric::PrefillTime
            | Metric::EndToEnd
            | Metric::EndToEndFromIntended
            | Metric::NormalizedEndToEnd
            | Metric::OutputThroughput
            | Metric::Fluidity
            | Metric::FluidityTokens
            | Metric::SessionDuration
            | Metric::SessionMakespan
            | Metric::SessionCriticalPath
            | Metric::PathPrefill
    )
}

fn run_metrics(evaluation: &Evaluation, wanted: &Wanted) -> Vec<RunValueData> {
    let run_metrics = evaluation.run_metrics().iter();
    let wanted = run_metrics.filter(|(run_metric, _)| wanted.has(run_metric.info().name));
    let data = wanted.map(|(run_metric, value)| {
        let info = run_metric.info();
        RunValueData {
            parts: parts(evaluation, *run_metric, *value),
            grows_with_load: grows_with_load(*run_metric),
            ..RunValueData::new(info.name, info.unit, info.better, *value)
        }
    });
    data.collect()
}

/// Returns true if a value is an amount or a rate, and not a property of each request.
fn grows_with_load(run_metric: RunMetric) -> bool {
    match run_metric {
        RunMetric::GoodRequestsPerSecond
        | RunMetric::RequestsPerSecond
        | RunMetric::RequestDispatchRate
        | RunMetric::SessionDispatchRate
        | RunMetric::InputTokensPerSecond
        | RunMetric::OutputTokensPerSecond
        | RunMetric::TotalTokensPerSecond
        | RunMetric::MeanRequestsInFlight
        | RunMetric::MaxRequestsInFlight
        | RunMetric::Requests
        | RunMetric::CompletedRequests
        | RunMetric::ErroredRequests
        | RunMetric::Sessions
        | RunMetric::ToolRuns
        | RunMetric::ToolFailures => true,
        RunMetric::ErrorRate
        | RunMetric::CancellationRate
        | RunMetric::EmptyAnswerShare
        | RunMetric::NeverSentShare
        | RunMetric::Goodput
        | RunMetric::OverallCachedTokenShare
        | RunMetric::WindowSeconds => false,
    }
}

/// Returns the contributions of the requests to a run-level value.
fn parts(evaluation: &Evaluation, run_metric: RunMetric, value: f64) -> Option<ValueParts> {
    let mut samples = TimedSamples::new();
    evaluation.samples.each_part(run_metric, |at, value, weight| {
        samples.push_weighted(at, value, weight);
    });
    let counts = &evaluation.counts;
    let window = evaluation.curves.window;
    let unsent = counts.intended().saturating_sub(counts.requests);
    match run_metric {
        RunMetric::Goodput | RunMetric::NeverSentShare => {
            // The instants at which they would have ended are unknown. Equal instants make the
            // bootstrap treat them as one event.
            let at = window.map_or(0, |(_, end)| end);
            let withheld = match run_metric {
                RunMetric::NeverSentShare => (value * counts.intended() as f64).round() as u64,
                _ => 0,
            };
            (0..unsent).for_each(|place| samples.push(at, f64::from(u8::from(place < withheld))));
            Some(ValueParts::Outcomes(samples))
        }
        RunMetric::ErrorRate | RunMetric::CancellationRate | RunMetric::EmptyAnswerShare => {
            Some(ValueParts::Outcomes(samples))
        }
        RunMetric::OverallCachedTokenShare => Some(ValueParts::Mean(samples)),
        RunMetric::GoodRequestsPerSecond
        | RunMetric::RequestsPerSecond
        | RunMetric::InputTokensPerSecond
        | RunMetric::OutputTokensPerSecond
        | RunMetric::TotalTokensPerSecond => Some(ValueParts::Amounts {
            samples,
            window: window?,
        }),
        _ => None,
    }
}

fn metrics(evaluation: &Evaluation, certificate: &Certificate, wanted: &Wanted) -> Vec<MetricData> {
    let samples = &evaluation.samples;
    // If every chunk carries one token, the times between tokens equal those between chunks.
    let is_repeated = |name: &str| name == "itl" && samples.itl_is_tbc() && wanted.is_everything();
    let infos = samples.catalogue().iter().filter(|info| {
        samples.summary(&info.name).is_some() && wanted.has(&info.name) && !is_repeated(&info.name)
    });
    let data = infos.map(|info| {
        let mut timed = TimedSamples::new();
        samples.each_keyed_sample(&info.name, |at, value, weight, key| match key {
            Some(key) => timed.push_keyed(at, value, weight, key),
            None => timed.push_weighted(at, value, weight),
        });
        let bound = info.metric.and_then(|metric| certificate.bound(metric));
        MetricData {
            client_error: bound.map(|bound| ClientError {
                mean: bound.mean_error,
                p99: bound.p99_error,
            }),
            trust: info.metric.map_or_else(Trust::default, |metric| {
                trust(certificate, Some(metric.certified_as()))
            }),
            is_share: info.is_share(),
            not_judged: info.metric.and_then(not_judged),
            contains_prefill: info.metric.is_some_and(contains_prefill),
            ..MetricData::new(&info.name, &info.unit, info.better, timed)
        }
    });
    data.collect()
}

/// Returns the configuration, flattened to paths and values, and the digests of the plugins. Lua
/// functions are equal if they are at the same place of the same script.
fn settings(config: &str, code: &RecordedCode) -> Vec<(String, String)> {
    let Ok(document) = Document::from_yaml(config, "config.yml") else {
        return Vec::new();
    };
    let mut settings = Vec::new();
    flatten("", &document.root.to_json(), &mut settings);
    settings.retain(|(path, _)| !BESIDE.contains(&path.as_str()));
    let settings = settings
        .into_iter()
        .map(|(path, value)| (path, code.function_text(value)));
    let digests = code
        .plugins()
        .map(|(plugin, digest)| (format!("digest of {plugin}"), digest.chars().take(12).collect()));
    settings.chain(digests).collect()
}

fn flatten(path: &str, value: &Value, settings: &mut Vec<(String, String)>) {
    let join = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
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
