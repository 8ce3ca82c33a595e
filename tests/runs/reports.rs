//! The page and the plots: complete, self-contained, and safe with hostile input from a workload.

use std::path::{Path, PathBuf};

use quick_xml::events::Event;

use crate::simulated::{labelled, simulated};

/// Returns the element names of an XML text in the order of their start tags. Panics if the text is
/// not well-formed.
#[track_caller]
pub(crate) fn elements(text: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut names = Vec::new();
    loop {
        match reader.read_event() {
            Ok(Event::Start(element) | Event::Empty(element)) => {
                for attribute in element.attributes() {
                    attribute.expect("an attribute");
                }
                names.push(String::from_utf8_lossy(element.name().as_ref()).into_owned());
            }
            Ok(Event::Eof) => return names,
            Ok(_) => {}
            Err(error) => panic!("not XML: {error}"),
        }
    }
}

/// Hostile text for labels and names, which attempts to break out of a page.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

/// Returns a run whose labels, plugin and objective are hostile, made once.
fn run() -> &'static Path {
    static RUN: std::sync::OnceLock<(tempfile::TempDir, PathBuf)> = std::sync::OnceLock::new();
    let (_, run) = RUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = format!(
            r#"{{ type = "performance", slos = {{ {{ type = "constant", metric = "ttfc", percentile = 0.5, value = 5, name = "{HOSTILE}" }} }} }},
               {{ type = "lua", name = "mine", metrics = {{ mine = {{ unit = "1", summary = "{HOSTILE} & <b>",
                  observe = function(request) return 1 + request.session % 2 end }} }},
                 check = function(results) return {{ {{ name = "{HOSTILE}", met = true, threshold = 1, detail = "<!-- <script>" }} }} end }}"#
        );
        let text = labelled(60, &asked, "").replace("\"free\"", &format!("\"{HOSTILE}\""));
        assert!(text.contains(&format!("else \"{HOSTILE}\"")), "the label is hostile");
        let run = simulated(folder.path(), "s.lua", &text, &[]);
        (folder, run)
    });
    run
}

fn files(end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run().join("metrics")).expect("a folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|of| of == end))
        .collect();
    files.sort();
    files
}

#[test]
fn page_is_one_file_without_requests() {
    let page = std::fs::read_to_string(run().join("report.html")).expect("a page");
    let lower = page.to_lowercase();
    assert!(lower.starts_with("<!doctype html>"));
    assert!(page.contains("Content-Security-Policy") && page.contains("default-src 'none'"));
    // Every way to load a resource.
    for loads in [
        "<link",
        "src=\"",
        "src='",
        "@import",
        "url(",
        "<iframe",
        "<object",
        "<embed",
        "fetch('http",
        "fetch(\"http",
    ] {
        let outside = page
            .match_indices(loads)
            .map(|(at, _)| &page[at..(at + 80).min(page.len())])
            .find(|place| !place.contains("data:"));
        assert_eq!(outside, None, "{loads}");
    }
    for (at, _) in lower.match_indices("href=") {
        let target = &page[at + 5..(at + 40).min(page.len())];
        assert!(
            ["#", "data:,"]
                .iter()
                .any(|inside| target.trim_start_matches(['"', '\'']).starts_with(inside)),
            "a link out of the page: {target}"
        );
    }
}

#[test]
fn hostile_text_is_inert() {
    let page = std::fs::read_to_string(run().join("report.html")).expect("a page");
    assert!(!page.contains("<img src=x"), "the words are markup");
    // The texts are present for the reader, in data, where they cannot end the enclosing element.
    assert!(page.contains("onerror=alert(1)"), "the label is shown");
    assert_eq!(
        page.matches("</script").count(),
        page.matches("<script").count(),
        "each script ends where it should"
    );
    let data = page
        .split("<script")
        .filter(|script| script.contains("onerror=alert(1)"));
    assert!(data.count() > 0);
    // Files for other programs are escaped for their formats.
    for file in files("svg") {
        let text = std::fs::read_to_string(&file).expect("a drawing");
        assert!(
            !text.contains("<img") && !text.contains("<script"),
            "{}",
            file.display()
        );
    }
    let rows = crate::results::lines(run(), "metrics/request_level_metrics.jsonl");
    assert!(
        rows.iter()
            .any(|row| row["labels"].to_string().contains("onerror"))
    );
}

#[test]
fn pictures_can_be_decoded_and_are_not_empty() {
    let pictures = files("png");
    assert!(pictures.len() >= 20, "{} pictures", pictures.len());
    for file in pictures {
        let bytes = std::io::BufReader::new(std::fs::File::open(&file).expect("a picture"));
        let mut reader = png::Decoder::new(bytes).read_info().expect("a PNG");
        let size = reader.output_buffer_size().expect("a size that fits");
        let mut pixels = vec![0; size];
        let info = reader.next_frame(&mut pixels).expect("whole");
        assert!(info.width >= 400 && info.height >= 200, "{}", file.display());
        let pixels = &pixels[..info.buffer_size()];
        let drawn = pixels.iter().filter(|byte| **byte != pixels[0]).count();
        assert!(drawn * 200 > pixels.len(), "{} is blank", file.display());
    }
}

#[test]
fn plots_are_well_formed_and_have_a_csv_file() {
    let drawings = files("svg");
    assert_eq!(
        drawings.len(),
        files("png").len(),
        "each picture is there in both forms"
    );
    for file in drawings {
        let names = elements(&std::fs::read_to_string(&file).expect("a drawing"));
        assert_eq!(
            names.first().map(String::as_str),
            Some("svg"),
            "{}",
            file.display()
        );
        assert!(
            names.iter().any(|name| name == "text"),
            "{} has words on its axes",
            file.display()
        );
        assert!(file.with_extension("png").exists(), "{}", file.display());
        // A plot of the same data on another axis shares the data file.
        let stem = file.file_stem().expect("a stem").to_string_lossy().into_owned();
        let stem = ["_log_x", "_log_y"]
            .iter()
            .fold(stem, |stem, end| stem.trim_end_matches(end).to_owned());
        let data = file.with_file_name(format!("{stem}.csv"));
        let text =
            std::fs::read_to_string(&data).unwrap_or_else(|error| panic!("{}: {error}", data.display()));
        let mut lines = text.lines();
        let columns = lines.next().expect("a header").split(',').count();
        assert!(columns >= 2, "{}", data.display());
        assert!(lines.clone().count() >= 1, "{} has no rows", data.display());
        if !text.contains('"') {
            assert!(
                lines.all(|line| line.split(',').count() == columns),
                "{}",
                data.display()
            );
        }
    }
}

/// Every metric of the run has a plot, including those of plugins.
#[test]
fn plugin_metrics_are_plotted_and_listed_like_built_in_ones() {
    for end in ["csv", "png", "svg"] {
        assert!(
            run().join(format!("metrics/plugins/mine.{end}")).exists(),
            "{end}"
        );
    }
    let summary = crate::results::json(run(), "metrics/summary_stats.json");
    assert_eq!(summary["mine (Count)"], 120);
    // Half of the sessions report 1, the other half 2.
    assert_eq!(summary["mine (Mean)"].as_f64(), Some(1.5));
    let page = std::fs::read_to_string(run().join("report.html")).expect("a page");
    assert!(page.contains("\"mine\""));
}
