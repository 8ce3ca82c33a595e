//! The house's own rules, as tests: floors, forbidden edges, frozen contracts, room sizes.

mod contract;
mod floors;
mod rooms;
