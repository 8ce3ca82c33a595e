//! Windows: intervals of equal length from the first intended instant on, and the selection of
//! those in which samples were possible.

use veeksha_model::Nanos;

use crate::label_sets::Matching;
use crate::run_samples::RunSamples;
use crate::schedule::TimeSpan;
use veeksha_definitions::Samples;

impl RunSamples {
    /// Returns the windows of this length in which an item that matches the filter was intended and
    /// could have had samples: measured requests with any outcome; for a session metric, sessions
    /// that were attempted, to their end or until a failure; for a metric of tool runs, their
    /// calls.
    pub(crate) fn spans(&self, metric: &str, matching: &Matching, length: Nanos) -> Vec<TimeSpan> {
        let length = length.max(1);
        let begin = self.begin();
        let number = |at: Nanos| at.saturating_sub(begin) / length;
        let mut numbers: Vec<u64> = match self.asked_for(metric) {
            AskedFor::Nothing => Vec::new(),
            AskedFor::Requests => {
                let rows = self.asked_rows(None);
                let passing = rows.filter(|row| matching.has(row.labels));
                passing.map(|row| number(row.observed.intended)).collect()
            }
            AskedFor::Sessions => {
                let attempted = self.sessions.sessions.iter();
                let attempted = attempted.map(|session| (session.intended, session.labels));
                let asked = attempted.chain(self.sessions.withdrawn.iter().copied());
                let passing = asked.filter(|(_, labels)| matching.has(*labels));
                passing.map(|(intended, _)| number(intended)).collect()
            }
            AskedFor::ToolRuns => {
                let passing = self.requests.measured_tool_runs();
                let passing = passing.filter(|row| matching.has(row.labels));
                passing.map(|row| number(row.times.ready)).collect()
            }
        };
        numbers.sort_unstable();
        numbers.dedup();
        let spans = numbers.into_iter();
        spans.map(|number| self.span(number, length)).collect()
    }

    /// Returns the window with this index.
    pub(crate) fn span(&self, number: u64, length: Nanos) -> TimeSpan {
        let from = self.begin().saturating_add(number.saturating_mul(length));
        (from, from.saturating_add(length))
    }

    /// Returns true if a request that matches the filter was intended within a span and answered.
    pub(crate) fn is_answered_within(&self, matching: &Matching, span: TimeSpan) -> bool {
        let mut asked = self.asked_rows(Some(span));
        asked.any(|row| row.has_samples() && matching.has(row.labels))
    }

    /// Returns the start of the first window.
    pub(crate) fn begin(&self) -> Nanos {
        self.schedule().map_or(0, |schedule| schedule.begin)
    }

    fn asked_for(&self, metric: &str) -> AskedFor {
        let defined = self.catalogue().get(metric);
        if let Some(metric) = defined.and_then(|info| info.metric) {
            return match metric.definition_of().samples {
                Samples::Session => AskedFor::Sessions,
                Samples::ToolRun(_) => AskedFor::ToolRuns,
                Samples::Request(_) | Samples::ChunkGaps | Samples::TokenGaps | Samples::ThinkTimes => {
                    AskedFor::Requests
                }
            };
        }
        match (defined, self.custom.get(metric)) {
            (None, None) => AskedFor::Nothing,
            // Samples without a request belong to no window, so intended requests do not determine
            // their windows.
            (_, Some(samples)) if samples.instants().next().is_none() => AskedFor::Nothing,
            _ => AskedFor::Requests,
        }
    }
}

/// The kind of item that a metric samples.
enum AskedFor {
    Requests,
    Sessions,
    ToolRuns,
    Nothing,
}
