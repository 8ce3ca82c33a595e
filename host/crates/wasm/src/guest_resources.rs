//! The host's side of the resources that a guest can hold. Below the generated bindings, which name
//! these types.

use std::fs::File;
use std::sync::Arc;

use veeksha_ports::RunResults;

/// A granted file that a guest has opened.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct OpenBlob {
    pub(crate) file: File,
    pub(crate) size: u64,
}

/// The results of a run, as handed to a guest.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct OpenResults(pub(crate) Arc<dyn RunResults>);
