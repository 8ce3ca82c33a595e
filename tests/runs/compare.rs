//! Comparisons of runs: equal ones, a slower one, another workload, several runs per side, and
//! machine-readable output.

mod caches;
mod cells;
mod files;
mod gates;
mod hostile_names;
mod loads_and_losses;
mod sent_requests;
mod slos;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::simulated::{labelled, path, simulated};
use crate::support::{assert_code, stderr, stdout, veeksha};

/// The compared runs, made once: two of one scenario, one on a slower engine, one of another
/// workload.
struct Runs {
    _folder: tempfile::TempDir,
    folder: PathBuf,
    first: PathBuf,
    second: PathBuf,
    slower: PathBuf,
    other: PathBuf,
}

fn runs() -> &'static Runs {
    static RUNS: std::sync::OnceLock<Runs> = std::sync::OnceLock::new();
    RUNS.get_or_init(|| {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = temporary.path().to_owned();
        let run = |name: &str, more: &[&str]| {
            let within = folder.join(name);
            std::fs::create_dir_all(&within).expect("a folder");
            simulated(&within, "s.lua", &labelled(80, "", ""), more)
        };
        Runs {
            first: run("same", &[]),
            second: run("same", &[]),
            slower: run("slower", &["--profile", "slow"]),
            other: run("other", &["--seed", "8"]),
            folder: folder.clone(),
            _folder: temporary,
        }
    })
}

fn compare(sides: &[&Path], more: &[&str]) -> Output {
    let mut arguments = vec!["compare"];
    arguments.extend(sides.iter().map(|side| path(side)));
    arguments.extend(more);
    veeksha(arguments)
}

/// Returns the comparison as JSON, and asserts that nothing else is printed.
fn compared(sides: &[&Path], more: &[&str], code: i32) -> Value {
    let output = compare(sides, &[&["--json", "-"], more].concat());
    assert_code(&output, code);
    serde_json::from_str(&stdout(&output)).expect("one JSON object and nothing else")
}

fn verdicts<'a>(comparison: &'a Value, metric: &str) -> Vec<&'a str> {
    let rows = comparison["candidates"][0]["rows"].as_array().expect("rows");
    let of_it = rows.iter().filter(|row| row["name"] == metric);
    of_it
        .map(|row| row["verdict"].as_str().expect("a verdict"))
        .collect()
}

#[test]
fn equal_runs_show_no_difference() {
    let runs = runs();
    let comparison = compared(
        &[&runs.first, &runs.second],
        &["--fail-if", "worse(any) or not_comparable"],
        0,
    );
    let candidate = &comparison["candidates"][0];
    assert_eq!(candidate["comparable"], true, "{}", candidate["obstacles"]);
    assert_eq!(comparison["fail_if"]["fails"], false);
    let rows = candidate["rows"].as_array().expect("rows");
    assert!(rows.len() > 20, "{} rows", rows.len());
    // No comparison judges this value.
    for row in rows.iter().filter(|row| row["name"] != "session_slowdown") {
        let verdict = row["verdict"].as_str().expect("a verdict");
        assert!(
            matches!(verdict, "no_difference_seen" | "not_enough_data"),
            "{row}"
        );
        assert!(
            row["difference"].is_null() || row["difference"].as_f64() == Some(0.0),
            "{row}"
        );
    }
    assert!(!verdicts(&comparison, "ttfc").is_empty());
    let table = compare(&[&runs.first, &runs.second], &[]);
    assert_code(&table, 0);
    assert!(
        stdout(&table).contains("no difference seen"),
        "{}",
        stdout(&table)
    );
}

