//! What this machine allows a measurement: limits, ports, scheduling, and how busy the threads were.
#![forbid(unsafe_code)]
