//! `veeksha-host trace synthesize`.

use std::ops::ControlFlow;

use veeksha_trace_tools::{Synthesis, TraceModelFit};

use super::output::{Output, Written};
use super::subject::Subject;
use crate::cli::args::SynthesizeArgs;
use crate::interrupt::Interrupts;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

pub(super) fn synthesize(args: &SynthesizeArgs, interrupts: &Interrupts) -> Result<u8, CommandFailure> {
    let subject = Subject::open(&args.trace)?;
    let mut out = Output::to(args.output.as_deref(), &subject, interrupts)?;
    let mut fit = TraceModelFit::new(subject.block_size(args.block_size));
    let count = subject.count();
    subject.each_session(|_, session| {
        fit.add(session, &count);
        Ok(ControlFlow::Continue(()))
    })?;
    let model = fit.finish().map_err(CommandFailure::usage)?;
    let synthesis = Synthesis {
        seed: args.seed,
        sessions: args.make.unwrap_or(model.sessions()),
        prefix_multiplier: args.prefix_multiplier,
        root_multiplier: args.root_multiplier,
        prompt_multiplier: args.prompt_multiplier,
        output_multiplier: args.output_multiplier,
        speedup: args.speedup,
    };
    let mut rows = 0;
    for row in model.generate(&synthesis).map_err(CommandFailure::usage)? {
        if out.line(&row)? == Written::Disconnected {
            break;
        }
        rows += 1;
    }
    out.finish()?;
    terminal::err(format!(
        "{} as `mooncake` with block_size {}, like the {} of {}",
        veeksha_stats::counted(rows, "row"),
        model.block_size(),
        veeksha_stats::counted(model.sessions(), "session"),
        subject.path.display(),
    ));
    Ok(veeksha_exit::DONE)
}