#[test]
fn slower_engine_is_worse_and_faster_one_better() {
    let runs = runs();
    let worse = compared(&[&runs.first, &runs.slower], &["--fail-if", "worse(ttfc)"], 3);
    assert_eq!(worse["fail_if"]["fails"], true);
    assert!(
        verdicts(&worse, "ttfc").contains(&"worse"),
        "{:?}",
        verdicts(&worse, "ttfc")
    );
    let row = worse["candidates"][0]["rows"].as_array().expect("rows");
    let mean = row
        .iter()
        .find(|row| row["name"] == "ttfc" && row["statistic"].as_str().is_some_and(|of| of.contains("mean")));
    let mean = mean.expect("the mean TTFC");
    let interval = &mean["relative_interval"];
    let (low, high) = (interval[0].as_f64(), interval[1].as_f64());
    assert!(
        low > Some(0.0) && high > low,
        "the interval excludes no change: {mean}"
    );
    assert_eq!(
        (&mean["scale"], &mean["interval"]),
        (&Value::from("ratio"), &Value::Null)
    );
    let difference =
        mean["candidate"]["value"].as_f64().expect("B") - mean["baseline"]["value"].as_f64().expect("A");
    assert!((mean["difference"].as_f64().expect("a difference") - difference).abs() < 1e-12);

    let better = compared(
        &[&runs.slower, &runs.first],
        &["--fail-if", "worse(any)", "--metrics", "ttfc"],
        0,
    );
    assert!(verdicts(&better, "ttfc").contains(&"better"));
    for (term, code) in [
        ("p90(ttfc) > +5%", 3),
        ("mean(ttfc) > +1h", 0),
        ("error_rate > 1%", 0),
        ("p99(ttfc) > 1ms and not worse(error_rate)", 3),
        ("not (worse(ttfc) or worse(tbc))", 0),
    ] {
        let output = compare(
            &[&runs.first, &runs.slower],
            &["--fail-if", term, "--metrics", "ttfc,tbc"],
        );
        assert_eq!(output.status.code(), Some(code), "{term}: {}", stderr(&output));
        let outcome = if code == 3 { "fails" } else { "passes" };
        assert_eq!(
            stderr(&output).lines().last(),
            Some(format!("--fail-if {term}: {outcome}").as_str())
        );
    }
}

#[test]
fn another_workload_is_not_comparable() {
    let runs = runs();
    let comparison = compared(&[&runs.first, &runs.other], &["--metrics", "ttfc"], 0);
    let candidate = &comparison["candidates"][0];
    assert_eq!(candidate["comparable"], false);
    assert!(!candidate["obstacles"].as_array().expect("obstacles").is_empty());
    assert!(
        verdicts(&comparison, "ttfc")
            .iter()
            .all(|verdict| *verdict == "not_comparable")
    );
    // The setting that caused the difference is listed.
    let settings = candidate["settings"].as_array().expect("settings");
    assert!(
        settings.iter().any(|setting| setting["name"] == "seed"),
        "{settings:?}"
    );
    for term in ["not_comparable", "worse(ttfc)"] {
        let only = ["--fail-if", term, "--metrics", "ttfc"];
        let output = compare(&[&runs.first, &runs.other], &only);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{term}: what cannot be decided fails: {}",
            stderr(&output)
        );
    }
    let output = compare(&[&runs.first, &runs.other], &["--metrics", "ttfc"]);
    assert!(stdout(&output).contains("Not comparable"), "{}", stdout(&output));
}

/// A metric of a plugin with the unit `1`.
const RATIO: &str = r#"{ type = "performance" }, { type = "lua", name = "ratios", metrics = {
    ratio = { unit = "1", better = "less", summary = "a ratio", observe = function() return 0.5 end },
} }"#;

/// The functions of a repeated run are those of the copy of the script. A changed script is listed.
#[test]
fn lua_functions_are_compared_by_their_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = labelled(20, RATIO, "");
    let within = |name: &str| {
        let within = folder.path().join(name);
        std::fs::create_dir_all(&within).expect("a folder");
        within
    };
    let first = simulated(&within("first"), "s.lua", &text, &[]);
    let again = within("again");
    let repeated = veeksha(["simulate", path(&first), "--output_dir", path(&again), "-q"]);
    assert_code(&repeated, 0);
    let again = crate::results::latest(&again);
    let changed = text.replace("rng:int(4, 12)", "rng:int(4, 13)");
    let changed = simulated(&within("changed"), "s.lua", &changed, &[]);

    let settings = |other: &Path| compared(&[&first, other], &[], 0)["candidates"][0]["settings"].clone();
    assert_eq!(settings(&again), Value::Array(Vec::new()));
    let listed = settings(&changed).to_string();
    assert!(listed.contains("digest of workload s.lua"), "{listed}");
    assert!(!listed.contains("function at"), "{listed}");
}

