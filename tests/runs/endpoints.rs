//! Every endpoint against a server that logs its actions with times of the same clock.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::results::{latest, lines};
use crate::server::Sim;
use crate::support::{assert_code, scenario, stderr, veeksha};
use crate::truth::{contents, request_of, seconds};

const PLAIN: &str = r#"
session_generator:
  type: synthetic
  session_graph: { type: linear, num_request_generator: { type: fixed, value: 2 }, request_wait_generator: { type: fixed, interval: 0 } }
  channels: [ { type: text, body_length_generator: { type: uniform, min: 10, max: 40 } } ]
  output_spec: { text: { output_length_generator: { type: uniform, min: 4, max: 12 } } }
traffic_scheduler: { type: rate, interval_generator: { type: poisson, arrival_rate: 40 } }
client: { model: sim }
runtime: { max_sessions: 20, benchmark_timeout: 0 }
"#;

/// The measurements of one endpoint, and the server's log of the same requests.
struct Measured {
    rows: Vec<Value>,
    truth: HashMap<String, Value>,
    /// Start of the run on the machine's clock, in seconds.
    epoch: f64,
}

fn measure(folder: &Path, flags: &[&str], path: &str) -> Measured {
    let truth_file = folder.join("truth.jsonl");
    let sim = Sim::start(&[
        "--profile",
        "fast",
        "--truth",
        truth_file.to_str().expect("UTF-8"),
    ]);
    let file = scenario(folder, "plain.yml", PLAIN);
    let output_dir = folder.to_str().expect("UTF-8");
    // Some endpoints are not below `/v1`.
    let api_base = sim.api_base.replace("/v1", path);
    let mut arguments = vec![
        "run",
        &file,
        "--output_dir",
        output_dir,
        "--client.api_base",
        &api_base,
    ];
    arguments.extend(flags);
    assert_code(&veeksha(arguments), 0);
    sim.stop();
    let run = latest(folder);
    let truth = lines(folder, "truth.jsonl");
    Measured {
        rows: lines(&run, "metrics/request_level_metrics.jsonl"),
        epoch: lines(&run, "traces/trace.jsonl")[0]["epoch_monotonic"]
            .as_f64()
            .expect("the run's zero"),
        truth: truth
            .into_iter()
            .filter_map(|line| Some((request_of(&line)?.to_owned(), line)))
            .collect(),
    }
}

/// Asserts that every request arrived, that no chunk is missing, and that nothing was received
/// before it was sent. Prints the error of the client.
fn hold_against_the_truth(name: &str, measured: &Measured) {
    let Measured { rows, truth, epoch } = measured;
    assert_eq!((rows.len(), truth.len()), (40, 40), "{name}");
    let (mut first, mut gaps, mut dispatch) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let id = row["request_id"].as_str().expect("an id");
        assert_eq!(row["success"], true, "{name}: {row}");
        assert_eq!(row["arrival_stamps"], "kernel", "{name}: {row}");
        assert_eq!(row["output_tokens_source"], "usage", "{name}: {row}");
        assert_eq!(
            row["num_output_tokens"], row["num_requested_output_tokens"],
            "{name}: {row}"
        );
        let seen = &truth[id];
        let number = |key: &str| row[key].as_f64().expect("a time");
        let written = contents(seen);
        let tbc: Vec<f64> = row["tbc"]
            .as_array()
            .expect("gaps")
            .iter()
            .map(|gap| gap.as_f64().expect("a gap"))
            .collect();
        assert_eq!(
            tbc.len() + 1,
            written.len(),
            "{name} {id}: as many chunks as were written"
        );
        // Causes precede effects on one clock.
        let dispatched = epoch + number("scheduler_dispatched_at");
        let arrived = seconds(&seen["arrived_at"]);
        assert!(dispatched <= arrived, "{name} {id}");
        dispatch.push(arrived - (epoch + number("scheduler_ready_at")));
        let received = dispatched + number("ttfc");
        assert!(
            received >= written[0],
            "{name} {id}: received before it was written"
        );
        first.push(received - written[0]);
        for (gap, pair) in tbc.iter().zip(written.windows(2)) {
            gaps.push((gap - (pair[1] - pair[0])).abs());
        }
    }
    let show = |errors: &mut Vec<f64>| {
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize] * 1e6;
        format!("{:.0}/{:.0} us", at(0.5), at(0.99))
    };
    println!(
        "{name}: P50/P99 of first chunk {}, of a gap {}, of arrival after the intended instant {}",
        show(&mut first),
        show(&mut gaps),
        show(&mut dispatch)
    );
}

#[test]
fn every_endpoint_agrees_with_the_truth_log() {
    for interface in [
        "openai_chat_completions",
        "openai_completions",
        "openai_responses",
        "anthropic_messages",
        "tgi_generate_stream",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let flags = ["--client.type", interface, "--client.ignore_eos", "true"];
        let measured = measure(folder.path(), &flags, "/v1");
        hold_against_the_truth(interface, &measured);
    }
}

/// The server's completions endpoint, described by a template as for an unknown endpoint.
#[test]
fn template_endpoint_agrees_with_the_truth_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = [
        "--client.type",
        "template",
        "--client.address_append_value",
        "completions",
        "--set",
        "client.template={request: {prompt: '{{prompt}}', model: '{{model}}', max_tokens: '{{max_tokens}}', stream: true, \
         ignore_eos: true, stream_options: {include_usage: true}}, answer: {text: /choices/0/text, finish_reason: \
         /choices/0/finish_reason, prompt_tokens: /usage/prompt_tokens, output_tokens: /usage/completion_tokens, done: '[DONE]'}}",
    ];
    hold_against_the_truth("template", &measure(folder.path(), &flags, "/v1"));
}

/// The built-in simulator supports HTTP/1.1 only: the error for a server without HTTP/2 differs
/// from that for a failing one.
#[test]
fn server_without_http_2_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "plain.yml", PLAIN);
    let output_dir = folder.path().to_str().expect("UTF-8");
    let arguments = [
        "run",
        &file,
        "--output_dir",
        output_dir,
        "--client.api_base",
        "sim://fast",
        "--client.http_version",
        "http2",
    ];
    let output = veeksha(arguments);
    assert_code(&output, 5);
    assert!(stderr(&output).contains("HTTP/2"), "{}", stderr(&output));
}
