//! Comparison as workflow commands, which GitHub shows next to a change.
//!
//! <https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands>; the
//! escapes are those of the official toolkit (`@actions/core`, `command.ts`).

use veeksha_model::{printable, printable_lines};

use crate::comparison::Comparison;
use crate::fail_if::{Decision, FailOutcome};
use crate::junit::sentence;
use crate::text::row_name;
use crate::verdict::DifferenceVerdict;

/// GitHub shows ten annotations of a kind per step; the table has the rest.
const MOST: usize = 10;

impl Comparison {
    /// Returns lines for standard output: errors for failures, warnings for metrics that are worse,
    /// and a notice with the result.
    ///
    /// Without a decision, sides that are not comparable are an error.
    pub fn annotations(&self, decision: Option<&Decision>) -> String {
        let mut lines = String::new();
        for (place, candidate) in self.candidates.iter().enumerate() {
            let pair = candidate.title();
            match decision.and_then(|decision| decision.candidates.get(place).map(|of| (decision, of))) {
                None if !candidate.obstacles.is_empty() => {
                    lines += &command(
                        "error",
                        &format!("{pair}: not comparable"),
                        &candidate.obstacles.join("\n"),
                    );
                }
                Some((decision, of)) if of.outcome != FailOutcome::Passes => {
                    let what = match of.outcome {
                        FailOutcome::Undecided => "is undecided",
                        _ => "fails",
                    };
                    let text = format!("{}\n{}", decision.expression, of.reasons.join("\n"));
                    lines += &command("error", &format!("{pair}: fail-if {what}"), &text);
                }
                _ => {}
            }
            let worse = || {
                candidate
                    .rows
                    .iter()
                    .filter(|row| row.verdict == DifferenceVerdict::Worse)
            };
            for row in worse().take(MOST) {
                let title = format!("{pair}: {} is worse", row_name(row));
                lines += &command("warning", &title, &sentence(row));
            }
            let count = |verdict: DifferenceVerdict| {
                candidate.rows.iter().filter(|row| row.verdict == verdict).count()
            };
            let summary = if candidate.obstacles.is_empty() {
                let survivors = match count(DifferenceVerdict::SurvivorsOnly) {
                    0 => String::new(),
                    survivors => format!("{survivors} known for the survivors only, "),
                };
                let caches = match count(DifferenceVerdict::CacheStatesDiffer) {
                    0 => String::new(),
                    caches => format!("{caches} undecided because the cache states differ, "),
                };
                format!(
                    "{} worse, {} better, {survivors}{caches}{} without a difference, of {} values",
                    worse().count(),
                    count(DifferenceVerdict::Better),
                    count(DifferenceVerdict::NoDifference),
                    candidate.rows.len()
                )
            } else {
                "the runs are not comparable".into()
            };
            lines += &command("notice", &pair, &summary);
        }
        lines
    }
}

/// Formats a workflow command with its line break, with all parts escaped: names of folders and
/// plugins are in both texts.
fn command(kind: &str, title: &str, message: &str) -> String {
    format!(
        "::{kind} title={}::{}\n",
        escaped_property(&printable(title)),
        escaped(&printable_lines(message))
    )
}

/// Escapes a message.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property.
fn escaped_property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_workflow_commands() {
        let line = command("error", "a:b,c%\n::x\u{1b}[m", "50%: a,\n::error::no\u{202e}");
        assert_eq!(
            line,
            "::error title=a%3Ab%2Cc%25\u{fffd}%3A%3Ax\u{fffd}[m::50%25: a,%0A::error::no\u{fffd}\n"
        );
        assert_eq!(line.lines().count(), 1);
    }
}
