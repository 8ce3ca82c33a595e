//! Tool classes: calls that wait for a free server, and then take their service time.
//!
//! Instants are exact, however late the scheduler is called or learns of a call. A call starts at
//! the latest of the instant at which it is ready, the instant at which the first server is free,
//! and the end of the spacing after the last start; it takes the server that was freed last by
//! then. A server is never given a call that starts before its former one has ended, so that the
//! number of calls in service never exceeds that of the servers.
//!
//! In virtual time each call is known at its ready instant, so calls start in the order of these
//! instants. In real time the scheduler learns of a call later: the answer has to be decoded, and
//! the agent to make its step. Such a call starts at its ready instant all the same if a server was
//! free then and has not been taken since. It waits only if calls that became known before it have
//! taken all servers beyond its ready instant, or have started within the spacing. Starts that were
//! decided are not changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

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

type EndKey = (Nanos, SessionId, NodeId);

/// All classes, with the calls that wait and those that run.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pools: Vec<ToolPool>,
    running: BinaryHeap<Reverse<EndKey>>,
}

#[derive(Clone, Debug)]
struct ToolPool {
    class: ToolClass,
    /// The calls that wait, by their ready instants and ids. The first one is never a dropped one.
    waiting: BinaryHeap<Reverse<WaitingKey>>,
    /// Dropped calls, which stay in `waiting` until they are the first one: dropping one costs
    /// logarithmic time on average, however many wait.
    dropped: HashSet<RequestId>,
    servers: ServerPool,
    /// The earliest start of the next call, by the spacing.
    next_start: Nanos,
}

/// Ready instant, id and service time.
type WaitingKey = (Nanos, SessionId, NodeId, Nanos);

/// The servers of a class, each with the instant since which it is or will be idle.
#[derive(Clone, Debug)]
struct ServerPool {
    /// The number of servers with each instant, of those that have had a call.
    idle_since: BTreeMap<Nanos, u32>,
    /// Servers that have not had a call; `None`: any number.
    unused: Option<u32>,
}

impl ServerPool {
    /// The earliest instant at which a server is free; `None` if there is none.
    fn first_free(&self) -> Option<Nanos> {
        if self.unused == Some(0) {
            self.idle_since.first_key_value().map(|(since, _)| *since)
        } else {
            Some(0)
        }
    }

    /// Takes the server that was freed last by `at`, and returns the instant since which it was
    /// idle; `None` for one that has not had a call. There must be a free one.
    ///
    /// No other one can be warm if this one is cold. It is also the best choice for calls that
    /// become known late: servers that were freed earlier can start them earlier.
    fn take(&mut self, at: Nanos) -> Option<Nanos> {
        if let Some((since, count)) = self.idle_since.range_mut(..=at).next_back() {
            let since = *since;
            *count -= 1;
            if *count == 0 {
                self.idle_since.remove(&since);
            }
            return Some(since);
        }
        if let Some(unused) = &mut self.unused {
            *unused = unused.saturating_sub(1);
        }
        None
    }

    /// Notes that a server that was taken is idle from `at` on.
    fn release(&mut self, at: Nanos) {
        *self.idle_since.entry(at).or_default() += 1;
    }
}

