//! Reads the files of a run: its records are in seconds since its start, and its trace has the
//! start.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::BenchError;

/// The required fields of a request's record; times in seconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct RequestLine {
    pub(crate) request_id: String,
    pub(crate) success: bool,
    pub(crate) scheduler_ready_at: f64,
    pub(crate) scheduler_dispatched_at: f64,
    pub(crate) ttfc: Option<f64>,
}

/// The files of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunFiles {
    /// Start of the run on `CLOCK_MONOTONIC`, in seconds.
    pub(crate) epoch: f64,
    /// The requests.
    pub(crate) requests: Vec<RequestLine>,
}

impl RunFiles {
    /// Reads the newest run in `folder`.
    pub(crate) fn read(folder: &Path) -> Result<Self, BenchError> {
        let run = folder.join("latest");
        let requests = read(&run.join("metrics/request_level_metrics.jsonl"), |text| {
            lines(text)
        })?;
        let epoch = read(&run.join("traces/trace.jsonl"), epoch)?;
        Ok(RunFiles { epoch, requests })
    }
}

fn read<T>(path: &Path, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, BenchError> {
    let refuse = |reason: String| BenchError::File {
        path: path.to_owned(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    parse(&text).map_err(refuse)
}

fn lines(text: &str) -> Result<Vec<RequestLine>, String> {
    text.lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", index + 1))
        })
        .collect()
}

/// Returns the start of the run from the first line of its trace.
fn epoch(text: &str) -> Result<f64, String> {
    #[derive(Deserialize)]
    struct Start {
        event: String,
        epoch_monotonic: f64,
    }
    let line = text.lines().next().ok_or("it is empty")?;
    match serde_json::from_str::<Start>(line) {
        Ok(start) if start.event == "run_started" => Ok(start.epoch_monotonic),
        _ => Err("it does not begin with `run_started`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LINE: &str = r#"{"request_id":"3/0","success":true,"scheduler_ready_at":0.5,"scheduler_dispatched_at":0.50004,"ttfc":null,"more":[1]}"#;

    #[test]
    fn reads_the_files_of_a_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path().join("latest");
        fs::create_dir_all(run.join("metrics")).expect("a folder");
        fs::create_dir_all(run.join("traces")).expect("a folder");
        let metrics = run.join("metrics/request_level_metrics.jsonl");
        fs::write(&metrics, format!("{LINE}\n{LINE}\n")).expect("a file");
        let missing = RunFiles::read(folder.path()).expect_err("no trace").to_string();
        assert!(missing.contains("traces/trace.jsonl"), "{missing}");
        let trace =
            "{\"event\":\"run_started\",\"epoch_unix\":1.5,\"epoch_monotonic\":24095.740180279}\n{}\n";
        fs::write(run.join("traces/trace.jsonl"), trace).expect("a file");
        let files = RunFiles::read(folder.path()).expect("files");
        assert_eq!((files.epoch, files.requests.len()), (24_095.740_180_279, 2));
        assert_eq!(
            (files.requests[1].request_id.as_str(), files.requests[1].ttfc),
            ("3/0", None)
        );
    }

    #[test]
    fn names_the_invalid_line() {
        let error =
            lines(&format!("{LINE}\n{{\"request_id\":\"3/0\"}}\n")).expect_err("a line without times");
        assert!(error.starts_with("line 2: missing field"), "{error}");
        for text in [
            "",
            "{}",
            "{\"event\":\"dispatched\",\"epoch_monotonic\":1}",
            "\u{0}",
        ] {
            assert!(epoch(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn survives_arbitrary_input(text in "(.{0,40}\n){0,4}|\\{\"request_id\":\"a\",\"success\":[a-z0-9\"]{0,6}\\}") {
            let _ = lines(&text);
            let _ = epoch(&text);
        }
    }
}
