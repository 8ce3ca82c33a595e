//! The untimed requests.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::*;
use veeksha_transport::{ApiKey, TransportError, untimed};

fn fixture(name: &str) -> String {
    std::fs::read_to_string(format!(
        "{}/../endpoint/tests/fixtures/sse/{name}",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

fn models_at(base: &str, patience: Duration) -> Result<Vec<String>, TransportError> {
    let target = target(base);
    untimed::list_models(&target, &target.servers[0], patience)
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

#[test]
fn recorded_lists_of_models_are_read() {
    for (name, expected) in [
        ("vllm-models.json", &["tiny"][..]),
        ("dynamo-models.json", &["tiny"]),
        ("llamacpp-models.json", &["tiny"]),
    ] {
        let server = Server::answering(plain_answer("200 OK", "application/json", &fixture(name)));
        let mut target = target(&server.base());
        target.servers[0].api_key = Some(ApiKey::new("sk-1"));
        assert_eq!(
            untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap(),
            expected,
            "{name}"
        );
        let request = &server.requests()[0];
        assert!(
            request.head.starts_with("GET /v1/models HTTP/1.1\r\n"),
            "{}",
            request.head
        );
        assert_eq!(request.header("authorization").as_deref(), Some("Bearer sk-1"));
    }
    let server = Server::answering(plain_answer("200 OK", "application/json", r#"{"data":[]}"#));
    assert!(models_at(&server.base(), PATIENCE).unwrap().is_empty());
}

#[test]
fn invalid_list_of_models_is_an_error_without_the_key() {
    let error = |answer: String| {
        let server = Server::answering(answer);
        let mut target = target(&server.base());
        target.servers[0].api_key = Some(ApiKey::new("sk-hidden"));
        let error = untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap_err();
        assert!(matches!(error, TransportError::Untimed { .. }));
        let message = error.to_string();
        assert!(
            message.contains("/v1/models") && !message.contains("sk-hidden"),
            "{message}"
        );
        message
    };
    assert!(error(plain_answer("500 Oops", "text/plain", "no cache folder")).contains("no cache folder"));
    assert!(
        error(plain_answer(
            "401 No",
            "application/json",
            r#"{"detail":"bad sk-hidden"}"#
        ))
        .contains("bad ***")
    );
    assert!(error(plain_answer("200 OK", "application/json", "[1]")).contains("not a list of models"));
    assert!(error(plain_answer("200 OK", "text/html", "<html>")).contains("not JSON"));

    let hanging = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(PATIENCE);
    });
    let message = models_at(&hanging.base(), Duration::from_millis(200))
        .unwrap_err()
        .to_string();
    assert!(message.contains("no answer in time"), "{message}");
}

#[test]
fn failed_download_keeps_the_old_file() {
    let content = "x".repeat(300_000);
    let good = Server::answering(plain_answer("200 OK", "text/plain", &content));
    let to = scratch("good.json");
    untimed::download(&good.base(), Some(&ApiKey::new("hf-1")), &to).unwrap();
    assert!(std::fs::read_to_string(&to).unwrap() == content);
    assert_eq!(
        good.requests()[0].header("authorization").as_deref(),
        Some("Bearer hf-1")
    );

    // Cut off in the middle: the old file remains, and no partial file is left behind.
    let cut = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf");
    });
    assert!(matches!(
        untimed::download(&cut.base(), None, &to),
        Err(TransportError::Untimed { .. })
    ));
    assert_eq!(std::fs::metadata(&to).unwrap().len(), 300_000);
    let prefix = to.file_name().unwrap().to_str().unwrap().to_owned();
    let left = std::fs::read_dir(to.parent().unwrap()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with(&prefix) && name != prefix
    });
    assert_eq!(left.count(), 0);

    let missing = Server::answering(plain_answer("404 Not Found", "text/plain", "no such file"));
    let error = untimed::download(&missing.base(), None, &to)
        .unwrap_err()
        .to_string();
    assert!(error.contains("404") && error.contains("no such file"), "{error}");
    let nowhere = scratch("no-folder").join("file");
    assert!(matches!(
        untimed::download(&good.base(), None, &nowhere),
        Err(TransportError::Write { .. })
    ));
}
