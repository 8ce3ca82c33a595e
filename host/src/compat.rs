//! The run in other tools' words: their definitions on the terminal, their files on disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_compat::{AiperfExport, AiperfInfo, Goodput, Options, Threshold, Tool, View};
use veeksha_events::Event;
use veeksha_report::RunFolder;
use veeksha_scenario::{Document, IntervalGenerator, Scenario, Traffic};

pub(crate) use veeksha_compat::AiperfFiles;

use crate::analysis::About;
use crate::cli::args::{Compat, OutputArgs};
use crate::failure::Failure;
use crate::{secrets, tokenizers};

/// The folder of AIPerf's files within a run's.
const AIPERF: &str = "aiperf";

/// In whose words the command line wants the run told, checked before anything is done.
pub(crate) struct Wanted {
    tools: Vec<Tool>,
    files: Option<Compat>,
    goodput: BTreeMap<Tool, Vec<Threshold>>,
}

impl Wanted {
    /// # Errors
    /// If a threshold is for nobody, or is none that its tool offers.
    pub(crate) fn of(output: &OutputArgs) -> Result<Wanted, Failure> {
        let of_files = output.compat.map(|Compat::Aiperf| Tool::Aiperf);
        let shown: Vec<Tool> = output.as_tools.iter().copied().chain(of_files).collect();
        let goodput = Goodput::share_out(&output.as_goodput, &shown)
            .map_err(|error| Failure::usage(format!("--as-goodput: {error}")))?;
        let wanted = Wanted {
            tools: output.as_tools.clone(),
            files: output.compat,
            goodput,
        };
        for tool in shown {
            wanted.view(tool, Options::default())?;
        }
        Ok(wanted)
    }

    /// The views of a run of this scenario.
    pub(crate) fn views(&self, scenario: &Scenario) -> Result<Vec<View>, Failure> {
        let of_the_load = Options {
            session_rate: session_rate(scenario),
            tokenizer: Some(tokenizers::words(&scenario.client)),
            max_concurrency: scenario.traffic_scheduler.limits().requests_in_flight,
            ..Options::default()
        };
        let views = self.tools.iter();
        views.map(|tool| self.view(*tool, of_the_load.clone())).collect()
    }

    fn view(&self, tool: Tool, of_the_load: Options) -> Result<View, Failure> {
        let options = Options {
            goodput: self.goodput(tool),
            ..of_the_load
        };
        View::new(tool, options).map_err(|error| Failure::usage(format!("--as-goodput: {error}")))
    }

    fn goodput(&self, tool: Tool) -> Vec<Threshold> {
        self.goodput.get(&tool).cloned().unwrap_or_default()
    }
}

/// Sessions a second, of traffic that has a rate.
fn session_rate(scenario: &Scenario) -> Option<f64> {
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
    /// Starts the files that are wanted in a run's folder.
    pub(crate) fn start(
        wanted: &Wanted,
        scenario: &Scenario,
        about: &About,
    ) -> Result<Option<Exporting>, Failure> {
        let Some(Compat::Aiperf) = wanted.files else {
            return Ok(None);
        };
        let name = about.folder.file_name().unwrap_or(about.folder.as_os_str());
        let config = Document::from_yaml(&about.config, "config.yml");
        let info = AiperfInfo {
            benchmark_id: name.to_string_lossy().into_owned(),
            version: concat!("veeksha-host ", env!("CARGO_PKG_VERSION")).to_owned(),
            seed: Some(scenario.seed),
            cli_command: secrets::shown_command(std::env::args()),
            input_config: config.map_or(Value::Null, |document| document.root.to_json()),
            goodput: wanted.goodput(Tool::Aiperf),
            tokenizer: Some(tokenizers::words(&scenario.client)),
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
        let remarks: String = self
            .files
            .remarks
            .iter()
            .map(|remark| format!("{remark}\n"))
            .collect();
        folder.write_text(&at("remarks.txt"), &remarks).map_err(said)?;
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
