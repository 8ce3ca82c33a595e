//! Records of runs, and the folders of finished runs and sweeps.

pub(crate) mod decisions;
pub(crate) mod recorded_run;
pub(crate) mod recording;
pub mod sweep_manifest;
