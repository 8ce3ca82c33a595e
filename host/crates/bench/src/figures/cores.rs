//! Which cores the two ends of a measurement get.

use std::thread;

use veeksha_machine::{pin_to, usable_cores};

use crate::BenchError;

/// A core for the client and one for the server, where there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) client: Option<usize>,
    pub(crate) server: Option<usize>,
}

impl Cores {
    /// The first and the last of those that this process may use; none where there is only one, because sharing a core that one is
    /// pinned to is worse than being moved about.
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

    /// What a reader should know.
    pub(crate) fn words(self) -> String {
        match (self.client, self.server) {
            (Some(client), Some(server)) => format!("client on core {client}, server on core {server}"),
            _ => "client and server share the only core".to_owned(),
        }
    }

    /// Does something on a thread that stays on the client's core; threads that it starts stay there, too.
    pub(crate) fn on_client<T: Send>(
        self,
        work: impl FnOnce() -> Result<T, BenchError> + Send,
    ) -> Result<T, BenchError> {
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("bench-client".to_owned());
            let spawned = thread.spawn_scoped(scope, move || {
                if let Some(core) = self.client {
                    // The core is one of those that this process may use; if it is refused all the same, any core will do.
                    let _ = pin_to(&[core]);
                }
                work()
            });
            let ended = spawned.map_err(BenchError::io("starting a thread"))?.join();
            ended.unwrap_or(Err(BenchError::Empty("the measuring thread has died")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_get_the_first_and_the_last_core() {
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
    fn work_is_done_where_it_was_put() {
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
