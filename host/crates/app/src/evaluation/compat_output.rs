//! Output in the definitions and file formats of other tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use veeksha_compat::{AiperfExport, AiperfInfo, GoodputThreshold, Threshold, Tool, View, ViewOptions};
use veeksha_events::Event;
use veeksha_model::Nanos;
use veeksha_present::{CompatExport, RunDescription};
use veeksha_scenario::{Document, Scenario};

use crate::failure::CommandFailure;
use crate::scenario::secrets;
use crate::workload::tokenizers;

/// The other tools in whose definitions and files a run is presented.
#[derive(Default)]
pub struct CompatOptions {
    tools: Vec<Tool>,
    aiperf_files: bool,
    goodput: BTreeMap<Tool, Vec<Threshold>>,
}

impl CompatOptions {
    /// Validates the options of a command line: views in the definitions of `tools`, AIPerf's
    /// files, and goodput thresholds.
    ///
    /// # Errors
    /// If none of the tools uses a threshold, or a tool does not offer it.
    pub fn new(
        tools: &[Tool],
        aiperf_files: bool,
        goodput: &[GoodputThreshold],
    ) -> Result<Self, CommandFailure> {
        let of_files = aiperf_files.then_some(Tool::Aiperf);
        let shown: Vec<Tool> = tools.iter().copied().chain(of_files).collect();
        let options = CompatOptions {
            tools: tools.to_vec(),
            aiperf_files,
            goodput: GoodputThreshold::assign(goodput, &shown)
                .map_err(|error| CommandFailure::usage(format!("--as-goodput: {error}")))?,
        };
        for tool in shown {
            options.view(tool, ViewOptions::default())?;
        }
        Ok(options)
    }

    /// Returns the views of a run of this scenario.
    pub(crate) fn views(&self, scenario: &Scenario) -> Result<Vec<View>, CommandFailure> {
        let of_the_load = ViewOptions {
            session_rate: scenario.traffic_scheduler.session_rate(),
            tokenizer: Some(tokenizers::describe(&scenario.client)),
            max_concurrency: scenario.traffic_scheduler.limits().requests_in_flight,
            concurrent_sessions: scenario.traffic_scheduler.concurrent_sessions(),
            ..ViewOptions::default()
        };
        let views = self.tools.iter();
        views.map(|tool| self.view(*tool, of_the_load.clone())).collect()
    }

    fn view(&self, tool: Tool, of_the_load: ViewOptions) -> Result<View, CommandFailure> {
        let options = ViewOptions {
            goodput: self.goodput(tool),
            ..of_the_load
        };
        View::new(tool, options).map_err(|error| CommandFailure::usage(format!("--as-goodput: {error}")))
    }

    fn goodput(&self, tool: Tool) -> Vec<Threshold> {
        self.goodput.get(&tool).cloned().unwrap_or_default()
    }
}

/// Files of another tool that are being written.
pub(crate) struct Exporting {
    export: AiperfExport,
    rows: CompatRows,
}

/// The file that grows with every request.
struct CompatRows {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    failure: Option<String>,
}

impl Exporting {
    /// Starts the requested files in the folder of a run.
    pub(crate) fn start(
        options: &CompatOptions,
        scenario: &Scenario,
        about: &RunDescription,
    ) -> Result<Option<Exporting>, CommandFailure> {
        if !options.aiperf_files {
            return Ok(None);
        }
        let name = about.folder.file_name().unwrap_or(about.folder.as_os_str());
        let config = Document::from_yaml(&about.config, "config.yml");
        let info = AiperfInfo {
            benchmark_id: name.to_string_lossy().into_owned(),
            version: concat!("veeksha-host ", env!("CARGO_PKG_VERSION")).to_owned(),
            seed: Some(scenario.seed),
            cli_command: secrets::shown_command(std::env::args()),
            input_config: config.map_or(Value::Null, |document| document.root.to_json()),
            goodput: options.goodput(Tool::Aiperf),
            tokenizer: Some(tokenizers::describe(&scenario.client)),
            slice: None,
        };
        Ok(Some(Exporting {
            export: AiperfExport::new(info)
                .map_err(|error| CommandFailure::usage(format!("--compat aiperf: {error}")))?,
            rows: CompatRows::create(&about.folder.join(CompatExport::FOLDER)),
        }))
    }

    pub(crate) fn on(&mut self, event: &Event) {
        self.export.on(event);
        if let Some(line) = self.export.jsonl_line(event) {
            self.rows.append(&line);
        }
    }

    /// Returns the files, with time slices of `slice` nanoseconds.
    pub(crate) fn finish(self, slice: Nanos) -> CompatExport {
        CompatExport {
            files: self.export.with_slices(slice).finish(),
            failure: self.rows.finish(),
        }
    }
}

impl CompatRows {
    fn create(folder: &Path) -> CompatRows {
        let path = folder.join("profile_export.jsonl");
        let created = std::fs::create_dir_all(folder).and_then(|()| File::create(&path));
        let (file, failure) = match created {
            Ok(file) => (Some(BufWriter::new(file)), None),
            Err(error) => (None, Some(format!("cannot write {}: {error}", path.display()))),
        };
        CompatRows { path, file, failure }
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
