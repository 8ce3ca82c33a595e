//! The metric plugin `fluidity`: how smoothly the tokens of an answer came, after the fluidity index of etalon.
#![forbid(unsafe_code)]

mod config;
mod deadlines;
mod metric;

#[cfg(test)]
mod schema;

pub use metric::Fluidity;

veeksha_plugin::export_metric!(Fluidity);
