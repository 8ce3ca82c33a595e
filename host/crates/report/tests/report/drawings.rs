//! Plots: contents of their drawings and data.

use std::fs;

use tempfile::tempdir;
use veeksha_report::{
    BoxPlotData, CdfData, ConcurrencyData, DecodeWindowData, Level, Plot, PrefillData, ReportError,
    RunFolder, SliceData, ThroughputData, TimeCurve, TimelineChoice, TimelineData, TimelineRequest, cdf_csv,
    cdf_log_plot, cdf_plot, concurrency_plot, decode_window_plot, length_groups, prefill_plot, slices_plot,
    throughput_plot, timeline_plot, violin_plot,
};

/// 101 values that grow by a constant factor, from 1 ms to 10 s.
fn ttfc() -> CdfData {
    CdfData {
        metric: "ttfc".into(),
        display: "Time to First Chunk".into(),
        unit: "s".into(),
        count: 1_500,
        points: (0..=100)
            .map(|share| {
                let share = f64::from(share) / 100.0;
                (1e-3 * 10f64.powf(4.0 * share), share)
            })
            .collect(),
        counts: Vec::new(),
    }
}

/// Returns the texts of a drawing, in order.
pub(crate) fn words(svg: &str) -> Vec<&str> {
    svg.split("<text")
        .skip(1)
        .filter_map(|rest| rest.split_once('>')?.1.split_once("</text>"))
        .map(|(word, _)| word.trim())
        .collect()
}

/// Returns the elements of a kind with that color.
fn elements<'a>(svg: &'a str, kind: &str, color: &str) -> Vec<&'a str> {
    let begin = format!("<{kind} ");
    svg.split('<')
        .zip(std::iter::repeat(()))
        .filter_map(|(element, ())| {
            let whole = element.split_once('>')?.0;
            let named = format!("<{whole} ");
            (named.starts_with(&begin) && whole.contains(color)).then_some(whole)
        })
        .collect()
}

fn points_of(element: &str) -> usize {
    let points = element.split("points=\"").nth(1).unwrap();
    points.split('"').next().unwrap().split_whitespace().count()
}

const BLUE: &str = "#0072B2";
const VERMILLION: &str = "#D55E00";
const ORANGE: &str = "#E69F00";

fn pixels(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(
        (info.color_type, info.bit_depth),
        (png::ColorType::Rgb, png::BitDepth::Eight)
    );
    (info.width, info.height, pixels)
}

/// Returns the number of pixels with exactly this color.
fn count(pixels: &[u8], color: [u8; 3]) -> usize {
    pixels.chunks_exact(3).filter(|pixel| *pixel == color).count()
}

fn plots() -> Vec<(&'static str, Plot)> {
    let times = [0.02, 0.03, 0.05, 0.04, 0.2];
    let curve = |name: &str| TimeCurve {
        name: name.into(),
        points: vec![(0.0, 4.0), (1.0, 6.0), (2.0, 5.0)],
    };
    let level = |name: &str, most: f64| Level {
        name: name.into(),
        points: vec![(0.0, 0.0, 0.0), (0.5, most, most), (2.5, 0.0, 0.0)],
    };
    let request = |id: &str, at: f64, answered: bool| TimelineRequest {
        request: id.into(),
        intended: at,
        dispatched: at + 0.01,
        first_chunk: answered.then_some(at + 0.2),
        completed: at + 0.9,
        answered,
        measured: true,
    };
    vec![
        ("cdf", cdf_plot(&ttfc())),
        ("cdf_log", cdf_log_plot(&ttfc())),
        (
            "boxes",
            violin_plot(&BoxPlotData {
                display: "Time to First Chunk".into(),
                unit: "s".into(),
                grouped_by: "new prompt tokens (without history)".into(),
                groups: length_groups([(128, times.as_slice()), (1024, times.as_slice())]),
            }),
        ),
        (
            "throughput",
            throughput_plot(&ThroughputData {
                slice_seconds: 1.0,
                end: 60.0,
                requests_per_second: vec![curve("answered"), curve("failed")],
                tokens_per_second: vec![curve("output")],
            }),
        ),
        (
            "concurrency",
            concurrency_plot(&ConcurrencyData {
                levels: vec![level("in flight", 12.0), level("in prefill", 3.0)],
            }),
        ),
        (
            "timeline",
            timeline_plot(&TimelineData {
                requests: vec![request("0/0", 0.0, true), request("0/1", 1.0, false)],
                total: 2,
                choice: TimelineChoice::First,
                most: 60,
            }),
        ),
        (
            "prefill",
            prefill_plot(&PrefillData {
                groups: vec![(128.0, times.to_vec()), (256.0, times.to_vec())],
            }),
        ),
        (
            "slices",
            slices_plot(&SliceData {
                display: "Time to First Chunk".into(),
                unit: "s".into(),
                slice_seconds: 10.0,
                end: 20.0,
                slices: vec![
                    (0.0, 20, [Some(0.1), Some(0.2), Some(0.3)]),
                    (10.0, 0, [None, None, None]),
                    (20.0, 20, [Some(0.1), Some(0.2), Some(0.4)]),
                ],
            }),
        ),
    ]
}

