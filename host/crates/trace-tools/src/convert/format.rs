//! Target formats of conversions.

use std::fmt;
use std::str::FromStr;

/// A format, named like the flavor that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetFormat {
    /// `request_log` as JSON Lines: lengths and arrivals, a session for each request.
    RequestLog,
    /// `request_log` as CSV.
    RequestLogCsv,
    /// `timed_synthetic_session`: lengths, graphs, think times.
    TimedSyntheticSession,
    /// `mooncake`: lengths, hash blocks, arrivals; sessions by `session_id`, `delay` and
    /// `wait_for`.
    Mooncake,
    /// `shared_prefix`: conversations whose first prompt is made of hash blocks.
    SharedPrefix,
    /// `multi_turn`: conversations as text.
    MultiTurn,
    /// `single_turn`: requests as text.
    SingleTurn,
    /// `untimed_content_multi_turn`: conversations as text with their answers, without times.
    UntimedContentMultiTurn,
}

impl TargetFormat {
    /// All formats.
    pub const ALL: [TargetFormat; 8] = [
        TargetFormat::RequestLog,
        TargetFormat::RequestLogCsv,
        TargetFormat::TimedSyntheticSession,
        TargetFormat::Mooncake,
        TargetFormat::SharedPrefix,
        TargetFormat::MultiTurn,
        TargetFormat::SingleTurn,
        TargetFormat::UntimedContentMultiTurn,
    ];

    /// Returns the name: the flavor's, with `_csv` for CSV.
    pub fn name(self) -> &'static str {
        match self {
            TargetFormat::RequestLog => "request_log",
            TargetFormat::RequestLogCsv => "request_log_csv",
            TargetFormat::TimedSyntheticSession => "timed_synthetic_session",
            TargetFormat::Mooncake => "mooncake",
            TargetFormat::SharedPrefix => "shared_prefix",
            TargetFormat::MultiTurn => "multi_turn",
            TargetFormat::SingleTurn => "single_turn",
            TargetFormat::UntimedContentMultiTurn => "untimed_content_multi_turn",
        }
    }

    /// Returns the header line of a file, if the format has one.
    pub fn header(self) -> Option<&'static str> {
        match self {
            TargetFormat::RequestLogCsv => Some("arrived_at,input_length,output_length"),
            _ => None,
        }
    }

    /// Returns the file extension.
    pub fn extension(self) -> &'static str {
        match self {
            TargetFormat::RequestLogCsv => "csv",
            _ => "jsonl",
        }
    }
}

impl fmt::Display for TargetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown format name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{name}`: expected one of {}", TargetFormat::ALL.map(TargetFormat::name).join(", "))]
pub struct UnknownFormat {
    name: String,
}

impl FromStr for TargetFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = TargetFormat::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.into() })
    }
}
