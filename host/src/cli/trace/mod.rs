//! `veeksha-host trace`: inspects recorded traces, converts them, and synthesizes similar ones.

mod convert;
mod detect;
mod inspect;
mod output;
mod subject;
mod synthesize;

use crate::cli::args::TraceCommand;
use crate::interrupt::Interrupts;
use veeksha_app::CommandFailure;

pub(super) fn trace(command: &TraceCommand, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    match command {
        TraceCommand::Inspect(args) => inspect::inspect(args),
        TraceCommand::Convert(args) => convert::convert(args, interrupts),
        TraceCommand::Synthesize(args) => synthesize::synthesize(args, interrupts),
    }
}
