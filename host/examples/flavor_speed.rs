//! Prints, for each scenario of a folder that replays a trace, how many sessions a second its
//! flavor makes on one core, and how many tokens a second become text:
//! `cargo run --release --example flavor_speed -- scenarios/traces`.
//!
//! The trace wraps for as long as it is measured, so that a few lines give as many sessions as
//! wanted; they are read from the file again each time, as in a run.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark for the project's engineers"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_lua::{LuaLimits, LuaScenario};
use veeksha_model::{Segment, Session};
use veeksha_ports::{FlavorFactory, Workload};
use veeksha_prompt::{Materializer, MediaStore, Tokenizer};
use veeksha_scenario::{Flavor, Generator, Shipped, Trace as TraceKeys};
use veeksha_trace::{BadRowRule, CheckExtent, Order, TraceOptions};
use veeksha_wasm::{EngineOptions, Grants, NoLog, PluginEngine, PluginTokenizer};

/// How long each measurement is measured.
const SECONDS: f64 = 1.0;

struct Counter(Tokenizer);

impl PluginTokenizer for Counter {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        self.0.encode(text).map_err(|error| error.to_string())
    }

    fn vocabulary(&self) -> u32 {
        self.0.vocabulary()
    }
}

fn main() {
    let folder = PathBuf::from(std::env::args().nth(1).expect("a folder of scenarios"));
    let mut scenarios: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "lua"))
        .collect();
    scenarios.sort();
    println!(
        "{:<28} {:>14} {:>10} {:>12} {:>16}",
        "flavor", "sessions/s", "requests", "µs/session", "M tokens/s"
    );
    for path in &scenarios {
        measure(path);
    }
}

fn measure(path: &Path) {
    let lua = LuaScenario::load(path, LuaLimits::default()).expect("a scenario");
    let document = lua.documents.single().expect("one scenario");
    let scenario = document.check(&shipped()).expect("a valid scenario");
    let Generator::Trace(trace) = &scenario.session_generator else {
        return;
    };
    let tokenizer = Tokenizer::embedded().expect("a tokenizer");
    let Some((name, flavor)) = flavor(trace, path, &tokenizer) else {
        return;
    };
    let folder = path.parent().expect("a folder");
    let trace_keys = &trace.keys;
    let trace = veeksha_trace::open(options(trace, folder), flavor).expect("a trace");
    let Workload::Planned(mut source) = trace.factory().open().expect("a workload") else {
        return;
    };
    let clock = RunClock::starting_now();
    let seconds = |since: u64| (clock.now() - since) as f64 / 1e9;

    let (began, mut made, mut requests) = (clock.now(), 0u64, 0u64);
    let mut sample: Vec<Session> = Vec::new();
    while seconds(began) < SECONDS {
        let sessions = source.sessions(made, 64).expect("sessions");
        made += sessions.len() as u64;
        requests += sessions
            .iter()
            .map(|session| session.requests.len() as u64)
            .sum::<u64>();
        if sample.len() < 512 {
            sample.extend(sessions);
        }
    }
    let generation = seconds(began);

    let mut materializer = Materializer::new(tokenizer).expect("words");
    if let Some(media) = &trace_keys.media_folder {
        let store = MediaStore::default().with_folder(folder.join(media));
        materializer = materializer.with_media(store.expect("the media"));
    }
    let (began, mut tokens) = (clock.now(), 0u64);
    'measured: loop {
        for request in sample.iter().flat_map(|session| &session.requests) {
            let prepared = materializer.prepare(request.clone()).expect("a prompt");
            tokens += u64::from(prepared.prompt_tokens);
            if seconds(began) >= SECONDS {
                break 'measured;
            }
        }
    }
    let synthetic = sample
        .iter()
        .flat_map(|session| &session.requests)
        .all(|request| {
            let mut segments = request.messages.iter().flat_map(|message| &message.content);
            segments.all(|segment| matches!(segment, Segment::Synthetic { .. }))
        });
    println!(
        "{name:<28} {:>14.0} {:>10.1} {:>12.2} {:>16.1}{}",
        made as f64 / generation,
        requests as f64 / made as f64,
        generation / made as f64 * 1e6,
        tokens as f64 / seconds(began) / 1e6,
        if synthetic {
            ""
        } else {
            "  (verbatim text, counted)"
        },
    );
}

fn plugins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins")
}

/// The schemas of the components that lie in `plugins`.
fn shipped() -> Shipped {
    let mut shipped = Shipped::default();
    for entry in std::fs::read_dir(plugins()).expect("the plugins") {
        let folder = entry.expect("an entry").path();
        let Ok(schema) = std::fs::read_to_string(folder.join("schema.json")) else {
            continue;
        };
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let schema = serde_json::from_str(&schema).expect("a schema");
        shipped.flavors.insert(name, schema);
    }
    shipped
}

fn flavor(
    trace: &TraceKeys,
    scenario: &Path,
    tokenizer: &Tokenizer,
) -> Option<(String, Arc<dyn FlavorFactory>)> {
    let Flavor::Shipped { name, config } = &trace.flavor else {
        return None;
    };
    let bytes = std::fs::read(plugins().join(format!("dist/{name}.wasm"))).expect("a component");
    let engine = PluginEngine::new(EngineOptions::default());
    let plugin = engine.expect("an engine").load(name, &bytes).expect("a plugin");
    let mut grants = Grants::new(42, Arc::new(NoLog));
    grants.tokens = Some(Arc::new(Counter(tokenizer.clone())));
    if let Some(corpus) = config.get("corpus_file").and_then(|file| file.as_str()) {
        let path = scenario.parent().expect("a folder").join(corpus);
        grants.blobs.insert(corpus.to_owned(), path);
    }
    let factory = plugin.flavor(config.to_string(), grants).expect("a flavor");
    Some((name.clone(), factory))
}

fn options(trace: &TraceKeys, folder: &Path) -> TraceOptions {
    TraceOptions {
        path: folder.join(&trace.keys.trace_file),
        columns: trace.keys.columns.clone(),
        on_bad_row: BadRowRule::Skip,
        // A row that the flavor refuses is found before the measurement, and left out of it.
        check: CheckExtent::Whole,
        max_row_bytes: 64 << 20,
        order: Order::ShuffledAfterFirst,
        wrap: true,
        seed: 42,
        scratch: None,
    }
}
