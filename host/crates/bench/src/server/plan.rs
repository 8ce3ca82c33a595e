//! Commands to the server, and messages from it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use veeksha_model::Nanos;

/// Shape and pace of the responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResponsePlan {
    /// From the arrival of a request to its first token, in nanoseconds.
    pub(crate) ttft: Nanos,
    /// Between tokens, in nanoseconds; 0: as fast as possible, the streams in turn.
    pub(crate) itl: Nanos,
    /// Tokens per response; at least 1.
    pub(crate) tokens: u32,
    /// Distribution of tokens over writes.
    pub(crate) writes: WriteMode,
    /// What is logged.
    pub(crate) keep: LogMode,
}

/// Distribution of tokens over writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WriteMode {
    /// One write per token. The head and the role go with the first, usage and the end with the
    /// last.
    EachToken,
    /// One write per response, when its first token is due.
    Whole,
}

/// What is logged of each response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogMode {
    /// Nothing: for cost measurements.
    Nothing,
    /// The arrival of the request and the start of each write.
    Times,
}

impl ResponsePlan {
    /// As fast as possible, without a log.
    pub(crate) fn busy(tokens: u32, writes: WriteMode) -> Self {
        ResponsePlan {
            ttft: 0,
            itl: 0,
            tokens,
            writes,
            keep: LogMode::Nothing,
        }
    }

    /// Paced in milliseconds, one write per token, with a log.
    pub(crate) fn paced(ttft_ms: u64, itl_ms: u64, tokens: u32) -> Self {
        ResponsePlan {
            ttft: ttft_ms * 1_000_000,
            itl: itl_ms * 1_000_000,
            tokens,
            writes: WriteMode::EachToken,
            keep: LogMode::Times,
        }
    }

    /// JSON events of a response: the role, the tokens, usage. `[DONE]` is not counted.
    pub(crate) fn events(&self) -> u64 {
        u64::from(self.tokens) + 2
    }
}

/// A line to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerCommand {
    /// Use this plan for requests that arrive from now on.
    Plan(ResponsePlan),
    /// Return and clear the log of finished responses.
    Log,
    /// Return the counters.
    ServerCounts,
}

/// A line from a child process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChildMessage {
    /// The server's address.
    Ready(SocketAddr),
    /// The command was executed.
    Done,
    /// The log.
    Log(Vec<LogEntry>),
    /// The counters.
    ServerCounts(ServerCounters),
    /// Cost and result of a load.
    Load(crate::load::Cost),
    /// The task or command failed.
    Failed(String),
}

/// Log entry of a response. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogEntry {
    /// The request's `x-request-id`, if it had one.
    pub(crate) request: Option<String>,
    /// Index of the connection, from 0.
    pub(crate) connection: u64,
    /// When the last byte of the request had been read.
    pub(crate) arrived: Nanos,
    /// Start of each write; with [`WriteMode::EachToken`] one per token.
    pub(crate) writes: Vec<Nanos>,
}

/// Counters of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerCounters {
    /// Accepted connections.
    pub(crate) connections: u64,
    /// Finished responses.
    pub(crate) replies: u64,
    /// Responses in progress.
    pub(crate) in_flight: u64,
    /// Peak of concurrent responses since the last plan.
    pub(crate) peak_in_flight: u64,
    /// Connections that closed during a response or sent an invalid request.
    pub(crate) broken: u64,
}
