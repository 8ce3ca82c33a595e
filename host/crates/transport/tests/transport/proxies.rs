//! Requests through a proxy.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use veeksha_model::ErrorClass;
use veeksha_transport::{HttpProtocol, Target, TransportConfig, TransportError, untimed};

use crate::http2::{H2Server, streamed};
use crate::support::*;

fn by(proxy: &Server, mut target: Target) -> Target {
    target.servers[0].proxy = Some(format!("http://user:hidden-pass@{}", proxy.address));
    target
}

/// A proxy that opens tunnels to the requested address.
fn tunnelling() -> Server {
    Server::start(|_, mut client, log| {
        let Some(request) = read_request(&mut client) else {
            return;
        };
        let to = request.head.split(' ').nth(1).unwrap().to_owned();
        log.lock().unwrap().push(request);
        let server = TcpStream::connect(to).unwrap();
        server.set_nodelay(true).unwrap();
        client
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .unwrap();
        let pass = |mut from: TcpStream, mut to: TcpStream| {
            std::thread::spawn(move || {
                let mut piece = [0; 4096];
                while let Ok(size) = from.read(&mut piece) {
                    if size == 0 || to.write_all(&piece[..size]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Write);
            })
        };
        let there = pass(client.try_clone().unwrap(), server.try_clone().unwrap());
        let _ = pass(server, client).join();
        let _ = there.join();
    })
}

#[test]
fn forwarded_request_has_absolute_url_and_credentials() {
    let proxy = Server::answering(good_answer());
    let target = by(&proxy, target("http://model.invalid:8000/v1"));
    let client = Client::new(target);
    for turn in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.result.unwrap().text, "Hello world");
        assert_eq!(outcome.connection.reused, turn > 0);
    }
    let seen = &proxy.requests()[0];
    assert!(
        seen.head
            .starts_with("POST http://model.invalid:8000/v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.header("host").as_deref(), Some("model.invalid:8000"));
    // Computed with `printf 'user:hidden-pass' | base64`.
    assert_eq!(
        seen.header("proxy-authorization").as_deref(),
        Some("Basic dXNlcjpoaWRkZW4tcGFzcw==")
    );
}

#[test]
fn tls_uses_a_tunnel_without_proxy_headers_at_the_server() {
    let (server, pem) = crate::tls::tls_server("localhost", vec![good_answer()]);
    let proxy = tunnelling();
    let mut target = by(&proxy, crate::tls::https(&server));
    target.servers[0].tls.ca_file = Some(crate::tls::file("tunnel.pem", &pem));
    let client = Client::new(target.clone());
    for _ in 0..2 {
        let outcome = client.ask(0);
        assert_eq!(outcome.result.unwrap().text, "Hello world");
    }
    let asked = proxy.requests();
    assert_eq!(asked.len(), 1);
    let place = format!("localhost:{}", server.address.port());
    assert!(
        asked[0]
            .head
            .starts_with(&format!("CONNECT {place} HTTP/1.1\r\n"))
    );
    assert!(asked[0].header("proxy-authorization").is_some());
    let seen = &server.requests()[0];
    assert!(
        seen.head.starts_with("POST /v1/chat/completions"),
        "{}",
        seen.head
    );
    assert_eq!(seen.header("proxy-authorization"), None);
}

#[test]
fn http2_uses_a_tunnel() {
    let server = H2Server::start(10, |_| streamed([(0, text_event("a") + FINISH)]));
    let proxy = tunnelling();
    let mut config = server.config();
    config.target = by(&proxy, config.target);
    assert_eq!(config.http, HttpProtocol::Http2);
    assert_eq!(Client::of(config).ask(0).result.unwrap().text, "a");
    assert!(proxy.requests()[0].head.starts_with("CONNECT "));
}

#[test]
fn refusing_proxy_is_named_without_its_password() {
    let refusals: Vec<(&str, &str)> = vec![
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            "HTTP 407; set the user and the password of the proxy in client.proxy",
        ),
        (
            "HTTP/1.1 503 hidden-pass\r\ncontent-length: 0\r\n\r\n",
            "HTTP 503",
        ),
        ("SSH-2.0-hidden-pass\r\n", "does not answer in HTTP"),
        ("", "closed the connection when asked for a tunnel"),
    ];
    for (answer, words) in refusals {
        let proxy = Server::start(move |_, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let outcome = Client::new(by(&proxy, target("https://model.invalid/v1"))).ask(0);
        assert_eq!(class(&outcome), ErrorClass::Connect, "{answer}");
        let message = message(&outcome);
        let names = format!("the proxy {} for model.invalid:443 ", proxy.address);
        assert!(
            message.starts_with(&names) && message.contains(words),
            "{message}"
        );
        assert!(!message.contains("hidden"), "{message}");
    }
}

#[test]
fn forwarding_proxy_is_named_in_its_failures() {
    let failures = [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::Status,
            "the proxy PROXY for http://model.invalid/v1 refuses the request (HTTP 407); set the user",
        ),
        (
            "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
            ErrorClass::Status,
            "HTTP 502 through the proxy PROXY",
        ),
        (
            "",
            ErrorClass::Truncated,
            "the proxy PROXY for model.invalid:80 closed the connection without an answer",
        ),
        (
            "SSH-2.0-x\r\n",
            ErrorClass::Protocol,
            "the proxy PROXY for model.invalid:80 does not answer in HTTP/1.1",
        ),
    ];
    for (answer, expected, start) in failures {
        let proxy = Server::start(move |_, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let outcome = Client::new(by(&proxy, target("http://model.invalid/v1"))).ask(0);
        assert_eq!(class(&outcome), expected, "{answer}");
        let message = message(&outcome);
        let start = start.replace("PROXY", &proxy.address.to_string());
        assert!(message.starts_with(&start), "{message}");
        assert!(!message.contains("hidden"), "{message}");
    }
}

/// The list of models is the first request of a run.
#[test]
fn proxy_that_fails_before_the_run_is_named() {
    let gone = gone();
    let refusing = |answer: &'static str| {
        Server::start(move |_, mut stream, _| {
            read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        })
    };
    let credentials = refusing("HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n");
    let refused = refusing("HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n");
    for (proxy, url, words) in [
        (gone, "http://model.invalid/v1", "refused"),
        (gone, "https://model.invalid/v1", "refused"),
        (credentials.address, "http://model.invalid/v1", "http 407"),
        (
            credentials.address,
            "https://model.invalid/v1",
            "authorization required",
        ),
        (refused.address, "https://model.invalid/v1", "tunnel"),
    ] {
        let mut target = target(url);
        target.servers[0].proxy = Some(format!("http://user:hidden-pass@{proxy}"));
        let error = untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap_err();
        assert!(matches!(error, TransportError::ProxyFailed { .. }), "{error:?}");
        let message = error.to_string();
        let start = format!("the proxy {proxy} for {url}/models: ");
        assert!(
            message.starts_with(&start) && message.to_lowercase().contains(words),
            "{message}"
        );
        assert!(!message.contains("hidden"), "{message}");
    }
}

