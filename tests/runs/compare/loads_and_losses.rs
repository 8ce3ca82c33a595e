//! Runs with different requested loads, and a run that lost its slow requests: neither makes a
//! server better.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{compare, compared, verdicts};
use crate::simulated::{labelled, simulated};
use crate::support::{assert_code, root, stderr, stdout};

/// An evaluator with goodput.
const JUDGED: &str = r#"{ type = "performance", goodput = { "ttfc <= 900ms" } }"#;

/// Carries out a run in a separate folder with this name.
fn run(folder: &Path, name: &str, text: &str, more: &[&str]) -> PathBuf {
    let within = folder.join(format!("made {name}"));
    std::fs::create_dir_all(&within).expect("a folder");
    let made = simulated(&within, "s.lua", text, more);
    let named = folder.join(name);
    std::fs::rename(made, &named).expect("the folder of a run moves");
    named
}

fn row<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let rows = comparison["candidates"][0]["rows"].as_array().expect("rows");
    let mut named = rows.iter().filter(|row| row["name"] == name);
    named.next().unwrap_or_else(|| panic!("no {name}"))
}

fn first_remark(comparison: &Value) -> &str {
    let remarks = &comparison["candidates"][0]["remarks"];
    remarks[0].as_str().expect("a remark")
}

/// The same server, with a client whose timeout excludes the slower half of the requests.
#[test]
fn a_run_that_lost_its_slow_requests_is_not_better() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = labelled(200, JUDGED, "");
    let whole = run(folder.path(), "whole", &text, &[]);
    let comparison = compared(&[&whole, &whole], &["--metrics", "end_to_end_latency"], 0);
    let median = &comparison["candidates"][0]["rows"][1];
    assert_eq!(median["statistic"], "p50");
    let median = median["baseline"]["value"]
        .as_f64()
        .expect("a median")
        .to_string();
    let impatient = run(
        folder.path(),
        "impatient",
        &text,
        &["--client.request_timeout", &median],
    );

    for gate in ["worse(ttfc)", "worse(end_to_end_latency)"] {
        let comparison = compared(&[&whole, &impatient], &["--fail-if", gate], 3);
        assert_eq!(
            comparison["fail_if"]["candidates"][0]["outcome"], "undecided",
            "{gate}"
        );
    }
    let comparison = compared(&[&whole, &impatient], &["--fail-if", "worse(any)"], 3);
    assert_eq!(comparison["fail_if"]["candidates"][0]["outcome"], "fails");
    assert_eq!(verdicts(&comparison, "error_rate"), ["worse"]);
    let of_latencies = verdicts(&comparison, "end_to_end_latency");
    assert_eq!(of_latencies[0], "survivors_only", "{of_latencies:?}");
    for name in ["ttfc", "tbc", "end_to_end_latency", "e2e_from_intended", "tpot"] {
        assert!(!verdicts(&comparison, name).contains(&"better"), "{name}");
    }
    // The counts are those of the run: all requests were due, and the answered ones completed.
    let answered = &comparison["candidates"][0]["answered"];
    assert_eq!(answered["baseline"]["part"], answered["baseline"]["whole"]);
    let completed = row(&comparison, "num_completed_requests")["candidate"]["value"].as_f64();
    assert_eq!(answered["candidate"]["part"].as_f64(), completed);
    assert_eq!(
        answered["candidate"]["whole"],
        row(&comparison, "goodput")["candidate"]["whole"]
    );
    assert!(
        first_remark(&comparison).contains("cover the survivors only"),
        "{}",
        first_remark(&comparison)
    );
    let table = compare(&[&whole, &impatient], &["--metrics", "ttfc,goodput"]);
    let marked = stdout(&table)
        .lines()
        .any(|line| line.starts_with("! ttfc mean") && line.contains("survivors only"));
    assert!(marked, "{}", stdout(&table));
}

