//! Measures how fast a trace is opened, how much memory that takes, and how fast its groups are
//! read again.
//!
//! `cargo run --release -p veeksha-trace --example index_speed -- [mooncake|bailian|burstgpt|azure]
//! [MIB] [FOLDER]`
//!
//! Writes a trace in the shape of the published one of that name first, and removes it afterwards.
//! Run it twice, or with less than the machine's memory, so that reading from the page cache is
//! measured. The example prints wall time and the thread's CPU time; on a busy machine the latter
//! is the relevant one.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use veeksha_clock::RunClock;
use veeksha_model::Session;
use veeksha_ports::{
    ArrivalColumn, CellType, FlavorFactory, FlavorInstance, Grouping, Layout, PluginFailure, TimestampUnit,
    TraceColumn, TraceFacts, TraceGroup, Workload, WorkloadInfo,
};
use veeksha_stats::RandomStream;
use veeksha_trace::{BadRowRule, CheckExtent, Order, TraceOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let shape = arguments.next().unwrap_or_else(|| "mooncake".to_owned());
    let mib: u64 = arguments.next().map_or(Ok(1024), |mib| mib.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let file = tempfile::NamedTempFile::new_in(&folder)?;
    write(file.path(), &shape, mib << 20)?;

    let clock = RunClock::starting_now();
    let (before, begun, worked) = (peak_kib(), clock.now(), processor_nanos());
    let options = TraceOptions {
        path: file.path().to_owned(),
        columns: Default::default(),
        on_bad_row: BadRowRule::Refuse,
        check: CheckExtent::Rows,
        max_row_bytes: 64 << 20,
        order: Order::Shuffled,
        wrap: false,
        seed: 1,
        scratch: None,
    };
    let trace = veeksha_trace::open(options, Arc::new(Nothing::new(layout(&shape))))?;
    let seconds = (clock.now() - begun) as f64 * 1e-9;
    let worked = (processor_nanos() - worked) as f64 * 1e-9;
    let facts = trace.facts();
    println!(
        "{shape}: {:.0} MB, {} rows, {} groups, in {seconds:.2} s: {:.0} MB/s; {:.0} MB/s of processor time",
        trace.bytes() as f64 * 1e-6,
        facts.rows,
        facts.groups,
        trace.bytes() as f64 * 1e-6 / seconds,
        trace.bytes() as f64 * 1e-6 / worked,
    );
    let (after, rows) = (peak_kib(), facts.rows as f64);
    println!(
        "peak memory: {} MiB before, {} MiB after; beyond 64 MiB, {:.1} bytes a row; allowed are 64",
        before / 1024,
        after / 1024,
        (after as f64 - 65536.0).max(0.0) * 1024.0 / rows,
    );

    let Workload::Planned(mut source) = trace.factory().open()? else {
        return Err("a trace is planned".into());
    };
    let (mut first, begun, worked) = (0, clock.now(), processor_nanos());
    while clock.now() - begun < 2_000_000_000 && first < facts.groups {
        first += source.sessions(first, 64)?.len() as u64;
    }
    let seconds = (clock.now() - begun) as f64 * 1e-9;
    let worked = (processor_nanos() - worked) as f64 * 1e-9;
    println!(
        "read again, shuffled: {:.0} groups/s; {:.0} groups/s of processor time",
        first as f64 / seconds,
        first as f64 / worked
    );
    Ok(())
}

/// Returns the thread's CPU time.
fn processor_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next();
    first.and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
}

/// Returns the peak resident memory.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}

