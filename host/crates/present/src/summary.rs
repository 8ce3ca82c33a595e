//! The closing table of a run, as text for the terminal.

use veeksha_certificate::Certificate;
use veeksha_report::{ColorMode, summary_table};

use crate::accuracy::AccuracyContext;
use crate::run_analysis::RunAnalysis;
use crate::{divergence_section, replay_section, table};

/// Width of tables where the width of the terminal is unknown.
pub const WIDTH: usize = 110;

/// Returns the closing table of a run, followed by its views in the definitions of other tools.
pub fn summary(results: &RunAnalysis, certificate: &Certificate, accuracy: &AccuracyContext) -> String {
    let mut sections = vec![table::scenario(&results.about)];
    sections.extend(table::sections(&results.evaluation, certificate, accuracy));
    sections.extend(results.fidelity.as_ref().map(replay_section::section));
    sections.extend(results.divergence.as_ref().map(divergence_section::section));
    sections.extend(table::health(&results.health));
    let mut text = summary_table(&sections, WIDTH, ColorMode::from_stdout());
    for view in &results.views {
        text.push_str(&format!("\n\n{}", view.text()));
    }
    text
}
