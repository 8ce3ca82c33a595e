//! Plugins that measure and judge: opened from a scenario's `evaluators`, fed with finished requests, asked for verdicts.

mod names;
mod observer;
mod of_run;
mod open;
mod questions;
mod thread;

pub(crate) use observer::Observer;
pub(crate) use of_run::{judge_run, verdicts_as_events};
pub(crate) use open::{Judges, of_files, of_scenario};
pub(crate) use thread::Watching;
