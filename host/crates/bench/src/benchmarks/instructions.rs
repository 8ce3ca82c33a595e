//! P3: instructions per chunk, counted by callgrind. Machine noise hardly matters, so a change of a
//! few percent is visible.
//!
//! The whole child process is counted, for two sizes of the same load; startup and shutdown cancel
//! in the difference. The server runs outside of callgrind. A client under callgrind is slow, so
//! one load paces its tokens to give each its own read; the other sends whole responses, where
//! reads hardly count.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::bench_result::BenchResult;
use crate::child::{ChildProcess, Serving};
use crate::error::BenchError;
use crate::load::{Cost, StreamLoad};
use crate::options::{BenchOptions, Benchmark};
use crate::report::Measurement;
use crate::server::{LogMode, ResponsePlan, WriteMode};
use crate::task::{CHILD_COMMAND, ChildTask, LoadClient, StartMode};

const STREAMS: u32 = 16;
const TOKENS: u32 = 64;

/// Token interval that gives each token its own read: under callgrind a token takes about 100 µs,
/// and there are sixteen streams.
const ITL_MS: u64 = 5;

/// Responses of the two sizes, paced and whole.
const PACED: [u64; 2] = [32, 160];
const WHOLE: [u64; 2] = [100, 1_100];

/// The instruction counter.
const VALGRIND: &str = "valgrind";

pub(super) fn take(options: &BenchOptions) -> BenchResult {
    if !is_installed() {
        return Ok(vec![Measurement::absent(
            Benchmark::P3,
            "user instructions per chunk",
            "valgrind is not installed",
        )]);
    }
    let paced = ResponsePlan {
        keep: LogMode::Nothing,
        ..ResponsePlan::paced(0, ITL_MS, TOKENS)
    };
    Ok(vec![
        row(
            options,
            "user instructions per chunk, one to a read",
            paced,
            PACED,
        )?,
        row(
            options,
            "user instructions per chunk, whole responses",
            ResponsePlan::busy(TOKENS, WriteMode::Whole),
            WHOLE,
        )?,
    ])
}

fn row(
    options: &BenchOptions,
    what: &str,
    plan: ResponsePlan,
    replies: [u64; 2],
) -> Result<Measurement, BenchError> {
    let serving = Serving::start(&options.exe, None, plan)?;
    let of = |client| -> Result<(f64, Cost), BenchError> {
        let [few, many] = replies;
        let (less, _) = count(&options.exe, &serving, client, few, plan)?;
        let (more, cost) = count(&options.exe, &serving, client, many, plan)?;
        let each = (more as f64 - less as f64) / ((many - few) * plan.events()) as f64;
        Ok((each.round(), cost))
    };
    let (ours, cost) = of(LoadClient::Transport)?;
    let (baseline, _) = of(LoadClient::Baseline)?;
    let merged = 100.0 * cost.merged.unwrap_or(0) as f64 / cost.events.max(1) as f64;
    Ok(Measurement::of(Benchmark::P3, what, "", ours)
        .baseline(Some(baseline))
        .at_most(2_000.0)
        .note(format!(
            "by difference of two sizes; kernel and server not counted; {merged:.0} % of the chunks shared a read"
        )))
}

fn is_installed() -> bool {
    let asked = Command::new(VALGRIND)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// Returns the instructions of a child process that drives `replies` responses, and its cost.
fn count(
    exe: &Path,
    serving: &Serving,
    client: LoadClient,
    replies: u64,
    plan: ResponsePlan,
) -> Result<(u64, Cost), BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("a folder for callgrind"))?;
    let file = folder.path().join("callgrind.out");
    let mut program = Command::new(VALGRIND);
    program
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(exe)
        .arg(CHILD_COMMAND);
    let role = ChildTask::Drive {
        address: serving.address,
        client,
        load: StreamLoad {
            streams: STREAMS,
            replies,
        },
        tokens: TOKENS,
        begin: StartMode::AtOnce,
    };
    let mut child = ChildProcess::start(program, &role)?;
    let cost = child.cost()?.checked(plan.events())?;
    // The counts are written when the process exits.
    child.finish();
    let text = fs::read_to_string(&file).map_err(|error| BenchError::File {
        path: file.clone(),
        reason: error.to_string(),
    })?;
    let total = total(&text).ok_or(BenchError::File {
        path: file,
        reason: "it does not have a `totals:` line".to_owned(),
    })?;
    Ok((total, cost))
}

/// Returns the total of callgrind's output.
fn total(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_callgrind_total() {
        let text = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 5\n\nfn=(1) main\n12 7\n\ntotals: 123456789\n";
        assert_eq!(total(text), Some(123_456_789));
        assert_eq!(total("summary: 5\n"), Some(5));
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }
}