#[test]
fn every_plot_has_its_size_and_axis_titles() {
    for (name, plot) in plots() {
        let png = plot.drawing.png().unwrap();
        let (width, height, pixels) = pixels(&png);
        assert_eq!((width, height), (800, 500), "{name}");
        let white = count(&pixels, [255; 3]);
        let all = pixels.len() / 3;
        assert!(
            white > all / 3 && white < all * 99 / 100,
            "{name}: {white} of {all} are white"
        );
        let coloured = |pixel: &&[u8]| pixel[0].abs_diff(pixel[2]) > 60;
        let drawn = pixels.chunks_exact(3).filter(coloured).count();
        assert!(drawn > 100, "{name}: only {drawn} pixels have a color");
        assert_eq!(png, plot.drawing.png().unwrap(), "{name}");
        let svg = plot.drawing.svg().unwrap();
        assert_eq!(svg, plot.drawing.svg().unwrap(), "{name}");
        assert!(
            svg.starts_with(r#"<svg width="800" height="500" viewBox="0 0 1600 1000""#),
            "{name}"
        );
        assert!(svg.contains(&plot.drawing.title), "{name}");
        for chart in &plot.drawing.charts {
            assert!(
                words(&svg).iter().any(|word| word.starts_with(&chart.y.label)),
                "{name}"
            );
        }
    }
}

#[test]
fn axes_have_units() {
    let labels = [
        ("cdf", vec!["Time to First Chunk (s)", "share of samples (%)"]),
        (
            "cdf_log",
            vec![
                "Time to First Chunk (log scale)",
                "10 ms",
                "100 ms",
                "1 s",
                "10 s",
            ],
        ),
        (
            "boxes",
            vec![
                "Time to First Chunk (ms)",
                "new prompt tokens (without history)",
                "128",
                "1,024",
            ],
        ),
        (
            "throughput",
            vec![
                "requests (1/s)",
                "tokens (1/s)",
                "time since the start of the run (s)",
                "answered",
                "failed",
            ],
        ),
        (
            "concurrency",
            vec![
                "requests",
                "in flight",
                "in prefill",
                "maximum: in flight 12 · in prefill 3",
            ],
        ),
        (
            "timeline",
            vec!["0/0", "0/1", "prefill", "decode", "failed", "waiting to be sent"],
        ),
        (
            "prefill",
            vec![
                "new prompt tokens (without history)",
                "Time to First Chunk (ms)",
                "median",
            ],
        ),
        (
            "slices",
            vec!["P50", "P90", "P99", "Time to First Chunk (ms)", "slices of 10 s"],
        ),
    ];
    for ((name, plot), (expected_of, expected)) in plots().into_iter().zip(labels) {
        assert_eq!(name, expected_of);
        let svg = plot.drawing.svg().unwrap();
        for word in expected {
            assert!(words(&svg).contains(&word), "{name}: {word} in {:?}", words(&svg));
        }
    }
}

#[test]
fn drawing_shows_every_data_point() {
    let of = |name: &str| {
        let plot = plots().into_iter().find(|(other, _)| *other == name).unwrap().1;
        plot.drawing.svg().unwrap()
    };
    // On the log axis the points are evenly spaced, so that no two fall together.
    let svg = of("cdf_log");
    let lines = elements(&svg, "polyline", BLUE);
    assert_eq!(lines.iter().map(|line| points_of(line)).max(), Some(101));
    assert_eq!(elements(&svg, "circle", VERMILLION).len(), 3, "P50, P90, P99");
    // Two lengths of five requests each, and a sample in the legend.
    assert_eq!(elements(&of("prefill"), "circle", BLUE).len(), 11);
    // A prefill for each of two requests and one in the legend.
    assert_eq!(elements(&of("timeline"), "rect", ORANGE).len(), 3);
    // Two medians.
    let boxes = of("boxes");
    assert_eq!(
        elements(&boxes, "polyline", VERMILLION).len() + elements(&boxes, "line", VERMILLION).len(),
        2
    );
}

#[test]
fn csv_contains_the_given_data() {
    let table = |csv: &str| -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(csv.as_bytes());
        reader
            .records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect())
            .collect()
    };
    let of = |name: &str| {
        let plot = plots().into_iter().find(|(other, _)| *other == name).unwrap().1;
        table(&plot.csv)
    };
    let data = ttfc();
    let rows = table(&cdf_csv(&data));
    // Veeksha's: pandas writes its index under an empty heading.
    assert_eq!(rows[0], ["", "cdf", "Time to First Chunk"]);
    assert_eq!(rows.len(), 102);
    for (index, (row, (value, share))) in rows[1..].iter().zip(&data.points).enumerate() {
        assert_eq!(row[0], index.to_string());
        assert_eq!(row[1].parse::<f64>().unwrap(), *share);
        assert_eq!(row[2].parse::<f64>().unwrap(), *value);
    }
    assert_eq!(
        cdf_csv(&CdfData {
            display: "Nothing".into(),
            ..CdfData::default()
        }),
        ",cdf,Nothing\n"
    );
    assert_eq!(
        of("throughput")[..2],
        [
            [
                "time (s)",
                "answered requests (1/s)",
                "failed requests (1/s)",
                "output tokens (1/s)"
            ],
            ["0.0", "4.0", "4.0", "4.0"]
        ]
    );
    assert_eq!(of("slices")[2], ["10.0", "0", "", "", ""]);
    assert_eq!(
        of("timeline")[2],
        ["0/1", "1.0", "1.01", "", "1.9", "false", "true"]
    );
    assert_eq!(of("prefill").len(), 11);
    let boxes = of("boxes");
    assert_eq!(
        boxes[0][..3],
        ["new prompt tokens (without history)", "count", "mean (s)"]
    );
    assert_eq!(boxes[2][..2], ["1024", "5"]);
    assert_eq!(of("concurrency")[2], ["0.5", "12.0", "12.0", "3.0", "3.0"]);
}

