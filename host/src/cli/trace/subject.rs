//! Input of a trace command: a file whose flavor is detected, or the trace of a scenario.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use veeksha_model::Session;
use veeksha_ports::Workload;
use veeksha_prompt::Tokenizer;
use veeksha_scenario::{Document, Flavor, Generator, OnBadRow, RowCheck, Salt, SaltName, Shuffle, Traffic};
use veeksha_trace::OpenTrace;

use super::detect::{self, Detection};
use crate::cli::args::TraceArgs;
use veeksha_app::CommandFailure;
use veeksha_app::{Loaded, Source};
use veeksha_app::{prompts, shipped, tokenizers, traces};
use veeksha_present::terminal;

/// Number of sessions read from an endless trace, unless the user gives another one.
const OF_ENDLESS: u64 = 1000;
/// Number of sessions requested at a time.
const BATCH: u64 = 64;

/// An open trace.
pub(super) struct Subject {
    /// The trace itself.
    pub(super) trace: OpenTrace,
    /// Name of its flavor.
    pub(super) flavor: String,
    /// Path of the trace.
    pub(super) path: PathBuf,
    /// Path on the command line: the trace, or the scenario.
    pub(super) named: PathBuf,
    /// Tokenizer for verbatim text.
    pub(super) tokenizer: Tokenizer,
    sessions: Option<u64>,
    /// Tokens per hash block, if the flavor has hash blocks.
    block_size: Option<u32>,
}

impl Subject {
    /// Opens the trace of the command line, in file order and without repetition.
    pub(super) fn open(args: &TraceArgs) -> Result<Subject, CommandFailure> {
        let mut loaded = if is_scenario(&args.trace) {
            of_scenario(args)?
        } else {
            of_file(args)?
        };
        // The command reads the recording itself, not the traffic that a scenario would make of it.
        loaded.scenario.traffic_scheduler = Traffic::default();
        let Generator::Trace(trace) = &mut loaded.scenario.session_generator else {
            return Err(CommandFailure::usage(format!(
                "{} replays no trace",
                args.trace.display()
            )));
        };
        trace.keys.wrap_mode = Some(false);
        trace.keys.shuffle = Shuffle::Never;
        trace.keys.salt = Salt::Named(SaltName::Off);
        // Rows that may be skipped must be found before the first session; other errors are found
        // while reading.
        if trace.keys.check == RowCheck::Auto && trace.keys.on_bad_row == OnBadRow::Error {
            trace.keys.check = RowCheck::Rows;
        }
        let trace = trace.clone();
        let mut notes = Vec::new();
        let found = tokenizers::tokenizer(&loaded, &mut notes)?;
        let materializer = Arc::new(prompts::materializer(&loaded, &found, None)?);
        let tokenizer = found.tokenizer;
        let path = loaded.folder().join(&trace.keys.trace_file);
        let opened = traces::open(&loaded, &trace, &tokenizer, &materializer, &mut notes)?;
        for note in notes {
            terminal::err(format!("note: {note}"));
        }
        Ok(Subject {
            trace: opened,
            flavor: name(&trace.flavor),
            path,
            named: args.trace.clone(),
            tokenizer,
            sessions: args.sessions,
            block_size: block_size(&trace.flavor),
        })
    }

    /// Rejects an output that would overwrite an input: the trace, a file in its folder, or the
    /// scenario.
    pub(super) fn guard(&self, output: &Path) -> Result<(), CommandFailure> {
        let same = |read: &Path| match (read.canonicalize(), output.canonicalize()) {
            (Ok(read), Ok(output)) => read == output || read.is_dir() && output.parent() == Some(&*read),
            _ => false,
        };
        if same(&self.path) || same(&self.named) {
            Err(CommandFailure::usage(format!(
                "{} is read by this command; choose another file",
                output.display()
            )))
        } else {
            Ok(())
        }
    }

    /// Returns the tokens per hash block of the output: the requested number, else that of the
    /// trace, else that of Mooncake.
    pub(super) fn block_size(&self, asked: Option<NonZeroU32>) -> u32 {
        let asked = asked.map(NonZeroU32::get);
        asked
            .or(self.block_size)
            .unwrap_or(veeksha_trace_tools::BLOCK_SIZE)
    }