#[test]
fn metrics_of_plugins_are_plain_ratios() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = simulated(folder.path(), "s.lua", &labelled(20, RATIO, ""), &[]);
    let table = |metric: &str| {
        let output = compare(&[&run, &run], &["--metrics", metric, "--all"]);
        stdout(&output)
    };
    let ratio = table("ratio");
    assert!(ratio.contains(" 0.5 ") && !ratio.contains("50 %"), "{ratio}");
    let share = table("fluidity");
    assert!(share.contains("100 %"), "{share}");
}

#[test]
fn folder_of_runs_is_one_side() {
    let runs = runs();
    let several = runs.folder.join("same/out");
    let comparison = compared(&[&several, &runs.slower], &["--metrics", "ttfc"], 0);
    assert_eq!(
        comparison["baseline"]["runs"].as_array().map(Vec::len),
        Some(2),
        "the link to the latest is not a run"
    );
    let rows = comparison["candidates"][0]["rows"].as_array().expect("rows");
    let ttfc = rows.iter().find(|row| row["name"] == "ttfc").expect("ttfc");
    // There are two runs, and they are copies of one another.
    assert!(ttfc["baseline"]["between_runs"].is_null(), "{ttfc}");
    let remarks = comparison["candidates"][0]["remarks"].to_string();
    assert!(remarks.contains("copies of one another"), "{remarks}");
    // Three sides: each candidate is compared with the first one.
    let three = compared(
        &[&runs.first, &runs.second, &runs.slower],
        &["--metrics", "ttfc"],
        0,
    );
    assert_eq!(three["candidates"].as_array().map(Vec::len), Some(2));
}

/// A server that fails a third of the requests passes no gate, with one run per side and with
/// several.
#[test]
fn failing_third_of_the_requests_is_worse() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = crate::support::scenario(
        folder.path(),
        "failing.yml",
        "faults: { status_500_probability: 0.33 }\n",
    );
    let text = labelled(
        60,
        r#"{ type = "performance", goodput = { "ttfc <= 900ms" } }"#,
        "",
    );
    let run = |side: &str, more: &[&str]| {
        let within = folder.path().join(side);
        std::fs::create_dir_all(&within).expect("a folder");
        simulated(&within, "s.lua", &text, more)
    };
    let (well, failing) = (run("well", &[]), run("failing", &["--profile", &profile]));
    let only = [
        "--metrics",
        "error_rate,goodput,never_sent_share,num_requests,num_errored_requests",
    ];
    for gate in ["worse(any)", "worse(error_rate)", "worse(goodput)"] {
        let more = [&only[..], &["--fail-if", gate]].concat();
        let comparison = compared(&[&well, &failing], &more, 3);
        let outcome = &comparison["fail_if"]["candidates"][0]["outcome"];
        assert_eq!(outcome, "fails", "{gate}: {}", comparison["fail_if"]);
    }
    let comparison = compared(
        &[&failing, &well],
        &[&only[..], &["--fail-if", "worse(any)"]].concat(),
        0,
    );
    let row = |name: &str| {
        let rows = comparison["candidates"][0]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect("the row")["baseline"].clone()
    };
    let value = |name: &str| row(name)["value"].as_f64().expect("a value");
    // The counts match the values.
    assert_eq!(
        row("error_rate")["part"].as_f64(),
        Some(value("num_errored_requests"))
    );
    assert_eq!(row("error_rate")["whole"].as_f64(), Some(value("num_requests")));
    for name in ["error_rate", "goodput", "never_sent_share"] {
        let of = |key: &str| row(name)[key].as_f64().expect("a number");
        assert!(
            (of("part") / of("whole") - of("value")).abs() < 1e-12,
            "{name}: {}",
            row(name)
        );
    }
    // In sessions whose first request failed, the second one was never sent.
    let asked_for = row("goodput")["whole"].as_f64().expect("a number");
    assert_eq!(asked_for, 120.0);
    assert!(value("num_requests") < asked_for && value("never_sent_share") > 0.0);
    // Two copies of a run carry as much information as one.
    run("well", &[]);
    run("failing", &["--profile", &profile]);
    let out = |side: &str| folder.path().join(side).join("out");
    let more = [&only[..], &["--fail-if", "worse(any)"]].concat();
    let copies = compared(&[&out("well"), &out("failing")], &more, 3);
    assert_eq!(verdicts(&copies, "error_rate"), ["worse"]);
    let remarks = copies["candidates"][0]["remarks"].as_array().expect("remarks");
    let told = remarks
        .iter()
        .filter(|remark| remark.as_str().is_some_and(|remark| remark.contains("copies")));
    assert_eq!(told.count(), 2, "{remarks:?}");
}

