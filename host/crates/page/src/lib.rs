//! The page of a run: one self-contained HTML file, and the same page served while the run goes on.
#![forbid(unsafe_code)]
