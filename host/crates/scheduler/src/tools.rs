//! Tool classes: calls that wait for a free server, and then take their service time.
//!
//! Instants are exact: a call starts when a server became free, however late the scheduler is
//! called. Waiting times are therefore the same in virtual and in real time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

use veeksha_model::{Nanos, NodeId, RequestId, SessionId};

/// The servers of a class of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolClass {
    /// Calls that are served at once; `None`: any number.
    pub servers: Option<u32>,
    /// Added to the service time of a call that finds no warm server.
    pub cold_start: Nanos,
    /// The time for which an idle server stays warm; `None`: forever.
    pub keep_warm: Option<Nanos>,
    /// The least time between the starts of two calls; 0: none.
    pub spacing: Nanos,
}

/// A call of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolCallEntry {
    pub(crate) id: RequestId,
    /// The instant at which it is made.
    pub(crate) ready: Nanos,
    pub(crate) service: Nanos,
}

/// Something that happened to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToolEvent {
    /// A server took it; the call found the server cold.
    Started { id: RequestId, at: Nanos, is_cold: bool },
    /// It is done.
    Ended { id: RequestId, at: Nanos },
}

type EndKey = (Nanos, SessionId, NodeId, usize);

/// All classes, with the calls that wait and those that run.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pools: Vec<ToolPool>,
    running: BinaryHeap<Reverse<EndKey>>,
}

#[derive(Clone, Debug)]
struct ToolPool {
    class: ToolClass,
    /// First come, first served. The first one is never a dropped one.
    waiting: VecDeque<ToolCallEntry>,
    /// Dropped calls, which stay in `waiting` until they come to its front: dropping one costs
    /// constant time on average, however many wait.
    dropped: HashSet<RequestId>,
    busy: u32,
    /// The instants since which servers have been idle, in order: the one that was used last is
    /// taken first, so that the others may cool down.
    idle: Vec<Nanos>,
    /// The instant of its last start or end. A call that is reported late does not start before it,
    /// where its server might have been taken.
    latest: Nanos,
    /// The earliest start of the next call, by the spacing.
    next_start: Nanos,
}

impl Tools {
    pub(crate) fn new(classes: &[ToolClass]) -> Self {
        let pool = |class: &ToolClass| ToolPool {
            class: class.clone(),
            waiting: VecDeque::new(),
            dropped: HashSet::new(),
            busy: 0,
            idle: Vec::new(),
            latest: 0,
            next_start: 0,
        };
        Tools {
            pools: classes.iter().map(pool).collect(),
            running: BinaryHeap::new(),
        }
    }

    /// A call of a class joins its queue; a class that does not exist takes none.
    pub(crate) fn enter(&mut self, class: usize, call: ToolCallEntry) {
        if let Some(pool) = self.pools.get_mut(class) {
            pool.waiting.push_back(call);
        }
    }

    /// Returns the instant of the next event; `None` if nothing waits that could start, and nothing
    /// runs.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let end = self.running.peek().map(|Reverse((at, ..))| *at);
        let starts = self.pools.iter().filter_map(ToolPool::next_start);
        end.into_iter().chain(starts).min()
    }

    /// Takes the next event if it is not after `now`. An end comes before a start of the same
    /// instant, so that its server is free for it.
    pub(crate) fn step(&mut self, now: Nanos) -> Option<ToolEvent> {
        let at = self.next().filter(|at| *at <= now)?;
        if let Some(Reverse((end, session, node, pool))) = self.running.peek().copied()
            && end <= at
        {
            self.running.pop();
            self.pools[pool].release(end);
            let id = RequestId { session, node };
            return Some(ToolEvent::Ended { id, at: end });
        }
        let index = self.pools.iter().position(|pool| pool.next_start() == Some(at))?;
        let (call, is_cold, end) = self.pools[index].start(at)?;
        let RequestId { session, node } = call.id;
        self.running.push(Reverse((end, session, node, index)));
        Some(ToolEvent::Started {
            id: call.id,
            at,
            is_cold,
        })
    }

    /// Drops a call of a class that waits; no other call may have its id.
    pub(crate) fn drop_call(&mut self, class: usize, call: RequestId) {
        if let Some(pool) = self.pools.get_mut(class) {
            pool.dropped.insert(call);
            pool.skip_dropped();
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.running.clear();
        for pool in &mut self.pools {
            pool.waiting.clear();
            pool.dropped.clear();
        }
    }
}

impl ToolPool {
    fn is_full(&self) -> bool {
        self.class.servers.is_some_and(|servers| self.busy >= servers)
    }

    /// The start of the next call, if one waits for nothing but time.
    fn next_start(&self) -> Option<Nanos> {
        let call = self.waiting.front().filter(|_| !self.is_full())?;
        let free = self.class.servers.map_or(0, |_| self.latest);
        Some(call.ready.max(free).max(self.next_start))
    }

    fn start(&mut self, at: Nanos) -> Option<(ToolCallEntry, bool, Nanos)> {
        let call = self.waiting.pop_front()?;
        self.skip_dropped();
        let warm = self.idle.pop().is_some_and(|since| {
            self.class
                .keep_warm
                .is_none_or(|keep| at.saturating_sub(since) <= keep)
        });
        self.busy += 1;
        self.latest = at;
        self.next_start = at.saturating_add(self.class.spacing);
        let is_cold = !warm && self.class.cold_start > 0;
        let start_up = if warm { 0 } else { self.class.cold_start };
        let end = at.saturating_add(start_up).saturating_add(call.service);
        Some((call, is_cold, end))
    }

