//! The scenarios that a command line names.

use veeksha_app::{Failure, Loaded, Source, Variant};

use crate::cli::args::ScenarioArgs;

/// Reads the scenarios of a command line: one, or several if its file has several.
pub(super) fn scenarios(
    args: &ScenarioArgs,
    overrides: &[(String, String)],
) -> Result<Vec<Variant<Result<Loaded, Failure>>>, Failure> {
    Source::read(&args.scenario)?.variants(&args.set, overrides, args.no_cache)
}
