//! Tests of objectives as text, through the public API.

mod accepted;
mod refused;
mod round_trip;
