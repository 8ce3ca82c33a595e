//! One JSON object a line. Times are seconds since the start of the run, at full precision.

mod request_line;
#[cfg(test)]
mod sample;
mod trace_line;

pub use request_line::request_line;
pub use trace_line::trace_line;