impl Tools {
    pub(crate) fn new(classes: &[ToolClass]) -> Self {
        let pool = |class: &ToolClass| ToolPool {
            class: class.clone(),
            waiting: BinaryHeap::new(),
            dropped: HashSet::new(),
            servers: ServerPool {
                idle_since: BTreeMap::new(),
                unused: class.servers,
            },
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
            let RequestId { session, node } = call.id;
            pool.waiting
                .push(Reverse((call.ready, session, node, call.service)));
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
        if let Some(Reverse((end, session, node))) = self.running.peek().copied()
            && end <= at
        {
            self.running.pop();
            let id = RequestId { session, node };
            return Some(ToolEvent::Ended { id, at: end });
        }
        let index = self.pools.iter().position(|pool| pool.next_start() == Some(at))?;
        let (id, is_cold, end) = self.pools[index].start(at)?;
        self.running.push(Reverse((end, id.session, id.node)));
        Some(ToolEvent::Started { id, at, is_cold })
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
    /// The start of the first call that waits.
    fn next_start(&self) -> Option<Nanos> {
        let Reverse((ready, ..)) = self.waiting.peek()?;
        let free = self.servers.first_free()?;
        Some((*ready).max(free).max(self.next_start))
    }

    /// Starts the first call; returns its id, whether its server was cold, and its end.
    fn start(&mut self, at: Nanos) -> Option<(RequestId, bool, Nanos)> {
        let Reverse((_, session, node, service)) = self.waiting.pop()?;
        self.skip_dropped();
        if self.class.spacing > 0 {
            self.next_start = at.saturating_add(self.class.spacing);
        }
        let idle_since = if self.tracks_servers() {
            self.servers.take(at)
        } else {
            None
        };
        let is_warm = idle_since.is_some_and(|since| {
            self.class
                .keep_warm
                .is_none_or(|keep| at.saturating_sub(since) <= keep)
        });
        let start_up = if is_warm { 0 } else { self.class.cold_start };
        let end = at.saturating_add(start_up).saturating_add(service);
        if self.tracks_servers() {
            self.servers.release(end);
        }
        Some((RequestId { session, node }, start_up > 0, end))
    }

    /// Returns true if a call depends on the servers that others have taken.
    fn tracks_servers(&self) -> bool {
        self.class.servers.is_some() || self.class.cold_start > 0
    }

    fn skip_dropped(&mut self) {
        while let Some(Reverse((_, session, node, _))) = self.waiting.peek()
            && self.dropped.remove(&RequestId {
                session: *session,
                node: *node,
            })
        {
            self.waiting.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Servers of which none was taken beyond the ready instant of a call start it then, whatever
    /// else started or ended in the meantime.
    #[test]
    fn late_calls_start_where_a_server_was_free() {
        let class = ToolClass {
            servers: Some(2),
            ..ToolClass::default()
        };
        for class in [class, ToolClass::default()] {
            let mut tools = Tools::new(&[class]);
            let mut starts_by = |known: Nanos, call: ToolCallEntry| {
                while tools.step(known).is_some() {}
                tools.enter(0, call);
                let events: Vec<_> = std::iter::from_fn(|| tools.step(known)).collect();
                starts(&events)
            };
            assert_eq!(starts_by(100, call(0, 90, 3)), [(0, 90, false)]);
            assert_eq!(starts_by(200, call(1, 20, 9)), [(1, 20, false)]);
            assert_eq!(starts_by(200, call(2, 50, 500)), [(2, 50, false)]);
            assert_eq!(starts_by(200, call(3, 110, 9)), [(3, 110, false)]);
        }
    }

    /// The earliest call is served first, also if it became known last.
    #[test]
    fn waiting_calls_are_served_in_the_order_of_their_ready_instants() {
        let class = ToolClass {
            servers: Some(1),
            ..ToolClass::default()
        };
        let mut tools = Tools::new(&[class]);
        tools.enter(0, call(0, 0, 100));
        assert!(tools.step(0).is_some());
        for (node, ready) in [(3, 30), (2, 20), (5, 20), (4, 10)] {
            tools.enter(0, call(node, ready, 1));
        }
        let events: Vec<_> = std::iter::from_fn(|| tools.step(1_000)).collect();
        let expected = [(4, 100, false), (2, 101, false), (5, 102, false), (3, 103, false)];
        assert_eq!(starts(&events), expected);
    }

    /// A call that became known late finds the server as it was at its ready instant.
    #[test]
    fn late_calls_find_servers_warm_that_were_so() {
        let class = ToolClass {
            servers: Some(3),
            cold_start: 10,
            keep_warm: Some(20),
            spacing: 0,
        };
        let mut tools = Tools::new(&[class]);
        let mut start = |entry: ToolCallEntry| {
            tools.enter(0, entry);
            let events: Vec<_> = std::iter::from_fn(|| tools.step(1_000)).collect();
            starts(&events)
        };
        // Idle from 15 on, and another one from 25 on.
        assert_eq!(start(call(0, 0, 5)), [(0, 0, true)]);
        assert_eq!(start(call(1, 10, 5)), [(1, 10, true)]);
        assert_eq!(start(call(2, 20, 1)), [(2, 20, false)], "on the first one");
        assert_eq!(start(call(3, 60, 1)), [(3, 60, true)], "both are cold");
        assert_eq!(start(call(4, 22, 1)), [(4, 22, false)], "the first one again");
    }

    /// A call with the instant at which it becomes known.
    fn late_calls(late: u64) -> impl Strategy<Value = Vec<(Nanos, ToolCallEntry)>> {
        let call = (0u64..300, 0u64..40, 0..=late);
        proptest::collection::vec(call, 0..40).prop_map(|calls| {
            let calls = calls.into_iter().enumerate();
            let mut calls: Vec<_> = calls
                .map(|(node, (ready, service, late))| (ready + late, self::call(node as u32, ready, service)))
                .collect();
            calls.sort_by_key(|(known, call)| (*known, call.ready, call.id.node));
            calls
        })
    }

    /// Enters calls when they become known; returns (node, start, end) in the order of the
    /// decisions, and for each the calls that waited then.
    fn decide(class: &ToolClass, calls: &[(Nanos, ToolCallEntry)]) -> Vec<((u32, Nanos, Nanos), Vec<u32>)> {
        let mut tools = Tools::new(std::slice::from_ref(class));
        let mut waiting: Vec<u32> = Vec::new();
        let mut decided: Vec<((u32, Nanos, Nanos), Vec<u32>)> = Vec::new();
        let mut next = calls.iter().peekable();
        loop {
            let until = next
                .peek()
                .map_or(Nanos::MAX, |(known, _)| *known - u64::from(*known > 0));
            while let Some(event) = tools.step(until) {
                match event {
                    ToolEvent::Started { id, at, .. } => {
                        waiting.retain(|node| *node != id.node.0);
                        decided.push(((id.node.0, at, Nanos::MAX), waiting.clone()));
                    }
                    ToolEvent::Ended { id, at } => {
                        let started = decided.iter_mut().find(|((node, ..), _)| *node == id.node.0);
                        started.expect("it started").0.2 = at;
                    }
                }
            }
            let Some((_, call)) = next.next() else {
                return decided;
            };
            waiting.push(call.id.node.0);
            tools.enter(0, *call);
        }
    }

    /// The starts of calls that are known in time: each takes the server that is free first.
    fn first_come(servers: u32, calls: &[(Nanos, ToolCallEntry)]) -> BTreeMap<u32, Nanos> {
        let mut free = vec![0; servers as usize];
        let mut in_order: Vec<_> = calls.iter().map(|(_, call)| call).collect();
        in_order.sort_by_key(|call| (call.ready, call.id.node));
        let start = |call: &ToolCallEntry| {
            free.sort_unstable();
            let start = call.ready.max(free[0]);
            free[0] = start + call.service;
            (call.id.node.0, start)
        };
        in_order.into_iter().map(start).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3_000), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn calls_in_time_are_those_of_a_first_come_queue(
            servers in 1u32..6, calls in late_calls(0),
        ) {
            let class = ToolClass { servers: Some(servers), ..ToolClass::default() };
            let starts = decide(&class, &calls).into_iter().map(|((node, at, _), _)| (node, at));
            prop_assert_eq!(starts.collect::<BTreeMap<_, _>>(), first_come(servers, &calls));
        }

        /// A call waits only if every server was taken beyond its ready instant before it became
        /// known; the first one that waits starts as soon as one is free; no server has two calls
        /// at once.
        #[test]
        fn late_calls_wait_only_for_servers(
            servers in 1u32..6,
            calls in late_calls(60),
            spacing in prop_oneof![3 => Just(0u64), 1 => 1u64..30],
        ) {
            let class = ToolClass { servers: Some(servers), spacing, ..ToolClass::default() };
            let ready: BTreeMap<u32, Nanos> =
                calls.iter().map(|(_, call)| (call.id.node.0, call.ready)).collect();
            let decided = decide(&class, &calls);
            prop_assert_eq!(decided.len(), calls.len());
            let runs: Vec<_> = decided.iter().map(|(run, _)| *run).collect();
            for (index, ((node, start, _), waiting)) in decided.iter().enumerate() {
                let before = &runs[..index];
                let ready_at = ready[node];
                prop_assert!(*start >= ready_at);
                let first = waiting.iter().all(|other| (ready[other], other) > (ready_at, node));
                prop_assert!(first, "{} before {:?}", node, waiting);
                let spaced = before.iter().all(|(_, other, _)| start.abs_diff(*other) >= spacing);
                prop_assert!(spaced);
                // At the instant before its start, something kept it.
                let Some(earlier) = start.checked_sub(1).filter(|at| *at >= ready_at) else { continue };
                let taken = before.iter().filter(|(_, _, end)| *end > earlier).count();
                let is_spaced = before.iter().all(|(_, other, _)| earlier.abs_diff(*other) >= spacing);
                prop_assert!(taken >= servers as usize || !is_spaced, "{} waits at {}", node, earlier);
            }
            for (_, start, _) in &runs {
                let at_once = runs.iter().filter(|(_, from, to)| from <= start && start < to).count();
                prop_assert!(at_once <= servers as usize);
            }
        }
    }
}
