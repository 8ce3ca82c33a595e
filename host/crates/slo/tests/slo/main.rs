//! Objectives as text, through the crate's door.

mod accepted;
mod refused;
mod round_trip;
