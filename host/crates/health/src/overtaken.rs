//! Requests that were under way together, and which of them met what the other had taught.
//!
//! What a server can know of a prompt is worked out in the order of dispatch. Two requests on two connections may arrive the other way
//! round: then the first one is found in the cache that the second one filled, and the second one is not. What one has too much the
//! other has too little, and only what no such partner explains is a surprise.

use std::collections::VecDeque;

use veeksha_model::{Nanos, RequestId, RequestRecord};

/// So many requests of either kind wait for partners; of more, the oldest are settled.
const WAITING: usize = 1024;

/// Tokens that a request had too many or too few of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    dispatched: Nanos,
    completed: Nanos,
    tokens: u32,
    surprise: Surprise,
}

/// A request that had more cached tokens than are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surprise {
    pub(crate) request: RequestId,
    /// What the server says.
    pub(crate) cached: u32,
    /// What it can know, by the order of dispatch.
    pub(crate) known: u32,
}

/// Requests whose cached tokens are not those of the order of dispatch, oldest first.
#[derive(Default)]
pub(crate) struct Overtaken {
    more: VecDeque<Waiting>,
    less: VecDeque<Waiting>,
}

impl Overtaken {
    /// Takes a request of which the server knew `more` tokens than it can have, or `known` and less than it could have. Gives back what
    /// nothing can explain any more.
    pub(crate) fn on(
        &mut self,
        record: &RequestRecord,
        surprise: Surprise,
        more: u32,
    ) -> Option<(Surprise, u32)> {
        let less = surprise.known.saturating_sub(surprise.cached);
        let (partners, own, tokens) = match more {
            0 => (&mut self.more, &mut self.less, less),
            _ => (&mut self.less, &mut self.more, more),
        };
        let mut one = Waiting {
            dispatched: record.dispatched_at,
            completed: record.completed_at,
            tokens,
            surprise,
        };
        for other in partners.iter_mut() {
            let together = one.dispatched < other.completed && other.dispatched < one.completed;
            if together {
                let explained = one.tokens.min(other.tokens);
                one.tokens -= explained;
                other.tokens -= explained;
            }
        }
        partners.retain(|other| other.tokens > 0);
        if one.tokens == 0 {
            return None;
        }
        own.push_back(one);
        if own.len() <= WAITING {
            return None;
        }
        let settled = own.pop_front()?;
        (more > 0).then_some((settled.surprise, settled.tokens))
    }

    /// What is left unexplained at the end.
    pub(crate) fn finish(self) -> impl Iterator<Item = (Surprise, u32)> {
        self.more.into_iter().map(|left| (left.surprise, left.tokens))
    }
}
