//! Loads that a client drives, and their cost.

mod closed;
mod cost;
mod job;
mod open;
mod transport;

pub(crate) use closed::drive_closed;
pub(crate) use cost::{Cost, Meter, StreamLoad};
pub(crate) use job::PROMPT;
pub(crate) use open::{Pace, drive_open};
pub(crate) use transport::TransportClient;
