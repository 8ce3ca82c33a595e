//! Capabilities of this machine for a measurement: limits, ports, scheduling, and the load of the
//! threads.
//!
//! [`Machine`] reads `/proc` and `/sys`, measures the wake-up delay of a sleeping thread, and
//! reports everything that affects the accuracy of a measurement ([`MachineFinding`]) together with
//! possible improvements. The other items are used by a run: to adjust the machine
//! ([`raise_open_files`], [`set_realtime`], [`pin_to`]), and to monitor it ([`ThreadWatch`],
//! [`ClockWatch`]).
#![forbid(unsafe_code)]

mod cgroup;
mod clock_source;
mod clock_watch;
mod cores;
mod environment;
mod error;
mod facts;
mod finding;
mod idle;
mod load;
mod machine;
mod memory;
mod open_files;
mod ports;
mod power;
mod priority;
mod quota;
mod steal;
mod thread_watch;
mod tree;
mod wake;

pub use clock_watch::{ClockReading, ClockStep, ClockWatch};
pub use cores::{pin_to, usable_cores};
pub use error::MachineError;
pub use facts::Facts;
pub use finding::{ExpectedLoad, MachineFinding, State};
pub use machine::Machine;
pub use open_files::{LEAST_OPEN_FILES, OpenFiles, raise_open_files};
pub use priority::{DEFAULT_REALTIME_PRIORITY, lower_priority, realtime_is_permitted, set_realtime};
pub use thread_watch::{ThreadActivity, ThreadWatch};
pub use wake::WakeUps;
