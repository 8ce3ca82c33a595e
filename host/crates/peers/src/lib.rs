//! The same run in the definitions of other tools, and in the files of AIPerf. Pure.
#![forbid(unsafe_code)]
