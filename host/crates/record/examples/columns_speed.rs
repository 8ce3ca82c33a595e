//! Cost of a record: writes and reads N requests of 128 chunks and prints bytes, microseconds and
//! memory for each.
//!
//! A folder that holds a record already is only read.
//!
//! `cargo run --release -p veeksha-record --example columns_speed -- [requests] [chunks] [folder]`
#![forbid(unsafe_code)]

use std::{
    error::Error,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use veeksha_clock::RunClock;
use veeksha_events::Event;
use veeksha_model::{Chunk, ChunkKind, Nanos, NodeId, RequestId, RequestRecord, SessionId, Status, Usage};
use veeksha_record::{RunRecord, RunRecorder};
use veeksha_stats::RandomStream;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let chunks: u64 = arguments.next().map_or(Ok(128), |text| text.parse())?;
    let scratch = tempfile::tempdir()?;
    let folder = arguments.next().map_or(scratch.path().to_owned(), PathBuf::from);

    let clock = RunClock::starting_now();
    if !folder.join("record").exists() {
        write(&folder, requests, chunks, clock)?;
    }
    let before = clock.now();
    let mut record = RunRecord::open(&folder)?;
    let mut sum = 0_u64;
    let _ = record.for_each(|event| {
        if let Event::Finished(request) = event {
            sum = sum.wrapping_add(request.chunks.iter().map(|chunk| chunk.at).sum::<u64>());
        }
        ControlFlow::<()>::Continue(())
    })?;
    report("read", clock.now() - before, requests, chunks);
    println!("{}, {:?}, sum {sum}", peak()?, record.info());
    Ok(())
}

fn write(folder: &Path, requests: u64, chunks: u64, clock: RunClock) -> Result<(), Box<dyn Error>> {
    // Making the events takes time too: it is measured alone and subtracted.
    let before = clock.now();
    generate(requests, chunks, |_| Ok(()))?;
    let made = clock.now() - before;
    let mut recorder = RunRecorder::create(folder, "columns_speed")?;
    let before = clock.now();
    generate(requests, chunks, |event| Ok(recorder.push(event, clock.now())?))?;
    report(
        "push",
        (clock.now() - before).saturating_sub(made),
        requests,
        chunks,
    );
    let before = clock.now();
    recorder.finish()?;
    report("finish", clock.now() - before, requests, chunks);
    let bytes = size(folder)?;
    println!(
        "{bytes} bytes, {:.1} a request, {:.2} a chunk",
        bytes as f64 / requests as f64,
        bytes as f64 / (requests * chunks) as f64
    );
    println!("{}", peak()?);
    Ok(())
}

fn report(what: &str, nanos: Nanos, requests: u64, chunks: u64) {
    println!(
        "{what}: {:.2} s, {:.2} µs a request, {:.1} ns a chunk",
        nanos as f64 / 1e9,
        nanos as f64 / 1e3 / requests as f64,
        nanos as f64 / (requests * chunks) as f64
    );
}

/// A hundred requests in flight; chunks 20 ms apart with 1 ms of noise, kernel stamps 5 to 40 µs
/// before the read, events of a hundred lengths.
fn generate(
    requests: u64,
    chunks: u64,
    mut on: impl FnMut(&Event) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let stream = RandomStream::new(1, 0, "columns_speed");
    let mut draws = stream.draws();
    let mut event = Event::Finished(Box::new(first()));
    for index in 0..requests {
        let dispatched = index * 25_000_000 + u64::from(draws.below(1_000_000));
        let id = RequestId {
            session: SessionId(index),
            node: NodeId(0),
        };
        let sent = Event::Dispatched {
            request: id,
            intended: dispatched - dispatched.min(20_000),
            at: dispatched,
        };
        on(&sent)?;
        let Event::Finished(record) = &mut event else {
            return Err("the event is a request".into());
        };
        record.id = id;
        record.intended = dispatched - dispatched.min(20_000);
        record.dispatched_at = dispatched;
        record.picked_up_at = Some(dispatched + 5_000 + u64::from(draws.below(5_000)));
        record.sent_at = Some(dispatched + 40_000 + u64::from(draws.below(20_000)));
        record.first_byte_at = Some(dispatched + 30_000_000 + u64::from(draws.below(9_000_000)));
        let mut at = dispatched + 180_000_000 + u64::from(draws.below(40_000_000));
        record.chunks.clear();
        for chunk in 0..chunks {
            at += 19_000_000 + u64::from(draws.below(2_000_000));
            record.chunks.push(Chunk {
                at,
                lag: 5_000 + draws.below(35_000),
                bytes: 180 + draws.below(20) * draws.below(5),
                kind: match chunk {
                    0 => ChunkKind::Role,
                    last if last + 1 == chunks => ChunkKind::Done,
                    last if last + 2 == chunks => ChunkKind::Usage,
                    _ => ChunkKind::Content,
                },
                merged: draws.below(50) == 0,
            });
        }
        record.completed_at = at;
        record.processed_at = at + 30_000 + u64::from(draws.below(20_000));
        record.target_prompt_tokens = 200 + draws.below(800);
        record.prompt_tokens = record.target_prompt_tokens;
        record.total_prompt_tokens = record.target_prompt_tokens;
        on(&event)?;
    }
    Ok(())
}

fn first() -> RequestRecord {
    RequestRecord {
        picked_up_at: None,
        sent_at: None,
        status: Status::Ok {
            finish_reason: "length".into(),
        },
        target_output_tokens: Some(126),
        output_tokens: 126,
        usage: Some(Usage {
            prompt: 700,
            completion: 126,
            cached: Some(64),
            reasoning: None,
        }),
        ideal_cached_tokens: Some(64),
        body_digest: None,
        labels: vec![("tier".into(), "gold".into())],
        ..RequestRecord::answered(RequestId {
            session: SessionId(0),
            node: NodeId(0),
        })
    }
}

fn size(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder.join("record"))? {
        let entry = entry?;
        println!(
            "  {}: {} bytes",
            entry.file_name().display(),
            entry.metadata()?.len()
        );
        bytes += entry.metadata()?.len();
    }
    Ok(bytes)
}

/// The kernel's account of the most memory that was resident.
fn peak() -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    Ok(line.unwrap_or("unknown").replace('\t', " "))
}
