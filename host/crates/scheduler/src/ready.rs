//! Ready nodes: those that wait for their instant, and those that a limit holds back although it
//! has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use veeksha_model::{Nanos, NodeId, RequestId, SessionId};

use crate::request_limits::Passed;

type ReadyKey = (Nanos, SessionId, NodeId);

/// A queue ordered by (intended, session, node).
///
/// A withdrawn node stays in its heap until it comes to the top or until half of what is queued is
/// withdrawn; then the heaps are rebuilt. So withdrawing costs constant time on average, and the
/// heaps never hold more than twice what is live.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadyQueue {
    heap: BinaryHeap<Reverse<ReadyKey>>,
    /// Entries that are due and held back by a request limit, with the time held by each limit up
    /// to the instant at which they could have been sent.
    held: BinaryHeap<Reverse<(ReadyKey, Passed)>>,
    withdrawn: usize,
    /// Tool runs, which no limit on requests holds back. Withdrawn ones stay until their instant.
    tool_runs: BinaryHeap<Reverse<ReadyKey>>,
}

/// An entry whose instant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) intended: Nanos,
    pub(crate) request: RequestId,
    /// If a limit on requests kept it back: what had passed when that began.
    pub(crate) held_since: Option<Passed>,
}

impl ReadyQueue {
    pub(crate) fn push(&mut self, intended: Nanos, request: RequestId) {
        self.heap.push(Reverse((intended, request.session, request.node)));
    }

    pub(crate) fn push_tool_run(&mut self, intended: Nanos, request: RequestId) {
        self.tool_runs
            .push(Reverse((intended, request.session, request.node)));
    }

    /// The instant of the first tool run.
    pub(crate) fn first_tool_run(&self) -> Option<Nanos> {
        self.tool_runs.peek().map(|Reverse((intended, ..))| *intended)
    }

    /// Takes the first tool run.
    pub(crate) fn pop_tool_run(&mut self) -> Option<(Nanos, RequestId)> {
        let Reverse(key) = self.tool_runs.pop()?;
        Some((key.0, request_of(key)))
    }

    /// The instant of the first entry that is not held.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((intended, ..))| *intended)
    }

    /// Takes the first entry if it is due. Entries for which `wanted` is false are skipped.
    pub(crate) fn pop_due(&mut self, now: Nanos, wanted: impl Fn(RequestId) -> bool) -> Option<Due> {
        self.skip_unwanted(&wanted);
        let ready = self
            .heap
            .peek()
            .map(|Reverse(key)| *key)
            .filter(|key| key.0 <= now);
        let held = self.held.peek().map(|Reverse((key, _))| *key);
        let (key, held_since) = match (ready, held) {
            (ready, Some(held)) if ready.is_none_or(|ready| held < ready) => {
                self.held.pop().map(|Reverse((key, passed))| (key, Some(passed)))
            }
            (Some(_), _) => self.heap.pop().map(|Reverse(key)| (key, None)),
            (None, _) => None,
        }?;
        Some(Due {
            intended: key.0,
            request: request_of(key),
            held_since,
        })
    }

    /// Called when nothing more can be sent now: notes for each due entry the time held by each
    /// limit so far, as returned by `passed`.
    pub(crate) fn hold_due(
        &mut self,
        now: Nanos,
        wanted: impl Fn(RequestId) -> bool,
        passed: impl Fn(Nanos, RequestId) -> Passed,
    ) {
        loop {
            self.skip_unwanted(&wanted);
            let Some(Reverse(key)) = self.heap.peek().copied().filter(|Reverse(key)| key.0 <= now) else {
                return;
            };
            self.heap.pop();
            self.held.push(Reverse((key, passed(key.0, request_of(key)))));
        }
    }

    fn skip_unwanted(&mut self, wanted: &impl Fn(RequestId) -> bool) {
        // Asking costs a look-up for each; most runs never withdraw anything.
        if self.withdrawn == 0 {
            return;
        }
        while let Some(Reverse(key)) = self.heap.peek()
            && !wanted(request_of(*key))
        {
            self.heap.pop();
            self.withdrawn = self.withdrawn.saturating_sub(1);
        }
        while let Some(Reverse((key, _))) = self.held.peek()
            && !wanted(request_of(*key))
        {
            self.held.pop();
            self.withdrawn = self.withdrawn.saturating_sub(1);
        }
    }

    /// Notes that `count` entries are no longer wanted.
    pub(crate) fn withdraw(&mut self, count: usize, wanted: impl Fn(RequestId) -> bool) {
        self.withdrawn += count;
        if self.withdrawn * 2 > self.heap.len() + self.held.len() {
            self.heap.retain(|Reverse(key)| wanted(request_of(*key)));
            self.held.retain(|Reverse((key, _))| wanted(request_of(*key)));
            self.withdrawn = 0;
        }
    }

    /// Entries, withdrawn ones included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len() + self.held.len()
    }
}

fn request_of((_, session, node): ReadyKey) -> RequestId {
    RequestId { session, node }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(session: u64, node: u32) -> RequestId {
        RequestId {
            session: SessionId(session),
            node: NodeId(node),
        }
    }

    #[test]
    fn order_is_instant_then_session_then_node() {
        let mut queue = ReadyQueue::default();
        for (at, session, node) in [(5, 1, 0), (3, 2, 1), (3, 2, 0), (3, 1, 9), (9, 0, 0)] {
            queue.push(at, request(session, node));
        }
        let mut order = Vec::new();
        while let Some(due) = queue.pop_due(8, |_| true) {
            order.push((due.intended, due.request.session.0, due.request.node.0));
        }
        assert_eq!(order, [(3, 1, 9), (3, 2, 0), (3, 2, 1), (5, 1, 0)]);
        assert_eq!(queue.first(), Some(9));
    }

    #[test]
    fn withdrawn_entries_are_removed() {
        let mut queue = ReadyQueue::default();
        for session in 0..1000 {
            queue.push(1_000_000, request(session, 0));
            queue.withdraw(1, |_| false);
        }
        assert_eq!(queue.len(), 0);
    }

    /// Held entries and others form one queue.
    #[test]
    fn held_entries_keep_their_order() {
        let mut queue = ReadyQueue::default();
        for (at, session) in [(3, 7), (5, 1), (9, 2)] {
            queue.push(at, request(session, 0));
        }
        let passed = |in_flight| Passed {
            in_flight,
            in_prefill: 0,
        };
        queue.hold_due(6, |_| true, |at, _| passed(at * 10));
        assert_eq!(queue.first(), Some(9));
        // A child of an answer that came late is due earlier than one that waits already.
        queue.push(4, request(8, 1));
        queue.push(5, request(0, 0));
        queue.withdraw(1, |id| id.session.0 != 7);
        let mut order = Vec::new();
        while let Some(due) = queue.pop_due(8, |id| id.session.0 != 7) {
            order.push((due.intended, due.request.session.0, due.held_since));
        }
        assert_eq!(order, [(4, 8, None), (5, 0, None), (5, 1, Some(passed(50)))]);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn withdrawn_held_entries_are_removed() {
        let mut queue = ReadyQueue::default();
        for session in 0..1000 {
            queue.push(1, request(session, 0));
            queue.hold_due(1, |_| true, |_, _| Passed::default());
            queue.withdraw(1, |_| false);
        }
        assert_eq!(queue.len(), 0);
    }
}
