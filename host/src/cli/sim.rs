//! `veeksha-host sim`: the simulated engine as a server.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_scenario::Document;
use veeksha_simulator::{Profile, SimOptions, SimServer, TruthOutcome, TruthRecord};

use crate::cli::args::SimArgs;
use crate::exit;
use crate::failure::Failure;
use crate::say;

pub(super) fn sim(args: &SimArgs) -> Result<u8, Failure> {
    let profile = profile(&args.profile, Path::new(""))?;
    let mut options = options(profile, args.seed)?;
    if args.truth.is_none() {
        options.truth_capacity = 0;
    }
    // Times in the truth log are those of the machine's monotonic clock.
    let clock = RunClock::with_origin(0);
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
    let server = SimServer::start(SocketAddr::from((args.host, args.port)), options, clock)
        .map_err(|error| Failure::usage(error).hinted("--port 0 takes a free port"))?;
    say::out(format!("serving http://{}/v1 (Ctrl-C ends it)", server.addr()));
    signals.forever().next();
    if let Some(path) = &args.truth {
        let lines: String = server.truth().iter().fold(String::new(), |mut lines, record| {
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{}", line(record));
            lines
        });
        std::fs::write(path, lines)
            .map_err(|error| Failure::internal(format!("cannot write {}: {error}", path.display())))?;
    }
    server.stop();
    Ok(exit::DONE)
}

/// A server that tokenizes as the host does by default.
pub(super) fn options(profile: Profile, seed: u64) -> Result<SimOptions, Failure> {
    let tokenizer = veeksha_prompt::Tokenizer::embedded().map_err(Failure::internal)?;
    let tokenize = Arc::new(move |text: &str| tokenizer.encode(text).unwrap_or_default());
    Ok(SimOptions {
        tokenize,
        ..SimOptions::new(profile, seed)
    })
}

/// Seconds on the machine's monotonic clock.
fn line(record: &TruthRecord) -> serde_json::Value {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let chunks: Vec<_> = record
        .chunks
        .iter()
        .map(|(at, kind)| json!({ "at": seconds(*at), "kind": kind.name() }))
        .collect();
    json!({
        "request_id": record.request_id,
        "ordinal": record.ordinal,
        "connection": record.connection,
        "arrived_at": seconds(record.arrived_at),
        "headers_sent_at": record.headers_sent_at.map(seconds),
        "chunks": chunks,
        "finished_at": record.finished_at.map(seconds),
        "outcome": outcome(record.outcome),
    })
}

fn outcome(outcome: TruthOutcome) -> String {
    match outcome {
        TruthOutcome::InFlight => "in_flight".into(),
        TruthOutcome::Finished(reason) => reason.name().into(),
        TruthOutcome::Status(status) => status.to_string(),
        TruthOutcome::Refused => "refused".into(),
        TruthOutcome::Dropped => "dropped".into(),
        TruthOutcome::MidStreamError => "mid_stream_error".into(),
        TruthOutcome::Truncated => "truncated".into(),
        TruthOutcome::Disconnected => "disconnected".into(),
    }
}

/// A profile by its name, or a YAML file with a profile's keys, below `folder` if it is relative.
pub(super) fn profile(name: &str, folder: &Path) -> Result<Profile, Failure> {
    if let Some(profile) = Profile::named(name) {
        return Ok(profile);
    }
    let path = folder.join(name);
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Failure::usage(format!(
            "there is no profile `{name}`, and no file {shown}: {error}"
        ))
        .hinted(format!("the profiles are {}", Profile::names().join(", ")))
    })?;
    let document = Document::from_yaml(&text, &shown.to_string()).map_err(Failure::usage)?;
    let profile: Profile = serde_json::from_value(document.root.to_json())
        .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    profile
        .check()
        .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    Ok(profile)
}
