//! Measures the time and memory needed to evaluate a million requests of 128 chunks: `million
//! [REQUESTS [CHUNKS [TOKENS_A_CHUNK]]]`.
#![expect(clippy::print_stdout, reason = "a program for a terminal")]
#![expect(
    clippy::expect_used,
    reason = "a measurement that cannot be made has no result"
)]

use veeksha_clock::RunClock;
use veeksha_events::{Event, RequestRecord, SessionEnd};
use veeksha_metrics::{Catalogue, Objectives, RunEvaluator, Setup, Stated};
use veeksha_model::{Chunk, ChunkKind, NodeId, RequestId, SessionId, Usage};
use veeksha_slo::Objective;
use veeksha_stats::RandomStream;

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|argument| argument.parse().expect("a number"));
    let mut next = |otherwise: u64| arguments.next().unwrap_or(otherwise);
    let (requests, chunks, tokens) = (next(1_000_000), next(128), next(1) as u32);

    let objectives = [
        "p99(ttfc) <= 2s",
        "p99(tbc, window = 60s) <= 100ms",
        "error_rate < 1%",
        "goodput > 0.5",
    ]
    .map(|text| Stated::from(Objective::parse(text).expect("an objective")));
    let catalogue = Catalogue::built_in();
    let setup = Setup {
        objectives: Objectives::check(objectives.into(), Vec::new(), Vec::new(), &catalogue)
            .expect("objectives"),
        catalogue,
        ..Setup::default()
    };
    let mut evaluator = RunEvaluator::new(setup);
    let clock = RunClock::starting_now();
    let (mut taking, mut making) = (0, 0);
    for session in 0..requests {
        let begin = clock.now();
        let events = events(session, chunks, tokens);
        let made = clock.now();
        events.iter().for_each(|event| evaluator.on(event));
        taking += clock.now() - made;
        making += made - begin;
    }
    let held = memory("VmRSS:");
    let begin = clock.now();
    let evaluation = evaluator.finish();
    let finishing = clock.now() - begin;
    let begin = clock.now();
    let points = evaluation.samples.quantiles("tbc", 101).len();
    let drawing = clock.now() - begin;
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    println!("{requests} requests of {chunks} chunks of {tokens} tokens");
    println!("made in {:.2} s (not counted)", seconds(making));
    println!(
        "taken in {:.2} s, finished in {:.2} s",
        seconds(taking),
        seconds(finishing)
    );
    println!("together {:.2} s", seconds(taking + finishing));
    println!(
        "{points} points of the distribution of tbc in {:.2} s",
        seconds(drawing)
    );
    println!("{:.2} s of processor time in all", processor_seconds());
    println!("memory {held} before the end, {} at the most", memory("VmHWM:"));
    for entry in &evaluation.metrics {
        println!(
            "{:32} {:>12} {:.6}",
            entry.metric.name(),
            entry.summary.count,
            entry.summary.p99
        );
    }
}

/// Returns a session of one request. Two hundred sessions begin per second; tokens arrive every 15
/// to 25 ms.
fn events(session: u64, chunks: u64, tokens: u32) -> [Event; 4] {
    let mut draws = RandomStream::new(1, session, "gaps").draws();
    let intended = session * 5_000_000;
    let dispatched = intended + u64::from(draws.below(50_000));
    let mut at = dispatched + 100_000_000 + u64::from(draws.below(400_000_000));
    let chunk = |at| Chunk {
        at,
        lag: 20_000,
        bytes: 200,
        kind: ChunkKind::Content,
        merged: false,
    };
    let chunks: Vec<Chunk> = (0..chunks)
        .map(|_| {
            at += 15_000_000 + u64::from(draws.below(10_000_000));
            chunk(at)
        })
        .collect();
    let id = RequestId {
        session: SessionId(session),
        node: NodeId(0),
    };
    let output_tokens = chunks.len() as u32 * tokens;
    let record = RequestRecord {
        intended,
        dispatched_at: dispatched,
        picked_up_at: Some(dispatched + 5_000),
        sent_at: Some(dispatched + 30_000),
        first_byte_at: Some(dispatched + 90_000_000),
        completed_at: at + 50_000,
        processed_at: at + 90_000,
        chunk_tokens: if tokens == 1 {
            Vec::new()
        } else {
            vec![tokens; chunks.len()]
        },
        chunks,
        target_prompt_tokens: 500,
        prompt_tokens: 500,
        total_prompt_tokens: 500 + draws.below(1000),
        output_tokens,
        usage: Some(Usage {
            prompt: 1000,
            completion: output_tokens,
            cached: Some(100),
            reasoning: None,
        }),
        ..RequestRecord::answered(id)
    };
    let session = id.session;
    [
        Event::SessionStarted {
            session,
            at: intended,
            requests: 1,
        },
        Event::Dispatched {
            request: id,
            intended,
            at: dispatched,
        },
        Event::SessionFinished {
            session,
            at: record.processed_at,
            end: SessionEnd::Completed,
            requests: 1,
        },
        Event::Finished(Box::new(record)),
    ]
}

/// Returns the processor time of this process, counted in kernel ticks of 10 ms.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program name, in parentheses, may contain blanks; user and system time are the 12th and
    // 13th fields after it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns a memory statistic of this process from the kernel.
fn memory(what: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
