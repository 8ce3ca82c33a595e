//! Faults of the wire: modifications of an answer's bytes by a server or a proxy in front of it.

use serde::{Deserialize, Serialize};
use veeksha_stats::RandomStream;

/// An unusual property of the bytes of one answer. Some are legal HTTP that a client must accept,
/// some break the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFault {
    /// Every byte of the answer, including its head, is a separate write.
    Drip,
    /// One token's event carries a mebibyte of text.
    HugeEvent,
    /// The event that ends the stream is omitted (`[DONE]`, `message_stop`, `response.completed`,
    /// the line with `done`); the body ends regularly. APIs whose last token ends the stream are
    /// not changed.
    MissingDone,
    /// Another token's event follows the end of the stream.
    DataAfterDone,
    /// The body does not end: after the end of the stream a comment is sent every 100 ms until the
    /// client disconnects.
    Endless,
    /// Trailer fields follow the last chunk.
    Trailers,
    /// Chunk sizes are written in upper-case hexadecimal, with leading zeros.
    UpperCaseChunks,
    /// Every chunk size has an extension.
    ChunkExtensions,
    /// The body has neither chunks nor a length: it ends with the connection.
    CloseDelimited,
    /// The body is compressed (`content-encoding: gzip`) and flushed after every write, even if the
    /// client did not ask for it.
    Gzip,
    /// The answer is status 307 with the request's own path as the new location.
    Redirect,
    /// The interim answers 100 and 103 precede the answer.
    Interim,
    /// The server closes its side of the connection in the middle of an event and continues
    /// reading.
    HalfClose,
    /// The connection is reset in the middle of an event.
    Reset,
    /// The head of the answer, and everything after it, is delayed by `stall_ms`.
    StallHead,
    /// Half an event is sent, and the other half `stall_ms` later, together with everything
    /// produced in between.
    StallMiddle,
}

impl WireFault {
    /// All faults.
    pub const ALL: [WireFault; 16] = [
        WireFault::Drip,
        WireFault::HugeEvent,
        WireFault::MissingDone,
        WireFault::DataAfterDone,
        WireFault::Endless,
        WireFault::Trailers,
        WireFault::UpperCaseChunks,
        WireFault::ChunkExtensions,
        WireFault::CloseDelimited,
        WireFault::Gzip,
        WireFault::Redirect,
        WireFault::Interim,
        WireFault::HalfClose,
        WireFault::Reset,
        WireFault::StallHead,
        WireFault::StallMiddle,
    ];

    /// Returns the name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            WireFault::Drip => "drip",
            WireFault::HugeEvent => "huge_event",
            WireFault::MissingDone => "missing_done",
            WireFault::DataAfterDone => "data_after_done",
            WireFault::Endless => "endless",
            WireFault::Trailers => "trailers",
            WireFault::UpperCaseChunks => "upper_case_chunks",
            WireFault::ChunkExtensions => "chunk_extensions",
            WireFault::CloseDelimited => "close_delimited",
            WireFault::Gzip => "gzip",
            WireFault::Redirect => "redirect",
            WireFault::Interim => "interim",
            WireFault::HalfClose => "half_close",
            WireFault::Reset => "reset",
            WireFault::StallHead => "stall_head",
            WireFault::StallMiddle => "stall_middle",
        }
    }

    /// Returns the fault with that name.
    pub fn named(name: &str) -> Option<WireFault> {
        WireFault::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

/// A fault of the wire and the requests that it affects: set `probability` or `every`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireRule {
    /// The fault.
    pub fault: WireFault,
    /// Share of affected requests, drawn from the seed and the request's ordinal.
    #[serde(default)]
    pub probability: f64,
    /// Affects every n-th request in order of arrival: the last of each group. 1 means all.
    #[serde(default)]
    pub every: Option<u32>,
}

impl WireRule {
    /// Creates a rule for every `every`-th request.
    pub fn every(every: u32, fault: WireFault) -> Self {
        WireRule {
            fault,
            probability: 0.0,
            every: Some(every),
        }
    }
}

/// Returns the fault of a request. Rules with `every` precede those with a probability, and earlier
/// rules precede later ones.
pub(crate) fn wire_fault(rules: &[WireRule], seed: u64, ordinal: u64) -> Option<WireFault> {
    if rules.is_empty() {
        return None;
    }
    let counted = rules.iter().find(|rule| {
        rule.every
            .is_some_and(|every| (ordinal + 1).is_multiple_of(u64::from(every.max(1))))
    });
    if let Some(rule) = counted {
        return Some(rule.fault);
    }
    let draw = RandomStream::new(seed, ordinal, "simulator wire faults")
        .draws()
        .unit();
    let mut upper = 0.0;
    rules.iter().find_map(|rule| {
        upper += rule.probability;
        (draw < upper).then_some(rule.fault)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_profile_keys() {
        for fault in WireFault::ALL {
            let text = serde_json::to_value(fault).unwrap();
            assert_eq!(text, fault.name());
            assert_eq!(WireFault::named(fault.name()), Some(fault));
        }
        assert_eq!(WireFault::named("none"), None);
    }

    #[test]
    fn applies_every_and_probability() {
        let rules = [
            WireRule::every(5, WireFault::Gzip),
            WireRule {
                fault: WireFault::Drip,
                probability: 0.25,
                every: None,
            },
        ];
        let all: Vec<_> = (0..4000).map(|ordinal| wire_fault(&rules, 3, ordinal)).collect();
        for (ordinal, fault) in all.iter().enumerate() {
            assert_eq!(
                *fault == Some(WireFault::Gzip),
                ordinal % 5 == 4,
                "request {ordinal}"
            );
        }
        // A quarter of the 3200 others, +- 5 standard deviations of 24.5.
        let drips = all
            .iter()
            .filter(|fault| **fault == Some(WireFault::Drip))
            .count();
        assert!((678..=922).contains(&drips), "{drips}");
        assert_eq!(wire_fault(&[], 3, 4), None);
    }
}