    /// Passes every session to `take`, in file order, until it returns `Break`.
    pub(super) fn each_session(
        &self,
        mut take: impl FnMut(u64, &Session) -> Result<ControlFlow<()>, CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let Workload::Planned(mut source) = self.trace.factory().open()? else {
            return Err(CommandFailure::internal("a trace is planned"));
        };
        let known = source.length()?.unwrap_or(OF_ENDLESS);
        let length = match self.sessions {
            Some(asked) => asked.min(source.length()?.unwrap_or(u64::MAX)),
            None => known,
        };
        let mut first = 0;
        while first < length {
            let count = BATCH.min(length - first);
            let sessions = source
                .sessions(first, count as u32)
                .map_err(|failure| traces::failure(failure.into()))?;
            for (index, session) in (first..).zip(sessions) {
                if take(index, &session)?.is_break() {
                    return Ok(());
                }
            }
            first += count;
        }
        Ok(())
    }

    /// Returns a function that counts the tokens of verbatim text.
    pub(super) fn count(&self) -> impl Fn(&str) -> u32 + '_ {
        |text| self.tokenizer.count(text)
    }
}

fn name(flavor: &Flavor) -> String {
    match flavor {
        Flavor::Shipped { name, .. } => name.clone(),
        Flavor::Wasm(component) => component.plugin.clone(),
        Flavor::Lua { .. } => "lua".to_owned(),
    }
}

fn block_size(flavor: &Flavor) -> Option<u32> {
    match flavor {
        Flavor::Shipped { config, .. } => u32::try_from(config.get("block_size")?.as_u64()?).ok(),
        Flavor::Wasm(_) | Flavor::Lua { .. } => None,
    }
}

fn is_scenario(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    path.is_file() && matches!(extension, Some("lua" | "luau" | "yml" | "yaml"))
}

fn of_scenario(args: &TraceArgs) -> Result<Loaded, CommandFailure> {
    if args.flavor.is_some() {
        return Err(CommandFailure::usage("--flavor: the scenario names the flavor"));
    }
    let scenario = Source::read(&args.trace)?;
    scenario.settle(&keys(args), &[], args.no_cache)
}

fn of_file(args: &TraceArgs) -> Result<Loaded, CommandFailure> {
    let flavor = match &args.flavor {
        Some(name) if shipped::flavor(name).is_some() => name.clone(),
        Some(name) => {
            let known: Vec<&str> = shipped::flavors().collect();
            return Err(CommandFailure::usage(format!(
                "--flavor {name}: there is no such flavor; it must be one of {}",
                known.join(", ")
            ))
            .hinted("a flavor of your own is named by a scenario; give that in place of the trace"));
        }
        None => detected(&args.trace)?,
    };
    let document = json!({
        "session_generator": { "type": "trace", "trace_file": args.trace, "flavor": { "type": flavor } },
        "client": { "tokenizer": args.tokenizer.as_deref().unwrap_or("embedded") },
    });
    let document =
        Document::from_yaml(&document.to_string(), "the command line").map_err(CommandFailure::usage)?;
    Source::of(document, PathBuf::new()).settle(&keys(args), &[], args.no_cache)
}

/// Returns the keys of the command line as keys of a scenario.
fn keys(args: &TraceArgs) -> Vec<String> {
    let under = |key: &String| format!("session_generator.{key}");
    let mut keys: Vec<String> = args.set.iter().map(under).collect();
    keys.extend(
        args.tokenizer
            .iter()
            .map(|name| format!("client.tokenizer={name}")),
    );
    keys
}

fn detected(path: &Path) -> Result<String, CommandFailure> {
    let sniffed = veeksha_trace::sniff(path).map_err(traces::failure)?;
    match detect::flavor(&sniffed) {
        Detection::Flavor(flavor) => Ok(flavor.to_owned()),
        Detection::SecondsOrMilliseconds => Err(CommandFailure::usage(format!(
            "{}: `timestamp` is seconds to the flavor `request_log` and milliseconds to `mooncake`, and both fit this trace",
            path.display()
        ))
        .hinted("name the flavor with --flavor")),
        Detection::Nothing => Err(CommandFailure::usage(format!(
            "{}: no flavor has these columns: {}",
            path.display(),
            sniffed.columns.join(", ")
        ))
        .hinted("name one with --flavor, and rename columns with --set columns.THEIRS=OURS")),
    }
}
