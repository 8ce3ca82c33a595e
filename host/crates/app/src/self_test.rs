//! The self-test: a twin of the target, on this machine, whose timings are known, measured at the run's own rate by the very same
//! client. What the client says of it, held against what the twin wrote down itself, is the client's error.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossbeam_channel::unbounded;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use veeksha_certificate::{SelfTest, TwinRequest, compare};
use veeksha_events::{Event, RequestRecord};
use veeksha_metrics::{Evaluation, Metric};
use veeksha_model::Nanos;
use veeksha_pipeline::{Control, EventEntry};
use veeksha_scenario::{ClientKind, Document, Scenario};
use veeksha_simulator::TruthRecord;

use crate::cores::cores;
use crate::drive::{Refused, drive};
use crate::failure::Failure;
use crate::mode::{Mode, Part};
use crate::source::Source;
use crate::target;
use crate::wiring;
use veeksha_present::terminal;

/// Fewer requests say nothing of a tail.
const FEWEST: f64 = 100.0;

/// More are no better, and only take memory.
const MOST: f64 = 200_000.0;

/// A twin is slowed down to this at most: the client's error does not grow with the target's patience, but the test would.
const LONGEST_GAP: f64 = 0.1;
const LONGEST_TTFC: f64 = 1.0;

/// What the twin is like: the run, in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Likeness {
    /// Requests a second.
    rate: f64,
    /// How many.
    requests: u64,
    /// Seconds to the first chunk.
    ttfc: f64,
    /// Seconds between chunks.
    gap: f64,
    /// Tokens of a prompt.
    prompt: u64,
    /// Tokens of an answer.
    output: u64,
}

impl Likeness {
    /// The twin of a run, for a test of so many seconds; `None` of a run without answers.
    fn of(evaluation: &Evaluation, seconds: f64) -> Option<Self> {
        let p50 = |metric| evaluation.metric(metric).map(|summary| summary.p50);
        let window = evaluation.throughput.window_seconds?;
        let ttfc = p50(Metric::Ttfc)?;
        let rate = evaluation.counts.requests as f64 / window.max(1e-3);
        // A slow run would give too few requests to say anything; a faster twin can only look worse.
        let requests = (rate * seconds).clamp(FEWEST, MOST);
        let gap = p50(Metric::Tbc).unwrap_or(0.01).clamp(1e-4, LONGEST_GAP);
        // The tail of the answers must not outlast the test itself.
        let longest = (seconds / gap).clamp(2.0, 512.0);
        Some(Likeness {
            rate: requests / seconds,
            requests: requests.round() as u64,
            ttfc: ttfc.clamp(1e-4, LONGEST_TTFC),
            gap,
            prompt: p50(Metric::PromptTokens)
                .unwrap_or(32.0)
                .clamp(1.0, 4096.0)
                .round() as u64,
            output: p50(Metric::OutputTokens)
                .unwrap_or(32.0)
                .clamp(2.0, longest)
                .round() as u64,
        })
    }

    /// The scenario that sends it: the client's own settings, another workload.
    fn scenario(&self, like: &Scenario, api_base: &str, threads: usize) -> Value {
        let (client, runtime) = (&like.client, &like.runtime);
        let kind = match client.kind {
            // The twin does not know what only this scenario describes; the client reads either in the same way.
            ClientKind::Template | ClientKind::Wasm => ClientKind::OpenaiChatCompletions,
            known => known,
        };
        json!({
            "seed": like.seed,
            "session_generator": {
                "type": "synthetic",
                "session_graph": { "type": "single_request" },
                "channels": [{ "type": "text", "body_length_generator": { "type": "fixed", "value": self.prompt } }],
                "output_spec": { "text": { "output_length_generator": { "type": "fixed", "value": self.output } } },
            },
            "traffic_scheduler": {
                "type": "rate",
                "interval_generator": { "type": "poisson", "arrival_rate": self.rate },
            },
            "client": {
                "type": kind.name(),
                "api_base": api_base,
                "model": "twin",
                "tokenizer": "embedded",
                "request_timeout": 60,
                "connections": client.connections,
                "http_version": client.http_version,
            },
            "runtime": {
                "max_sessions": self.requests,
                "benchmark_timeout": 0,
                "num_client_threads": threads,
                "num_dispatcher_threads": runtime.num_dispatcher_threads,
                "num_completion_threads": runtime.num_completion_threads,
                "spin_microseconds": runtime.spin_microseconds,
                "realtime_priority": runtime.realtime_priority,
                "dispatcher_cores": runtime.dispatcher_cores,
                "client_cores": runtime.client_cores,
            },
        })
    }
}

