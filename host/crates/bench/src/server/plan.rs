//! What the server is told to do, and what it tells.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use veeksha_model::Nanos;

/// How answers are made from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// From the arrival of a request to its first token, in nanoseconds.
    pub(crate) ttft: Nanos,
    /// From each token to the next, in nanoseconds; 0: as fast as the server can, the streams in turn.
    pub(crate) itl: Nanos,
    /// Tokens of an answer; at least 1.
    pub(crate) tokens: u32,
    /// How tokens go into writes.
    pub(crate) writes: Writes,
    /// What is kept of each answer.
    pub(crate) keep: Keep,
}

/// How tokens go into writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Writes {
    /// One for each token. The head and the role go with the first, the token counts and the end with the last.
    EachToken,
    /// One for the whole answer, when its first token is due.
    Whole,
}

/// What is kept of each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Keep {
    /// Nothing: for figures of cost.
    Nothing,
    /// When the request arrived, and when each write began.
    Times,
}

impl Plan {
    /// As fast as it goes, without a log.
    pub(crate) fn busy(tokens: u32, writes: Writes) -> Self {
        Plan {
            ttft: 0,
            itl: 0,
            tokens,
            writes,
            keep: Keep::Nothing,
        }
    }

    /// Paced in milliseconds, one write for each token, with a log.
    pub(crate) fn paced(ttft_ms: u64, itl_ms: u64, tokens: u32) -> Self {
        Plan {
            ttft: ttft_ms * 1_000_000,
            itl: itl_ms * 1_000_000,
            tokens,
            writes: Writes::EachToken,
            keep: Keep::Times,
        }
    }

    /// JSON events of an answer: the role, the tokens, the token counts. `[DONE]` is not counted.
    pub(crate) fn events(&self) -> u64 {
        u64::from(self.tokens) + 2
    }
}

/// A line to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Command {
    /// Answer requests that begin from now on by this plan.
    Plan(Plan),
    /// Tell what was kept of finished answers, and forget it.
    Log,
    /// Tell the counts.
    Counts,
}

/// A line from a child process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// The server takes connections here.
    Ready(SocketAddr),
    /// Done as told.
    Done,
    /// What was kept.
    Log(Vec<Served>),
    /// How much was served.
    Counts(Counts),
    /// What a load cost, and how it went.
    Load(crate::load::Cost),
    /// It could not be done.
    Failed(String),
}

/// What is known of an answer that was sent. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Served {
    /// The `x-request-id` of the request, where it had one.
    pub(crate) request: Option<String>,
    /// Which connection, counted from 0.
    pub(crate) connection: u64,
    /// When the last byte of the request had been read.
    pub(crate) arrived: Nanos,
    /// When each write began; for [`Writes::EachToken`] one for each token.
    pub(crate) writes: Vec<Nanos>,
}

/// How much was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Connections accepted.
    pub(crate) connections: u64,
    /// Answers finished.
    pub(crate) replies: u64,
    /// Answers under way.
    pub(crate) in_flight: u64,
    /// The most answers under way at the same time, since the last plan.
    pub(crate) peak_in_flight: u64,
    /// Connections that ended within an answer, or sent what is no request.
    pub(crate) broken: u64,
}
