//! Files in the format of another tool.

use veeksha_compat::AiperfFiles;
use veeksha_report::{ReportError, RunFolder};

/// Subfolder of a run folder for AIPerf's files.
const AIPERF: &str = "aiperf";

/// Files in the format of another tool, ready to be written.
pub struct CompatExport {
    /// Files that are made at the end of the run.
    pub files: AiperfFiles,
    /// Reason why the file that grows with each request is incomplete, if it is.
    pub failure: Option<String>,
}

impl CompatExport {
    /// Subfolder of a run folder for these files.
    pub const FOLDER: &'static str = AIPERF;

    /// Writes the files whose size does not depend on the number of requests.
    pub(crate) fn write(&self, folder: &RunFolder) -> Result<(), String> {
        let message = |error: ReportError| error.to_string();
        let at = |name: &str| format!("{AIPERF}/{name}");
        folder
            .write_json(&at("profile_export_aiperf.json"), &self.files.json)
            .map_err(message)?;
        folder
            .write_text(&at("profile_export_aiperf.csv"), &self.files.csv)
            .map_err(message)?;
        let remarks: String = self
            .files
            .remarks
            .iter()
            .map(|remark| format!("{remark}\n"))
            .collect();
        folder.write_text(&at("remarks.txt"), &remarks).map_err(message)?;
        if let Some(slices) = &self.files.timeslices {
            folder
                .write_json(&at("profile_export_aiperf_timeslices.json"), &slices.json)
                .map_err(message)?;
            folder
                .write_text(&at("profile_export_aiperf_timeslices.csv"), &slices.csv)
                .map_err(message)?;
        }
        self.failure.clone().map_or(Ok(()), Err)
    }
}
