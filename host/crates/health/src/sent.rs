//! Check that requests that were due were sent.

use veeksha_events::{Event, NeverSentReason, PluginRole};
use veeksha_stats::share;

use crate::report::{HealthCheck, ValueUnit};

pub(crate) const NAME: &str = "Requests Sent";

/// Allowed share of unsent requests.
const ALLOWED: f64 = 0.01;

/// Due requests and their outcome. Requests that were cut off by the end of the run or held back by
/// a limit of the scenario were not due.
#[derive(Default)]
pub(crate) struct SentCheck {
    finished: u64,
    failed: u64,
    withdrawn: u64,
    unmade: u64,
    missed: u64,
    /// Sessions that the workload's plugin could not make or continue.
    lost_sessions: u64,
}

impl SentCheck {
    pub(crate) fn on(&mut self, event: &Event) {
        match event {
            Event::Finished(record) if record.measured => {
                self.finished += 1;
                self.failed += u64::from(record.is_failed());
            }
            Event::NeverSent { reason, .. } => match reason {
                NeverSentReason::SessionCancelled => self.withdrawn += 1,
                NeverSentReason::PluginFailed => self.unmade += 1,
                NeverSentReason::Missed => self.missed += 1,
                NeverSentReason::RunEnded | NeverSentReason::Held | NeverSentReason::CancelledByClient => {}
            },
            Event::PluginFailed(failed) if failed.part == PluginRole::Workload => self.lost_sessions += 1,
            _ => {}
        }
    }

    pub(crate) fn finish(self) -> HealthCheck {
        let never = self.withdrawn + self.unmade + self.missed;
        let due = self.finished + never;
        if due == 0 && self.lost_sessions == 0 {
            return HealthCheck::skipped(NAME, "no request was due");
        }
        let mut check = HealthCheck::new(NAME);
        let of_due = never as f64 / due.max(1) as f64;
        if self.lost_sessions > 0 {
            check.fail(
                format!(
                    "{} ended early, because the workload's plugin failed",
                    veeksha_stats::counted(self.lost_sessions, "session")
                ),
                "fix the plugin: its error is in summary_stats.json and on the terminal",
            );
        }
        if never > 0 {
            let reasons = [
                (self.withdrawn, "an earlier request of their session failed"),
                (self.unmade, "their session's plugin failed"),
                (self.missed, "the host did not reach them"),
            ];
            let reasons: Vec<String> = reasons
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, why)| format!("{count} because {why}"))
                .collect();
            let what = format!(
                "{never} of {} that were due ({}) were never sent ({} allowed): {}",
                veeksha_stats::counted(due, "request"),
                share(of_due),
                share(ALLOWED),
                reasons.join(", ")
            );
            if of_due > ALLOWED {
                check.fail(
                    what,
                    "see the errors of the failed requests and plugins in summary_stats.json; lower the load if the host did not reach the requests",
                );
            } else {
                check.note(what);
            }
        }
        if self.failed > 0 {
            check.note(format!(
                "{} of {} that were sent failed",
                self.failed,
                veeksha_stats::counted(self.finished, "request")
            ));
        }
        check.value("requests due", ValueUnit::Count, due as f64);
        check.value("requests sent", ValueUnit::Count, self.finished as f64);
        check.value("requests failed", ValueUnit::Count, self.failed as f64);
        check.value("requests never sent", ValueUnit::Count, never as f64);
        check
    }
}
