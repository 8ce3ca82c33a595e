//! Several servers, several addresses, and the sharing of connections.

use std::collections::HashSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_endpoint::{Api, EndpointKind};
use veeksha_model::ErrorClass;
use veeksha_ports::Transport;
use veeksha_transport::{ApiKey, BalanceRule, ConnectionPolicy, Server as At, Target, TransportConfig};

use crate::support::*;

/// Returns a target with several servers.
fn spread(bases: &[String], balance: BalanceRule) -> Target {
    Target {
        servers: bases.iter().map(At::at).collect(),
        balance,
        ..target(&bases[0])
    }
}

#[test]
fn sessions_go_round_the_servers_and_stay() {
    let servers: Vec<Server> = (0..3).map(|_| Server::answering(good_answer())).collect();
    let bases: Vec<String> = servers.iter().map(Server::base).collect();
    let client = Client::of(TransportConfig {
        threads: 2,
        ..TransportConfig::new(spread(&bases, BalanceRule::RoundRobin))
    });
    for session in [0, 1, 2, 3, 4, 5, 0, 1, 1] {
        let outcome = client.ask(session);
        assert!(outcome.result.is_ok());
        assert_eq!(u64::from(outcome.connection.server), session % 3);
    }
    let requests: Vec<usize> = servers.iter().map(|server| server.requests().len()).collect();
    assert_eq!(requests, [3, 4, 2]);
}

#[test]
fn new_sessions_go_where_the_fewest_requests_are() {
    let slow = Server::start(|_, mut stream, _| {
        while read_request(&mut stream).is_some() {
            std::thread::sleep(Duration::from_millis(600));
            if stream.write_all(good_answer().as_bytes()).is_err() {
                return;
            }
        }
    });
    let fast = Server::answering(good_answer());
    let client = Client::new(spread(&[slow.base(), fast.base()], BalanceRule::LeastInFlight));
    // The first session goes to the first of two idle servers and keeps it busy; all others find
    // the second one idle.
    client.transport.submit(job(0, "hi"));
    std::thread::sleep(Duration::from_millis(50));
    for session in 1..6 {
        let outcome = client.ask(session);
        assert_eq!(
            (outcome.job.id.session.0, outcome.connection.server),
            (session, 1)
        );
    }
    assert_eq!(client.outcome().connection.server, 0);
    // A session that began at the slow server stays there.
    assert_eq!(client.ask(0).connection.server, 0);
}

#[test]
fn each_server_has_its_own_key_and_headers_and_no_message_shows_them() {
    let body = r#"{"error":{"message":"bad key-of-one or key-of-two, token-two, team-token"}}"#;
    let servers: Vec<Server> = (0..2)
        .map(|_| Server::answering(plain_answer("401 No", "application/json", body)))
        .collect();
    let bases: Vec<String> = servers.iter().map(Server::base).collect();
    let mut target = spread(&bases, BalanceRule::RoundRobin);
    target.headers = vec![
        ("x-team-token".into(), "team-token".into()),
        ("x-shared".into(), "both".into()),
    ];
    target.servers[0].api_key = Some(ApiKey::new("key-of-one"));
    target.servers[1].api_key = Some(ApiKey::new("key-of-two"));
    target.servers[1].headers = vec![
        ("x-extra-token".into(), "token-two".into()),
        ("x-shared".into(), "second".into()),
    ];
    let client = Client::new(target);
    for (session, server) in servers.iter().enumerate() {
        let outcome = client.ask(session as u64);
        let words = message(&outcome);
        assert!(words.contains("bad *** or ***, ***, ***"), "{words}");
        let seen = &server.requests()[0];
        let key = ["Bearer key-of-one", "Bearer key-of-two"][session];
        assert_eq!(seen.header("authorization").as_deref(), Some(key));
        assert_eq!(
            seen.header("x-shared").as_deref(),
            Some(["both", "second"][session])
        );
        assert_eq!(seen.header("x-team-token").as_deref(), Some("team-token"));
    }
    assert_eq!(servers[0].requests()[0].header("x-extra-token"), None);
}

