//! Tests of the engine with built components: the fixtures of `tests/guests`, valid and hostile
//! ones.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may fail as tests do"
)]

mod agents;
mod alike;
mod arrivals;
mod cache;
mod capabilities;
mod codecs;
mod everywhere;
mod flavors;
mod hostile;
mod limits;
mod loading;
mod measures;
mod mutations;
mod planned;
mod policies;
mod purity;
mod records;
mod released;
mod sdk;
mod stand_ins;
mod support;
mod tiers;
