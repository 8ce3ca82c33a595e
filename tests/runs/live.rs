//! The live page and the lines of interim metrics during a run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::server::interrupt;
use crate::simulated::{labelled, path};
use crate::support::{UNJUDGED, assert_code, program, scenario, stderr, veeksha};

const TOKEN: &str = "a-token-of-this-test";

/// A run that continues until it is stopped.
struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    _folder: tempfile::TempDir,
}

impl Running {
    fn start(more: &[&str], token: Option<&str>) -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        let file = scenario(folder.path(), "s.lua", &labelled(100_000, "", ""));
        let mut command = program();
        command.args(["run", &file, "--output_dir", path(&folder.path().join("out"))]);
        command
            .args(["--client.api_base", "sim://fast"])
            .args(UNJUDGED)
            .args(more);
        command.env_remove("VEEKSHA_LIVE_TOKEN");
        if let Some(token) = token {
            command.env("VEEKSHA_LIVE_TOKEN", token);
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Running {
            child,
            stderr,
            _folder: folder,
        }
    }

    /// Reads until a line contains these words.
    #[track_caller]
    fn line_with(&mut self, words: &str) -> String {
        let mut said = String::new();
        for _ in 0..100 {
            let mut line = String::new();
            assert!(
                self.stderr.read_line(&mut line).expect("UTF-8") > 0,
                "no {words:?} in {said}"
            );
            if line.contains(words) {
                return line;
            }
            said += &line;
        }
        panic!("no {words:?} in {said}");
    }

    /// Returns the address of the page, as printed by the run.
    fn address(&mut self) -> String {
        let line = self.line_with("live report: http://");
        let (_, rest) = line.split_once("http://").expect("an address");
        rest.split_once('/').expect("a path").0.to_owned()
    }

    /// Interrupts the run, and waits until it has ended.
    #[track_caller]
    fn stop(mut self) {
        interrupt(&self.child);
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130), "{rest}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends one request over a new connection, and returns the status and the body.
fn get(address: &str, target: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the page listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket");
    let host = headers.iter().any(|(name, _)| *name == "Host");
    let mut request = format!("GET {target} HTTP/1.1\r\nConnection: close\r\n");
    if !host {
        request += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status");
    let body = answer.split_once("\r\n\r\n").expect("a body").1.to_owned();
    (status, body)
}

#[test]
fn the_page_is_served_while_the_run_goes_on() {
    let mut run = Running::start(&["--live", "127.0.0.1:0"], None);
    let address = run.address();
    let (status, page) = get(&address, "/", &[]);
    assert_eq!(status, 200);
    assert!(
        page.to_lowercase().starts_with("<!doctype html>"),
        "{}",
        &page[..page.len().min(80)]
    );
    // The first data arrive within seconds, and later data have more requests.
    let answered = || -> Option<Value> {
        let (status, body) = get(&address, "/data", &[]);
        assert_eq!(status, 200);
        let data: Value = serde_json::from_str(&body).expect("strict JSON");
        (!data.is_null()).then_some(data)
    };
    let data = (0..300).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        answered()
    });
    assert!(data.expect("data within half a minute").is_object());
    // A web page under another name that resolves to this machine gets no data (DNS rebinding).
    let (status, body) = get(&address, "/data", &[("Host", "evil.example")]);
    assert_eq!(status, 421, "{body}");
    assert!(!body.contains('{'), "{body}");
    assert_eq!(get(&address, "/nothing", &[]).0, 404);
    run.stop();
}

#[test]
fn a_token_guards_the_page() {
    let mut run = Running::start(&["--live", "127.0.0.1:0"], Some(TOKEN));
    let line = run.line_with("live report: http://");
    assert!(!line.contains(TOKEN), "the token is not told: {line}");
    let (_, rest) = line.split_once("http://").expect("an address");
    let address = rest.split_once('/').expect("a path").0.to_owned();
    for refused in [
        get(&address, "/data", &[]),
        get(&address, "/data?token=another-token-altogether", &[]),
    ] {
        assert!(matches!(refused.0, 401 | 403), "{}", refused.0);
        assert!(!refused.1.contains('{'), "{}", refused.1);
    }
    assert_eq!(get(&address, &format!("/?token={TOKEN}"), &[]).0, 200);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(get(&address, "/data", &[("Authorization", &bearer)]).0, 200);
    run.stop();
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    for (live, printed) in [
        (&["--live", "0.0.0.0:0"][..], "--live-token"),
        (&["--live", "127.0.0.1:0", "--live-token", "short"], "16"),
        (&["--live", "nonsense"], "nonsense"),
        (&["--live-token", TOKEN], "--live"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = scenario(folder.path(), "s.lua", &labelled(4, "", ""));
        let out = folder.path().join("out");
        let output = veeksha([&["run", &file, "--output_dir", path(&out)][..], live].concat());
        assert_code(&output, 2);
        assert!(
            stderr(&output).contains(printed),
            "no {printed:?} in {}",
            stderr(&output)
        );
        assert!(!out.exists(), "nothing is run");
    }
}

#[test]
fn interim_lines_are_printed() {
    let mut run = Running::start(&["--stream-metrics", "0.2", "--quiet"], None);
    let answered = |line: &str| -> u64 {
        let (_, rest) = line.split_once("done").expect("a count");
        let count = rest.split_whitespace().next().expect("a count");
        count.parse().expect("a number")
    };
    let first = answered(&run.line_with("| ttfc p50 p99"));
    let later = (0..50)
        .map(|_| answered(&run.line_with("| ttfc p50 p99")))
        .find(|count| *count > first);
    assert!(later.is_some(), "each line reports the time since the last one");
    run.stop();
    for wrong in ["0", "-1", "often"] {
        let output = veeksha([
            "run",
            "scenarios/quickstart.lua",
            &format!("--stream-metrics={wrong}"),
        ]);
        assert_code(&output, 2);
    }
}