#[test]
fn rates_under_different_loads_are_not_comparable() {
    let folder = tempfile::tempdir().expect("a folder");
    let at =
        |rate: &str| labelled(80, JUDGED, "").replace("arrival_rate = 60", &format!("arrival_rate = {rate}"));
    let [slow, fast] = ["30", "60"].map(|rate| run(folder.path(), &format!("rate {rate}"), &at(rate), &[]));
    let gate = ["--fail-if", "worse(requests_per_second)"];
    let comparison = compared(&[&fast, &slow], &gate, 3);
    assert_eq!(comparison["fail_if"]["candidates"][0]["outcome"], "undecided");
    assert_eq!(
        first_remark(&comparison),
        "the requested load of rate 60 is 60 sessions/s, that of rate 30 30 sessions/s: rates and counts follow the requested load and are not judged; latencies are those under these loads"
    );
    for name in [
        "requests_per_second",
        "good_requests_per_second",
        "input_tokens_per_second",
        "output_tokens_per_second",
        "total_tokens_per_second",
    ] {
        assert_eq!(verdicts(&comparison, name), ["not_comparable"], "{name}");
        assert!(row(&comparison, name)["difference"].is_f64(), "{name}");
    }
    assert_ne!(verdicts(&comparison, "ttfc")[0], "not_comparable");
    assert_ne!(verdicts(&comparison, "error_rate")[0], "not_comparable");

    // In a closed loop the server determines the rate.
    let open = r#"type = "rate", interval_generator = { type = "poisson", arrival_rate = 60 }"#;
    let closed = |sessions: u32| {
        let traffic =
            format!(r#"type = "concurrent", target_concurrent_sessions = {sessions}, rampup_seconds = 0"#);
        let text = labelled(80, "", "").replace(open, &traffic);
        run(folder.path(), &format!("{sessions} sessions"), &text, &[])
    };
    let (few, more) = (closed(2), closed(8));
    let comparison = compared(&[&few, &more], &["--metrics", "requests_per_second"], 0);
    assert_eq!(verdicts(&comparison, "requests_per_second"), ["better"]);
    assert_eq!(
        first_remark(&comparison),
        "the requested load of 2 sessions is 2 sessions at a time, that of 8 sessions 8 sessions at a time: rates and latencies are those under these loads"
    );
}

/// A process is known by its code and its configuration, not by its place.
#[test]
fn arrival_processes_are_known_by_their_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = r#"type = "rate", interval_generator = { type = "poisson", arrival_rate = 60 }"#;
    let run_of = |name: &str, process: String| {
        let traffic = format!(r#"type = "arrival_process", process = {{ {process} }}"#);
        let text = labelled(40, "", "").replace(open, &traffic);
        assert!(text.contains("arrival_process"), "{text}");
        run(folder.path(), name, &text, &[])
    };
    let every = |gap: &str| {
        format!(
            "type = \"lua\", arrivals = function(rng) local i = 0 return function(count) local list = {{}} \
             for n = 1, count do i += 1 table.insert(list, i * {gap}) end return list end end"
        )
    };
    let component = |name: &str, rate: u32| {
        let file = folder.path().join(name);
        std::fs::copy(root().join("tests/guests/dist/sdk-arrivals.wasm"), &file).expect("a copy");
        let file = file.display();
        format!(r#"type = "wasm", plugin = "{file}", config = {{ rate = {rate} }}"#)
    };
    let lua = [("a", "0.02"), ("b", "0.02"), ("c", "0.01")].map(|(name, gap)| run_of(name, every(gap)));
    let components = [("d", "x.wasm", 60), ("e", "y.wasm", 60), ("f", "x.wasm", 30)]
        .map(|(name, file, rate)| run_of(name, component(file, rate)));
    for [one, same, other] in [&lua, &components] {
        let verdict = |with: &PathBuf| {
            let comparison = compared(&[one, with], &["--metrics", "requests_per_second"], 0);
            verdicts(&comparison, "requests_per_second")[0].to_owned()
        };
        assert_ne!(verdict(same), "not_comparable", "{one:?}");
        assert_eq!(verdict(other), "not_comparable", "{one:?}");
    }
}

/// Folder names may be too long for columns, and may look like any heading.
#[test]
fn headings_are_the_roles_and_the_lines_above_name_the_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = labelled(20, "", "");
    let [candidate, other] = ["candidate", "other"].map(|name| run(folder.path(), name, &text, &[]));
    let output = compare(&[&candidate, &other], &["--metrics", "ttfc"]);
    assert_code(&output, 0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[1..3],
        ["  baseline: candidate", "  candidate: other"],
        "{}",
        stderr(&output)
    );
    let title = "candidate against baseline";
    let heading = lines.iter().find(|line| line.starts_with(title));
    let heading = heading.expect("a table")[title.len()..].split_whitespace();
    assert_eq!(heading.take(2).collect::<Vec<_>>(), ["baseline", "candidate"]);
}
