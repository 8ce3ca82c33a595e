//! The record of a run as columns: Parquet files that hold every event, written while it lasts and read again years later. Only user of `parquet`.
#![forbid(unsafe_code)]
