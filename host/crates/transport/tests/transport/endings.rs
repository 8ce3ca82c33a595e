//! Cancellation.

use std::io::Write;
use std::time::Duration;

use veeksha_model::ErrorClass;
use veeksha_ports::{RequestOutcome, Sinks, Transport};
use veeksha_transport::{HttpTransport, TransportConfig};

use crate::support::*;

fn hanging() -> Server {
    Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(format!("{STREAM_HEAD}{}", chunk(&text_event("a"))).as_bytes());
        std::thread::sleep(PATIENCE);
    })
}

fn sessions(outcomes: &[RequestOutcome]) -> Vec<u64> {
    let mut sessions: Vec<u64> = outcomes.iter().map(|outcome| outcome.job.id.session.0).collect();
    sessions.sort_unstable();
    sessions
}

#[test]
fn cancel_all_ends_everything_once_and_the_transport_goes_on() {
    let server = hanging();
    let client = Client::with(target(&server.base()), PATIENCE, 3);
    for session in 0..60 {
        client.transport.submit(job(session, "hi"));
        if session == 40 {
            // By now, some requests are in the middle of their answers, and some have not begun.
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    assert_eq!(client.transport.in_flight(), 60);
    client.transport.cancel_all();
    let outcomes: Vec<RequestOutcome> = (0..60).map(|_| client.outcome()).collect();
    assert!(
        outcomes
            .iter()
            .all(|outcome| class(outcome) == ErrorClass::Cancelled)
    );
    assert!(
        outcomes
            .iter()
            .any(|outcome| outcome.chunks.len() == 1 && outcome.status == Some(200))
    );
    assert_eq!(sessions(&outcomes), (0..60).collect::<Vec<_>>());

    client.transport.submit(job(60, "hi"));
    client.transport.cancel_all();
    assert_eq!(class(&client.outcome()), ErrorClass::Cancelled);
    client.transport.stop();
    assert!(client.outcomes.try_recv().is_err());
}

#[test]
fn stop_delivers_every_outcome_before_it_returns() {
    let server = hanging();
    let client = Client::with(target(&server.base()), PATIENCE, 2);
    for session in 0..40 {
        client.transport.submit(job(session, "hi"));
    }
    client.transport.stop();
    let outcomes: Vec<RequestOutcome> = client.outcomes.try_iter().collect();
    assert_eq!(sessions(&outcomes), (0..40).collect::<Vec<_>>());
    assert!(
        outcomes
            .iter()
            .all(|outcome| class(outcome) == ErrorClass::Cancelled)
    );
}

#[test]
fn no_request_is_in_flight_after_the_last_outcome() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    client.ask(0);
    let deadline = client.clock.now() + 5_000_000_000;
    while client.transport.in_flight() > 0 {
        assert!(client.clock.now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn a_transport_that_cannot_work_does_not_start() {
    let start = |target, threads| {
        let config = TransportConfig {
            threads,
            ..TransportConfig::new(target)
        };
        let result = HttpTransport::start(
            config,
            veeksha_clock::RunClock::starting_now(),
            Sinks::outcomes(|_| ()),
        );
        result.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(start(target("http://h/v1"), 0).contains("at least 1"));
    assert!(start(target("h:80/v1"), 1).contains("scheme"));
    let mut with_header = target("http://h/v1");
    with_header.headers = vec![("x-key".to_owned(), "secret\nvalue".to_owned())];
    let message = start(with_header, 1);
    assert!(
        message.contains("x-key") && !message.contains("secret"),
        "{message}"
    );
    let mut with_ca = target("https://h/v1");
    with_ca.servers[0].tls.ca_file = Some("/nowhere/ca.pem".into());
    assert!(start(with_ca, 1).contains("/nowhere/ca.pem"));
}
