//! `veeksha-host run`.

use veeksha_app::{CommandFailure, CompatOptions, Loaded, RunOptions, plan, require_target};

use crate::cli::args::RunArgs;
use crate::cli::output::{self, Printed};
use crate::cli::scenarios::scenarios;
use crate::cli::{check, live_page, sweep};
use crate::interrupt::Interrupts;

pub(super) fn run(
    args: &RunArgs,
    overrides: &[(String, String)],
    interrupts: &Interrupts,
) -> Result<u8, CommandFailure> {
    let compat = args.output.options()?;
    let scenarios = check::sound(scenarios(&args.drive.scenario, overrides)?, interrupts)?;
    for scenario in &scenarios {
        require_target(&scenario.loaded.scenario, &args.drive.scenario.scenario)?;
    }
    let options = options(args, compat)?;
    sweep::each(scenarios, interrupts, args.drive.quiet, |loaded, printed| {
        one(loaded, args, &options, interrupts, printed)
    })
}

fn options(args: &RunArgs, compat: CompatOptions) -> Result<RunOptions, CommandFailure> {
    let program = std::env::current_exe()
        .map_err(|error| CommandFailure::internal(format!("cannot find this program: {error}")))?;
    Ok(RunOptions {
        compat,
        quiet: args.drive.quiet,
        stream_metrics: args.stream_metrics,
        page: live_page::start(args)?,
        program: Some(program),
    })
}

fn one(
    loaded: Loaded,
    args: &RunArgs,
    options: &RunOptions,
    interrupts: &Interrupts,
    printed: Printed,
) -> Result<veeksha_app::Conclusion, CommandFailure> {
    let drive = &args.drive;
    let plan = plan(loaded, &drive.scenario.scenario, drive.shard, args.self_test)?;
    output::notes(plan.notes());
    let conclusion = veeksha_app::run(plan, options, &interrupts.next_run())?;
    output::conclusion(conclusion, printed)
}
