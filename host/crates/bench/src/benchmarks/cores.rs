//! Cores of the two ends of a measurement.

use std::thread;

use veeksha_machine::{pin_to, usable_cores};

use crate::error::BenchError;

/// One core for the client and one for the server, if there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) client: Option<usize>,
    pub(crate) server: Option<usize>,
}

impl Cores {
    /// Returns the first and the last usable core, or none if there is only one: sharing a pinned
    /// core is worse than being migrated.
    pub(crate) fn choose() -> Self {
        Cores::of(&usable_cores())
    }

    fn of(usable: &[usize]) -> Self {
        match usable {
            [first, .., last] => Cores {
                client: Some(*first),
                server: Some(*last),
            },
            _ => Cores {
                client: None,
                server: None,
            },
        }
    }

    /// Describes the assignment for a note.
    pub(crate) fn words(self) -> String {
        match (self.client, self.server) {
            (Some(client), Some(server)) => format!("client on core {client}, server on core {server}"),
            _ => "client and server share the only core".to_owned(),
        }
    }

    /// Runs `work` on a thread pinned to the client's core; threads that it starts inherit the
    /// core.
    pub(crate) fn on_client<T: Send>(
        self,
        work: impl FnOnce() -> Result<T, BenchError> + Send,
    ) -> Result<T, BenchError> {
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("bench-client".to_owned());
            let spawned = thread.spawn_scoped(scope, move || {
                if let Some(core) = self.client {
                    // The core is usable by this process; if pinning is refused anyway, any core
                    // will do.
                    let _ = pin_to(&[core]);
                }
                work()
            });
            let ended = spawned.map_err(BenchError::io("starting a thread"))?.join();
            ended.unwrap_or(Err(BenchError::Empty("the measuring thread panicked")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigns_first_and_last_core() {
        let of = |cores: &[usize]| {
            let cores = Cores::of(cores);
            (cores.client, cores.server)
        };
        assert_eq!(of(&[2, 3, 7]), (Some(2), Some(7)));
        assert_eq!(of(&[0, 1]), (Some(0), Some(1)));
        assert_eq!(of(&[5]), (None, None));
        assert_eq!(of(&[]), (None, None));
    }

    #[test]
    fn runs_work_on_the_assigned_core() {
        let cores = Cores::choose();
        let on = cores
            .on_client(|| Ok(std::thread::spawn(rustix::thread::sched_getcpu).join()))
            .expect("a thread");
        if let (Some(core), Ok(on)) = (cores.client, on) {
            assert_eq!(on, core);
        }
        let error = cores.on_client(|| -> Result<(), _> { Err(BenchError::Empty("no")) });
        assert_eq!(error.expect_err("an error").to_string(), "no");
    }
}
