//! First chunks on their way from client threads to the dispatchers, where requests in prefill are limited.

use std::sync::{Arc, OnceLock};

use veeksha_model::{Nanos, Prepared, RequestId};
use veeksha_scheduler::Input;

use crate::inbox::Line;
use crate::part::Part;

/// Whom to tell. Before the run's clock is known, which is during a warm-up, nobody.
#[derive(Clone, Default)]
pub(crate) struct FirstChunks(Arc<OnceLock<Route>>);

struct Route {
    part: Part,
    dispatchers: Vec<Line<Input<Prepared>>>,
    /// How long before the run's clock the transport's began.
    transport_lead: Nanos,
}

impl FirstChunks {
    /// The run begins.
    pub(crate) fn begin(&self, part: Part, dispatchers: &[Line<Input<Prepared>>], transport_lead: Nanos) {
        let route = Route {
            part,
            dispatchers: dispatchers.to_vec(),
            transport_lead,
        };
        // It is set once: there is one begin in a run.
        let _ = self.0.set(route);
    }

    /// What the transport calls, on a client thread; `at` is on the transport's clock.
    pub(crate) fn came(&self, request: RequestId, at: Nanos) {
        if let Some(route) = self.0.get() {
            let at = at.saturating_sub(route.transport_lead);
            route.dispatchers[route.part.dispatcher(request.session)].send(Input::FirstChunk { request, at });
        }
    }
}
