//! Scenarios on a command line.

use veeksha_app::{CommandFailure, Loaded, Source, Variant};

use crate::cli::args::ScenarioArgs;

/// Reads the scenarios of a command line: those in its file, at least one.
pub(super) fn scenarios(
    args: &ScenarioArgs,
    overrides: &[(String, String)],
) -> Result<Vec<Variant<Result<Loaded, CommandFailure>>>, CommandFailure> {
    Source::read(&args.scenario)?
        .granting(&args.grants)
        .variants(&args.set, overrides, args.no_cache)
}
