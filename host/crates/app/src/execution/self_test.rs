//! Self-test of the client: it measures a reference server with known timings, on this machine and
//! with traffic of the run's shape ([`ReferenceLoad`]). The difference between the client's times
//! and those in the server's log is the error of the client.

mod reference_load;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crossbeam_channel::unbounded;
use rustix::process::{Pid, Signal, kill_process};
use veeksha_certificate::{ReferenceRequest, compare};
use veeksha_events::{Event, RequestRecord};
use veeksha_metrics::Evaluation;
use veeksha_model::Nanos;
use veeksha_pipeline::{Control, EventEntry};
use veeksha_scenario::{Document, Scenario};
use veeksha_simulator::TruthRecord;

use crate::cores::cores;
use crate::execution::drive::{SharedRefusals, drive};
use crate::execution::mode::{Mode, ShardSpec};
use crate::execution::self_test::reference_load::ReferenceLoad;
use crate::execution::wiring;
use crate::failure::CommandFailure;
use crate::scenario::source::Source;
use crate::target;
use veeksha_present::{SelfTestOutcome, terminal};

/// Checks before the run that a self-test is possible.
pub(crate) fn check() -> Result<(), CommandFailure> {
    tempfile::tempdir().map(drop).map_err(|error| {
        CommandFailure::usage(format!(
            "the self-test needs a temporary folder, which cannot be made: {error}"
        ))
        .hinted("set TMPDIR to a writable folder")
    })
}

/// Measures the reference server, unless the run has no times that it could reproduce. `program` is
/// the `veeksha-host` binary, which runs the server.
pub(crate) fn measure(
    scenario: &Scenario,
    evaluation: &Evaluation,
    program: Option<&Path>,
    control: &Control,
) -> Result<SelfTestOutcome, CommandFailure> {
    let like = match ReferenceLoad::of(scenario, evaluation) {
        Ok(like) => like,
        Err(reason) => {
            terminal::err(format!("note: no self-test was made: {reason}"));
            return Ok(SelfTestOutcome::Missing(reason.to_owned()));
        }
    };
    terminal::err(format!(
        "self-test: {}, {}, against a reference server on this machine",
        veeksha_stats::counted(like.requests, "request"),
        like.arrivals
    ));
    let folder = tempfile::tempdir().map_err(failed)?;
    let truth = folder.path().join("truth.jsonl");
    let Some(program) = program else {
        return Err(failed("it needs the path of the veeksha-host program"));
    };
    let server = ReferenceServer::start(program, &like, &truth)?;
    let (records, origin) = send(&like, scenario, &server.api_base, control)?;
    server.stop();
    let truth = std::fs::read_to_string(&truth).map_err(failed)?;
    let truth: Vec<ReferenceRequest> = truth
        .lines()
        .filter_map(|line| TruthRecord::from_line(line).ok())
        .filter_map(|record| on_run_clock(record, origin))
        .collect();
    Ok(SelfTestOutcome::Measured(Box::new(compare(&records, &truth))))
}

/// Converts a request in the server's log to the run's clock. The server uses the machine's clock,
/// on which the run starts at `origin`.
fn on_run_clock(record: TruthRecord, origin: Nanos) -> Option<ReferenceRequest> {
    let relative = |at: Nanos| at.saturating_sub(origin);
    Some(ReferenceRequest {
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

/// Sends the workload. Returns the records, and the start of the run on the machine's clock.
fn send(
    like: &ReferenceLoad,
    scenario: &Scenario,
    api_base: &str,
    control: &Control,
) -> Result<(Vec<RequestRecord>, Nanos), CommandFailure> {
    let threads = scenario
        .runtime
        .client_threads(&scenario.traffic_scheduler, cores());
    // The test has one client, with the threads of all.
    let threads = threads * scenario.all_clients().count();
    let text = like.scenario(scenario, api_base, threads).to_string();
    let document = Document::from_yaml(&text, "self-test").map_err(CommandFailure::internal)?;
    let mut loaded = Source::of(document, ".".into()).settle(&[], &[], false)?;
    let targets = target::settle(&mut loaded, Path::new("self-test"))?;
    let mut wired = wiring::wire(&mut loaded, Mode::Run(ShardSpec::default()))?;
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
        targets,
        &events,
        control,
        &SharedRefusals::default(),
    );
    drop(events);
    let collected = collector
        .join()
        .map_err(|_| CommandFailure::internal("the collector of the self-test panicked"))?;
    ended.map(|_| collected)
}

/// The reference server: the simulator in a separate process, so that it does not compete with the
/// client's threads.
struct ReferenceServer {
    child: Child,
    api_base: String,
}

impl ReferenceServer {
    fn start(program: &Path, like: &ReferenceLoad, truth: &Path) -> Result<Self, CommandFailure> {
        let nanos = |seconds: f64| format!("{:.0}", seconds * 1e9);
        let mut child = Command::new(program)
            .args(["sim", "--port", "0", "--reference-ttft", &nanos(like.ttfc)])
            .args(["--reference-gap", &nanos(like.gap), "--truth"])
            .arg(truth)
            // Closing standard input ends the server, which therefore does not outlive a killed
            // run.
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
            return Err(failed("the reference server did not print its address"));
        };
        Ok(ReferenceServer { child, api_base })
    }

    /// Ends the server and waits until it has written its log.
    fn stop(mut self) {
        let asked = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .is_some_and(|process| kill_process(process, Signal::TERM).is_ok());
        if !asked {
            return;
        }
        for _ in 0..600 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for ReferenceServer {
    fn drop(&mut self) {
        // The process has already ended, unless there was an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Beginning of the message of a failed self-test.
const FAILED: &str = "the self-test failed: ";

fn failed(reason: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::internal(format!("{FAILED}{reason}"))
}

/// Returns the cause of the failure of a self-test.
pub(crate) fn cause(failure: &CommandFailure) -> &str {
    let message = &failure.message;
    message.strip_prefix(FAILED).unwrap_or(message)
}
