//! The exit codes: documented, constant, and the same for every command.

/// Done, and every SLO was met.
pub const DONE: u8 = 0;
/// A bug of this program, or the system refused something that it should not (a thread, an open
/// file, a result file, the standard output).
pub const INTERNAL: u8 = 1;
/// The command line or the scenario is wrong.
pub const USAGE: u8 = 2;
/// The run is good and an SLO was not met; or `compare --fail-if` holds.
pub const SLO_FAILED: u8 = 3;
/// A plugin failed.
pub const PLUGIN: u8 = 4;
/// The target could not be reached, or every request failed.
pub const TARGET: u8 = 5;
/// The measurement is invalid: nothing was measured, or the run does not trust itself; a failed
/// check of `health --strict`; and a machine that cannot drive a load.
pub const INVALID: u8 = 6;
/// Interrupted: a run keeps the results so far, every other command leaves none.
pub const INTERRUPTED: u8 = 130;

/// The table of `--help`.
pub const HELP: &str = "\
Exit codes:
  0    done, SLOs met
  1    internal error, or an output that cannot be written
  2    wrong usage or configuration
  3    an SLO was not met, or the gate of `compare --fail-if` fails
  4    a plugin failed
  5    the target could not be reached, or every request failed
  6    the measurement is invalid: nothing was measured, or the certificate is INVALID;
       a check of `health --strict` failed; `doctor` found a problem
  130  interrupted (runs and simulations keep their results so far)";

/// Describes why a run ended with `code`; `None` for [`DONE`].
pub fn describe(code: u8) -> Option<&'static str> {
    match code {
        DONE => None,
        SLO_FAILED => Some("an SLO was not met"),
        PLUGIN => Some("a plugin failed"),
        TARGET => Some("the target was lost, or every request failed"),
        INVALID => Some("the measurement is invalid"),
        INTERRUPTED => Some("interrupted"),
        _ => Some("an internal error"),
    }
}
