//! The `veeksha-host` binary. All code is in the library of this package.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    veeksha_host::main()
}
