//! `veeksha-host trace convert`.

use std::ops::ControlFlow;

use veeksha_trace_tools::{Converter, TargetFormat};

use super::output::{Output, Written};
use super::subject::Subject;
use crate::cli::args::ConvertArgs;
use crate::interrupt::Interrupts;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

pub(super) fn convert(args: &ConvertArgs, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    let to: TargetFormat = args
        .to
        .parse()
        .map_err(|error| CommandFailure::usage(format!("--to: {error}")))?;
    let subject = Subject::open(&args.trace)?;
    let mut out = Output::to(args.output.as_deref(), &subject, interrupts)?;
    let mut converter = Converter::new(to).block_size(subject.block_size(args.block_size));
    let count = subject.count();
    let mut written = 0;
    if let Some(header) = to.header() {
        out.line(header)?;
    }
    subject.each_session(|index, session| {
        let rows = converter.rows(session, index, &count).map_err(|error| {
            CommandFailure::usage(format!("session {index} of {}: {error}", subject.path.display()))
        })?;
        for row in rows {
            if out.line(&row)? == Written::Disconnected {
                return Ok(ControlFlow::Break(()));
            }
            written += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    out.finish()?;
    terminal::err(format!("{} as `{to}`", veeksha_stats::counted(written, "row")));
    for loss in converter.losses() {
        terminal::err(format!("not kept: {} ({})", loss.what, loss.count));
    }
    Ok(veeksha_exit::DONE)
}