    fn skip_dropped(&mut self) {
        while let Some(call) = self.waiting.front()
            && self.dropped.remove(&call.id)
        {
            self.waiting.pop_front();
        }
    }

    fn release(&mut self, at: Nanos) {
        self.latest = at;
        self.busy -= 1;
        // Only the time of a start-up depends on which server takes a call.
        if self.class.cold_start > 0 {
            self.idle.push(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(node: u32, ready: Nanos, service: Nanos) -> ToolCallEntry {
        ToolCallEntry {
            id: id(node),
            ready,
            service,
        }
    }

    fn id(node: u32) -> RequestId {
        RequestId {
            session: SessionId(0),
            node: NodeId(node),
        }
    }

    /// (node, start, cold) and (node, end) of all calls, entered when they are ready.
    fn run(class: ToolClass, calls: &[ToolCallEntry]) -> Vec<ToolEvent> {
        let mut tools = Tools::new(&[class]);
        let mut events = Vec::new();
        for call in calls {
            while let Some(event) = tools.step(call.ready.saturating_sub(1)) {
                events.push(event);
            }
            tools.enter(0, *call);
        }
        while let Some(event) = tools.step(Nanos::MAX) {
            events.push(event);
        }
        assert_eq!(tools.next(), None);
        assert!(events.is_sorted_by_key(instant), "{events:?}");
        events
    }

    fn instant(event: &ToolEvent) -> Nanos {
        let (ToolEvent::Started { at, .. } | ToolEvent::Ended { at, .. }) = event;
        *at
    }

    fn starts(events: &[ToolEvent]) -> Vec<(u32, Nanos, bool)> {
        let start = |event: &ToolEvent| match *event {
            ToolEvent::Started { id, at, is_cold } => Some((id.node.0, at, is_cold)),
            ToolEvent::Ended { .. } => None,
        };
        events.iter().filter_map(start).collect()
    }

    #[test]
    fn calls_wait_for_a_free_server_in_order() {
        let class = ToolClass {
            servers: Some(2),
            ..ToolClass::default()
        };
        let calls = [
            call(0, 0, 10),
            call(1, 0, 4),
            call(2, 1, 5),
            call(3, 2, 1),
            call(4, 50, 1),
        ];
        let events = run(class, &calls);
        assert_eq!(
            starts(&events),
            [
                (0, 0, false),
                (1, 0, false),
                (2, 4, false),
                (3, 9, false),
                (4, 50, false)
            ]
        );
        let ends = events.iter().filter_map(|event| match *event {
            ToolEvent::Ended { id, at } => Some((id.node.0, at)),
            ToolEvent::Started { .. } => None,
        });
        assert_eq!(
            ends.collect::<Vec<_>>(),
            [(1, 4), (2, 9), (0, 10), (3, 10), (4, 51)]
        );
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let calls: Vec<_> = (0..100).map(|node| call(node, 7, 1_000)).collect();
        let events = run(ToolClass::default(), &calls);
        assert!(starts(&events).iter().all(|(_, at, _)| *at == 7));
    }

    #[test]
    fn starts_keep_their_spacing() {
        let class = ToolClass {
            spacing: 50,
            ..ToolClass::default()
        };
        let calls = [call(0, 0, 1), call(1, 0, 1), call(2, 60, 1), call(3, 500, 1)];
        assert_eq!(
            starts(&run(class, &calls)),
            [(0, 0, false), (1, 50, false), (2, 100, false), (3, 500, false)]
        );
    }

    /// The server used last is taken first, and one that was idle for too long is cold again.
    #[test]
    fn idle_servers_cool_down() {
        let class = ToolClass {
            servers: Some(2),
            cold_start: 100,
            keep_warm: Some(30),
            ..ToolClass::default()
        };
        let calls = [call(0, 0, 10), call(1, 115, 5), call(2, 118, 5), call(3, 260, 5)];
        let events = run(class, &calls);
        // Node 0 ends at 110, node 1 is warm and ends at 120, node 2 finds the other server cold.
        assert_eq!(
            starts(&events),
            [(0, 0, true), (1, 115, false), (2, 118, true), (3, 260, true)]
        );
    }

    #[test]
    fn withdrawn_calls_never_start() {
        let class = ToolClass {
            servers: Some(1),
            ..ToolClass::default()
        };
        let mut tools = Tools::new(&[class]);
        tools.enter(0, call(0, 0, 10));
        assert!(tools.step(0).is_some());
        for node in 1..6 {
            tools.enter(0, call(node, 1, 10));
        }
        for node in [2, 1, 4, 5] {
            tools.drop_call(0, id(node));
        }
        assert_eq!(tools.step(100), Some(ToolEvent::Ended { id: id(0), at: 10 }));
        let third = tools.step(100);
        assert!(matches!(third, Some(ToolEvent::Started { id, at: 10, .. }) if id.node.0 == 3));
        assert_eq!(tools.step(100), Some(ToolEvent::Ended { id: id(3), at: 20 }));
        assert_eq!(tools.step(100), None);
        tools.drop_call(7, id(3));
        tools.enter(7, call(2, 1, 10));
        assert_eq!(tools.next(), None, "there is no class 7");
    }
}