#[test]
fn compared_metrics_can_be_selected() {
    let runs = runs();
    let comparison = compared(&[&runs.first, &runs.slower], &["--metrics", "ttfc,tbc"], 0);
    assert!(!verdicts(&comparison, "ttfc").is_empty() && !verdicts(&comparison, "tbc").is_empty());
    assert!(verdicts(&comparison, "end_to_end_latency").is_empty());
    // Run-level values are also excluded, from the table and from the count, unless `--metrics` or
    // a gate names them.
    let names = |comparison: &Value| -> std::collections::BTreeSet<String> {
        let rows = comparison["candidates"][0]["rows"].as_array().expect("rows");
        let name = |row: &Value| row["name"].as_str().expect("a name").to_owned();
        rows.iter().map(name).collect()
    };
    assert_eq!(names(&comparison), ["tbc", "ttfc"].map(String::from).into());
    let remarks = comparison["candidates"][0]["remarks"].to_string();
    // Four statistics of each, except the P99 of 160 times to first chunk, which needs 500.
    assert!(remarks.contains("7 values with a better side"), "{remarks}");
    let gated = [
        "--metrics",
        "ttfc, error_rate",
        "--fail-if",
        "goodput < 1% or worse(e2e)",
    ];
    let gated = compare(
        &[&runs.first, &runs.slower],
        &[&gated[..], &["--json", "-"]].concat(),
    );
    let gated: Value = serde_json::from_str(&stdout(&gated)).expect("JSON");
    assert!(names(&gated).contains("end_to_end_latency") && names(&gated).contains("error_rate"));
    assert!(!names(&gated).contains("tbc"), "{:?}", names(&gated));
    let all = compare(&[&runs.first, &runs.second], &["--all"]);
    let some = compare(&[&runs.first, &runs.second], &[]);
    assert!(stdout(&all).lines().count() > stdout(&some).lines().count());
    // The same difference, below the threshold of relevance.
    let ignored = ["--metrics", "tbc", "--ignore-below", "99.9%"];
    let seen = compared(&[&runs.slower, &runs.first], &["--metrics", "tbc"], 0);
    assert!(verdicts(&seen, "tbc").contains(&"better"));
    let ignored = compared(&[&runs.slower, &runs.first], &ignored, 0);
    assert!(
        !verdicts(&ignored, "tbc").contains(&"better"),
        "{:?}",
        verdicts(&ignored, "tbc")
    );
}

