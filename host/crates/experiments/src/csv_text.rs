//! CSV output.

use std::path::Path;

use serde_json::Value;
use veeksha_model::csv_cell;

use crate::error::SweepError;

/// Formats a value as a cell: empty for null; booleans capitalized, as Veeksha's scripts expect
/// them.
pub(crate) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Formats a number as a cell; empty if absent.
pub(crate) fn number(value: Option<f64>) -> String {
    cell(&value.into())
}

/// Writes the rows as text; cells that a spreadsheet would evaluate as formulas are escaped.
/// `folder` and `name` are used in the error message.
pub(crate) fn write(folder: &Path, name: &str, rows: &[Vec<String>]) -> Result<String, SweepError> {
    let form = |reason: String| SweepError::Form {
        path: folder.join(name),
        reason,
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer
            .write_record(row.iter().map(|cell| csv_cell(cell).into_owned()))
            .map_err(|error| form(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| form(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| form(error.to_string()))
}
