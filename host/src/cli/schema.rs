//! `veeksha-host schema`.

use crate::cli::args::SchemaFormat;
use crate::exit;
use crate::failure::Failure;
use crate::say;
use crate::shipped;

pub(super) fn schema(format: SchemaFormat) -> Result<u8, Failure> {
    let schemas = shipped::schemas();
    match format {
        SchemaFormat::Json => {
            let schema = veeksha_scenario::file_schema(&schemas);
            let text = serde_json::to_string_pretty(&schema).map_err(Failure::internal)?;
            say::out(text);
        }
        SchemaFormat::Lua => say::out(veeksha_scenario::lua_annotations(&schemas).trim_end()),
    }
    Ok(exit::DONE)
}
