//! Records written and read: whole, cut, damaged, strange, and by other programs.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail as tests do, and say what they skip"
)]

mod damage;
mod first_version;
mod hostile;
mod mixed;
mod other_readers;
mod round_trip;
#[path = "../../../../../tests/support/skip.rs"]
mod skip;
mod support;
