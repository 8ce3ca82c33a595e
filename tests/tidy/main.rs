//! The house's own rules, as tests: floors, forbidden edges, frozen contracts, room sizes.

#![expect(clippy::expect_used, reason = "a test says what is wrong by panicking")]

mod contract;
mod floors;
mod rooms;
