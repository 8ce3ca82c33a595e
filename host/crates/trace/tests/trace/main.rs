//! Traces from outside: files in, sessions out.

mod bad_input;
mod grouping;
mod order;
mod reading;
mod robust;
mod sessions;
mod sniffing;
mod support;
