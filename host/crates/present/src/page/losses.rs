//! Requests that failed or were never sent, and tool runs that did not end.

use std::collections::BTreeMap;

use veeksha_events::{NeverSentReason, ToolDropReason};
use veeksha_metrics::Evaluation;
use veeksha_page::{DroppedToolRuns, FailedWorkload, Failures, NeverSent};

use crate::run_analysis::FailureClass;

pub(super) fn failures(failed: &BTreeMap<&'static str, FailureClass>) -> Vec<Failures> {
    let mut failures: Vec<Failures> = failed
        .iter()
        .map(|(class, first)| Failures {
            class: (*class).to_owned(),
            count: first.count,
            first_message: first.message.clone(),
            first_request: Some(first.request.clone()),
            first_at: Some(first.at),
        })
        .collect();
    failures.sort_by_key(|failures| std::cmp::Reverse(failures.count));
    failures
}

pub(super) fn failed_plugins(evaluation: &Evaluation) -> Vec<FailedWorkload> {
    let failures = evaluation.workload_failures.iter();
    failures
        .map(|failed| FailedWorkload {
            plugin: failed.plugin.clone(),
            count: failed.count,
            first_message: failed.first.clone(),
            sessions: failed.sessions.iter().map(|session| session.0).collect(),
        })
        .collect()
}

pub(super) fn never_sent(evaluation: &Evaluation) -> Vec<NeverSent> {
    let counts = evaluation.counts.never_sent.iter();
    counts
        .map(|(reason, count)| NeverSent {
            reason: reason.name().to_owned(),
            count: *count,
            meaning: meaning(*reason).to_owned(),
        })
        .collect()
}

fn meaning(reason: NeverSentReason) -> &'static str {
    match reason {
        NeverSentReason::SessionCancelled => "an earlier request of the session failed",
        NeverSentReason::RunEnded => "the run ended before they were due",
        NeverSentReason::PluginFailed => "the session's plugin failed",
        NeverSentReason::Held => "a limit delayed them until the run ended",
        NeverSentReason::CancelledByClient => "the workload cancelled them",
        NeverSentReason::Missed => "they were due, but the client did not send them in time",
    }
}

pub(super) fn dropped_tool_runs(evaluation: &Evaluation) -> Vec<DroppedToolRuns> {
    let classes = evaluation.counts.tools.iter();
    let dropped = classes.flat_map(|(class, counts)| {
        counts.dropped.iter().map(|(reason, count)| DroppedToolRuns {
            tool: class.to_string(),
            reason: reason.name().to_owned(),
            count: *count,
            meaning: match reason {
                ToolDropReason::InService => "they were served when the run ended",
                ToolDropReason::NotServed(NeverSentReason::Held) => {
                    "they waited for a server, or their session for a slot, until the run ended"
                }
                ToolDropReason::NotServed(NeverSentReason::RunEnded) => {
                    "they were not due before the end of the measurement"
                }
                ToolDropReason::NotServed(reason) => meaning(*reason),
            }
            .to_owned(),
        })
    });
    dropped.collect()
}
