//! The nodes that only wait for their instant.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use veeksha_model::{Nanos, NodeId, RequestId, SessionId};

/// A queue ordered by (intended, session, node).
///
/// A withdrawn node stays in the heap until it comes to the top or until half of the heap is withdrawn; then the heap is
/// rebuilt. So withdrawing costs constant time on average, and the heap never holds more than twice what is live.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadyQueue {
    heap: BinaryHeap<Reverse<(Nanos, SessionId, NodeId)>>,
    withdrawn: usize,
}

impl ReadyQueue {
    pub(crate) fn push(&mut self, intended: Nanos, request: RequestId) {
        self.heap.push(Reverse((intended, request.session, request.node)));
    }

    /// The instant of the first entry.
    pub(crate) fn first(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((intended, ..))| *intended)
    }

    /// Takes the first entry if it is due. The caller says whether it is still wanted; entries that are not are skipped.
    pub(crate) fn pop_due(
        &mut self,
        now: Nanos,
        wanted: impl Fn(RequestId) -> bool,
    ) -> Option<(Nanos, RequestId)> {
        while let Some(Reverse((intended, session, node))) = self.heap.peek().copied() {
            let request = RequestId { session, node };
            let live = wanted(request);
            if live && intended > now {
                return None;
            }
            self.heap.pop();
            if live {
                return Some((intended, request));
            }
            self.withdrawn = self.withdrawn.saturating_sub(1);
        }
        None
    }

    /// Notes that `count` entries are no longer wanted.
    pub(crate) fn withdraw(&mut self, count: usize, wanted: impl Fn(RequestId) -> bool) {
        self.withdrawn += count;
        if self.withdrawn * 2 > self.heap.len() {
            self.heap.retain(|Reverse((_, session, node))| {
                wanted(RequestId {
                    session: *session,
                    node: *node,
                })
            });
            self.withdrawn = 0;
        }
    }

    /// Entries, withdrawn ones included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
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
        while let Some((at, id)) = queue.pop_due(8, |_| true) {
            order.push((at, id.session.0, id.node.0));
        }
        assert_eq!(order, [(3, 1, 9), (3, 2, 0), (3, 2, 1), (5, 1, 0)]);
        assert_eq!(queue.first(), Some(9));
    }

    #[test]
    fn withdrawn_entries_do_not_pile_up() {
        let mut queue = ReadyQueue::default();
        for session in 0..1000 {
            queue.push(1_000_000, request(session, 0));
            queue.withdraw(1, |_| false);
        }
        assert_eq!(queue.len(), 0);
    }
}
