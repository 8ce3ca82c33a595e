//! Plugins that measure and judge: opened from a scenario's `evaluators`, fed with finished requests, asked for verdicts.

mod names;
mod observer;
mod open;
mod thread;

pub(crate) use observer::Observer;
pub(crate) use open::{Judges, of_files, of_scenario};
pub(crate) use thread::Watching;
