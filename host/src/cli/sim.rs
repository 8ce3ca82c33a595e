//! `veeksha-host sim`: the simulated engine as a server.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_scenario::Document;
use veeksha_simulator::{Profile, SimOptions, SimServer, truth_line};

use crate::cli::args::SimArgs;
use crate::exit;
use crate::failure::Failure;
use crate::say;

/// Answers that a twin streams at a time without slowing down.
const TWIN_STREAMS: u32 = 100_000;

pub(super) fn sim(args: &SimArgs) -> Result<u8, Failure> {
    let profile = match (args.twin_ttft, args.twin_gap) {
        (Some(ttft), Some(gap)) => Profile::twin(ttft, gap, TWIN_STREAMS),
        _ => profile(&args.profile, Path::new(""))?,
    };
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
            let _ = writeln!(lines, "{}", truth_line(record));
            lines
        });
        std::fs::write(path, lines)
            .map_err(|error| Failure::internal(format!("cannot write {}: {error}", path.display())))?;
    }
    server.stop();
    Ok(exit::DONE)
}

/// A server that tokenizes as the host does by default.
pub(crate) fn options(profile: Profile, seed: u64) -> Result<SimOptions, Failure> {
    let tokenizer = veeksha_prompt::Tokenizer::embedded().map_err(Failure::internal)?;
    let tokenize = Arc::new(move |text: &str| tokenizer.encode(text).unwrap_or_default());
    Ok(SimOptions {
        tokenize,
        ..SimOptions::new(profile, seed)
    })
}

/// A profile by its name, or a YAML file with a profile's keys, below `folder` if it is relative.
pub(crate) fn profile(name: &str, folder: &Path) -> Result<Profile, Failure> {
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
