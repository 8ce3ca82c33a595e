//! Runs the program as a user would and reads its resource usage.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use veeksha_clock::RunClock;
use veeksha_model::Nanos;

use crate::error::BenchError;
use crate::process::{children_cpu, peak_resident_of};
use crate::program::run_files::RunFiles;

/// Sampling interval of a run's memory. The kernel keeps the peak, so only growth in the last
/// interval is missed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Exit statuses with complete files: done, SLO not met, measurement invalid.
const WHOLE: [i32; 3] = [0, 3, 6];

/// Files and resource usage of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramRun {
    /// Just before the process was spawned, on `CLOCK_MONOTONIC`.
    pub(crate) spawned_at: Nanos,
    /// Processor time, user and kernel, all threads.
    pub(crate) cpu: Option<Nanos>,
    /// Peak resident memory, in bytes.
    pub(crate) peak_resident: Option<u64>,
    /// True if the run reported its measurement as invalid.
    pub(crate) reported_invalid: bool,
    /// The files of the run.
    pub(crate) files: RunFiles,
}

/// Runs `exe` on a scenario, in a temporary folder. Only one run at a time: the kernel reports the
/// processor time of all children together.
pub(crate) fn run_program(exe: &Path, scenario: &Value) -> Result<ProgramRun, BenchError> {
    run_program_with(exe, scenario, &[])
}

/// As [`run_program`], with more arguments.
pub(crate) fn run_program_with(
    exe: &Path,
    scenario: &Value,
    more: &[&str],
) -> Result<ProgramRun, BenchError> {
    let failed = |source| BenchError::Io {
        what: "the folder of a run",
        source,
    };
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("scenario.json");
    fs::write(&file, scenario.to_string()).map_err(failed)?;
    let output = folder.path().join("output");
    let mut program = Command::new(exe);
    program
        .args(["run", "--quiet"])
        .arg(&file)
        .arg("--output_dir")
        .arg(&output)
        .args(more);
    let cpu_before = children_cpu();
    let clock = RunClock::with_origin(0);
    let spawned_at = clock.now();
    let (status, words, peak_resident) = watched(program)?;
    let cpu = children_cpu()
        .zip(cpu_before)
        .map(|(after, before)| after - before);
    if !status.code().is_some_and(|code| WHOLE.contains(&code)) {
        return Err(BenchError::Run {
            status: status.to_string(),
            words: words.trim().to_owned(),
        });
    }
    Ok(ProgramRun {
        spawned_at,
        cpu,
        peak_resident,
        reported_invalid: status.code() == Some(6),
        files: RunFiles::read(&output)?,
    })
}

/// Resource usage of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evaluated {
    /// Processor time, user and kernel, all threads.
    pub(crate) cpu: Option<Nanos>,
    /// Elapsed time.
    pub(crate) wall: Nanos,
    /// Peak resident memory, in bytes.
    pub(crate) peak_resident: Option<u64>,
}

/// Evaluates a run's record with `exe` and writes all files to `to`.
pub(crate) fn evaluate_record(exe: &Path, run: &Path, to: &Path) -> Result<Evaluated, BenchError> {
    let mut program = Command::new(exe);
    program.args(["evaluate", "--quiet"]).arg(run).arg("--to").arg(to);
    let cpu_before = children_cpu();
    let clock = RunClock::starting_now();
    let (status, words, peak_resident) = watched(program)?;
    let wall = clock.now();
    if !status.code().is_some_and(|code| WHOLE.contains(&code)) {
        return Err(BenchError::Run {
            status: status.to_string(),
            words: words.trim().to_owned(),
        });
    }
    Ok(Evaluated {
        cpu: children_cpu()
            .zip(cpu_before)
            .map(|(after, before)| after - before),
        wall,
        peak_resident,
    })
}

/// Runs a program to its end; returns its status, standard error and peak memory.
fn watched(mut program: Command) -> Result<(ExitStatus, String, Option<u64>), BenchError> {
    let spawned = program
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = spawned.map_err(|source| BenchError::Spawn {
        program: program.get_program().into(),
        source,
    })?;
    let id = process.id().to_string();
    thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        let watch = thread::Builder::new().spawn_scoped(scope, move || {
            let mut peak = None;
            while let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LOOK_EVERY) {
                peak = peak_resident_of(&id).or(peak);
            }
            peak
        });
        let result = wait(&mut process);
        drop(ended);
        let peak = watch.ok().and_then(|watch| watch.join().ok()).flatten();
        result.map(|(status, words)| (status, words, peak))
    })
}

fn wait(process: &mut Child) -> Result<(ExitStatus, String), BenchError> {
    let mut words = String::new();
    if let Some(stderr) = &mut process.stderr {
        // Standard error that is not UTF-8 is not worth a failure.
        let _ = stderr.read_to_string(&mut words);
    }
    let status = process.wait().map_err(BenchError::io("waiting for a run"))?;
    Ok((status, words))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    /// A script that behaves like a run as far as this file is concerned.
    fn program(folder: &Path, body: &str) -> std::path::PathBuf {
        let path = folder.join("program");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    const WRITE: &str = r#"[ "$1 $2 $4" = "run --quiet --output_dir" ] || exit 2
grep -q sessions "$3" || exit 2
mkdir -p "$5/latest/metrics" "$5/latest/traces"
echo '{"event":"run_started","epoch_monotonic":1.5}' > "$5/latest/traces/trace.jsonl"
echo '{"request_id":"0/0","success":true,"scheduler_ready_at":0,"scheduler_dispatched_at":0,"ttfc":0.1}' > "$5/latest/metrics/request_level_metrics.jsonl"
sleep 0.1"#;

    #[test]
    fn reports_usage_and_files_of_a_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let exe = program(folder.path(), WRITE);
        let ran = run_program(&exe, &json!({ "sessions": 1 })).expect("a run");
        assert_eq!((ran.files.epoch, ran.files.requests.len()), (1.5, 1));
        assert!(!ran.reported_invalid);
        assert!(ran.peak_resident.expect("it slept long enough") > 0);
        assert!(ran.cpu.expect("reported by the kernel") > 0);
    }

    #[test]
    fn keeps_files_of_invalid_runs_and_quotes_failed_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let invalid = program(folder.path(), &format!("{WRITE}\nexit 6"));
        assert!(
            run_program(&invalid, &json!({ "sessions": 1 }))
                .expect("files")
                .reported_invalid
        );
        let failing = program(folder.path(), "echo 'no such key' >&2; exit 2");
        let error = run_program(&failing, &json!({}))
            .expect_err("it failed")
            .to_string();
        assert_eq!(
            error,
            "a run of the program ended with exit status: 2: no such key"
        );
    }
}
