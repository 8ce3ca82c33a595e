//! `veeksha-host simulate`.

use veeksha_app::{CommandFailure, plan_simulation};

use crate::cli::args::SimulateArgs;
use crate::cli::scenarios::scenarios;
use crate::cli::{check, output, sweep};
use crate::interrupt::Interrupts;

pub(super) fn simulate(
    args: &SimulateArgs,
    overrides: &[(String, String)],
    interrupts: &Interrupts,
) -> Result<u8, CommandFailure> {
    let compat = args.output.options()?;
    let scenarios = check::sound(scenarios(&args.run.scenario, overrides)?, interrupts)?;
    sweep::each(scenarios, interrupts, args.run.quiet, |loaded, printed| {
        let plan = plan_simulation(loaded, args.run.shard, args.profile.as_deref())?;
        output::notes(plan.notes());
        let conclusion = veeksha_app::simulate(plan, &compat, &interrupts.next_run())?;
        output::conclusion(conclusion, printed)
    })
}
