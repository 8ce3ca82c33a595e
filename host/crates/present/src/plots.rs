//! The plots of a run, with their data.

use serde_json::Value;
use veeksha_metrics::{CurvePoint, Evaluation, Metric, RunSamples, TimeSlice};
use veeksha_model::seconds;
use veeksha_report::{
    BoxGroup, BoxPlotData, CdfData, ConcurrencyData, DecodeWindowData, Level, Plot, PrefillData, ReportError,
    RunFolder, SliceData, ThroughputData, TimeCurve, TimelineChoice, TimelineData, TimelineRequest,
    concurrency_plot, decode_window_plot, length_groups, prefill_plot, slices_plot, throughput_plot,
    timeline_plot, violin_plot,
};

use crate::run_analysis::RunAnalysis;

/// Number of points of a distribution: every percentile, as in Veeksha's files.
const POINTS: usize = 101;

/// Maximum number of requests in the timeline plot.
const LANES: usize = 60;

/// Number of requests in the plot of the slowest ones, each labelled with its id.
const SLOWEST: usize = 25;

/// Maximum number of samples of a group in its plot, selected at even distances.
const GROUP_SAMPLES: usize = 10_000;

/// Maximum number of characters of a label in a file name.
const LABEL_IN_FILE_NAME: usize = 60;

/// Draws a plot into the file with this stem.
type Draw<'a> = &'a mut dyn FnMut(&str, Plot);

type OnWritten<'a> = &'a mut dyn FnMut(Result<(), ReportError>);

/// Returns the distribution of a metric; `None` if it does not exist.
pub(crate) fn distribution(samples: &RunSamples, name: &str) -> Option<CdfData> {
    let info = samples.catalogue().get(name)?;
    Some(CdfData {
        metric: info.name.clone(),
        display: info.display.clone(),
        // A value without a unit is not always a share.
        unit: match (info.is_share(), info.unit.as_str()) {
            (false, "1") => String::new(),
            (_, unit) => unit.to_owned(),
        },
        count: samples.summary(name).map_or(0, |summary| summary.count as u64),
        points: samples
            .quantiles(name, POINTS)
            .into_iter()
            .map(|(share, value)| (value, share))
            .collect(),
        counts: samples.shares_of_counts(name),
    })
}

/// Draws all plots except the distributions of single metrics.
pub(crate) fn others(folder: &RunFolder, results: &RunAnalysis, tried: OnWritten<'_>) {
    let evaluation = &results.evaluation;
    if evaluation.counts.requests == 0 {
        return;
    }
    let mut draw = |stem: &str, plot: Plot| tried(folder.write_plot(&format!("metrics/{stem}"), &plot));
    by_length(results, &mut draw);
    for (stem, data) in by_label(evaluation) {
        draw(&stem, violin_plot(&data));
    }
    over_time(evaluation, &mut draw);
    if let Some(windows) = &results.decode_windows {
        draw(
            "decode_window_plot",
            decode_window_plot(&decode_windows(
                windows,
                level("in decode", &evaluation.curves.in_decode.points),
            )),
        );
    }
    for (stem, choice) in [
        ("request_timeline", TimelineChoice::First),
        ("slowest_requests", TimelineChoice::Slowest),
    ] {
        draw(stem, timeline_plot(&timeline(results, choice)));
    }
}

fn level(name: &str, points: &[CurvePoint]) -> Level {
    Level {
        name: name.to_owned(),
        points: points
            .iter()
            .map(|point| (seconds(point.at), point.value, point.max))
            .collect(),
    }
}

/// Draws the time to first chunk by prompt length.
fn by_length(results: &RunAnalysis, draw: Draw<'_>) {
    let groups = || results.prefill_groups.iter();
    if groups().next().is_some() {
        draw(
            "ttfc_violin_plot",
            violin_plot(&BoxPlotData {
                display: Metric::Ttfc.display_name().to_owned(),
                unit: "s".to_owned(),
                grouped_by: "new prompt tokens (without history)".to_owned(),
                groups: length_groups(groups().map(|(length, times)| (*length, times.as_slice()))),
            }),
        );
        let groups = groups().map(|(length, times)| (f64::from(*length), times.clone()));
        draw(
            "prefill_by_length",
            prefill_plot(&PrefillData {
                groups: groups.collect(),
            }),
        );
    }
}

