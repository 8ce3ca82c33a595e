//! `veeksha-host sim`: the simulated engine as a server.

use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use veeksha_clock::RunClock;
use veeksha_scenario::Document;
use veeksha_simulator::{Profile, SimOptions, SimServer, TruthRecord, truth_line};

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
    // What is over goes to the file at once, so a server that runs for days keeps only what is under way.
    options.truth_capacity = 0;
    let truth = match &args.truth {
        Some(path) => {
            let (over, records) = channel();
            options.truth_over = Some(over);
            Some(TruthFile::start(path, records)?)
        }
        None => None,
    };
    // Times in the truth log are those of the machine's monotonic clock.
    let clock = RunClock::with_origin(0);
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Failure::internal(format!("cannot listen for signals: {error}")))?;
    let server = SimServer::start(SocketAddr::from((args.host, args.port)), options, clock)
        .map_err(|error| Failure::usage(error).hinted("--port 0 takes a free port"))?;
    say::out(format!("serving http://{}/v1 (Ctrl-C ends it)", server.addr()));
    if args.twin_ttft.is_some() {
        end_with_the_parent()?;
    }
    signals.forever().next();
    // What is under way is over when the server is.
    server.stop();
    truth.map_or(Ok(()), TruthFile::finish)?;
    Ok(exit::DONE)
}

/// A twin is told to end by a signal, or by the end of its standard input: whoever measured it is gone then.
fn end_with_the_parent() -> Result<(), Failure> {
    let wait = || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    let thread = std::thread::Builder::new().name("parent".into()).spawn(wait);
    thread.map(drop).map_err(Failure::internal)
}

/// The file with the true time of every chunk: a line for each request that is over.
struct TruthFile {
    path: PathBuf,
    writer: JoinHandle<std::io::Result<()>>,
}

impl TruthFile {
    /// Creates the file and a thread that writes until the server is gone.
    fn start(path: &Path, records: Receiver<TruthRecord>) -> Result<Self, Failure> {
        let refuse = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
        let file = std::fs::File::create(path).map_err(|error| Failure::usage(refuse(&error)))?;
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
            writer: writer.map_err(|error| Failure::internal(refuse(&error)))?,
        })
    }

    fn finish(self) -> Result<(), Failure> {
        match self.writer.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let shown = self.path.display();
                Err(Failure::internal(format!("cannot write {shown}: {error}")))
            }
            Err(_) => Err(Failure::internal("the writer of the truth has died")),
        }
    }
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
