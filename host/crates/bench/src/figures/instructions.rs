//! P3: instructions per chunk, counted by callgrind. Noise of the machine hardly enters, so that a change of some per cent shows.
//!
//! The whole child process is counted, for two sizes of the same load; what begins and ends the process cancels in the difference. The
//! server runs as it always does, outside of callgrind. A client that is counted is slow, so tokens are paced to give each one a read of
//! its own; and then there are whole answers, where reads hardly count.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Rows;
use crate::child::{Child, Serving};
use crate::load::{Cost, Load};
use crate::report::Row;
use crate::role::{Begin, Role, Which};
use crate::server::{Keep, Plan, Writes};
use crate::{BenchError, BenchOptions, Figure};

const STREAMS: u32 = 16;
const TOKENS: u32 = 64;

/// Between tokens where each is to be read for itself: a client that is counted takes some 100 µs for one, and there are sixteen streams.
const ITL_MS: u64 = 5;

/// Answers of the two sizes, paced and whole.
const PACED: [u64; 2] = [32, 160];
const WHOLE: [u64; 2] = [100, 1_100];

/// The program that counts.
const VALGRIND: &str = "valgrind";

pub(super) fn take(options: &BenchOptions) -> Rows {
    if !is_installed() {
        return Ok(vec![Row::absent(
            Figure::P3,
            "user instructions per chunk",
            "valgrind is not installed",
        )]);
    }
    let paced = Plan {
        keep: Keep::Nothing,
        ..Plan::paced(0, ITL_MS, TOKENS)
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
            "user instructions per chunk, whole answers",
            Plan::busy(TOKENS, Writes::Whole),
            WHOLE,
        )?,
    ])
}

fn row(options: &BenchOptions, what: &str, plan: Plan, replies: [u64; 2]) -> Result<Row, BenchError> {
    let serving = Serving::start(&options.exe, None, plan)?;
    let of = |client| -> Result<(f64, Cost), BenchError> {
        let [few, many] = replies;
        let (less, _) = count(&options.exe, &serving, client, few, plan)?;
        let (more, cost) = count(&options.exe, &serving, client, many, plan)?;
        let each = (more as f64 - less as f64) / ((many - few) * plan.events()) as f64;
        Ok((each.round(), cost))
    };
    let (ours, cost) = of(Which::Transport)?;
    let (floor, _) = of(Which::Floor)?;
    let merged = 100.0 * cost.merged.unwrap_or(0) as f64 / cost.events.max(1) as f64;
    Ok(Row::of(Figure::P3, what, "", ours)
        .floor(Some(floor))
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

/// Instructions of a child process that drives so many answers, and how that went.
fn count(
    exe: &Path,
    serving: &Serving,
    client: Which,
    replies: u64,
    plan: Plan,
) -> Result<(u64, Cost), BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::io("a folder for callgrind"))?;
    let file = folder.path().join("callgrind.out");
    let mut program = Command::new(VALGRIND);
    program
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(exe)
        .arg(crate::CHILD_COMMAND);
    let role = Role::Drive {
        address: serving.address,
        client,
        load: Load {
            streams: STREAMS,
            replies,
        },
        tokens: TOKENS,
        begin: Begin::AtOnce,
    };
    let mut child = Child::start(program, &role)?;
    let cost = child.cost()?.checked(plan.events())?;
    // The counts are written when the process ends.
    child.finish();
    let text = fs::read_to_string(&file).map_err(|error| BenchError::File {
        path: file.clone(),
        reason: error.to_string(),
    })?;
    let total = total(&text).ok_or(BenchError::File {
        path: file,
        reason: "it has no line `totals:`".to_owned(),
    })?;
    Ok((total, cost))
}

/// The sum in callgrind's output.
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
    fn the_sum_of_callgrind_s_output_is_found() {
        let text = "# callgrind format\nversion: 1\nevents: Ir\nsummary: 5\n\nfn=(1) main\n12 7\n\ntotals: 123456789\n";
        assert_eq!(total(text), Some(123_456_789));
        assert_eq!(total("summary: 5\n"), Some(5));
        assert_eq!(total("events: Ir\n"), None);
        assert_eq!(total("totals: many\n"), None);
    }
}
