//! What a trace is like.
//!
//! Everything here is a function of a trace's sessions ([`veeksha_model::Session`], with what was recorded of each request): no file is
//! read and no clock. [`Portrait`] describes a trace, [`Converter`] writes it in another format,
//! [`Likeness`] is fitted to it and makes others like it.
#![forbid(unsafe_code)]

mod arrivals;
mod blocks;
mod conversation;
mod convert;
mod distribution;
#[cfg(test)]
mod invent;
mod labels;
mod portrait;
mod portrait_report;
mod synthesis;
mod tally;

pub use arrivals::Arrivals;
pub use convert::{BLOCK_SIZE, CannotConvert, Converter, Format, Loss, UnknownFormat};
pub use distribution::{Bin, Distribution, Unit};
pub use labels::LabelValues;
pub use portrait::Portrait;
pub use portrait_report::{Graph, PortraitReport, PrefixReport};
pub use synthesis::{CannotSynthesize, Likeness, LikenessFit, Made, Synthesis};
