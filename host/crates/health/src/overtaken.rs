//! Pairs of concurrent requests of which one used the cache entries of the other.
//!
//! The tokens that a server can have cached are computed in the order of dispatch. Two requests on
//! two connections may arrive the other way round: the first one then hits the entries of the
//! second one, which misses them. The surplus of one is the deficit of the other, and only a
//! surplus without such a partner is unexplained.

use std::collections::VecDeque;

use veeksha_model::{Nanos, RequestId, RequestRecord};

/// Maximum number of requests of either kind that wait for partners; older ones are settled.
const WAITING: usize = 1024;

/// Surplus or deficit of cached tokens of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WaitingRequests {
    dispatched: Nanos,
    completed: Nanos,
    tokens: u32,
    surprise: CacheSurplus,
}

/// A request with more cached tokens than are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSurplus {
    pub(crate) request: RequestId,
    /// Cached tokens reported by the server.
    pub(crate) cached: u32,
    /// Cached tokens explained by the order of dispatch.
    pub(crate) known: u32,
}

/// Requests whose cached tokens differ from those of the order of dispatch, oldest first.
#[derive(Default)]
pub(crate) struct Overtaken {
    more: VecDeque<WaitingRequests>,
    less: VecDeque<WaitingRequests>,
}

impl Overtaken {
    /// Records a request with `more` cached tokens than explained, or with fewer than the `known`
    /// ones. Returns the surpluses that no later request can explain.
    pub(crate) fn on(
        &mut self,
        record: &RequestRecord,
        surprise: CacheSurplus,
        more: u32,
    ) -> Option<(CacheSurplus, u32)> {
        let less = surprise.known.saturating_sub(surprise.cached);
        let (partners, own, tokens) = match more {
            0 => (&mut self.more, &mut self.less, less),
            _ => (&mut self.less, &mut self.more, more),
        };
        let mut one = WaitingRequests {
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

    /// Returns the surpluses that are still unexplained at the end.
    pub(crate) fn finish(self) -> impl Iterator<Item = (CacheSurplus, u32)> {
        self.more.into_iter().map(|left| (left.surprise, left.tokens))
    }
}
