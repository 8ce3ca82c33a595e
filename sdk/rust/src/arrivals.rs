//! Plugins that decide when the sessions of open-loop traffic arrive.
//!
//! ```
//! use veeksha_plugin::arrivals::ArrivalProcess;
//! use veeksha_plugin::{Error, Nanos, Plugin, Random};
//!
//! /// A rate that rises steadily from one session per second.
//! struct Ramp {
//!     at: f64,
//!     acceleration: f64,
//! }
//!
//! impl Plugin for Ramp {
//!     /// Sessions per second that are added each second.
//!     type Config = f64;
//!     const NAME: &'static str = "ramp";
//!     const VERSION: &'static str = "0.1.0";
//!     const SUMMARY: &'static str = "a Poisson process whose rate rises";
//! }
//!
//! impl ArrivalProcess for Ramp {
//!     fn open(acceleration: f64) -> Result<Self, Error> {
//!         Ok(Ramp { at: 0.0, acceleration })
//!     }
//!
//!     fn next(&mut self, _session: u64, random: Random) -> Result<Option<Nanos>, Error> {
//!         let rate = 1.0 + self.acceleration * self.at;
//!         self.at += random.stream("gap").exponential() / rate;
//!         Ok(Some((self.at * 1e9) as Nanos))
//!     }
//! }
//!
//! veeksha_plugin::export_arrival_process!(Ramp);
//!
//! let mut ramp = Ramp::open(0.5)?;
//! let first = ramp.next(0, Random::seeded(42, 0))?;
//! assert!(first <= ramp.next(1, Random::seeded(42, 1))?);
//! # Ok::<(), Error>(())
//! ```

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::arrival_process::exports::veeksha::plugin::arrival_process as contract;
use crate::frame;
use crate::plugin::Plugin;
use crate::random::Random;
use crate::types::{Error, Nanos};

/// Decides when sessions arrive.
///
/// Arrivals must depend on (configuration, seed) and on nothing else. Randomness comes from the
/// [`Random`] at hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an arrival process",
    label = "does not implement `ArrivalProcess`",
    note = "write `impl ArrivalProcess for {Self} {{ .. }}`; the documentation of `ArrivalProcess` has a whole one"
)]
pub trait ArrivalProcess: Plugin {
    /// Opens the process.
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Returns the arrival of a session, relative to the start of the run; `None` for the end.
    /// Called once for each session, in their order from 0. No arrival is earlier than the one
    /// before it.
    ///
    /// # Errors
    /// An arrival that cannot be made; no further session starts then.
    fn next(&mut self, session: u64, random: Random) -> Result<Option<Nanos>, Error>;
}

/// A process as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open process as the contract sees it.
pub struct Process<T>(RefCell<Position<T>>);

struct Position<T> {
    process: T,
    /// The session whose arrival is next.
    session: u64,
}

/// The next `count` arrivals, fewer at the end.
fn batch<T: ArrivalProcess>(
    position: &mut Position<T>,
    count: u32,
    random: impl Fn(u64) -> Random,
) -> Result<Vec<Nanos>, Error> {
    let mut arrivals = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let session = position.session;
        match position.process.next(session, random(session))? {
            Some(at) => arrivals.push(at),
            None => break,
        }
        position.session += 1;
    }
    Ok(arrivals)
}

impl<T: ArrivalProcess> contract::Guest for Exported<T> {
    type Process = Process<T>;

    frame::describe!(T);
}

impl<T: ArrivalProcess> contract::GuestProcess for Process<T> {
    fn open(config: String) -> Result<contract::Process, Error> {
        let process = frame::open(&config, T::open)?;
        let position = Position { process, session: 0 };
        Ok(contract::Process::new(Process(RefCell::new(position))))
    }

    fn next(&self, count: u32) -> Result<Vec<Nanos>, Error> {
        batch(&mut self.0.borrow_mut(), count, Random::of_session)
    }
}

/// Makes a type that is an [`ArrivalProcess`](crate::arrivals::ArrivalProcess) the arrival process
/// of this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_arrival_process {
    ($process:ty) => {
        $crate::__export!(
            $process,
            $crate::arrivals::ArrivalProcess,
            ExportedArrivalProcess,
            arrival_process
        );
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Five;

    impl Plugin for Five {
        type Config = ();
        const NAME: &'static str = "five";
        const VERSION: &'static str = "1";
        const SUMMARY: &'static str = "five arrivals";
    }

    impl ArrivalProcess for Five {
        fn open(_config: ()) -> Result<Self, Error> {
            Ok(Five)
        }

        fn next(&mut self, session: u64, random: Random) -> Result<Option<Nanos>, Error> {
            assert_eq!(random.session(), session);
            Ok((session < 5).then_some(session * 10))
        }
    }

    #[test]
    fn a_batch_continues_the_one_before_and_ends_where_the_process_ends() {
        let mut position = Position {
            process: Five,
            session: 0,
        };
        let mut next = |count| batch(&mut position, count, |session| Random::seeded(0, session));
        assert_eq!(next(2), Ok(vec![0, 10]));
        assert_eq!(next(8), Ok(vec![20, 30, 40]));
        assert_eq!(next(1), Ok(vec![]));
    }
}