/// Draws rates, concurrency and latencies over time.
fn over_time(evaluation: &Evaluation, draw: Draw<'_>) {
    let slices = &evaluation.slices;
    let rate = |name: &str, of: &dyn Fn(&TimeSlice) -> Option<f64>| TimeCurve {
        name: name.to_owned(),
        points: slices
            .slices
            .iter()
            .filter_map(|slice| Some((seconds(slice.from), of(slice)?)))
            .collect(),
    };
    let end = slices.slices.last().map_or(0.0, |slice| seconds(slice.to));
    draw(
        "throughput_over_time",
        throughput_plot(&ThroughputData {
            slice_seconds: seconds(slices.length),
            end,
            requests_per_second: vec![
                rate("answered", &TimeSlice::requests_per_second),
                rate("failed", &TimeSlice::errored_per_second),
            ],
            tokens_per_second: vec![
                rate("output", &TimeSlice::output_tokens_per_second),
                rate("input", &TimeSlice::input_tokens_per_second),
            ],
        }),
    );
    let curves = &evaluation.curves;
    draw(
        "concurrency_over_time",
        concurrency_plot(&ConcurrencyData {
            levels: vec![
                level("in flight", &curves.in_flight.points),
                level("in prefill", &curves.in_prefill.points),
                level("in decode", &curves.in_decode.points),
            ],
        }),
    );
    draw(
        "ttfc_over_time",
        slices_plot(&SliceData {
            display: Metric::Ttfc.display_name().to_owned(),
            unit: "s".to_owned(),
            slice_seconds: seconds(slices.length),
            end,
            slices: slices
                .slices
                .iter()
                .map(|slice| {
                    let ttfc = slice.metric(Metric::Ttfc);
                    let count = ttfc.map_or(0, |ttfc| ttfc.count as u64);
                    let percentiles = [ttfc.map(|t| t.p50), ttfc.map(|t| t.p90), ttfc.map(|t| t.p99)];
                    (seconds(slice.from), count, percentiles)
                })
                .collect(),
        }),
    );
}

/// Returns the plots of latencies by the groups of each label, with their file names.
fn by_label(evaluation: &Evaluation) -> Vec<(String, BoxPlotData)> {
    let mut plots: Vec<(String, BoxPlotData)> = Vec::new();
    for grouped in &evaluation.groups {
        for metric in [Metric::Ttfc, Metric::Tpot, Metric::EndToEnd] {
            let groups = grouped.groups.iter().filter_map(|group| {
                let samples = &evaluation.samples;
                let values = samples.values_of_group(group, metric.name(), GROUP_SAMPLES);
                BoxGroup::new(group.key.to_string(), values)
            });
            let data = BoxPlotData {
                display: metric.display_name().to_owned(),
                unit: metric.unit().to_owned(),
                grouped_by: format!("label {}", grouped.label),
                groups: groups.collect(),
            };
            if data.groups.is_empty() {
                continue;
            }
            let stem = format!("{}_by_{}", metric.name(), file_name_part(&grouped.label));
            let is_taken = |stem: &String| plots.iter().any(|(taken, _)| taken == stem);
            let numbered = (2..).map(|number| format!("{stem}_{number}"));
            let free = std::iter::once(stem.clone())
                .chain(numbered)
                .find(|stem| !is_taken(stem));
            plots.extend(free.map(|stem| (stem, data)));
        }
    }
    plots
}

/// Returns a label as a part of a file name: other characters than letters, digits, `-` and `_` are
/// replaced.
fn file_name_part(label: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let kept = label.chars().map(|c| if allowed(c) { c } else { '_' });
    kept.take(LABEL_IN_FILE_NAME).collect()
}

/// Parses the selected decode windows from their file.
fn decode_windows(file: &Value, in_decode: Level) -> DecodeWindowData {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let windows = file["windows"]["per_window"].as_array();
    DecodeWindowData {
        in_decode,
        least: file["config"]["resolved_min_active_requests"]
            .as_u64()
            .unwrap_or_default(),
        windows: windows
            .into_iter()
            .flatten()
            .map(|window| (number(&window["start"]), number(&window["end"])))
            .collect(),
    }
}

fn timeline(results: &RunAnalysis, choice: TimelineChoice) -> TimelineData {
    let requests = &results.requests;
    let measured = requests.total.saturating_sub(results.evaluation.counts.drained);
    let (total, most) = match choice {
        TimelineChoice::First => (requests.total, LANES),
        TimelineChoice::Slowest => (measured, SLOWEST),
    };
    TimelineData {
        requests: requests
            .rows
            .iter()
            .map(|request| TimelineRequest {
                request: request.id.to_string(),
                intended: seconds(request.intended),
                dispatched: seconds(request.dispatched),
                first_chunk: request.first_chunk.map(seconds),
                completed: seconds(request.completed),
                answered: matches!(request.outcome, veeksha_page::Outcome::Answered { .. }),
                measured: request.measured,
            })
            .collect(),
        total,
        choice,
        most,
    }
}