#[test]
fn rejects_incomparable_sides_and_unknown_names() {
    let runs = runs();
    for (term, printed) in [
        ("worse(tftc)", "ttfc"),
        ("worse(ttfc", "column"),
        ("p99(ttfc) > +5tokens", "column"),
        ("p99(ttfc) > 5%", "column"),
        ("slower(ttfc)", "column 1"),
        ("", "--fail-if"),
    ] {
        let output = compare(&[&runs.first, &runs.second], &["--fail-if", term]);
        assert_eq!(output.status.code(), Some(2), "{term}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("--fail-if") && stderr(&output).contains(printed),
            "{term}: {}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "", "{term}");
    }
    let output = compare(&[&runs.first, &runs.second], &["--metrics", "tftc"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("did you mean `ttfc`?") && stderr(&output).contains(path(&runs.first)),
        "{}",
        stderr(&output)
    );
    let output = compare(&[&runs.first, &runs.second], &["--metrics", "ttfc,eror_rate"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("did you mean `error_rate`?"),
        "{}",
        stderr(&output)
    );
    let output = compare(&[&runs.first], &[]);
    assert_code(&output, 2);
    let empty = tempfile::tempdir().expect("a folder");
    let output = compare(&[&runs.first, empty.path()], &[]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("holds no record"), "{}", stderr(&output));
    let output = compare(&[&runs.first, &runs.second], &["--confidence", "2"]);
    assert_code(&output, 2);
}

#[test]
fn run_compared_with_itself_is_remarked_also_through_a_link() {
    let runs = runs();
    let remarks = |comparison: &Value| comparison["candidates"][0]["remarks"].to_string();
    let comparison = compared(&[&runs.first, &runs.first], &["--metrics", "ttfc"], 0);
    assert!(remarks(&comparison).contains("is on both sides"), "{comparison}");
    #[cfg(unix)]
    {
        let link = runs.folder.join("a link to the first");
        std::os::unix::fs::symlink(&runs.first, &link).expect("a link");
        let comparison = compared(&[&runs.first, &link], &["--metrics", "ttfc"], 0);
        assert!(remarks(&comparison).contains("is on both sides"), "{comparison}");
    }
    // A copy is recognized by its record, wherever it is.
    let copy = runs.folder.join("a copy of the first");
    std::fs::create_dir_all(copy.join("record")).expect("a folder");
    for file in std::fs::read_dir(runs.first.join("record")).expect("a record") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), copy.join("record").join(file.file_name())).expect("a copy");
    }
    std::fs::copy(runs.first.join("config.yml"), copy.join("config.yml")).expect("a copy");
    let comparison = compared(&[&runs.first, &copy], &["--metrics", "ttfc"], 0);
    assert!(
        remarks(&comparison).contains("are copies of one run, which is on both sides"),
        "{comparison}"
    );
    let comparison = compared(&[&runs.first, &runs.second], &["--metrics", "ttfc"], 0);
    assert!(!remarks(&comparison).contains("is on both sides"), "{comparison}");
    // Simulated with the same seed.
    assert!(
        remarks(&comparison).contains("agree in every sample"),
        "{comparison}"
    );
}

#[test]
fn slowdowns_are_shown_and_not_judged() {
    let runs = runs();
    let comparison = compared(
        &[&runs.first, &runs.slower],
        &["--metrics", "session_slowdown"],
        0,
    );
    let slowdowns = verdicts(&comparison, "session_slowdown");
    assert!(!slowdowns.is_empty() && slowdowns.iter().all(|verdict| *verdict == "not_comparable"));
    let row = &comparison["candidates"][0]["rows"][0];
    assert!(row["relative"].is_number(), "{row}");
    assert!(
        row["remark"]
            .as_str()
            .is_some_and(|why| why.contains("own shortest times")),
        "{row}"
    );
}

/// Copies the slower run without one table of its record.
fn damaged(folder: &Path) -> PathBuf {
    let damaged = folder.join("damaged");
    std::fs::create_dir_all(damaged.join("record")).expect("a folder");
    for file in ["config.yml", "record/requests.parquet"] {
        std::fs::copy(runs().slower.join(file), damaged.join(file)).expect("a copy");
    }
    damaged
}

/// A run whose record lacks a table is INVALID: it has no verdict unless `--allow-invalid` requests
/// one.
#[test]
fn damaged_run_is_compared_only_with_allow_invalid() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = damaged(folder.path());
    let sides: &[&Path] = &[&runs.first, &damaged];
    let refused = compared(sides, &[], 0);
    let obstacles = refused["candidates"][0]["obstacles"].to_string();
    assert!(
        obstacles.contains("damaged is INVALID: parts of the record could not be read"),
        "{obstacles}"
    );
    let all: Vec<&str> = ["ttfc", "tbc", "end_to_end_latency", "error_rate"]
        .iter()
        .flat_map(|metric| verdicts(&refused, metric))
        .collect();
    assert!(
        !all.is_empty() && all.iter().all(|verdict| *verdict == "not_comparable"),
        "{all:?}"
    );
    compared(sides, &["--fail-if", "worse(ttfc)"], 3);

    let judged = compared(sides, &["--allow-invalid", "--fail-if", "worse(ttfc)"], 3);
    assert!(verdicts(&judged, "ttfc").contains(&"worse"));
    assert!(verdicts(&judged, "end_to_end_latency").contains(&"worse"));
}

#[test]
fn help_lists_exit_codes_of_gates() {
    let help = stdout(&veeksha(["compare", "--help"]));
    for text in ["Exit with code 3", "--allow-invalid", "cell by cell"] {
        assert!(help.contains(text), "{text} in {help}");
    }
}
