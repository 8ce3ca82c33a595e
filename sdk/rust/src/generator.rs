//! Plugins that plan whole sessions ahead of time.

use std::marker::PhantomData;

use crate::bindings::session_generator::exports::veeksha::plugin::session_generator as contract;
use crate::frame;
use crate::plugin::Plugin;
use crate::random::Random;
use crate::types::{Error, Guarantees, Session};

/// Plans sessions. Session `index` must depend on (configuration, seed, index) and on nothing else:
/// the host asks in any order, from several instances, and may ask twice. Randomness comes from the
/// [`Random`] at hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a session generator",
    label = "does not implement `SessionGenerator`",
    note = "write `impl SessionGenerator for {Self} {{ .. }}`; the documentation of `SessionGenerator` has a whole one"
)]
pub trait SessionGenerator: Plugin {
    /// Opens a workload.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Returns the properties that all sessions share. By default nothing is guaranteed.
    fn guarantees(&self) -> Guarantees {
        Guarantees::default()
    }

    /// Returns the number of sessions; `None` for an endless workload.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Session `index`, which is below [`length`](Self::length).
    ///
    /// # Errors
    /// A session that cannot be made; it ends the run.
    fn session(&self, index: u64, random: Random) -> Result<Session, Error>;
}

/// The sessions `first .. first + count`, fewer where the workload ends: what the host gets for one
/// call.
pub(crate) fn batch<T: SessionGenerator>(
    generator: &T,
    first: u64,
    count: u32,
    random: impl Fn(u64) -> Random,
) -> Result<Vec<Session>, Error> {
    let end = first
        .saturating_add(u64::from(count))
        .min(generator.length().unwrap_or(u64::MAX));
    (first..end)
        .map(|index| generator.session(index, random(index)))
        .collect()
}

/// A generator as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open workload as the contract sees it.
pub struct Workload<T>(T);

impl<T: SessionGenerator> contract::Guest for Exported<T> {
    type Workload = Workload<T>;

    frame::describe!(T);
}

impl<T: SessionGenerator> contract::GuestWorkload for Workload<T> {
    fn open(config: String) -> Result<contract::Workload, Error> {
        let generator = frame::open(&config, T::open)?;
        Ok(contract::Workload::new(Workload(generator)))
    }

    fn guarantees(&self) -> Guarantees {
        self.0.guarantees()
    }

    fn length(&self) -> Option<u64> {
        self.0.length()
    }

    fn sessions(&self, first: u64, count: u32) -> Result<Vec<Session>, Error> {
        batch(&self.0, first, count, Random::of_session)
    }
}

/// Makes a type that is a [`SessionGenerator`] the session generator of this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_session_generator {
    ($generator:ty) => {
        $crate::__export!(
            $generator,
            $crate::SessionGenerator,
            ExportedGenerator,
            session_generator
        );
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Request;

    struct Five;

    impl Plugin for Five {
        type Config = ();
        const NAME: &'static str = "five";
        const VERSION: &'static str = "1";
        const SUMMARY: &'static str = "five sessions";
    }

    impl SessionGenerator for Five {
        fn open(_config: ()) -> Result<Self, Error> {
            Ok(Five)
        }

        fn length(&self) -> Option<u64> {
            Some(5)
        }

        fn session(&self, index: u64, _random: Random) -> Result<Session, Error> {
            if index == 3 {
                Err(Error::new("three", "no third"))
            } else {
                Ok(Request::new(index as u32).into())
            }
        }
    }

    fn nodes(first: u64, count: u32) -> Result<Vec<u32>, Error> {
        let sessions = batch(&Five, first, count, |index| Random::seeded(0, index))?;
        Ok(sessions.iter().map(|session| session.requests[0].node).collect())
    }

    #[test]
    fn a_batch_ends_where_the_workload_ends() {
        assert_eq!(nodes(0, 3), Ok(vec![0, 1, 2]));
        assert_eq!(nodes(4, 8), Ok(vec![4]));
        assert_eq!(nodes(5, 1), Ok(vec![]));
        assert_eq!(nodes(u64::MAX, 2), Ok(vec![]));
        assert_eq!(nodes(2, 2), Err(Error::new("three", "no third")));
    }
}
