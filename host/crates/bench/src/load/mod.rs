//! Loads that a client drives, and their cost.

mod closed;
mod cost;
mod job;
mod open;
mod transport;

pub(crate) use closed::drive_closed;
pub(crate) use cost::{Cost, Load, Meter};
pub(crate) use open::{Pace, drive_open};
pub(crate) use transport::Client;

/// The prompt of every request: about a hundred words, like a short prompt with some context.
pub(crate) const PROMPT: &str = "The quick brown fox jumps over the lazy dog and then rests in the shade of an old oak tree while \
    the river runs slowly past the mill, where the miller counts his sacks of grain and thinks about the price of flour in the \
    town beyond the hills. His daughter reads a letter from her brother at sea, who writes of storms and strange fish and of a \
    harbour with lamps of many colours. What does she answer him, and what does she leave out? Write the letter in her words, \
    plainly, and end it with the weather.";
