//! What takes several runs: sweeps, their manifest and their summary. Pure but for the files it writes.
#![forbid(unsafe_code)]