fn write(path: &Path, shape: &str, bytes: u64) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(path)?);
    let mut draws = RandomStream::new(7, 0, "index speed").draws();
    let mut line = String::new();
    let (mut written, mut row) = (0, 0u64);
    match shape {
        "burstgpt" => line.push_str(
            "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
        ),
        "azure" => line.push_str("TIMESTAMP,ContextTokens,GeneratedTokens\n"),
        _ => {}
    }
    while written < bytes {
        let (input, output) = (1 + draws.below(12_000), 1 + draws.below(800));
        match shape {
            "burstgpt" => {
                let (session, model) = (row / 3, ["ChatGPT", "GPT-4"][draws.below(2) as usize]);
                let total = input + output;
                line.push_str(&format!(
                    "{}.0,{session:08x}-5b8e-4a43,{}.{},{model},{input},{output},{total},Conversation log\n",
                    row * 2,
                    draws.below(40),
                    draws.below(10),
                ));
            }
            "azure" => {
                let (hour, minute, second) = (row / 36_000 % 24, row / 600 % 60, row / 10 % 60);
                line.push_str(&format!(
                    "2023-11-16 {hour:02}:{minute:02}:{second:02}.{:07},{input},{output}\n",
                    draws.below(10_000_000)
                ));
            }
            _ => {
                let ids: Vec<String> = (0..input.div_ceil(512))
                    .map(|block| (row * 20 + u64::from(block)).to_string())
                    .collect();
                let ids = ids.join(", ");
                let chat = match shape {
                    "bailian" => format!(
                        "\"chat_id\": {row}, \"parent_chat_id\": {}, ",
                        if row % 4 == 0 { -1 } else { row as i64 - 1 }
                    ),
                    _ => String::new(),
                };
                line.push_str(&format!(
                    "{{{chat}\"timestamp\": {}, \"input_length\": {input}, \"output_length\": {output}, \"hash_ids\": [{ids}]}}\n",
                    row * 83
                ));
            }
        }
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        line.clear();
        row += 1;
    }
    out.flush()
}

fn layout(shape: &str) -> Layout {
    let column = |name: &str, cell| TraceColumn {
        name: name.to_owned(),
        aliases: Vec::new(),
        cell,
        required: true,
    };
    let arrival = |column: &str, unit| {
        Some(ArrivalColumn {
            column: column.to_owned(),
            unit,
        })
    };
    let mut layout = Layout {
        columns: Vec::new(),
        rows_in: None,
        grouping: Grouping::Row,
        arrival: arrival("timestamp", TimestampUnit::Milliseconds),
        keep: None,
        warms_up: false,
    };
    match shape {
        "burstgpt" => {
            layout.columns = vec![
                column("Timestamp", CellType::Number),
                column("Session ID", CellType::Text),
                column("Elapsed time", CellType::Number),
                column("Model", CellType::Text),
                column("Request tokens", CellType::Count),
                column("Response tokens", CellType::Count),
            ];
            layout.grouping = Grouping::Column("Session ID".to_owned());
            layout.arrival = arrival("Timestamp", TimestampUnit::Seconds);
        }
        "azure" => {
            layout.columns = vec![
                column("TIMESTAMP", CellType::Text),
                column("ContextTokens", CellType::Count),
                column("GeneratedTokens", CellType::Count),
            ];
            layout.arrival = arrival("TIMESTAMP", TimestampUnit::DateTime);
        }
        _ => {
            layout.columns = vec![
                column("timestamp", CellType::Number),
                column("input_length", CellType::Count),
                column("output_length", CellType::Count),
                column("hash_ids", CellType::Items),
            ];
            if shape == "bailian" {
                layout.columns.push(column("chat_id", CellType::Integer));
                layout.columns.push(column("parent_chat_id", CellType::Integer));
                layout.grouping = Grouping::Tree {
                    id: "chat_id".to_owned(),
                    parent: "parent_chat_id".to_owned(),
                };
            }
        }
    }
    layout
}

/// A flavor that makes empty sessions, so that only the trace is measured.
#[derive(Clone)]
struct Nothing {
    info: WorkloadInfo,
    layout: Layout,
}

impl Nothing {
    fn new(layout: Layout) -> Self {
        Nothing {
            info: WorkloadInfo {
                name: "nothing".to_owned(),
                version: "1".to_owned(),
                summary: String::new(),
                engine: "native",
                digest: String::new(),
                granted: Vec::new(),
            },
            layout,
        }
    }
}

impl FlavorFactory for Nothing {
    fn info(&self) -> &WorkloadInfo {
        &self.info
    }

    fn open(&self) -> Result<Box<dyn FlavorInstance>, PluginFailure> {
        Ok(Box::new(self.clone()))
    }
}

impl FlavorInstance for Nothing {
    fn layout(&mut self) -> Result<Layout, PluginFailure> {
        Ok(self.layout.clone())
    }

    fn sessions(
        &mut self,
        _facts: &TraceFacts,
        _epoch: u64,
        groups: &[TraceGroup],
    ) -> Result<Vec<Session>, PluginFailure> {
        Ok(vec![Session::default(); groups.len()])
    }

    fn warmup(&mut self, _facts: &TraceFacts, _groups: &[TraceGroup]) -> Result<Vec<Session>, PluginFailure> {
        Ok(Vec::new())
    }
}
