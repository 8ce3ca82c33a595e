//! Recording of the decisions of a run's agents.

use std::sync::Arc;

use veeksha_decisions::{DecisionWriter, DecisionsOrigin, FILE, RecordingFactory};
use veeksha_report::RunFolder;
use veeksha_scenario::Scenario;

use crate::execution::wiring::Wired;
use crate::failure::CommandFailure;

/// Starts to record the decisions of a run, unless its scenario keeps them off the disk.
///
/// # Errors
/// If the thread that writes them cannot be started.
pub(crate) fn record(
    scenario: &Scenario,
    wired: &mut Wired,
    folder: &RunFolder,
) -> Result<Option<DecisionWriter>, CommandFailure> {
    if !scenario.trace_recorder.decisions {
        return Ok(None);
    }
    let plugin = wired.factory.info();
    let origin = DecisionsOrigin {
        plugin: plugin.name.clone(),
        plugin_version: plugin.version.clone(),
        plugin_digest: plugin.digest.clone(),
        seed: scenario.seed,
        run_id: wired.plan.run_id.clone(),
    };
    let path = folder.path().join(FILE);
    let writer = DecisionWriter::start(path, origin, wired.redaction.clone())
        .map_err(|error| CommandFailure::internal(format!("cannot start a thread: {error}")))?;
    wired.factory = Arc::new(RecordingFactory::new(wired.factory.clone(), writer.sender()));
    Ok(Some(writer))
}
