//! The repository's conventions, as tests: layers, owners of libraries, frozen contracts, file
//! sizes, wording.

#![expect(clippy::expect_used, reason = "a test reports a violation by panicking")]

mod contract;
mod conventions;
mod dependencies;
mod files;
mod layers;
mod packages;
mod recipes;
