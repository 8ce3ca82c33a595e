//! First chunks on their way from client threads to the dispatchers, where requests in prefill are
//! limited or another request waits for the chunk.

use std::sync::{Arc, OnceLock};

use veeksha_model::{Nanos, Prepared, RequestId};
use veeksha_scheduler::SchedulerInput;

use crate::inbox::InputSender;
use crate::partition::Partition;

/// Route to the dispatchers. Before the run's clock is known, which is during a warm-up, first
/// chunks are dropped.
#[derive(Clone, Default)]
pub(crate) struct FirstChunkRouter(Arc<OnceLock<FirstChunkRoute>>);

struct FirstChunkRoute {
    part: Partition,
    dispatchers: Vec<InputSender<SchedulerInput<Prepared>>>,
    /// Time between the start of the transport's clock and the run's.
    transport_lead: Nanos,
}

impl FirstChunkRouter {
    /// The run begins.
    pub(crate) fn begin(
        &self,
        part: Partition,
        dispatchers: &[InputSender<SchedulerInput<Prepared>>],
        transport_lead: Nanos,
    ) {
        let route = FirstChunkRoute {
            part,
            dispatchers: dispatchers.to_vec(),
            transport_lead,
        };
        // It is set once: there is one begin in a run.
        let _ = self.0.set(route);
    }

    /// The transport's callback, on a client thread; `at` is on the transport's clock.
    pub(crate) fn on_first_chunk(&self, request: RequestId, at: Nanos) {
        if let Some(route) = self.0.get() {
            let at = at.saturating_sub(route.transport_lead);
            route.dispatchers[route.part.dispatcher(request.session)]
                .send(SchedulerInput::FirstChunk { request, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_clock::RunClock;
    use veeksha_model::{NodeId, SessionId};
    use veeksha_scheduler::{ConcurrencyLimits, GracePeriod, Interval, SchedulerConfig, Shard, TrafficRule};

    use crate::inbox::{Inbox, WaitResult};
    use crate::{Plan, ReplaySchedule};

    fn plan() -> Plan {
        Plan {
            tools: Default::default(),
            scheduler: SchedulerConfig {
                tools: Vec::new(),
                traffic: TrafficRule::Rate(Interval::Fixed { interval: 1.0 }),
                limits: ConcurrencyLimits::default(),
                cancel_session_on_failure: true,
                max_sessions: None,
                benchmark_timeout: None,
                grace: GracePeriod::Unbounded,
                seed: 0,
                shard: Shard::WHOLE,
            },
            spin: 0,
            on_dispatcher_start: None,
            thread_watch: None,
            run_id: None,
            shard: Shard { index: 1, count: 2 },
            schedule: ReplaySchedule::default(),
            arrivals: None,
            warmup: Vec::new(),
            dispatchers: 2,
            completion_threads: 1,
            plugin_threads: 1,
            pregenerate: false,
            clients: Default::default(),
            include_content: false,
            track_prefixes: false,
        }
    }

    /// Sessions 1, 5, 9 are those of the first dispatcher, 3, 7, 11 those of the second.
    #[test]
    fn a_first_chunk_reaches_its_dispatcher_on_the_runs_clock() {
        let (first_chunks, clock) = (FirstChunkRouter::default(), RunClock::starting_now());
        let request = |session| RequestId {
            session: SessionId(session),
            node: NodeId(2),
        };
        // During the warm-up: dropped.
        first_chunks.on_first_chunk(request(1), 50);
        let (context, inboxes): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (slot, inbox) = Inbox::new(clock, 0);
                (slot.bind(&std::thread::current()), inbox)
            })
            .unzip();
        first_chunks.begin(Partition::of(&plan()).unwrap(), &context, 1_000);
        first_chunks.on_first_chunk(request(7), 1_700);
        first_chunks.on_first_chunk(request(9), 1_900);
        for (inbox, session, expected) in [(&inboxes[0], 9, 900), (&inboxes[1], 7, 700)] {
            match inbox.wait(Some(0)) {
                WaitResult::Input(SchedulerInput::FirstChunk { request: found, at }) => {
                    assert_eq!((found, at), (request(session), expected));
                }
                other => unreachable!("{other:?}"),
            }
            assert!(matches!(inbox.wait(Some(0)), WaitResult::Deadline));
        }
    }
}
