//! From rows to sessions: the order of groups, the flavor, and the workload for the pipeline.

#[cfg(test)]
mod boundaries;
mod check;
mod opening;
mod permutation;
mod read;
mod sequence;
mod source;
mod trace;
mod trace_data;

pub use opening::open;
pub use trace::OpenTrace;
