//! Several clients behind one transport.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veeksha_clock::RunClock;
use veeksha_endpoint::{Api, EndpointKind};
use veeksha_ports::{Job, RequestOutcome, Sinks, Transport};
use veeksha_transport::{RoutedTransport, Server as At, Target, TransportConfig, TransportError};

use crate::support::*;

fn routed(configs: Vec<(&str, TransportConfig)>) -> (RoutedTransport, Receiver<RequestOutcome>) {
    let (sender, outcomes) = channel();
    let sinks = Sinks::outcomes(move |outcome| {
        let _ = sender.send(outcome);
    });
    let configs = configs
        .into_iter()
        .map(|(name, config)| (name.to_owned(), config));
    let transport = RoutedTransport::start(configs.collect(), RunClock::starting_now(), &sinks);
    (transport.unwrap(), outcomes)
}

fn of(client: Option<&str>, session: u64) -> Job {
    let mut job = job(session, "hi");
    Arc::make_mut(&mut job.request).request.client = client.map(str::to_owned);
    job
}

const ANTHROPIC: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"judged\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// One request to each of two APIs, with the model and the headers of each.
#[test]
fn a_request_goes_to_the_server_of_its_client_in_its_api() {
    let chat = Server::answering(good_answer());
    let messages = Server::answering(plain_answer("200 OK", "text/event-stream", ANTHROPIC));
    let mut judge = target(&messages.base());
    judge.api = Api {
        endpoint: EndpointKind::AnthropicMessages,
        model: "judge-1".into(),
        ..judge.api
    };
    judge.path = Some("messages".into());
    judge.headers = vec![("x-team".into(), "judges".into())];
    let (transport, outcomes) = routed(vec![
        ("default", TransportConfig::new(target(&chat.base()))),
        ("judge", TransportConfig::new(judge)),
    ]);
    let mut texts = BTreeSet::new();
    for job in [of(None, 0), of(Some("judge"), 0), of(Some("default"), 1)] {
        transport.submit(job);
        let outcome = outcomes.recv_timeout(PATIENCE).unwrap();
        let is_judge = outcome.job.request.request.client.as_deref() == Some("judge");
        assert_eq!(outcome.connection.server, u16::from(is_judge));
        texts.insert(outcome.result.unwrap().text);
    }
    assert!(texts.contains("judged"), "{texts:?}");
    let (asked, judged) = (chat.requests(), messages.requests());
    assert_eq!((asked.len(), judged.len()), (2, 1));
    assert!(
        asked[0].head.starts_with("POST /v1/chat/completions "),
        "{}",
        asked[0].head
    );
    assert!(
        judged[0].head.starts_with("POST /v1/messages "),
        "{}",
        judged[0].head
    );
    assert_eq!(judged[0].json()["model"], "judge-1");
    assert_eq!(judged[0].header("x-team").as_deref(), Some("judges"));
    assert_eq!(asked[0].header("x-team"), None);
}

#[test]
fn servers_and_threads_are_numbered_over_all_clients() {
    let servers: Vec<Server> = (0..3).map(|_| Server::answering(good_answer())).collect();
    let several = Target {
        servers: servers[..2].iter().map(|server| At::at(server.base())).collect(),
        ..target(&servers[0].base())
    };
    let started = Arc::new(Mutex::new(Vec::new()));
    let noted = started.clone();
    let on_start: veeksha_transport::ThreadStart = Arc::new(move |index| {
        let name = std::thread::current().name().map(str::to_owned);
        noted.lock().unwrap().push((index, name));
    });
    let config = |target| TransportConfig {
        threads: 2,
        on_thread_start: Some(on_start.clone()),
        ..TransportConfig::new(target)
    };
    let (transport, outcomes) = routed(vec![
        ("default", config(several)),
        ("judge", config(target(&servers[2].base()))),
    ]);
    for (client, session, server) in [
        (None, 0, 0),
        (None, 1, 1),
        (Some("judge"), 0, 2),
        (Some("judge"), 1, 2),
    ] {
        transport.submit(of(client, session));
        let outcome = outcomes.recv_timeout(PATIENCE).unwrap();
        assert_eq!(outcome.connection.server, server, "{client:?} {session}");
    }
    let started = started.lock().unwrap().clone();
    let expected: Vec<(usize, Option<String>)> = (0..4)
        .map(|index| (index, Some(format!("client-{index}"))))
        .collect();
    assert_eq!(started, expected);
}

#[test]
fn a_cancellation_finds_the_transport_of_its_request() {
    let waiting = || {
        Server::start(|_, mut stream, _| {
            read_request(&mut stream);
            let _ = stream.write_all(format!("{STREAM_HEAD}{}", chunk(&text_event("part"))).as_bytes());
            // Until the client closes the connection.
            let _ = std::io::Read::read(&mut stream, &mut [0; 16]);
        })
    };
    let (first, second) = (waiting(), waiting());
    let (transport, outcomes) = routed(vec![
        ("default", TransportConfig::new(target(&first.base()))),
        ("judge", TransportConfig::new(target(&second.base()))),
    ]);
    let jobs = [of(None, 0), of(Some("judge"), 1), of(Some("judge"), 2)];
    jobs.iter().for_each(|job| transport.submit(job.clone()));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(transport.in_flight(), 3);
    transport.cancel(jobs[1].id);
    let outcome = outcomes.recv_timeout(PATIENCE).unwrap();
    assert_eq!(outcome.job.id, jobs[1].id);
    let response = outcome.result.unwrap();
    assert!(response.cancelled && response.text == "part", "{response:?}");
    // Twice: nothing is left of it.
    transport.cancel(jobs[1].id);
    transport.cancel_all();
    for _ in 0..2 {
        let outcome = outcomes.recv_timeout(PATIENCE).unwrap();
        assert!(outcome.job.id != jobs[1].id && outcome.result.is_err());
    }
    drop(transport);
    assert!(outcomes.try_recv().is_err());
}

#[test]
fn a_transport_without_clients_does_not_start() {
    let sinks = Sinks::outcomes(|_| ());
    let started = RoutedTransport::start(Vec::new(), RunClock::starting_now(), &sinks);
    assert!(matches!(started.err(), Some(TransportError::NoServers)));
}
