//! `veeksha-host schema`.

use crate::cli::args::SchemaFormat;
use crate::exit;
use crate::failure::Failure;
use crate::shipped;

pub(super) fn schema(format: SchemaFormat) -> Result<u8, Failure> {
    let schemas = shipped::schemas();
    match format {
        SchemaFormat::Json => {
            let schema = veeksha_scenario::json_schema(&schemas);
            let text = serde_json::to_string_pretty(&schema).map_err(Failure::internal)?;
            println!("{text}");
        }
        SchemaFormat::Lua => print!("{}", veeksha_scenario::lua_annotations(&schemas)),
    }
    Ok(exit::DONE)
}
