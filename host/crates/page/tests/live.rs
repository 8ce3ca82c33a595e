//! Tests of the live page's server over plain sockets.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use veeksha_page::{LivePage, PageError};

const TOKEN: &str = "0123456789abcdef-token";

fn start(token: Option<&str>) -> LivePage {
    LivePage::start("127.0.0.1:0".parse().unwrap(), token.map(str::to_owned)).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// Sends bytes and reads until the server closes.
fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // The server may close with a reset if it does not want the rest.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    raw(
        address,
        &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n"),
    )
}

fn status(answer: &str) -> u16 {
    answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// A screenshot is taken when the page has loaded, which does not include later requests.
#[test]
fn page_contains_the_latest_data() {
    let live = start(None);
    assert!(get(live.address(), "/", "").contains("id=\"data\">null</script>"));
    live.publish("{\"run\":{\"name\":\"</latest>\"}}".into());
    let page = get(live.address(), "/", "");
    assert!(page.contains("id=\"data\">{\"run\":{\"name\":\"\\u003c/latest>\"}}</script>"));
}

#[test]
fn it_refuses_to_be_open_to_others() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = LivePage::start(address.parse().unwrap(), None);
        assert!(matches!(refused, Err(PageError::Open { .. })), "{address}");
    }
    let open = LivePage::start("0.0.0.0:0".parse().unwrap(), Some(TOKEN.into())).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], open.address().port()));
    assert_eq!(status(&get(address, "/", "")), 401);
    assert_eq!(
        status(&get(address, "/", &format!("authorization: Bearer {TOKEN}\r\n"))),
        200
    );
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let first = start(None);
    let Err(error) = LivePage::start(first.address(), None) else {
        panic!("two servers at one address");
    };
    assert!(
        error.to_string().contains(&first.address().to_string()),
        "{error}"
    );
}

#[test]
fn it_serves_the_page_and_the_latest_data() {
    let live = start(None);
    let page = get(live.address(), "/", "");
    assert_eq!(status(&page), 200);
    assert!(page.contains("data-mode=\"live\"") && body(&page).starts_with("<!doctype html>"));
    let head = page.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(header), "{header}");
    }
    assert!(!head.contains("access-control-allow-origin"));
    assert_eq!(body(&get(live.address(), "/data", "")), "null");
    live.publish(Arc::from("{\"one\":1}"));
    live.publish(Arc::from("{\"two\":2}"));
    assert_eq!(body(&get(live.address(), "/data", "")), "{\"two\":2}");
    assert_eq!(status(&get(live.address(), "/elsewhere", "")), 404);
}

#[test]
fn it_can_only_be_read() {
    let live = start(None);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let answer = raw(
            live.address(),
            &format!(
                "{method} /data HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
            ),
        );
        assert_eq!(status(&answer), 405, "{method}");
    }
    let head = raw(
        live.address(),
        "HEAD /data HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    assert_eq!((status(&head), body(&head)), (200, ""));
}

