//! `veeksha-host trace convert`.

use std::ops::ControlFlow;

use veeksha_study::{Converter, Format};

use super::subject::Subject;
use super::{Written, finish, line, output};
use crate::cli::args::ConvertArgs;
use crate::exit;
use crate::failure::Failure;
use crate::say;

pub(super) fn convert(args: &ConvertArgs) -> Result<u8, Failure> {
    let to: Format = args
        .to
        .parse()
        .map_err(|error| Failure::usage(format!("--to: {error}")))?;
    let subject = Subject::open(&args.trace)?;
    let mut out = output(args.output.as_deref(), &subject.path)?;
    let mut converter = Converter::new(to);
    if let Some(size) = args.block_size {
        converter = converter.block_size(size.get());
    }
    let count = subject.count();
    let mut written = 0;
    if let Some(header) = to.header() {
        line(&mut out, header)?;
    }
    subject.each_session(|index, session| {
        let rows = converter.rows(session, index, &count).map_err(|error| {
            Failure::usage(format!("session {index} of {}: {error}", subject.path.display()))
        })?;
        for row in rows {
            if line(&mut out, &row)? == Written::NobodyReads {
                return Ok(ControlFlow::Break(()));
            }
            written += 1;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    finish(out)?;
    say::err(format!("{} as `{to}`", say::counted(written, "row")));
    for loss in converter.losses() {
        say::err(format!("not kept: {} ({})", loss.what, loss.count));
    }
    Ok(exit::DONE)
}
