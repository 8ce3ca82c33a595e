//! The progress line of a run.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use veeksha_stats::{duration, number};

/// Values shown in the progress line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressFigures {
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
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a line on standard error.
    pub fn on_stderr() -> Self {
        Progress::with_target(ProgressDrawTarget::stderr())
    }

    /// Creates a hidden line (`--quiet`).
    pub fn hidden() -> Self {
        Progress::with_target(ProgressDrawTarget::hidden())
    }

    fn with_target(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is fixed; if it were refused, the default style would show the message too.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Returns true if the line is not visible.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Updates the line.
    pub fn show(&self, figures: &ProgressFigures) {
        if !self.bar.is_hidden() {
            self.bar.set_message(figures.to_string());
        }
    }

    /// Prints a line above the progress line.
    pub fn say(&self, text: &str) {
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
pub fn stream_line(figures: &ProgressFigures) -> String {
    let shown = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), show);
    let pair = |p50, p99| format!("{:>7} {:>7}", shown(p50, duration), shown(p99, duration));
    format!(
        "{} | done {:>6} | in flight {:>4} | failed {:>4} | {:>6} req/s | {:>7} tok/s | ttfc p50 p99 {} | tbc p50 p99 {}",
        clock(figures.elapsed),
        figures.completed,
        figures.in_flight,
        figures.failed,
        shown(figures.requests_per_second, number),
        shown(figures.output_tokens_per_second, number),
        pair(figures.ttfc_p50, figures.ttfc_p99),
        pair(figures.tbc_p50, figures.tbc_p99),
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
impl fmt::Display for ProgressFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = self;
        let sessions: Cow<'_, str> = match figures.sessions_planned {
            Some(planned) => format!("{}/{planned}", figures.sessions).into(),
            None => figures.sessions.to_string().into(),
        };
        let mut parts = vec![
            clock(figures.elapsed),
            format!("sessions {sessions}"),
            format!("in flight {}", figures.in_flight),
            format!("ok {}", figures.completed),
        ];
        if figures.failed > 0 {
            parts.push(format!("failed {}", figures.failed));
        }
        if let Some(ttfc) = figures.ttfc_p50 {
            parts.push(format!("ttfc p50 {}", duration(ttfc)));
        }
        if figures.elapsed > 0.0 && figures.output_tokens > 0 {
            parts.push(format!(
                "{} tok/s",
                number(figures.output_tokens as f64 / figures.elapsed)
            ));
        }
        if let Some(lag) = figures.client_lag_p99.filter(|lag| *lag >= NOTABLE_LAG) {
            parts.push(format!("client lag p99 {}", duration(lag)));
        }
        f.write_str(&parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_what_is_known() {
        assert_eq!(
            ProgressFigures::to_string(&ProgressFigures::default()),
            "00:00:00 · sessions 0 · in flight 0 · ok 0"
        );
        let figures = ProgressFigures {
            elapsed: 3_725.5,
            sessions: 40,
            sessions_planned: Some(100),
            in_flight: 7,
            completed: 120,
            failed: 3,
            ttfc_p50: Some(0.1234),
            output_tokens: 74_510,
            client_lag_p99: Some(0.000_9),
            ..ProgressFigures::default()
        };
        let expected =
            "01:02:05 · sessions 40/100 · in flight 7 · ok 120 · failed 3 · ttfc p50 123 ms · 20 tok/s";
        assert_eq!(ProgressFigures::to_string(&figures), expected);
        let lagging = ProgressFigures {
            client_lag_p99: Some(0.0032),
            ..figures
        };
        assert_eq!(
            ProgressFigures::to_string(&lagging),
            format!("{expected} · client lag p99 3.2 ms")
        );
    }

    #[test]
    fn streamed_lines_stand_in_columns() {
        let nothing = stream_line(&ProgressFigures::default());
        let figures = ProgressFigures {
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
            ..ProgressFigures::default()
        };
        let line = stream_line(&figures);
        assert_eq!(
            line,
            "00:01:05 | done   1234 | in flight   32 | failed    2 |   18.9 req/s |    2346 tok/s | ttfc p50 p99  123 ms   1.5 s | tbc p50 p99 10.2 ms   50 ms"
        );
        let bars = |line: &str| -> Vec<usize> { line.match_indices('|').map(|(place, _)| place).collect() };
        assert_eq!(bars(&line), bars(&nothing));
        assert_eq!(nothing.matches(" -").count(), 6);
    }

    #[test]
    fn a_hidden_line_takes_figures_and_stays_hidden() {
        let progress = Progress::hidden();
        progress.show(&ProgressFigures::default());
        assert!(progress.is_hidden());
        progress.finish();
    }
}
