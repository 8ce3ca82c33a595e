//! `veeksha-host sim`: the built-in simulator as a server.

use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_simulator::{Profile, SimServer, TruthRecord, truth_line};

use crate::cli::args::SimArgs;
use veeksha_app::CommandFailure;
use veeksha_app::sim_profile::{options, profile};
use veeksha_present::terminal;

/// Number of concurrent streams of a reference server that do not slow one another down.
const REFERENCE_STREAMS: u32 = 100_000;

pub(super) fn sim(args: &SimArgs) -> Result<u8, CommandFailure> {
    let profile = match (args.reference_ttft, args.reference_gap) {
        (Some(ttft), Some(gap)) => Profile::reference(ttft, gap, REFERENCE_STREAMS),
        _ => profile(&args.profile, Path::new(""))?,
    };
    let mut options = options(profile, args.seed)?;
    // Finished requests are written to the file immediately, so a server that runs for days keeps
    // only those in flight.
    options.truth_capacity = 0;
    let truth = match &args.truth {
        Some(path) => {
            let (over, records) = channel();
            options.truth_over = Some(over);
            Some(TruthFile::start(path, records)?)
        }
        None => None,
    };
    // Times in the truth file are those of the machine's monotonic clock.
    let clock = RunClock::with_origin(0);
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CommandFailure::internal(format!("cannot listen for signals: {error}")))?;
    let server = SimServer::start(SocketAddr::from((args.host, args.port)), options, clock)
        .map_err(|error| CommandFailure::usage(error).hinted("--port 0 picks a free port"))?;
    terminal::out(format!("serving http://{}/v1 (Ctrl-C to stop)", server.addr()));
    if args.reference_ttft.is_some() {
        end_with_the_parent()?;
    }
    signals.forever().next();
    // Requests in flight end with the server.
    server.stop();
    truth.map_or(Ok(()), TruthFile::finish)?;
    Ok(veeksha_exit::DONE)
}

/// Ends the reference server of a self-test when its standard input closes, because the process
/// that measured it no longer exists.
fn end_with_the_parent() -> Result<(), CommandFailure> {
    let wait = || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    let thread = std::thread::Builder::new().name("parent".into()).spawn(wait);
    thread.map(drop).map_err(CommandFailure::internal)
}

/// File with the true send time of every chunk: one line per finished request.
struct TruthFile {
    path: PathBuf,
    writer: JoinHandle<std::io::Result<()>>,
}

impl TruthFile {
    /// Creates the file and a thread that writes until the server stops.
    fn start(path: &Path, records: Receiver<TruthRecord>) -> Result<Self, CommandFailure> {
        let refuse = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
        let file = std::fs::File::create(path).map_err(|error| CommandFailure::usage(refuse(&error)))?;
        let write = move || {
            let mut file = BufWriter::new(file);
            for record in records {
                writeln!(file, "{}", truth_line(&record))?;
            }
            file.flush()
        };
        let writer = std::thread::Builder::new().name("truth".into()).spawn(write);
        Ok(TruthFile {
            path: path.to_owned(),
            writer: writer.map_err(|error| CommandFailure::internal(refuse(&error)))?,
        })
    }

    fn finish(self) -> Result<(), CommandFailure> {
        match self.writer.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let shown = self.path.display();
                Err(CommandFailure::internal(format!("cannot write {shown}: {error}")))
            }
            Err(_) => Err(CommandFailure::internal(
                "the thread that writes the truth file panicked",
            )),
        }
    }
}
