//! Opening of a scenario's arrival process.

use std::sync::Arc;

use veeksha_ports::ArrivalFactory;
use veeksha_prompt::Tokenizer;
use veeksha_scenario::ArrivalPlugin;

use crate::failure::CommandFailure;
use crate::scenario::source::Loaded;
use crate::workload::components;
use crate::workload::grants::lua_grants;

/// The key of the plugin in a scenario.
const PROCESS: &str = "traffic_scheduler.process";

/// Returns the arrival process of a scenario, if it has one, and compares the first arrivals of two
/// instances.
pub(crate) fn open(
    loaded: &Loaded,
    tokenizer: &Tokenizer,
) -> Result<Option<Arc<dyn ArrivalFactory>>, CommandFailure> {
    let process = match loaded.scenario.traffic_scheduler.arrival_plugin() {
        None => return Ok(None),
        Some(ArrivalPlugin::Wasm(component)) => {
            let opened = components::open(loaded, component, PROCESS, tokenizer)?;
            opened.plugin.arrivals(opened.config, opened.grants)?
        }
        Some(ArrivalPlugin::Lua { .. }) => loaded
            .lua(PROCESS)?
            .arrivals(&format!("{PROCESS}.arrivals"), lua_grants(loaded, tokenizer))
            .map_err(CommandFailure::usage)?,
    };
    veeksha_ports::check_arrivals(&*process)?;
    Ok(Some(process))
}
