//! Idle connections of one client thread. There is one target, so there is one stack: the connection that was used last
//! is the one most likely to be alive.

use std::collections::VecDeque;

use crate::connection::Connection;

/// The idle connections, oldest first.
#[derive(Default)]
pub(crate) struct Pool {
    idle: VecDeque<Connection>,
}

impl Pool {
    /// The youngest connection that looks alive; dead ones on the way are dropped.
    pub(crate) fn take(&mut self) -> Option<Connection> {
        while let Some(connection) = self.idle.pop_back() {
            if connection.looks_alive() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection for later. The oldest one is looked at in turn, so that connections which the server has closed do not
    /// pile up behind a busy few.
    pub(crate) fn give_back(&mut self, connection: Connection) {
        if self.idle.front().is_some_and(|oldest| !oldest.looks_alive()) {
            self.idle.pop_front();
        }
        self.idle.push_back(connection);
    }
}
