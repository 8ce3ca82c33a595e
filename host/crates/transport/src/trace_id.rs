//! The trace of a request, by which the spans of the servers on its way are found.

use veeksha_model::RequestId;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Returns the trace id of a request: a function of the run and the request, so that the record and
/// the header agree. Never 0, which W3C Trace Context forbids.
pub(crate) fn trace_id(run_id: &str, request: RequestId) -> u128 {
    xxh3_128(format!("{run_id}/{request}").as_bytes()).max(1)
}

/// Returns the header `traceparent` (W3C Trace Context, version 00) of a trace. The client's span,
/// which is its root, has an id derived from that of the trace. The trace is sampled: a server that
/// follows the flag records it.
pub(crate) fn traceparent(trace_id: u128) -> String {
    let span_id = xxh3_64(&trace_id.to_be_bytes()).max(1);
    format!("00-{trace_id:032x}-{span_id:016x}-01")
}

#[cfg(test)]
mod tests {
    use veeksha_model::{NodeId, SessionId};

    use super::*;

    #[test]
    fn trace_ids_differ_between_runs_and_requests() {
        let request = |session, node| RequestId {
            session: SessionId(session),
            node: NodeId(node),
        };
        let ids = [
            trace_id("a", request(1, 2)),
            trace_id("b", request(1, 2)),
            trace_id("a", request(12, 0)),
            trace_id("a", request(1, 3)),
        ];
        for (index, id) in ids.iter().enumerate() {
            assert!(!ids[..index].contains(id));
        }
        assert_eq!(trace_id("a", request(1, 2)), ids[0]);
    }

    #[test]
    fn traceparent_has_the_form_of_the_standard() {
        let header = traceparent(7);
        let parts: Vec<&str> = header.split('-').collect();
        assert_eq!(parts[..2], ["00", "00000000000000000000000000000007"]);
        assert_eq!((parts[2].len(), parts[3], parts.len()), (16, "01", 4));
        assert_ne!(parts[2], "0000000000000000");
    }
}
