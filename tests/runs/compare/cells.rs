//! Sweeps against sweeps, cell by cell.

use super::*;

/// Carries out a sweep: two cover the same rates, and one has fewer rates on a slower engine.
fn sweep(folder: &Path, rates: &str, more: &[&str]) -> PathBuf {
    let text = format!(
        "seed: 7\nsession_generator: {{type: synthetic, channels: [{{type: text, body_length_generator: {{type: fixed, value: 32}}}}]}}\n\
         traffic_scheduler: {{type: rate, interval_generator: {{type: poisson, arrival_rate: !expand {rates}}}}}\n\
         client: {{type: openai_chat_completions, api_base: 'sim://default'}}\n\
         runtime: {{max_sessions: 60, benchmark_timeout: 60}}\n"
    );
    std::fs::create_dir_all(folder).expect("a folder");
    let file = crate::support::scenario(folder, "sweep.yml", &text);
    let out = folder.join("out");
    let mut arguments = vec!["simulate", &file, "--output_dir", path(&out)];
    arguments.extend(more);
    assert_code(&veeksha(arguments), 0);
    let entries = std::fs::read_dir(&out)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path());
    let mut sweeps: Vec<PathBuf> = entries
        .filter(|path| path.join("sweep_manifest.json").exists())
        .collect();
    sweeps.pop().expect("a sweep")
}

#[test]
fn sweeps_are_compared_cell_by_cell() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let first = sweep(&at("a"), "[10, 20]", &[]);
    let same = sweep(&at("b"), "[20, 10]", &[]);
    let slower = sweep(&at("c"), "[10, 20]", &["--profile", "slow"]);
    let longer = sweep(&at("d"), "[10, 40]", &[]);
    let cells = |comparison: &Value| -> Vec<(String, bool)> {
        let candidates = comparison["candidates"].as_array().expect("candidates");
        let cell = |candidate: &Value| {
            let name = candidate["cell"].as_str().expect("a cell").to_owned();
            (
                name,
                candidate["comparable"].as_bool().expect("comparable or not"),
            )
        };
        candidates.iter().map(cell).collect()
    };
    let named = |name: &str, comparable: bool| (name.to_owned(), comparable);
    // In another order, and without differences.
    let comparison = compared(
        &[&first, &same],
        &["--fail-if", "worse(any) or not_comparable"],
        0,
    );
    assert_eq!(
        cells(&comparison),
        [named("arrival_rate = 10", true), named("arrival_rate = 20", true)]
    );
    assert_eq!(
        comparison["candidates"][0]["runs"].as_array().map(Vec::len),
        Some(1)
    );

    let (junit, html) = (at("c.xml"), at("c.html"));
    let files = [
        "--fail-if",
        "worse(ttfc)",
        "--github",
        "--junit",
        path(&junit),
        "--html",
        path(&html),
    ];
    let output = compare(&[&first, &slower], &files);
    assert_code(&output, 3);
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
    for text in [stdout(&output), stderr(&output), read(&junit), read(&html)] {
        for cell in ["arrival_rate = 10", "arrival_rate = 20"] {
            assert!(text.contains(cell), "{cell} in {text}");
        }
    }

    // A missing cell is reported and passes no gate.
    let comparison = compared(
        &[&first, &longer],
        &["--metrics", "ttfc", "--fail-if", "worse(ttfc)"],
        3,
    );
    assert_eq!(
        cells(&comparison),
        [
            named("arrival_rate = 10", true),
            named("arrival_rate = 20", false),
            named("arrival_rate = 40", false)
        ]
    );
    let outcomes: Vec<&Value> = (0..3)
        .map(|place| &comparison["fail_if"]["candidates"][place]["outcome"])
        .collect();
    assert_eq!(outcomes, ["passes", "undecided", "undecided"]);

    // A cell is not a repeat of another one.
    let run = runs().first.clone();
    let output = compare(&[&first, &run], &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("is a sweep"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("arrival_rate = 20"),
        "{}",
        stderr(&output)
    );
    // Sweeps in one folder are repeats of each cell.
    let repeats = sweep(&at("a"), "[10, 20]", &[])
        .parent()
        .expect("a folder")
        .to_owned();
    let comparison = compared(&[&repeats, &slower], &["--metrics", "ttfc"], 0);
    assert_eq!(
        comparison["candidates"][0]["baseline_runs"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

/// Secrets are in no file: cells are matched by their other settings, and cells that differ only in
/// a secret are never pooled.
#[test]
fn cells_that_differ_only_in_secrets_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let routes = |name: &str, values: &str| {
        let routes = format!("client.headers.x-route=!expand {values}");
        sweep(&folder.path().join(name), "[10, 20]", &["--set", &routes])
    };
    let first = routes("a", "[swift-route, slow-route]");
    let second = routes("b", "[swift-route, slow-route]");
    let manifest = first.join("sweep_manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("the manifest");
    assert!(!text.contains("swift-route") && text.contains("***"), "{text}");
    let output = compare(&[&first, &second], &[]);
    assert_code(&output, 2);
    let refused = stderr(&output);
    assert!(
        refused.contains("several runs with") && refused.contains("client.headers.x-route = ***"),
        "{refused}"
    );
    assert!(refused.contains("compare its runs individually:\n"), "{refused}");

    // Here another setting distinguishes the cells.
    let client = |base: &str, route: &str| {
        format!("{{type: openai_chat_completions, api_base: 'sim://{base}', headers: {{x-route: {route}}}}}")
    };
    let clients = format!(
        "client=!expand [{}, {}]",
        client("default", "swift-route"),
        client("fast", "slow-route")
    );
    let [first, second] =
        ["c", "d"].map(|name| sweep(&folder.path().join(name), "[10]", &["--set", &clients]));
    let comparison = compared(&[&first, &second], &["--metrics", "ttfc"], 0);
    let candidates = comparison["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), 2, "{candidates:?}");
    for candidate in candidates {
        assert_eq!(candidate["baseline_runs"].as_array().map(Vec::len), Some(1));
        let remarks = candidate["remarks"].to_string();
        assert!(
            remarks.contains("x-route is redacted in sweep manifests"),
            "{remarks}"
        );
    }
}
