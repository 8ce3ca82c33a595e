//! Assignment of sessions to servers.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use veeksha_model::SessionId;

use crate::target::BalanceRule;

/// Maximum number of sessions whose server is remembered, at about 40 bytes each.
const REMEMBERED: usize = 1 << 20;

/// Distributes sessions over servers.
pub(crate) struct LoadBalancer {
    balance: BalanceRule,
    /// Requests in flight at each server.
    in_flight: Vec<AtomicUsize>,
    /// The choices made so far, for [`BalanceRule::LeastInFlight`].
    chosen: Mutex<Chosen>,
}

#[derive(Default)]
struct Chosen {
    server: HashMap<SessionId, u16>,
    /// Sessions in the order in which they began.
    order: VecDeque<SessionId>,
}

impl LoadBalancer {
    /// Creates a distribution over `servers` servers (at least 1).
    pub(crate) fn new(balance: BalanceRule, servers: usize) -> Self {
        LoadBalancer {
            balance,
            in_flight: (0..servers.max(1)).map(|_| AtomicUsize::new(0)).collect(),
            chosen: Mutex::default(),
        }
    }

    /// Records the start of a request and returns the server of its session.
    pub(crate) fn begin(&self, session: SessionId) -> u16 {
        let server = match self.balance {
            // There are at most 65,535 servers.
            _ if self.in_flight.len() == 1 => 0,
            BalanceRule::RoundRobin => (session.0 % self.in_flight.len() as u64) as u16,
            BalanceRule::LeastInFlight => self.choose(session),
        };
        self.in_flight[usize::from(server)].fetch_add(1, Ordering::Relaxed);
        server
    }

    /// Records the end of a request to a server.
    pub(crate) fn end(&self, server: u16) {
        self.in_flight[usize::from(server)].fetch_sub(1, Ordering::Relaxed);
    }

    fn choose(&self, session: SessionId) -> u16 {
        // The choices are consistent after every step, so a panic elsewhere cannot have corrupted
        // them.
        let mut chosen = self
            .chosen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(server) = chosen.server.get(&session) {
            return *server;
        }
        let loads = self.in_flight.iter().map(|count| count.load(Ordering::Relaxed));
        let least = loads.enumerate().min_by_key(|(_, load)| *load);
        let server = least.map_or(0, |(server, _)| server as u16);
        chosen.server.insert(session, server);
        chosen.order.push_back(session);
        if chosen.order.len() > REMEMBERED
            && let Some(oldest) = chosen.order.pop_front()
        {
            chosen.server.remove(&oldest);
        }
        server
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_follows_the_sessions_number() {
        let spread = LoadBalancer::new(BalanceRule::RoundRobin, 3);
        let servers: Vec<u16> = [0, 1, 2, 3, 4, 1]
            .map(|session| spread.begin(SessionId(session)))
            .to_vec();
        assert_eq!(servers, [0, 1, 2, 0, 1, 1]);
    }

    #[test]
    fn chooses_least_loaded_server_once_per_session() {
        let spread = LoadBalancer::new(BalanceRule::LeastInFlight, 2);
        assert_eq!(spread.begin(SessionId(7)), 0);
        assert_eq!(spread.begin(SessionId(8)), 1);
        assert_eq!(spread.begin(SessionId(7)), 0);
        // Two requests are at server 0 and one is at server 1.
        assert_eq!(spread.begin(SessionId(9)), 1);
        spread.end(0);
        spread.end(0);
        assert_eq!(spread.begin(SessionId(10)), 0);
        // Session 8 stays although server 0 has fewer requests.
        assert_eq!(spread.begin(SessionId(8)), 1);
    }

    #[test]
    fn old_choices_are_forgotten() {
        let spread = LoadBalancer::new(BalanceRule::LeastInFlight, 2);
        for session in 0..=REMEMBERED as u64 {
            spread.begin(SessionId(session));
        }
        let chosen = spread.chosen.lock().unwrap();
        assert_eq!(
            (chosen.server.len(), chosen.order.len()),
            (REMEMBERED, REMEMBERED)
        );
        assert!(!chosen.server.contains_key(&SessionId(0)));
    }
}
