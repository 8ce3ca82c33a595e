//! Draws every kind of plot into a folder (default `target/gallery`), and prints the time of each.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "an example for the eye, which times the drawing itself"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use veeksha_events::{Event, RequestRecord};
use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId};
use veeksha_report::{
    BoxPlotData, CdfData, ChromeTrace, ChromeTraceLimits, ConcurrencyData, DecodeWindowData, Level, Plot,
    PrefillData, SliceData, ThroughputData, TimeCurve, TimelineChoice, TimelineData, TimelineRequest,
    cdf_log_plot, cdf_plot, concurrency_plot, decode_window_plot, length_groups, prefill_plot, slices_plot,
    throughput_plot, timeline_plot, violin_plot,
};
use veeksha_stats::split_mix64;

/// Returns a pseudo-random number in 0..1.
fn noise(index: u64) -> f64 {
    (split_mix64(index) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns lognormal times: most near `median`, with a long tail.
fn times(count: u64, median: f64, seed: u64) -> Vec<f64> {
    (0..count)
        .map(|index| {
            let (u, v) = (noise(seed + 2 * index).max(1e-9), noise(seed + 2 * index + 1));
            median * ((-2.0 * u.ln()).sqrt() * (v * std::f64::consts::TAU).cos() * 0.9).exp()
        })
        .collect()
}

fn cdf(display: &str, unit: &str, mut values: Vec<f64>) -> CdfData {
    values.sort_by(f64::total_cmp);
    CdfData {
        metric: "m".into(),
        display: display.into(),
        unit: unit.into(),
        count: values.len() as u64,
        points: (0..=100)
            .map(|share| (values[(values.len() - 1) * share / 100], share as f64 / 100.0))
            .collect(),
        counts: Vec::new(),
    }
}

fn requests(count: u64) -> Vec<TimelineRequest> {
    let prefills = times(count, 0.12, 5);
    (0..count)
        .map(|index| {
            let intended = index as f64 * 0.05 + noise(index) * 0.05;
            let dispatched = intended + if index % 7 == 0 { 0.08 } else { 0.0002 };
            let first = dispatched + prefills[index as usize];
            TimelineRequest {
                request: format!("{}/{}", index / 3, index % 3),
                intended,
                dispatched,
                first_chunk: (index % 11 != 4).then_some(first),
                completed: first + 0.4 + noise(index + 9) * 0.5,
                answered: index % 11 != 4,
                measured: true,
            }
        })
        .collect()
}

fn curve(name: &str, count: u64, f: impl Fn(f64, f64) -> f64) -> TimeCurve {
    TimeCurve {
        name: name.into(),
        points: (0..count)
            .map(|index| {
                (
                    index as f64,
                    f(index as f64, noise(index * 3 + name.len() as u64)),
                )
            })
            .collect(),
    }
}

fn level(name: &str, count: u64, f: impl Fn(f64, f64) -> f64) -> Level {
    let curve = curve(name, count, f);
    Level {
        name: curve.name,
        points: curve
            .points
            .into_iter()
            .map(|(at, value)| (at, value, value))
            .collect(),
    }
}

#[expect(clippy::too_many_lines, reason = "one list of plots")]
fn plots() -> Vec<(&'static str, Plot)> {
    let groups: Vec<(u32, Vec<f64>)> = [128u32, 512, 2048, 8192]
        .map(|length| {
            (
                length,
                times(300, 0.02 + f64::from(length) * 4e-5, u64::from(length)),
            )
        })
        .to_vec();
    let slices = groups.iter().map(|(length, times)| (*length, times.as_slice()));
    let prefill = PrefillData {
        groups: groups
            .iter()
            .map(|(length, times)| (f64::from(*length), times.clone()))
            .collect(),
    };
    let timeline = |count, most, choice| {
        timeline_plot(&TimelineData {
            requests: requests(count),
            total: count,
            choice,
            most,
        })
    };
    let ttfc = cdf("Time to First Chunk", "s", times(1_500, 0.12, 1));
    let cached = [(0.0, 8), (128.0, 6), (256.0, 5), (512.0, 1)]
        .into_iter()
        .flat_map(|(tokens, requests)| vec![tokens; requests])
        .collect();
    let mut merged = vec![0.0; 600];
    merged.extend(times(900, 0.02, 2));
    let gaps = cdf("Time Between Chunks", "s", merged);
    vec![
        ("ttfc", cdf_plot(&ttfc)),
        ("ttfc_log_x", cdf_log_plot(&ttfc)),
        (
            "num_output_tokens",
            cdf_plot(&cdf("Number of Output Tokens", "tokens", vec![64.0; 1_500])),
        ),
        (
            "cached_tokens",
            cdf_plot(&CdfData {
                counts: [(0.0, 0.4), (128.0, 0.7), (256.0, 0.95), (512.0, 1.0)].to_vec(),
                ..cdf("Cached tokens", "tokens", cached)
            }),
        ),
        ("gaps_log_x", cdf_log_plot(&gaps)),
        (
            "tier_share",
            cdf_plot(&cdf("Cache hit ratio", "1", (0..200).map(noise).collect())),
        ),
        (
            "empty",
            cdf_plot(&CdfData {
                display: "Nothing".into(),
                ..CdfData::default()
            }),
        ),
        (
            "ttfc_violin_plot",
            violin_plot(&BoxPlotData {
                display: "Time to First Chunk".into(),
                unit: "s".into(),
                grouped_by: "new prompt tokens (without history)".into(),
                groups: length_groups(slices),
            }),
        ),
        (
            "one_box",
            violin_plot(&BoxPlotData {
                display: "Time to First Chunk".into(),
                unit: "s".into(),
                grouped_by: "new prompt tokens (without history)".into(),
                groups: length_groups([(128, [0.01, 0.02, 0.013, 0.014, 0.05].as_slice())]),
            }),
        ),
        (
            "throughput_over_time",
            throughput_plot(&ThroughputData {
                slice_seconds: 1.0,
                end: 120.0,
                requests_per_second: vec![
                    curve("answered", 120, |t, n| 40.0 + 20.0 * (t / 15.0).sin() + 8.0 * n),
                    curve("failed", 120, |t, n| {
                        if (50.0..60.0).contains(&t) { 4.0 * n } else { 0.0 }
                    }),
                ],
                tokens_per_second: vec![
                    curve("output", 120, |t, n| {
                        2_600.0 + 900.0 * (t / 15.0).sin() + 400.0 * n
                    }),
                    curve("input", 120, |t, n| {
                        12_000.0 + 3_000.0 * (t / 15.0).sin() + 900.0 * n
                    }),
                ],
            }),
        ),
        (
            "concurrency_over_time",
            concurrency_plot(&ConcurrencyData {
                levels: vec![
                    level("in flight", 4_000, |t, n| {
                        (32.0 * (1.0 - (-t / 300.0).exp()) + 4.0 * n).round()
                    }),
                    level("in prefill", 4_000, |_, n| (3.0 * n).round()),
                    level("in decode", 4_000, |t, n| {
                        (28.0 * (1.0 - (-t / 300.0).exp()) + 2.0 * n).round()
                    }),
                ],
            }),
        ),
        (
            "decode_window_plot",
            decode_window_plot(&DecodeWindowData {
                in_decode: level("in decode", 60, |t, n| (8.0 * (t / 9.0).sin().abs() + n).round()),
                least: 7,
                windows: vec![(9.0, 17.0), (39.0, 46.0)],
            }),
        ),
        ("request_timeline", timeline(400, 60, TimelineChoice::First)),
        ("slowest_timeline", timeline(12, 20, TimelineChoice::Slowest)),
        ("prefill_by_length", prefill_plot(&prefill)),
        (
            "ttfc_over_time",
            slices_plot(&SliceData {
                display: "Time to First Chunk".into(),
                unit: "s".into(),
                slice_seconds: 10.0,
                end: 600.0,
                slices: (0..60u64)
                    .map(|index| {
                        let base = 0.1 + 0.03 * noise(index);
                        let values = [Some(base), Some(base * 2.2), (index != 20).then_some(base * 4.0)];
                        (index as f64 * 10.0, 40, values)
                    })
                    .collect(),
            }),
        ),
    ]
}

/// Writes the trace of 1,500 answers with 64 chunks each.
fn chrome_trace(folder: &Path) {
    let answer = |session: u64| RequestRecord {
        intended: session * 10_000_000,
        dispatched_at: session * 10_000_000 + 12_345,
        picked_up_at: None,
        sent_at: None,
        completed_at: session * 10_000_000 + 900_000_000,
        processed_at: session * 10_000_000 + 900_000_000,
        chunks: (0..64)
            .map(|chunk| Chunk {
                at: session * 10_000_000 + 200_000_000 + chunk * 10_123_457,
                lag: 0,
                bytes: 9,
                kind: ChunkKind::Content,
                merged: false,
            })
            .collect(),
        target_prompt_tokens: 128,
        prompt_tokens: 128,
        total_prompt_tokens: 128,
        target_output_tokens: Some(64),
        output_tokens: 64,
        ..RequestRecord::answered(RequestId {
            session: SessionId(session),
            node: NodeId(0),
        })
    };
    let events: Vec<Event> = (0..1_500)
        .map(|session| Event::Finished(Box::new(answer(session))))
        .collect();
    let start = Instant::now();
    let mut trace = ChromeTrace::new(ChromeTraceLimits::default());
    events.iter().for_each(|event| trace.on(event));
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    println!(
        "chrome trace of 1,500 answers of 64 chunks: {:.1} ms, {} KB",
        start.elapsed().as_secs_f64() * 1e3,
        bytes.len() / 1024
    );
    std::fs::write(folder.join("chrome_trace.json"), bytes).unwrap();
}

fn main() {
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| PathBuf::from("target/gallery"), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    chrome_trace(&folder);
    for (name, plot) in plots() {
        let start = Instant::now();
        let png = plot.drawing.png().unwrap();
        let drawn = start.elapsed();
        let start = Instant::now();
        let svg = plot.drawing.svg().unwrap();
        let written = start.elapsed();
        println!(
            "{name:24} png {:6.1} ms {:4} KB   svg {:6.1} ms {:4} KB   csv {} lines",
            drawn.as_secs_f64() * 1e3,
            png.len() / 1024,
            written.as_secs_f64() * 1e3,
            svg.len() / 1024,
            plot.csv.lines().count()
        );
        std::fs::write(folder.join(name).with_extension("png"), png).unwrap();
        std::fs::write(folder.join(name).with_extension("svg"), svg).unwrap();
        std::fs::write(folder.join(name).with_extension("csv"), plot.csv).unwrap();
    }
}