#[test]
fn foreign_names_are_refused() {
    let live = start(None);
    for host in ["evil.example", "localhost.evil.example", "10.0.0.1"] {
        let answer = raw(
            live.address(),
            &format!("GET /data HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
        );
        assert_eq!(status(&answer), 421, "{host}");
    }
    let answer = raw(live.address(), "GET /data HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(status(&answer), 400);
    let answer = raw(
        live.address(),
        &format!(
            "GET /data HTTP/1.1\r\nhost: [::1]:{}\r\nconnection: close\r\n\r\n",
            live.address().port()
        ),
    );
    assert_eq!(status(&answer), 200);
}

#[test]
fn a_token_is_asked_for_everywhere_and_becomes_a_cookie() {
    let live = start(Some(TOKEN));
    live.publish(Arc::from("{\"secret\":1}"));
    for path in ["/", "/data", "/events", "/elsewhere"] {
        let answer = get(live.address(), path, "");
        assert_eq!(status(&answer), 401, "{path}");
        assert!(!answer.contains("secret"));
    }
    assert_eq!(
        status(&get(live.address(), "/?token=0123456789abcdef-tokem", "")),
        401
    );
    let opened = get(live.address(), &format!("/?token={TOKEN}"), "");
    assert_eq!(status(&opened), 200);
    let cookie = opened
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(
        body(&get(live.address(), "/data", &format!("cookie: {pair}\r\n"))),
        "{\"secret\":1}"
    );
    // Another run's cookie is not accepted.
    let other = start(Some(TOKEN));
    assert_eq!(
        status(&get(other.address(), "/data", &format!("cookie: {pair}\r\n"))),
        401
    );
}

#[test]
fn event_stream_sends_each_new_version() {
    let live = start(None);
    let mut stream = connect(live.address());
    stream
        .write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    let mut until = |wanted: &str| {
        while !seen.contains(wanted) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the stream ended: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    };
    until("{\"version\":0}");
    live.publish(Arc::from("{}"));
    until("{\"version\":1}");
    // Of many rapid updates the last one is notified.
    for _ in 0..500 {
        live.publish(Arc::from("{}"));
    }
    until("{\"version\":501}");
    assert!(
        seen.to_ascii_lowercase()
            .contains("content-type: text/event-stream")
    );
    assert!(seen.matches("event: data").count() < 20, "notices are not queued");
}

#[test]
fn connections_are_bounded_and_come_free_again() {
    let live = start(None);
    let mut held: Vec<TcpStream> = (0..32).map(|_| connect(live.address())).collect();
    for stream in &mut held {
        // An open stream of events occupies a connection.
        stream
            .write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    assert_eq!(status(&get(live.address(), "/", "")), 503);
    held.truncate(16);
    let free = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        status(&get(live.address(), "/", "")) == 200
    });
    assert!(free, "what closes makes room");
}

#[test]
fn long_heads_and_garbage_are_turned_away() {
    let live = start(None);
    let long = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    assert!([0, 431, 400].contains(&status(&raw(live.address(), &long))));
    let many: String = (0..200).map(|index| format!("x{index}: y\r\n")).collect();
    assert_eq!(status(&get(live.address(), "/", &many)), 431);
    assert!([0, 400].contains(&status(&raw(live.address(), "\x16\x03\x01 not http\r\n\r\n"))));
    assert_eq!(status(&get(live.address(), "/", "")), 200, "and it goes on");
}

#[test]
fn slow_reader_does_not_delay_others() {
    let live = start(None);
    let large: Arc<str> = Arc::from("x".repeat(16 << 20));
    live.publish(Arc::clone(&large));
    // These request more than their socket buffers hold, and never read.
    let stalled: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = connect(live.address());
            stream
                .write_all(b"GET /data HTTP/1.1\r\nhost: localhost\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    for version in 0..1000 {
        live.publish(Arc::from(format!("{version}")));
    }
    assert_eq!(body(&get(live.address(), "/data", "")), "999");
    drop(stalled);
    // The large response was shared, not copied, and is released when its readers disconnect.
    let mut left = Arc::strong_count(&large);
    for _ in 0..100 {
        if left == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        left = Arc::strong_count(&large);
    }
    assert_eq!(left, 1);
}

#[test]
fn stops_immediately_without_viewers_and_waits_for_viewers() {
    let live = start(None);
    let address = live.address();
    live.stop();
    assert!(TcpStream::connect(address).is_err(), "it is gone");

    let live = start(None);
    let address = live.address();
    let mut events = connect(address);
    events
        .write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut first = [0; 12];
    events.read_exact(&mut first).unwrap();
    live.publish(Arc::from("\"last\""));
    let stopping = std::thread::spawn(move || live.stop());
    // An open page has time to fetch the last data.
    assert_eq!(body(&get(address, "/data", "")), "\"last\"");
    stopping.join().unwrap();
    assert!(TcpStream::connect(address).is_err());
}
