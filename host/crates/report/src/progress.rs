//! The line that moves while a run lasts.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use veeksha_stats::{duration, number};

/// What the line shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressFigures {
    /// Seconds since the run's start.
    pub elapsed: f64,
    /// Sessions that began.
    pub sessions: u64,
    /// Sessions that there will be, if that is known.
    pub sessions_planned: Option<u64>,
    /// Requests between dispatch and completion.
    pub in_flight: u64,
    /// Requests answered.
    pub completed: u64,
    /// Requests failed.
    pub failed: u64,
    /// Median time to first chunk so far, in seconds.
    pub ttfc_p50: Option<f64>,
    /// Output tokens so far.
    pub output_tokens: u64,
    /// 99th percentile of the client's lag so far, in seconds.
    pub client_lag_p99: Option<f64>,
}

/// A lag that is worth a place on the line, in seconds: below it nobody needs to look at the client.
const NOTABLE_LAG: f64 = 1e-3;

/// A line on standard error, redrawn in place; invisible where standard error is not a terminal.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A line on standard error.
    pub fn on_stderr() -> Self {
        Progress::with_target(ProgressDrawTarget::stderr())
    }

    /// No line, whatever standard error is (`--quiet`).
    pub fn hidden() -> Self {
        Progress::with_target(ProgressDrawTarget::hidden())
    }

    fn with_target(target: ProgressDrawTarget) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is fixed; were it refused, the default style would show the message too.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    /// Whether nobody sees it.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows new figures.
    pub fn show(&self, figures: &ProgressFigures) {
        if !self.bar.is_hidden() {
            self.bar.set_message(figures.to_string());
        }
    }

    /// Writes a line above the progress line.
    pub fn say(&self, text: &str) {
        // Where standard error is gone, nobody reads it; that must not end the run as `eprintln` would.
        let _ = self.bar.suspend(|| writeln!(io::stderr(), "{text}"));
    }

    /// Takes the line away.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// One line, the parts set apart by dots.
impl fmt::Display for ProgressFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = self;
        let seconds = figures.elapsed.max(0.0) as u64;
        let sessions: Cow<'_, str> = match figures.sessions_planned {
            Some(planned) => format!("{}/{planned}", figures.sessions).into(),
            None => figures.sessions.to_string().into(),
        };
        let mut parts = vec![
            format!(
                "{:02}:{:02}:{:02}",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            ),
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
    fn a_hidden_line_takes_figures_and_stays_hidden() {
        let progress = Progress::hidden();
        progress.show(&ProgressFigures::default());
        assert!(progress.is_hidden());
        progress.finish();
    }
}
