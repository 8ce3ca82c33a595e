//! P3: instructions per chunk, counted by callgrind. Noise of the machine does not enter, so that a change of some per cent shows.
//!
//! The whole child process is counted, for two sizes of the same load; what begins and ends the process cancels in the difference. The
//! server runs as it always does. It sends whole answers, so that the number of reads does not depend on who is faster.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Rows;
use crate::child::{Child, Serving};
use crate::load::Load;
use crate::report::Row;
use crate::role::{Begin, Role, Which};
use crate::server::{Plan, Writes};
use crate::{BenchError, BenchOptions, Figure};

const STREAMS: u32 = 16;
const TOKENS: u32 = 64;

/// Answers of the two sizes.
const REPLIES: [u64; 2] = [100, 1_100];

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
    let plan = Plan::busy(TOKENS, Writes::Whole);
    let serving = Serving::start(&options.exe, None, plan)?;
    let of = |client| -> Result<f64, BenchError> {
        let [few, many] = REPLIES;
        let less = count(&options.exe, &serving, client, few, plan)?;
        let more = count(&options.exe, &serving, client, many, plan)?;
        Ok((more as f64 - less as f64) / ((many - few) * plan.events()) as f64)
    };
    let ours = of(Which::Transport)?;
    let floor = of(Which::Floor)?;
    Ok(vec![
        Row::of(
            Figure::P3,
            "user instructions per chunk, whole answers",
            "",
            ours.round(),
        )
        .floor(Some(floor.round()))
        .at_most(2_000.0)
        .note("by difference of two sizes; kernel and server not counted"),
    ])
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

/// Instructions of a child process that drives so many answers.
fn count(exe: &Path, serving: &Serving, client: Which, replies: u64, plan: Plan) -> Result<u64, BenchError> {
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
    child.cost()?.checked(plan.events())?;
    // The counts are written when the process ends.
    child.finish();
    let text = fs::read_to_string(&file).map_err(|error| BenchError::File {
        path: file.clone(),
        reason: error.to_string(),
    })?;
    total(&text).ok_or(BenchError::File {
        path: file,
        reason: "it has no line `totals:`".to_owned(),
    })
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
