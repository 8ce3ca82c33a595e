//! P8: ten thousand concurrent streams, in a process with nothing but the client.

use veeksha_machine::{Machine, MachineError, raise_open_files};

use super::bench_result::BenchResult;
use crate::child::{ChildProcess, Serving};
use crate::error::BenchError;
use crate::load::{Cost, StreamLoad};
use crate::options::{BenchOptions, Benchmark};
use crate::report::Measurement;
use crate::server::{LogMode, ResponsePlan, ServerCounters};
use crate::task::{ChildTask, LoadClient, StartMode};

/// Requested streams.
const STREAMS: u32 = 10_000;

const TOKENS: u32 = 16;

/// Start interval of the streams: all have started after two of the four seconds until the first
/// token.
const APART: u64 = 200_000;

/// Open files that a process needs in addition to its streams.
const SPARE: u64 = 256;

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    let (streams, bounded) = allowed(STREAMS)?;
    let plan = ResponsePlan {
        keep: LogMode::Nothing,
        ..ResponsePlan::paced(4_000, 400, TOKENS)
    };
    let drive = |client| -> Result<(Cost, ServerCounters), BenchError> {
        let mut serving = Serving::start(&options.exe, None, plan)?;
        let role = ChildTask::Drive {
            address: serving.address,
            client,
            load: StreamLoad {
                streams,
                replies: u64::from(streams),
            },
            tokens: TOKENS,
            begin: StartMode::Staggered(APART),
        };
        let mut child = ChildProcess::start(ChildProcess::of(&options.exe), &role)?;
        let cost = child.cost()?;
        Ok((cost, serving.counts()?))
    };
    let (ours, counts) = drive(LoadClient::Transport)?;
    let (baseline, _) = drive(LoadClient::Baseline)?;
    let mut note = format!(
        "{streams} streams asked for, {} at most at the same time",
        counts.peak_in_flight
    );
    if let Some(why) = bounded {
        note.push_str(&format!("; {why}"));
    }
    if let Some(first) = &ours.first_failure {
        note.push_str(&format!("; the first error: {first}"));
    }
    let mebibytes = |cost: &Cost| cost.peak_resident.map(|bytes| bytes as f64 / f64::from(1 << 20));
    let memory = "peak memory of the client's process";
    Ok(vec![
        Measurement::of(
            Benchmark::P8,
            format!("errors, {streams} streams"),
            "",
            ours.failed as f64,
        )
        .at_most(0.0)
        .note(note),
        match mebibytes(&ours) {
            Some(here) => Measurement::of(Benchmark::P8, memory, "MiB", here)
                .baseline(mebibytes(&baseline))
                .at_most(64.0),
            None => Measurement::absent(Benchmark::P8, memory, "the kernel does not write_line"),
        },
    ])
}

/// Returns as many streams as this machine allows, and the limit that applies.
fn allowed(streams: u32) -> Result<(u32, Option<String>), BenchError> {
    let files = match raise_open_files() {
        Ok(limits) => limits.soft,
        Err(MachineError::OpenFiles { soft, .. }) => soft,
        Err(_) => u64::MAX,
    };
    let facts = Machine::here().facts();
    let ports = facts.local_ports.map_or(u64::MAX, u64::from);
    let (most, why) = bound(streams, files, ports);
    if most == 0 {
        return Err(BenchError::Empty(
            "the limit of open files leaves none for streams",
        ));
    }
    Ok((most, why))
}

fn bound(streams: u32, files: u64, ports: u64) -> (u32, Option<String>) {
    let by_files = files.saturating_sub(SPARE);
    let by_ports = ports.saturating_sub(SPARE);
    let most = by_files.min(by_ports);
    if u64::from(streams) <= most {
        return (streams, None);
    }
    let why = if by_files <= by_ports {
        format!("{STREAMS} need more open files than the limit of {files}")
    } else {
        format!("{STREAMS} need more local ports than the {ports} there are")
    };
    (most as u32, Some(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_tighter_limit() {
        assert_eq!(bound(10_000, 20_000, 28_232), (10_000, None));
        let (streams, why) = bound(10_000, 1_024, 28_232);
        assert_eq!(
            (streams, why.as_deref()),
            (768, Some("10000 need more open files than the limit of 1024"))
        );
        let (streams, why) = bound(10_000, 20_000, 5_000);
        assert_eq!(streams, 4_744);
        assert!(why.expect("a reason").contains("local ports"));
        assert_eq!(bound(10_000, 100, 28_232).0, 0);
    }
}
