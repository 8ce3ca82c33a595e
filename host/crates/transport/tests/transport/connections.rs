//! Connections, sessions and reuse.

use std::io::Write;
use std::time::Duration;

use veeksha_model::ErrorClass;
use veeksha_ports::{Timings, Transport};
use veeksha_transport::ConnectionStats;

use crate::support::*;

#[test]
fn one_connection_serves_requests_one_after_another() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    for turn in 0..5 {
        let outcome = client.ask(turn);
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        assert_eq!(outcome.connection.reused, turn > 0);
        assert_eq!(outcome.connection.connect.is_some(), turn == 0);
    }
    assert_eq!(server.connections(), 1);
    assert_eq!(
        client.transport.connections(),
        ConnectionStats {
            opened: 1,
            reused: 4,
            retried: 0
        }
    );
}

#[test]
fn sessions_stay_on_their_thread_and_its_connections() {
    let server = Server::answering(good_answer());
    let client = Client::with(target(&server.base()), PATIENCE, 2);
    for session in [0, 1, 2, 3, 0, 1] {
        let outcome = client.ask(session);
        assert!(outcome.result.is_ok());
    }
    assert_eq!(server.connections(), 2);
    assert_eq!(client.transport.connections().reused, 4);
}

/// llama.cpp closes the connection after each reply, although the head promises to keep it.
#[test]
fn silent_close_after_each_reply_fails_no_request() {
    let server = Server::start(|_, mut stream, _| {
        if read_request(&mut stream).is_some() {
            let answer = good_answer().replace("\r\n\r\n", "\r\nKeep-Alive: timeout=5, max=100\r\n\r\n");
            let answer = answer.replacen("0\r\nKeep-Alive: timeout=5, max=100\r\n\r\n", "0\r\n\r\n", 1);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let client = Client::new(target(&server.base()));
    for turn in 0..50 {
        let outcome = client.ask(turn);
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    }
    assert_eq!(server.connections(), 50);
    let stats = client.transport.connections();
    assert_eq!((stats.opened, stats.reused), (50, stats.retried));
}

#[test]
fn retries_once_if_reused_connection_closes_before_an_answer() {
    let server = Server::start(|number, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(good_answer().as_bytes()).unwrap();
        // The first connection accepts another request and closes without an answer.
        read_request(&mut stream);
        if number > 0 {
            stream.write_all(good_answer().as_bytes()).unwrap();
        }
    });
    let client = Client::new(target(&server.base()));
    assert!(!client.ask(0).connection.retried);
    let second = client.ask(0);
    assert!(second.result.is_ok(), "{:?}", second.result);
    assert!(second.connection.retried && !second.connection.reused && second.connection.connect.is_some());
    assert!(second.timings.sent_at <= second.timings.first_byte_at);
    let third = client.ask(0);
    assert!(third.connection.reused && !third.connection.retried);
    assert_eq!(
        client.transport.connections(),
        ConnectionStats {
            opened: 2,
            reused: 2,
            retried: 1
        }
    );
}

#[test]
fn does_not_retry_if_reused_connection_closes_within_an_answer() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(good_answer().as_bytes()).unwrap();
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 2").unwrap();
    });
    let client = Client::new(target(&server.base()));
    client.ask(0);
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Truncated);
    assert!(outcome.connection.reused && !outcome.connection.retried);
    assert_eq!(server.connections(), 1);
}

#[test]
fn does_not_retry_on_a_new_connection() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
    });
    let client = Client::new(target(&server.base()));
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Truncated);
    assert!(
        message(&outcome).contains("without an answer"),
        "{}",
        message(&outcome)
    );
    assert!(!outcome.connection.retried && outcome.timings.sent_at.is_some());
    assert_eq!(server.connections(), 1);
}

#[test]
fn connection_close_is_respected() {
    let answer = plain_answer("200 OK", "text/event-stream\r\nconnection: close", FINISH);
    let server = Server::start(move |_, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        // Left open: the client must neither wait for the end nor reconnect.
        std::thread::sleep(PATIENCE);
    });
    let client = Client::new(target(&server.base()));
    for _ in 0..3 {
        assert!(client.ask(0).result.is_ok());
    }
    assert_eq!(
        client.transport.connections(),
        ConnectionStats {
            opened: 3,
            reused: 0,
            retried: 0
        }
    );
}

#[test]
fn body_that_ends_with_its_connection_is_complete() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let answer = format!(
            "HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{}{FINISH}",
            text_event("x")
        );
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let client = Client::new(target(&server.base()));
    for _ in 0..2 {
        assert_eq!(client.ask(0).result.unwrap().text, "x");
    }
    assert_eq!(client.transport.connections().opened, 2);
}

#[test]
fn refused_connection_names_the_address() {
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let client = Client::new(target(&format!("http://{address}/v1")));
    let outcome = client.ask(0);
    assert_eq!(class(&outcome), ErrorClass::Connect);
    assert!(message(&outcome).contains(&address.to_string()) && message(&outcome).contains("refused"));
    assert_eq!(
        (
            outcome.timings.sent_at,
            outcome.timings.first_byte_at,
            outcome.status
        ),
        (None, None, None)
    );
    assert!(outcome.timings.picked_up_at.unwrap() <= outcome.timings.completed_at);
}

#[test]
fn a_name_that_does_not_resolve_is_named() {
    // RFC 6761: `.invalid` never resolves. The deadline covers machines whose resolver waits for a
    // network.
    let client = Client::with(
        target("http://no-such-host.invalid:81/v1"),
        Duration::from_secs(60),
        1,
    );
    client.transport.submit(job(0, "hi"));
    let outcome = client.outcomes.recv_timeout(Duration::from_secs(61)).unwrap();
    assert_eq!(class(&outcome), ErrorClass::Connect);
    assert!(message(&outcome).contains("no-such-host.invalid:81") && message(&outcome).contains("resolve"));
}

#[test]
fn the_time_of_the_last_request_byte_is_not_that_of_the_first() {
    const PAUSE: Duration = Duration::from_millis(300);
    let server = Server::start(|_, mut stream, _| {
        // The prompt is larger than any socket buffer, so its end waits for this reader.
        std::thread::sleep(PAUSE);
        read_request(&mut stream);
        stream.write_all(good_answer().as_bytes()).unwrap();
    });
    let client = Client::new(target(&server.base()));
    client.transport.submit(job(0, &"x".repeat(32 << 20)));
    let outcome = client.outcome();
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    let Timings {
        picked_up_at,
        sent_at,
        first_byte_at,
        ..
    } = outcome.timings;
    let taken = Duration::from_nanos(sent_at.unwrap() - picked_up_at.unwrap());
    assert!(taken >= PAUSE - Duration::from_millis(50), "{taken:?}");
    assert!(sent_at <= first_byte_at);
}
