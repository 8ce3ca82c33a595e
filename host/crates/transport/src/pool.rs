//! Idle connections of one client thread.

use std::collections::{HashMap, VecDeque};

use veeksha_model::SessionId;

use crate::config::ConnectionPolicy;
use crate::connection::Connection;

/// Maximum number of idle connections of one thread. The oldest is dropped first. Only sessions
/// with separate connections, which may never return, can reach it.
const MAX_IDLE: usize = 8 * 1024;

/// Key of the requests that may share a connection: the server and, if connections are not shared
/// between sessions, the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    server: u16,
    session: Option<SessionId>,
}

impl Owner {
    /// Returns the owner, or `None` if every request opens a new connection.
    pub(crate) fn of(policy: ConnectionPolicy, server: u16, session: SessionId) -> Option<Owner> {
        let session = match policy {
            ConnectionPolicy::Never => return None,
            ConnectionPolicy::Pooled => None,
            ConnectionPolicy::PerSession => Some(session),
        };
        Some(Owner { server, session })
    }
}

/// A pool of idle connections. Of those with the same owner the most recently used is taken,
/// because it is the one most likely to be alive.
#[derive(Default)]
pub(crate) struct ConnectionPool {
    idle: HashMap<Owner, Vec<(u64, Connection)>>,
    /// Idle connections by age, oldest first. Includes some that are no longer idle.
    ages: VecDeque<(u64, Owner)>,
    next: u64,
    number: usize,
}

impl ConnectionPool {
    /// Takes the youngest connection of its owner that appears to be alive. Drops the dead ones
    /// that it encounters.
    pub(crate) fn take(&mut self, owner: Owner) -> Option<Connection> {
        let idle = self.idle.get_mut(&owner)?;
        let mut found = None;
        while let Some((_, connection)) = idle.pop() {
            self.number -= 1;
            if connection.looks_alive() {
                found = Some(connection);
                break;
            }
        }
        if idle.is_empty() {
            self.idle.remove(&owner);
        }
        found
    }

    /// Keeps a connection for later. Also checks the oldest one, so that connections which the
    /// server has closed do not accumulate behind a few busy ones.
    pub(crate) fn give_back(&mut self, owner: Owner, connection: Connection) {
        self.look_at_oldest();
        let age = self.next;
        self.next += 1;
        self.idle.entry(owner).or_default().push((age, connection));
        self.ages.push_back((age, owner));
        self.number += 1;
        if self.ages.len() > 2 * self.number + 64 {
            let idle = &self.idle;
            self.ages
                .retain(|(age, owner)| place(idle, *age, *owner).is_some());
        }
    }

    fn look_at_oldest(&mut self) {
        while let Some((age, owner)) = self.ages.front().copied() {
            match place(&self.idle, age, owner) {
                None => {}
                Some(at) => {
                    let Some(idle) = self.idle.get_mut(&owner) else {
                        return;
                    };
                    if self.number < MAX_IDLE && idle[at].1.looks_alive() {
                        return;
                    }
                    idle.remove(at);
                    self.number -= 1;
                    if idle.is_empty() {
                        self.idle.remove(&owner);
                    }
                }
            }
            self.ages.pop_front();
        }
    }
}

/// Returns the index of a connection among those of its owner.
fn place(idle: &HashMap<Owner, Vec<(u64, Connection)>>, age: u64, owner: Owner) -> Option<usize> {
    idle.get(&owner)?.binary_search_by_key(&age, |(age, _)| *age).ok()
}
