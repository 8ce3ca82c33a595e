//! A truth record as one line of JSON, for use by another process.

use serde::{Deserialize, Serialize};
use veeksha_model::{ChunkKind, Nanos, Usage};

use super::truth::{TruthOutcome, TruthRecord};
use crate::engine::FinishReason;
use crate::wire_fault::WireFault;

/// A line that cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum TruthLineError {
    /// Not the JSON of a record.
    #[error("not a line of a truth log: {0}")]
    Json(#[from] serde_json::Error),
    /// An unknown name.
    #[error("a line of a truth log has the {what} `{word}`, which is not known")]
    Word {
        /// The kind of the name.
        what: &'static str,
        /// The name.
        word: String,
    },
}

/// A line of the file. Times are integers in nanoseconds.
#[derive(Serialize, Deserialize)]
struct Line {
    request_id: Option<String>,
    ordinal: u64,
    connection: u64,
    path: String,
    arrived_at: Nanos,
    headers_sent_at: Option<Nanos>,
    chunks: Vec<(Nanos, String)>,
    finished_at: Option<Nanos>,
    usage: Option<UsageLine>,
    fault: Option<String>,
    outcome: String,
}

#[derive(Serialize, Deserialize)]
struct UsageLine {
    prompt: u32,
    completion: u32,
    cached: Option<u32>,
    reasoning: Option<u32>,
}

/// Returns the record as one line of JSON, without a line feed.
///
/// Times are the record's, in nanoseconds. For a server whose clock has the origin 0
/// (`RunClock::with_origin(0)`, as in `veeksha-host sim`) they are absolute readings of
/// `CLOCK_MONOTONIC`, which any process on the machine can compare with its clock.
pub fn truth_line(record: &TruthRecord) -> String {
    let line = Line {
        request_id: record.request_id.clone(),
        ordinal: record.ordinal,
        connection: record.connection,
        path: record.path.clone(),
        arrived_at: record.arrived_at,
        headers_sent_at: record.headers_sent_at,
        chunks: record
            .chunks
            .iter()
            .map(|(at, kind)| (*at, kind.name().to_owned()))
            .collect(),
        finished_at: record.finished_at,
        usage: record.usage.map(|usage| UsageLine {
            prompt: usage.prompt,
            completion: usage.completion,
            cached: usage.cached,
            reasoning: usage.reasoning,
        }),
        fault: record.fault.map(|fault| fault.name().to_owned()),
        outcome: outcome_name(record.outcome),
    };
    // Strings, numbers and lists, all of which JSON can represent.
    serde_json::to_string(&line).unwrap_or_default()
}

impl TruthRecord {
    /// Parses a line written by [`truth_line`].
    pub fn from_line(line: &str) -> Result<TruthRecord, TruthLineError> {
        let line: Line = serde_json::from_str(line)?;
        let chunks = line
            .chunks
            .into_iter()
            .map(|(at, name)| {
                let kind = ChunkKind::ALL.into_iter().find(|kind| kind.name() == name);
                kind.map(|kind| (at, kind)).ok_or(TruthLineError::Word {
                    what: "kind of chunk",
                    word: name,
                })
            })
            .collect::<Result<_, _>>()?;
        let fault = match line.fault {
            None => None,
            Some(name) => Some(WireFault::named(&name).ok_or(TruthLineError::Word {
                what: "fault",
                word: name,
            })?),
        };
        Ok(TruthRecord {
            request_id: line.request_id,
            ordinal: line.ordinal,
            connection: line.connection,
            path: line.path,
            arrived_at: line.arrived_at,
            headers_sent_at: line.headers_sent_at,
            chunks,
            finished_at: line.finished_at,
            usage: line.usage.map(|counts| Usage {
                prompt: counts.prompt,
                completion: counts.completion,
                cached: counts.cached,
                reasoning: counts.reasoning,
            }),
            fault,
            outcome: outcome_named(&line.outcome).ok_or(TruthLineError::Word {
                what: "outcome",
                word: line.outcome,
            })?,
        })
    }
}

fn outcome_name(outcome: TruthOutcome) -> String {
    match outcome {
        TruthOutcome::InFlight => "in_flight".into(),
        TruthOutcome::Finished(reason) => reason.name().into(),
        TruthOutcome::Status(status) => status.to_string(),
        TruthOutcome::Refused => "refused".into(),
        TruthOutcome::Dropped => "dropped".into(),
        TruthOutcome::MidStreamError => "mid_stream_error".into(),
        TruthOutcome::Truncated => "truncated".into(),
        TruthOutcome::Disconnected => "disconnected".into(),
    }
}

fn outcome_named(name: &str) -> Option<TruthOutcome> {
    let fixed = [
        TruthOutcome::InFlight,
        TruthOutcome::Finished(FinishReason::Stop),
        TruthOutcome::Finished(FinishReason::Length),
        TruthOutcome::Refused,
        TruthOutcome::Dropped,
        TruthOutcome::MidStreamError,
        TruthOutcome::Truncated,
        TruthOutcome::Disconnected,
    ];
    let status = || name.parse().ok().map(TruthOutcome::Status);
    fixed
        .into_iter()
        .find(|outcome| outcome_name(*outcome) == name)
        .or_else(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: TruthOutcome) -> TruthRecord {
        TruthRecord {
            request_id: Some("1/2 \"x\"".into()),
            ordinal: 3,
            connection: 4,
            path: "/v1/messages".into(),
            // Above 2^53: would be rounded as seconds in a double.
            arrived_at: 9_007_199_254_740_993,
            headers_sent_at: Some(9_007_199_254_740_995),
            chunks: ChunkKind::ALL
                .into_iter()
                .map(|kind| (9_007_199_254_740_997, kind))
                .collect(),
            finished_at: None,
            usage: Some(Usage {
                prompt: 1,
                completion: 2,
                cached: Some(0),
                reasoning: None,
            }),
            fault: Some(WireFault::StallMiddle),
            outcome,
        }
    }

    #[test]
    fn line_round_trips() {
        for outcome in [
            TruthOutcome::InFlight,
            TruthOutcome::Finished(FinishReason::Stop),
            TruthOutcome::Finished(FinishReason::Length),
            TruthOutcome::Status(429),
            TruthOutcome::Refused,
            TruthOutcome::Dropped,
            TruthOutcome::MidStreamError,
            TruthOutcome::Truncated,
            TruthOutcome::Disconnected,
        ] {
            let record = record(outcome);
            let line = truth_line(&record);
            assert!(!line.contains('\n'));
            assert_eq!(TruthRecord::from_line(&line).unwrap(), record);
        }
    }

    #[test]
    fn refuses_invalid_lines() {
        let line = truth_line(&record(TruthOutcome::Refused));
        for (spoilt, expected) in [
            ("{}".to_owned(), "missing field"),
            (line.replace("refused", "lost"), "the outcome `lost`"),
            (
                line.replace("content", "contents"),
                "the kind of chunk `contents`",
            ),
            (line.replace("stall_middle", "stall"), "the fault `stall`"),
        ] {
            let error = TruthRecord::from_line(&spoilt).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