#[test]
fn shades_decode_windows() {
    let data = DecodeWindowData {
        in_decode: Level {
            name: "in decode".into(),
            points: vec![(0.0, 1.0, 1.0), (2.0, 4.0, 4.0), (6.0, 0.0, 0.0), (8.0, 0.0, 0.0)],
        },
        least: 4,
        windows: vec![(2.0, 6.0)],
    };
    let plot = decode_window_plot(&data);
    let svg = plot.drawing.svg().unwrap();
    let shades = elements(&svg, "polygon", ORANGE);
    assert_eq!(shades.len(), 1);
    // It begins and ends where the window does: a quarter and three quarters of the axis, whose 8 s
    // have a margin of 4 %.
    let points = shades[0]
        .split("points=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let xs: Vec<f64> = points
        .split_whitespace()
        .map(|point| point.split(',').next().unwrap().parse().unwrap())
        .collect();
    let axis = elements(&svg, "polyline", BLUE)
        .iter()
        .filter(|line| points_of(line) > 2)
        .flat_map(|line| {
            line.split("points=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .split_whitespace()
        })
        .map(|point| point.split(',').next().unwrap().parse::<f64>().unwrap())
        .fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let part = |x: f64| (x - axis.0) / (axis.1 - axis.0);
    let (from, to) = (
        xs.iter().copied().fold(f64::MAX, f64::min),
        xs.iter().copied().fold(f64::MIN, f64::max),
    );
    assert!(
        (part(from) - 0.25).abs() < 0.01 && (part(to) - 0.75).abs() < 0.01,
        "{xs:?} {axis:?}"
    );
    assert!(words(&svg).contains(&"shaded: 1 window with at least 4 at once"));
}

#[test]
fn foreign_names_cannot_break_a_drawing() {
    let hostile = "a <b> & \"c\" ]]> \u{1F600}";
    let plot = cdf_plot(&CdfData {
        display: hostile.into(),
        unit: hostile.into(),
        ..ttfc()
    });
    let svg = plot.drawing.svg().unwrap();
    assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt; &amp;"), "{svg}");
    plot.drawing.png().unwrap();
    // A name of any length is kept within the drawing.
    let long = cdf_plot(&CdfData {
        display: "x".repeat(500),
        ..ttfc()
    });
    let svg = long.drawing.svg().unwrap();
    assert!(words(&svg).iter().all(|word| word.chars().count() < 120));
}

#[test]
fn draws_empty_and_invalid_data() {
    let nothing = cdf_plot(&CdfData::default()).drawing;
    assert!(nothing.svg().unwrap().contains("no samples"));
    nothing.png().unwrap();
    for points in [
        vec![(f64::NAN, 0.5), (f64::INFINITY, 1.0)],
        vec![(0.0, 0.0), (0.0, 1.0)],
        vec![(-5.0, 0.0), (5.0, 1.0)],
        vec![(1e-300, 0.0), (f64::MAX, 1.0)],
        vec![(1.0, 1.0)],
    ] {
        let data = CdfData { points, ..ttfc() };
        for plot in [cdf_plot(&data), cdf_log_plot(&data)] {
            let svg = plot.drawing.svg().unwrap();
            assert!(!svg.contains("NaN") && !svg.contains(">inf"), "{data:?}");
            plot.drawing.png().unwrap();
        }
    }
    let empty = [
        throughput_plot(&ThroughputData::default()),
        concurrency_plot(&ConcurrencyData::default()),
        violin_plot(&BoxPlotData::default()),
        prefill_plot(&PrefillData::default()),
        slices_plot(&SliceData::default()),
    ];
    for plot in empty {
        plot.drawing.png().unwrap();
        assert!(
            plot.drawing.svg().unwrap().contains("no "),
            "{}",
            plot.drawing.title
        );
    }
}

#[test]
fn draws_nothing_for_zeros_on_a_log_axis() {
    // Half of the samples are 0: the line begins at 1 ms, at half of the height.
    let positive = ttfc()
        .points
        .into_iter()
        .map(|(value, share)| (value, 0.5 + share / 2.0));
    let points: Vec<(f64, f64)> = [(0.0, 0.0), (0.0, 0.5)].into_iter().chain(positive).collect();
    let data = CdfData { points, ..ttfc() };
    let lowest = |plot: Plot| {
        let svg = plot.drawing.svg().unwrap();
        let line = elements(&svg, "polyline", BLUE)[0].to_owned();
        let points = line
            .split("points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned();
        let heights = points
            .split_whitespace()
            .map(|point| point.split(',').nth(1).unwrap().parse::<f64>());
        heights.map(Result::unwrap).fold(0.0, f64::max)
    };
    let whole = lowest(cdf_log_plot(&ttfc()));
    let top = 2.0 * lowest(cdf_log_plot(&data)) - whole;
    assert!(
        lowest(cdf_plot(&data)) > whole - 3.0,
        "the linear plot begins at 0"
    );
    assert!(
        top > 50.0 && top < 300.0,
        "the log plot begins at half of the height: {top} {whole}"
    );
    let svg = cdf_log_plot(&data).drawing.svg().unwrap();
    assert!(
        words(&svg)
            .iter()
            .any(|word| word.ends_with("50 % at 0, not on the log axis"))
    );
}

#[test]
fn writes_plots_to_the_run_folder() {
    let output = tempdir().unwrap();
    let run = RunFolder::create(output.path(), "seed: 1\n", "20_11_2026-22_31_19").unwrap();
    run.write_cdf("metrics/ttfc", &ttfc()).unwrap();
    let even = CdfData {
        metric: "num_output_tokens".into(),
        unit: "tokens".into(),
        points: vec![(60.0, 0.0), (64.0, 1.0)],
        ..ttfc()
    };
    run.write_cdf("metrics/num_output_tokens", &even).unwrap();
    let nothing = CdfData {
        metric: "nothing".into(),
        ..CdfData::default()
    };
    run.write_cdf("metrics/nothing", &nothing).unwrap();
    run.write_plot("metrics/prefill_by_length", &plots().remove(6).1)
        .unwrap();
    let mut names: Vec<String> = fs::read_dir(run.path().join("metrics"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "num_output_tokens.csv",
            "num_output_tokens.png",
            "num_output_tokens.svg",
            "prefill_by_length.csv",
            "prefill_by_length.png",
            "prefill_by_length.svg",
            "ttfc.csv",
            "ttfc.png",
            "ttfc.svg",
            "ttfc_log_x.png",
            "ttfc_log_x.svg",
        ]
    );
    let png = fs::read(run.path().join("metrics/ttfc.png")).unwrap();
    assert_eq!(png, cdf_plot(&ttfc()).drawing.png().unwrap());
}

#[test]
fn names_plot_that_cannot_be_written() {
    let output = tempdir().unwrap();
    let run = RunFolder::create(output.path(), "seed: 1\n", "20_11_2026-22_31_19").unwrap();
    std::fs::create_dir(run.path().join("metrics/ttfc.png")).unwrap();
    let error = run.write_plot("metrics/ttfc", &cdf_plot(&ttfc())).unwrap_err();
    assert!(
        matches!(&error, ReportError::Write { path, .. } if path.ends_with("metrics/ttfc.png")),
        "{error}"
    );
}