/// Finds out before the run whether a twin can be measured after it.
pub(crate) fn check() -> Result<(), Failure> {
    tempfile::tempdir().map(drop).map_err(|error| {
        Failure::usage(format!(
            "a self-test needs a temporary folder, and none can be made: {error}"
        ))
        .hinted("set TMPDIR to a folder that can be written to")
    })
}

/// Measures a twin of a run, unless the run has no answers to be like.
pub(crate) fn measure(
    scenario: &Scenario,
    evaluation: &Evaluation,
    program: Option<&Path>,
    control: &Control,
) -> Result<Option<SelfTest>, Failure> {
    let Some(like) = Likeness::of(evaluation, scenario.certificate.self_test_seconds) else {
        return Ok(None);
    };
    terminal::err(format!(
        "self-test: {} at {:.1} a second against a twin on this machine",
        terminal::counted(like.requests, "request"),
        like.rate
    ));
    let folder = tempfile::tempdir().map_err(failed)?;
    let truth = folder.path().join("truth.jsonl");
    let Some(program) = program else {
        return Err(failed("it needs the path of the veeksha-host program"));
    };
    let twin = Twin::start(program, &like, &truth)?;
    let (records, origin) = send(&like, scenario, &twin.api_base, control)?;
    twin.stop();
    let truth = std::fs::read_to_string(&truth).map_err(failed)?;
    let truth: Vec<TwinRequest> = truth
        .lines()
        .filter_map(|line| TruthRecord::from_line(line).ok())
        .filter_map(|record| on_the_runs_clock(record, origin))
        .collect();
    Ok(Some(compare(&records, &truth)))
}

/// What the twin saw of one request. Its clock is the machine's; the run's zero is `origin` on it.
fn on_the_runs_clock(record: TruthRecord, origin: Nanos) -> Option<TwinRequest> {
    let relative = |at: Nanos| at.saturating_sub(origin);
    Some(TwinRequest {
        id: record.request_id?,
        arrived_at: relative(record.arrived_at),
        headers_at: record.headers_sent_at.map_or(0, relative),
        chunks: record
            .chunks
            .iter()
            .map(|(at, kind)| (relative(*at), *kind))
            .collect(),
    })
}

/// Sends the twin's workload; gives back the records and the run's zero on the machine's clock.
fn send(
    like: &Likeness,
    scenario: &Scenario,
    api_base: &str,
    control: &Control,
) -> Result<(Vec<RequestRecord>, Nanos), Failure> {
    let threads = scenario
        .runtime
        .client_threads(&scenario.traffic_scheduler, cores());
    let text = like.scenario(scenario, api_base, threads).to_string();
    let document = Document::from_yaml(&text, "self-test").map_err(Failure::internal)?;
    let mut loaded = Source::of(document, ".".into()).settle(&[], &[], false)?;
    let (target, _) = target::settle(&mut loaded, Path::new("self-test"))?;
    let mut wired = wiring::wire(&mut loaded, Mode::Run(Part::default()))?;
    let (events, inbox) = unbounded::<EventEntry>();
    let collector = std::thread::Builder::new()
        .name("collector".into())
        .spawn(move || {
            let mut records = Vec::new();
            let mut origin = 0;
            for entry in inbox {
                match entry.event {
                    Event::RunStarted(info) => origin = info.epoch_monotonic_nanos,
                    Event::Finished(record) => records.push(*record),
                    _ => {}
                }
            }
            (records, origin)
        })
        .map_err(failed)?;
    let ended = drive(
        &loaded.scenario,
        &mut wired,
        target,
        &events,
        control,
        &Refused::default(),
    );
    drop(events);
    let collected = collector
        .join()
        .map_err(|_| Failure::internal("the collector of the self-test panicked"))?;
    ended.map(|_| collected)
}

/// The twin: the simulated engine in a process of its own, so that it does not share the client's threads.
struct Twin {
    child: Child,
    api_base: String,
}

impl Twin {
    fn start(program: &Path, like: &Likeness, truth: &Path) -> Result<Self, Failure> {
        let nanos = |seconds: f64| format!("{:.0}", seconds * 1e9);
        let mut child = Command::new(program)
            .args(["sim", "--port", "0", "--twin-ttft", &nanos(like.ttfc)])
            .args(["--twin-gap", &nanos(like.gap), "--truth"])
            .arg(truth)
            // Its end is the twin's: it does not outlive a run that is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        let address = line.split_whitespace().find(|word| word.starts_with("http://"));
        let Some(api_base) = address.map(str::to_owned) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed("the twin did not say where it listens"));
        };
        Ok(Twin { child, api_base })
    }

    /// Lets it write down what it saw, and waits for that.
    fn stop(mut self) {
        let asked = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .is_some_and(|process| kill_process(process, Signal::TERM).is_ok());
        for _ in 0..if asked { 600 } else { 0 } {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // Ended already, unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(reason: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("the self-test could not be done: {reason}"))
}
