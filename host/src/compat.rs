//! The run in other tools' words: their definitions on the terminal, their files on disk.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_events::Event;
use veeksha_peers::{AiperfExport, AiperfInfo, Options, View};
use veeksha_report::RunFolder;
use veeksha_scenario::{Document, IntervalGenerator, Scenario, Traffic};

pub(crate) use veeksha_peers::AiperfFiles;

use crate::analysis::About;
use crate::cli::args::{Compat, OutputArgs};
use crate::failure::Failure;

/// The folder of AIPerf's files within a run's.
const AIPERF: &str = "aiperf";

/// The views that the command line asks for.
pub(crate) fn views(output: &OutputArgs, scenario: &Scenario) -> Result<Vec<View>, Failure> {
    let options = Options {
        goodput: output.dialect_goodput.clone(),
        percentiles: Vec::new(),
        request_rate: request_rate(scenario),
        max_concurrency: scenario.traffic_scheduler.limits().requests_in_flight,
    };
    let views = output.dialect.iter().map(|dialect| {
        View::new(*dialect, options.clone())
            .map_err(|error| Failure::usage(format!("--dialect {dialect}: {error}")))
    });
    views.collect()
}

/// Sessions a second, of traffic that has a rate; the tools that repeat it send one request a session.
fn request_rate(scenario: &Scenario) -> Option<f64> {
    let Traffic::Rate(rate) = &scenario.traffic_scheduler else {
        return None;
    };
    Some(match rate.interval_generator {
        IntervalGenerator::Fixed { interval } => 1.0 / interval,
        IntervalGenerator::Poisson { arrival_rate } | IntervalGenerator::Gamma { arrival_rate, .. } => {
            arrival_rate
        }
    })
}

/// Another tool's files, as far as they are known.
pub(crate) struct Exporting {
    export: AiperfExport,
    rows: Rows,
}

/// The file that grows with every request.
struct Rows {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    failure: Option<String>,
}

impl Exporting {
    /// Starts the files that the command line asks for in a run's folder.
    pub(crate) fn start(
        output: &OutputArgs,
        scenario: &Scenario,
        about: &About,
    ) -> Result<Option<Exporting>, Failure> {
        let Some(Compat::Aiperf) = output.compat else {
            return Ok(None);
        };
        let name = about.folder.file_name().unwrap_or(about.folder.as_os_str());
        let config = Document::from_yaml(&about.config, "config.yml");
        let info = AiperfInfo {
            benchmark_id: name.to_string_lossy().into_owned(),
            version: concat!("veeksha-host ", env!("CARGO_PKG_VERSION")).to_owned(),
            seed: Some(scenario.seed),
            cli_command: without_secrets(std::env::args()),
            input_config: config.map_or(Value::Null, |document| document.root.to_json()),
            goodput: output.dialect_goodput.clone(),
            slice: Some((crate::evaluators::performance(scenario).slice_seconds * 1e9) as u64),
        };
        Ok(Some(Exporting {
            export: AiperfExport::new(info)
                .map_err(|error| Failure::usage(format!("--compat aiperf: {error}")))?,
            rows: Rows::create(&about.folder.join(AIPERF)),
        }))
    }

    pub(crate) fn on(&mut self, event: &Event) {
        self.export.on(event);
        if let Some(line) = self.export.jsonl_line(event) {
            self.rows.append(&line);
        }
    }

    pub(crate) fn finish(self) -> Exported {
        Exported {
            files: self.export.finish(),
            failure: self.rows.finish(),
        }
    }
}

/// The command as it was typed, but for what may be secret in it.
fn without_secrets(typed: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut hidden = false;
    for word in typed {
        let secret = |word: &str| {
            ["api_key", "token", "headers", "proxy"]
                .iter()
                .any(|name| word.contains(name))
        };
        match word.split_once('=') {
            _ if hidden => words.push("***".to_owned()),
            Some((name, _)) if secret(name) => words.push(format!("{name}=***")),
            _ => words.push(word.clone()),
        }
        hidden = !hidden && word.starts_with("--") && !word.contains('=') && secret(&word);
    }
    words.join(" ")
}

impl Rows {
    fn create(folder: &Path) -> Rows {
        let path = folder.join("profile_export.jsonl");
        let created = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let (file, failure) = match created {
            Ok(file) => (Some(BufWriter::new(file)), None),
            Err(error) => (None, Some(format!("cannot write {}: {error}", path.display()))),
        };
        Rows { path, file, failure }
    }

    fn append(&mut self, line: &[u8]) {
        let written = self.file.as_mut().map(|file| file.write_all(line));
        if let Some(Err(error)) = written {
            self.failure = Some(format!("cannot write {}: {error}", self.path.display()));
            self.file = None;
        }
    }

    fn finish(mut self) -> Option<String> {
        let flushed = self.file.as_mut().map(Write::flush);
        if let Some(Err(error)) = flushed {
            self.failure = Some(format!("cannot write {}: {error}", self.path.display()));
        }
        self.failure
    }
}

/// Another tool's files, ready to be written.
pub(crate) struct Exported {
    files: AiperfFiles,
    failure: Option<String>,
}

impl Exported {
    /// Writes what does not grow with the run.
    pub(crate) fn write(&self, folder: &RunFolder) -> Result<(), String> {
        let said = |error: veeksha_report::ReportError| error.to_string();
        let at = |name: &str| format!("{AIPERF}/{name}");
        folder
            .write_json(&at("profile_export_aiperf.json"), &self.files.json)
            .map_err(said)?;
        folder
            .write_text(&at("profile_export_aiperf.csv"), &self.files.csv)
            .map_err(said)?;
        if let Some(slices) = &self.files.timeslices {
            folder
                .write_json(&at("profile_export_aiperf_timeslices.json"), &slices.json)
                .map_err(said)?;
            folder
                .write_text(&at("profile_export_aiperf_timeslices.csv"), &slices.csv)
                .map_err(said)?;
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn secrets_of_the_command_line_are_not_told() {
        let typed = "veeksha-host run a.lua --client.api_key sk-1 --set client.headers.x=sk-2 --client.api_key=sk-3 --seed 4";
        let told = without_secrets(typed.split(' ').map(str::to_owned));
        assert_eq!(
            told,
            "veeksha-host run a.lua --client.api_key *** --set client.headers.x=*** --client.api_key=*** --seed 4"
        );
    }
}
