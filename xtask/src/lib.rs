//! Checks of the repository's conventions, shared by `cargo xtask tidy` and the tidy tests.
#![forbid(unsafe_code)]

pub mod tidy;
