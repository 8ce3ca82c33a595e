//! A blank record in which a test sets only the fields it needs.

use veeksha_events::RequestRecord;
use veeksha_model::{NodeId, RequestId, SessionId};

/// Returns an unanswered record with all instants at the run's zero.
pub(crate) fn record() -> RequestRecord {
    RequestRecord::answered(RequestId {
        session: SessionId(0),
        node: NodeId(0),
    })
}