#[test]
fn server_overrides_templates_and_literals_are_redacted() {
    let body = r#"{"error":{"message":"bad secret-part-7 of session 7"}}"#;
    let server = Server::answering(plain_answer("401 No", "application/json", body));
    let mut target = target(&server.base());
    target.headers = vec![
        ("x-a".into(), "{{session.id}}".into()),
        ("x-b".into(), "constant".into()),
        ("x-key".into(), "Key secret-part-{{session.id}}".into()),
    ];
    target.servers[0].headers = vec![
        ("X-A".into(), "of the server".into()),
        ("x-b".into(), "{{request.id}}".into()),
        ("X-Request-Id".into(), "own {{request.id}}".into()),
    ];
    let client = Client::of(TransportConfig {
        run_id: "r1".into(),
        ..TransportConfig::new(target)
    });
    let words = message(&client.ask(7)).to_owned();
    assert!(words.contains("bad ***7 of session 7"), "{words}");
    let seen = &server.requests()[0];
    for (name, value) in [
        ("x-a", "of the server"),
        ("x-b", "7/0"),
        ("x-key", "Key secret-part-7"),
        ("x-request-id", "own 7/0"),
    ] {
        assert_eq!(seen.header(name).as_deref(), Some(value));
        let lines = seen.head.to_ascii_lowercase();
        assert_eq!(lines.matches(&format!("\r\n{name}: ")).count(), 1, "{lines}");
    }
}

#[test]
fn headers_of_a_request_replace_those_of_the_configuration() {
    let server = Server::answering(good_answer());
    let mut target = target(&server.base());
    target.headers = vec![
        ("x-a".into(), "constant".into()),
        ("x-b".into(), "{{session.id}}".into()),
        ("x-c".into(), "{{session.id}}".into()),
    ];
    let client = Client::of(TransportConfig {
        traceparent: true,
        ..TransportConfig::new(target)
    });
    let mut job = job(7, "hi");
    let trace = "00-000000000000000000000000000000ff-00f067aa0ba902b7-01";
    let value = |name: &str| {
        if name.eq_ignore_ascii_case("traceparent") {
            trace
        } else {
            "of the request"
        }
    };
    let own = |name: &str| (name.to_owned(), value(name).to_owned());
    let request = Arc::get_mut(&mut job.request).unwrap();
    request.request.headers = ["X-A", "x-b", "Traceparent", "x-request-id"].map(own).to_vec();
    client.transport.submit(job);
    assert_eq!(client.outcome().trace_id, Some(255));
    let seen = &server.requests()[0];
    for name in ["x-a", "x-b", "traceparent", "x-request-id"] {
        assert_eq!(seen.header(name).as_deref(), Some(value(name)), "{name}");
        let head = seen.head.to_ascii_lowercase();
        assert_eq!(head.matches(&format!("\r\n{name}: ")).count(), 1, "{head}");
    }
    assert_eq!(seen.header("x-c").as_deref(), Some("7"));
}

#[test]
fn response_id_is_short_printable_and_redacted() {
    let event = r#"data: {"id":"a\u001b[2Jkey-of-one LONG","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
    let body = format!("{}\n\n", event.replace("LONG", &"x".repeat(5_000)));
    let server = Server::answering(plain_answer("200 OK", "text/event-stream", &body));
    let mut target = target(&server.base());
    target.servers[0].api_key = Some(ApiKey::new("key-of-one"));
    let id = Client::new(target).ask(0).response_id.unwrap();
    assert!(id.starts_with("a\u{fffd}[2J*** xxx"), "{id}");
    assert!(id.chars().count() <= 129, "{id}");
}

#[test]
fn the_endpoint_determines_the_header_of_the_key() {
    let server = Server::answering(plain_answer("500 Oops", "text/plain", ""));
    let mut target = target(&server.base());
    target.api = Api {
        endpoint: EndpointKind::AnthropicMessages,
        model: "tiny".into(),
        ..Api::default()
    };
    target.servers[0].api_key = Some(ApiKey::new("sk-ant-1"));
    Client::new(target).ask(0);
    let seen = &server.requests()[0];
    assert!(
        seen.head.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.header("x-api-key").as_deref(), Some("sk-ant-1"));
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.header("anthropic-version").as_deref(), Some("2023-06-01"));
}

#[test]
fn policy_determines_which_requests_share_a_connection() {
    for (policy, opened, reused) in [
        (ConnectionPolicy::Pooled, 1, 5),
        (ConnectionPolicy::PerSession, 3, 3),
        (ConnectionPolicy::Never, 6, 0),
    ] {
        let server = Server::answering(good_answer());
        let client = Client::of(TransportConfig {
            connections: policy,
            ..TransportConfig::new(target(&server.base()))
        });
        for session in [0, 1, 2, 0, 1, 2] {
            assert!(client.ask(session).result.is_ok());
        }
        let stats = client.transport.connections();
        assert_eq!((stats.opened, stats.reused), (opened, reused), "{policy:?}");
        assert_eq!(server.connections() as u64, opened);
        let closes = policy == ConnectionPolicy::Never;
        assert_eq!(server.requests()[0].header("connection").is_some(), closes);
        assert_eq!(stats.share(), Some(reused as f64 / 6.0));
    }
}

