//! `veeksha-host schema`.

use crate::cli::args::SchemaFormat;
use veeksha_app::CommandFailure;
use veeksha_app::shipped;
use veeksha_present::terminal;

pub(super) fn schema(format: SchemaFormat) -> Result<u8, CommandFailure> {
    let schemas = shipped::schemas();
    match format {
        SchemaFormat::Json => {
            let schema = veeksha_scenario::file_schema(&schemas);
            let text = serde_json::to_string_pretty(&schema).map_err(CommandFailure::internal)?;
            terminal::out(text);
        }
        SchemaFormat::Lua => terminal::out(veeksha_scenario::lua_annotations(&schemas).trim_end()),
    }
    Ok(veeksha_exit::DONE)
}