/// A server behind a working tunnel is not confused with its proxy.
#[test]
fn certificate_of_the_server_is_not_attributed_to_the_proxy() {
    let (server, _) = crate::tls::tls_server("localhost", vec![good_answer()]);
    let proxy = tunnelling();
    let target = by(&proxy, crate::tls::https(&server));
    let error = untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap_err();
    assert!(matches!(error, TransportError::Unreachable { .. }), "{error:?}");
}

/// Returns an address of this machine on which no program listens.
fn gone() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn unreachable_proxy_is_named() {
    let gone = gone();
    let mut target = target("http://model.invalid/v1");
    target.servers[0].proxy = Some(format!("http://u:hidden-pass@{gone}"));
    let outcome = Client::new(target.clone()).ask(0);
    assert_eq!(class(&outcome), ErrorClass::Connect);
    let words = message(&outcome);
    assert!(
        words.starts_with(&format!("the proxy {gone} for model.invalid:80: "))
            && words.ends_with("is the proxy running there?"),
        "{words}"
    );
    assert!(!format!("{words}{target:?}").contains("hidden"));
}

#[test]
fn lists_models_through_the_proxy() {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let log = Arc::clone(&seen);
    let proxy = Server::start(move |_, mut stream, _| {
        let request = read_request(&mut stream).unwrap();
        log.lock().unwrap().push(request);
        let answer = plain_answer("200 OK", "application/json", r#"{"data":[{"id":"tiny"}]}"#);
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let target = by(&proxy, target("http://model.invalid/v1"));
    let models = untimed::list_models(&target, &target.servers[0], PATIENCE).unwrap();
    assert_eq!(models, ["tiny"]);
    let seen = &seen.lock().unwrap()[0];
    assert!(
        seen.head.starts_with("GET http://model.invalid/v1/models"),
        "{}",
        seen.head
    );
    assert!(seen.header("proxy-authorization").is_some());
}

#[test]
fn invalid_proxy_fails_at_start() {
    let mut target = target("http://h/v1");
    target.servers[0].proxy = Some("socks5://u:hidden-pass@p".to_owned());
    let error = veeksha_transport::HttpTransport::start(
        TransportConfig::new(target),
        veeksha_clock::RunClock::starting_now(),
        veeksha_ports::Sinks::outcomes(|_| ()),
    )
    .err()
    .unwrap()
    .to_string();
    assert!(
        error.contains("http://proxy:3128") && !error.contains("hidden"),
        "{error}"
    );
}
