//! `veeksha-host trace inspect`.

use std::ops::ControlFlow;

use serde_json::json;
use veeksha_report::{Panel, PanelKind, portrait_svg};
use veeksha_trace_tools::{TraceStats, TraceStatsBuilder};

use super::subject::Subject;
use crate::cli::args::InspectArgs;
use veeksha_app::CommandFailure;
use veeksha_present::terminal;

pub(super) fn inspect(args: &InspectArgs) -> Result<u8, CommandFailure> {
    let subject = Subject::open(&args.trace)?;
    if let Some(path) = &args.plot {
        subject.guard(path)?;
    }
    let mut portrait = TraceStatsBuilder::new();
    let count = subject.count();
    subject.each_session(|_, session| {
        portrait.add(session, &count);
        Ok(ControlFlow::Continue(()))
    })?;
    let report = portrait.finish();
    if let Some(path) = &args.plot {
        let svg = portrait_svg(&panels(&report)).map_err(CommandFailure::internal)?;
        std::fs::write(path, svg)
            .map_err(|error| CommandFailure::usage(format!("cannot write {}: {error}", path.display())))?;
    }
    let skipped = subject.trace.skipped().total;
    if args.json {
        let value = json!({
            "trace": subject.path,
            "flavor": subject.flavor,
            "bytes": subject.trace.bytes(),
            "rows": subject.trace.facts().rows,
            "rows_skipped": skipped,
            "portrait": report,
        });
        terminal::out(serde_json::to_string_pretty(&value).map_err(CommandFailure::internal)?);
    } else {
        terminal::out(format!(
            "{}: {} bytes, read as `{}`, {}\n",
            subject.path.display(),
            subject.trace.bytes(),
            subject.flavor,
            veeksha_stats::counted(subject.trace.facts().rows, "row"),
        ));
        terminal::out(report.text().trim_end());
    }
    Ok(veeksha_exit::DONE)
}

/// Returns the cumulative distributions, which do not depend on a choice of bins.
fn panels(report: &TraceStats) -> Vec<Panel> {
    let distributions = report.distributions().into_iter();
    distributions
        .map(|(name, distribution)| {
            let unit = distribution.unit.symbol();
            let x_label = if unit.is_empty() { "count" } else { unit };
            Panel {
                title: name.to_owned(),
                x_label: x_label.to_owned(),
                y_label: "share up to".to_owned(),
                kind: PanelKind::Cdf,
                series: vec![(name.to_owned(), distribution.cdf.clone())],
                log_x: distribution.min > 0.0 && distribution.max > 50.0 * distribution.min,
            }
        })
        .collect()
}