#[test]
fn session_keeps_its_connection_among_others() {
    let peers: Arc<Mutex<Vec<(String, SocketAddr)>>> = Arc::default();
    let log = Arc::clone(&peers);
    let server = Server::start(move |_, mut stream, _| {
        let peer = stream.peer_addr().unwrap();
        while let Some(request) = read_request(&mut stream) {
            let id = request.header("x-request-id").unwrap();
            log.lock().unwrap().push((id, peer));
            stream.write_all(good_answer().as_bytes()).unwrap();
        }
    });
    let client = Client::of(TransportConfig {
        connections: ConnectionPolicy::PerSession,
        ..TransportConfig::new(target(&server.base()))
    });
    for session in [5, 6, 7, 5, 7, 6, 5] {
        client.ask(session);
    }
    let peers: HashSet<(String, SocketAddr)> = peers.lock().unwrap().iter().cloned().collect();
    assert_eq!(peers.len(), 3, "one address for each session: {peers:?}");
}

#[test]
fn connections_start_from_the_addresses_in_turn() {
    let peers: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
    let log = Arc::clone(&peers);
    let server = Server::start(move |_, mut stream, _| {
        log.lock().unwrap().push(stream.peer_addr().unwrap().ip());
        read_request(&mut stream);
        stream.write_all(good_answer().as_bytes()).unwrap();
    });
    let sources: Vec<IpAddr> = [2, 3, 4].map(|last| IpAddr::from([127, 0, 0, last])).to_vec();
    let client = Client::of(TransportConfig {
        source_addresses: sources.clone(),
        connections: ConnectionPolicy::Never,
        ..TransportConfig::new(target(&server.base()))
    });
    for session in 0..6 {
        assert!(client.ask(session).result.is_ok());
    }
    assert_eq!(*peers.lock().unwrap(), [&sources[..], &sources[..]].concat());
}

#[test]
fn foreign_source_address_is_named_with_the_fix() {
    let server = Server::answering(good_answer());
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has such an address.
    for (source, words) in [
        (IpAddr::from([192, 0, 2, 1]), "192.0.2.1"),
        (IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]), "is IPv4"),
    ] {
        let outcome = Client::of(TransportConfig {
            source_addresses: vec![source],
            ..TransportConfig::new(target(&server.base()))
        })
        .ask(0);
        assert_eq!(class(&outcome), ErrorClass::Connect);
        let message = message(&outcome);
        assert!(
            message.contains(words) && message.contains("client.source_addresses"),
            "{message}"
        );
    }
}

#[test]
fn measures_resolution_of_a_name_but_not_of_an_address() {
    let server = Server::answering(good_answer());
    let by_address = Client::new(target(&server.base())).ask(0).connection;
    assert!(by_address.resolve.is_none() && by_address.connect.is_some());
    let by_name = format!("http://localhost:{}/v1", server.address.port());
    let client = Client::new(target(&by_name));
    let first = client.ask(0).connection;
    assert!(first.resolve.is_some() && first.connect.is_some() && first.tls.is_none());
    let second = client.ask(0).connection;
    assert!(second.reused && second.resolve.is_none() && second.connect.is_none());
}

#[test]
fn connect_timeout_applies_before_the_request_timeout() {
    // A socket that listens with a full queue: the connect neither succeeds nor fails.
    let listener = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let name = rustix::net::getsockname(&listener).unwrap();
    let address = SocketAddr::try_from(name).unwrap();
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                std::net::TcpStream::connect_timeout(&address, Duration::from_secs(2)).ok()
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let client = Client::of(TransportConfig {
        connect_timeout: Some(Duration::from_millis(300)),
        ..TransportConfig::new(target(&format!("http://{address}/v1")))
    });
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Connect);
    assert!(
        message(&outcome).ends_with("the limit of 300ms for connecting passed while connecting"),
        "{}",
        message(&outcome)
    );
    drop(waiting);
}

#[test]
fn each_thread_is_notified_at_its_start() {
    let started: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let log = Arc::clone(&started);
    let client = Client::of(TransportConfig {
        threads: 3,
        on_thread_start: Some(Arc::new(move |number| {
            let name = std::thread::current().name().unwrap_or_default().to_owned();
            log.lock().unwrap().push((number, name));
        })),
        ..TransportConfig::new(target("http://127.0.0.1:1/v1"))
    });
    let mut started = started.lock().unwrap().clone();
    started.sort();
    let expected = [0, 1, 2].map(|number| (number, format!("client-{number}")));
    assert_eq!(started, expected, "all have started when the transport has");
    client.transport.stop();
}

#[test]
fn a_target_without_servers_does_not_start() {
    let mut empty = target("http://h/v1");
    empty.servers.clear();
    let error = veeksha_transport::HttpTransport::start(
        TransportConfig::new(empty),
        veeksha_clock::RunClock::starting_now(),
        veeksha_ports::Sinks::outcomes(|_| ()),
    );
    assert!(error.err().unwrap().to_string().contains("client.targets"));
}
