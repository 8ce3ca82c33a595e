//! The error of a client when no more files can be opened. In a separate process, because the test
//! uses every descriptor.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test may panic, also in its functions"
)]
#![expect(dead_code, reason = "one test needs a part of what the others share")]

#[path = "transport/support.rs"]
mod support;

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::*;
use veeksha_model::ErrorClass;

#[test]
fn the_limit_on_open_files_is_named() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    let limit = Rlimit {
        current: Some(200),
        maximum: getrlimit(Resource::Nofile).maximum,
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(files.len() < 200);
    let failure = client.ask(0).result.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Connect);
    assert!(
        failure.message.contains("the limit is 200"),
        "{}",
        failure.message
    );
    assert!(failure.message.contains("ulimit -n"), "{}", failure.message);
    drop(files);
    // Enough descriptors for a connection are free again, and the client continues.
    assert!(client.ask(0).result.is_ok());
}
