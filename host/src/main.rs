//! The `veeksha-host` binary: everything is in the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    veeksha_host::main()
}
