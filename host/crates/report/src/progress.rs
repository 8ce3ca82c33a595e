//! The progress line of a run.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use veeksha_stats::{duration, number};

/// Values shown in the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressStats {
    /// Seconds since the run's start.
    pub elapsed: f64,
    /// Sessions started.
    pub sessions: u64,
    /// Total number of sessions, if known.
    pub sessions_planned: Option<u64>,
    /// Requests between dispatch and completion.
    pub in_flight: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests failed.
    pub failed: u64,
    /// Median time to first chunk so far, in seconds.
    pub ttfc_p50: Option<f64>,
    /// 99th percentile of the time to first chunk so far, in seconds.
    pub ttfc_p99: Option<f64>,
    /// Median time between chunks so far, in seconds.
    pub tbc_p50: Option<f64>,
    /// 99th percentile of the time between chunks so far, in seconds.
    pub tbc_p99: Option<f64>,
    /// Output tokens so far.
    pub output_tokens: u64,
    /// Recent answers per second.
    pub requests_per_second: Option<f64>,
    /// Recent output tokens per second.
    pub output_tokens_per_second: Option<f64>,
    /// 99th percentile of the client's lag so far, in seconds.
    pub client_lag_p99: Option<f64>,
}

/// Minimum lag worth a place on the line, in seconds: below it the client needs no attention.
const NOTABLE_LAG: f64 = 1e-3;

/// A line on standard error, redrawn in place; hidden if standard error is not a terminal.
#[derive(Debug)]
pub struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    /// Creates a line on standard error.
    pub fn on_stderr() -> Self {
        ProgressLine::with_target(ProgressDrawTarget::stderr())
    }

    /// Creates a hidden line (`--quiet`).
    pub fn hidden() -> Self {
        ProgressLine::with_target(ProgressDrawTarget::hidden())
    }

    fn with_target(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is fixed; if it were refused, the default style would show the message too.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        ProgressLine { bar }
    }

    /// Returns true if the line is not visible.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Updates the line.
    pub fn show(&self, drawings: &ProgressStats) {
        if !self.bar.is_hidden() {
            self.bar.set_message(drawings.to_string());
        }
    }

    /// Prints a line above the progress line.
    pub fn print_line(&self, text: &str) {
        // If standard error is closed, the line is lost; that must not end the run as `eprintln`
        // would.
        let _ = self.bar.suspend(|| writeln!(io::stderr(), "{text}"));
    }

    /// Removes the line.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Returns the line that a run prints every interval (`stream_metrics`): progress, rates, latencies
/// so far. Its parts are always present, in this order and in columns of constant width, so that
/// lines can be compared; unknown values are `-`.
pub fn stream_line(drawings: &ProgressStats) -> String {
    let shown = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    let pair = |p50, p99| format!("{:>7} {:>7}", shown(p50, duration), shown(p99, duration));
    format!(
        "{} | done {:>6} | in flight {:>4} | failed {:>4} | {:>6} req/s | {:>7} tok/s | ttfc p50 p99 {} | tbc p50 p99 {}",
        clock(drawings.elapsed),
        drawings.completed,
        drawings.in_flight,
        drawings.failed,
        shown(drawings.requests_per_second, number),
        shown(drawings.output_tokens_per_second, number),
        pair(drawings.ttfc_p50, drawings.ttfc_p99),
        pair(drawings.tbc_p50, drawings.tbc_p99),
    )
}

/// Formats a time as `hours:minutes:seconds`.
fn clock(elapsed: f64) -> String {
    let seconds = elapsed.max(0.0) as u64;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// One line, with the parts separated by dots.
impl fmt::Display for ProgressStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drawings = self;
        let sessions: Cow<'_, str> = match drawings.sessions_planned {
            Some(planned) => format!("{}/{planned}", drawings.sessions).into(),
            None => drawings.sessions.to_string().into(),
        };
        let mut parts = vec![
            clock(drawings.elapsed),
            format!("sessions {sessions}"),
            format!("in flight {}", drawings.in_flight),
            format!("ok {}", drawings.completed),
        ];
        if drawings.failed > 0 {
            parts.push(format!("failed {}", drawings.failed));
        }
        if let Some(ttfc) = drawings.ttfc_p50 {
            parts.push(format!("ttfc p50 {}", duration(ttfc)));
        }
        if drawings.elapsed > 0.0 && drawings.output_tokens > 0 {
            parts.push(format!(
                "{} tok/s",
                number(drawings.output_tokens as f64 / drawings.elapsed)
            ));
        }
        if let Some(lag) = drawings.client_lag_p99.filter(|lag| *lag >= NOTABLE_LAG) {
            parts.push(format!("client lag p99 {}", duration(lag)));
        }
        f.write_str(&parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_shows_known_values() {
        assert_eq!(
            ProgressStats::to_string(&ProgressStats::default()),
            "00:00:00 · sessions 0 · in flight 0 · ok 0"
        );
        let drawings = ProgressStats {
            elapsed: 3_725.5,
            sessions: 40,
            sessions_planned: Some(100),
            in_flight: 7,
            completed: 120,
            failed: 3,
            ttfc_p50: Some(0.1234),
            output_tokens: 74_510,
            client_lag_p99: Some(0.000_9),
            ..ProgressStats::default()
        };
        let expected =
            "01:02:05 · sessions 40/100 · in flight 7 · ok 120 · failed 3 · ttfc p50 123 ms · 20 tok/s";
        assert_eq!(ProgressStats::to_string(&drawings), expected);
        let lagging = ProgressStats {
            client_lag_p99: Some(0.0032),
            ..drawings
        };
        assert_eq!(
            ProgressStats::to_string(&lagging),
            format!("{expected} · client lag p99 3.2 ms")
        );
    }

    #[test]
    fn stream_lines_are_aligned() {
        let nothing = stream_line(&ProgressStats::default());
        let drawings = ProgressStats {
            elapsed: 65.2,
            completed: 1234,
            in_flight: 32,
            failed: 2,
            ttfc_p50: Some(0.1234),
            ttfc_p99: Some(1.5),
            tbc_p50: Some(0.0102),
            tbc_p99: Some(0.05),
            requests_per_second: Some(18.94),
            output_tokens_per_second: Some(2345.6),
            ..ProgressStats::default()
        };
        let line = stream_line(&drawings);
        assert_eq!(
            line,
            "00:01:05 | done   1234 | in flight   32 | failed    2 |   18.9 req/s |    2346 tok/s | ttfc p50 p99  123 ms   1.5 s | tbc p50 p99 10.2 ms   50 ms"
        );
        let bars = |line: &str| -> Vec<usize> { line.match_indices('|').map(|(place, _)| place).collect() };
        assert_eq!(bars(&line), bars(&nothing));
        assert_eq!(nothing.matches(" -").count(), 6);
    }

    #[test]
    fn hidden_line_accepts_updates() {
        let progress = ProgressLine::hidden();
        progress.show(&ProgressStats::default());
        assert!(progress.is_hidden());
        progress.finish();
    }
}
