//! A record of which a test sets what matters to it.

use veeksha_events::RequestRecord;
use veeksha_model::{NodeId, RequestId, SessionId};

/// Everything at the run's zero, nothing answered.
pub(crate) fn record() -> RequestRecord {
    RequestRecord::answered(RequestId {
        session: SessionId(0),
        node: NodeId(0),
    })
}
