//! Requests that their workload cancels: by name, or after a number of chunks.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use veeksha_model::{Cancellation, ChunkKind, Response};
use veeksha_ports::{Job, RequestOutcome, Transport};

use crate::http2::{H2Server, Script};
use crate::support::*;

/// A server that sends `texts` and waits for the client. Reports the bytes that came after the
/// request, once the connection was closed.
fn waiting(texts: &'static [&'static str]) -> (Server, Receiver<usize>) {
    let (sender, closed) = channel();
    let server = Server::start(move |_, mut stream, log| {
        log.lock().unwrap().extend(read_request(&mut stream));
        let events: String = texts.iter().map(|text| chunk(&text_event(text))).collect();
        let head = if texts.is_empty() { "" } else { STREAM_HEAD };
        stream.write_all(format!("{head}{events}").as_bytes()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = [0; 16];
        // A close with unread data is a reset.
        let size = match stream.read(&mut rest) {
            Ok(size) => size,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => unreachable!("{error}"),
        };
        sender.send(size).unwrap();
    });
    (server, closed)
}

fn part(outcome: &RequestOutcome) -> &Response {
    let response = outcome.result.as_ref().expect("not a failure");
    assert!(response.cancelled, "{response:?}");
    response
}

fn cancelled_after(chunks: u32, session: u64) -> Job {
    let mut job = job(session, "hi");
    let prepared = Arc::make_mut(&mut job.request);
    prepared.request.cancellation = Some(Box::new(Cancellation {
        when: Vec::new(),
        after_chunks: Some(chunks),
    }));
    job
}

#[test]
fn a_cancelled_request_returns_what_had_arrived_and_closes_its_connection() {
    let (server, closed) = waiting(&["Hello", " world"]);
    let client = Client::new(target(&server.base()));
    client.transport.submit(job(7, "hi"));
    client.await_first_chunks(1);
    let cancelled_at = client.clock.now();
    client.transport.cancel(job(7, "hi").id);
    let outcome = client.outcome();
    let response = part(&outcome);
    assert_eq!(
        (
            response.text.as_str(),
            response.finish_reason.as_str(),
            response.usage
        ),
        ("Hello world", "", None)
    );
    let kinds: Vec<ChunkKind> = outcome.chunks.iter().map(|chunk| chunk.kind).collect();
    assert_eq!(kinds, [ChunkKind::Content; 2]);
    assert_eq!(outcome.status, Some(200));
    assert!(outcome.timings.completed_at >= cancelled_at);
    assert_eq!(closed.recv_timeout(PATIENCE), Ok(0));
    assert_eq!(client.transport.in_flight(), 0);
}

#[test]
fn cancelling_twice_or_after_the_end_changes_nothing() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    let outcome = client.ask(3);
    assert!(outcome.result.is_ok_and(|response| !response.cancelled));
    client.transport.cancel(job(3, "hi").id);
    client.transport.cancel(job(3, "hi").id);
    client.transport.cancel(job(99, "hi").id);
    // The same connection serves the next request of the same name.
    let again = client.ask(3);
    assert!(again.result.is_ok_and(|response| !response.cancelled));
    assert_eq!(server.connections(), 1);
    assert!(client.outcomes.try_recv().is_err());
}

#[test]
fn a_request_that_was_not_answered_yet_returns_nothing() {
    let (server, closed) = waiting(&[]);
    let client = Client::new(target(&server.base()));
    client.transport.submit(job(1, "hi"));
    server.await_request();
    client.transport.cancel(job(1, "hi").id);
    let outcome = client.outcome();
    assert!(part(&outcome).text.is_empty() && outcome.chunks.is_empty());
    assert!(outcome.timings.sent_at.is_some() && outcome.timings.first_byte_at.is_none());
    assert_eq!(closed.recv_timeout(PATIENCE), Ok(0));
    // Before its connection is open, too.
    client.transport.submit(job(2, "hi"));
    client.transport.cancel(job(2, "hi").id);
    assert!(part(&client.outcome()).text.is_empty());
}

#[test]
fn only_the_named_request_is_cancelled() {
    let (server, _closed) = waiting(&["a"]);
    let client = Client::with(target(&server.base()), PATIENCE, 3);
    (0..12).for_each(|session| client.transport.submit(job(session, "hi")));
    client.await_first_chunks(12);
    client.transport.cancel(job(5, "hi").id);
    let outcome = client.outcome();
    assert_eq!((outcome.job.id.session.0, part(&outcome).text.as_str()), (5, "a"));
    // The count changes after the outcome was delivered.
    let is_counted = (0..1_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        client.transport.in_flight() == 11
    });
    assert!(is_counted, "{} are in flight", client.transport.in_flight());
    client.transport.cancel_all();
    (0..11).for_each(|_| assert!(client.outcome().result.is_err()));
}

#[test]
fn a_request_ends_after_a_number_of_chunks() {
    let (sender, sent) = channel();
    let server = Server::start(move |_, mut stream, _| {
        read_request(&mut stream);
        let mut events = 0;
        let mut data = STREAM_HEAD.to_owned();
        // Until the client closes the connection.
        while events < 1000 && stream.write_all(data.as_bytes()).is_ok() {
            events += 1;
            data = chunk(&text_event(&format!("{events} ")));
            std::thread::sleep(Duration::from_millis(20));
        }
        sender.send(events).unwrap();
    });
    let client = Client::new(target(&server.base()));
    client.transport.submit(cancelled_after(3, 0));
    let outcome = client.outcome();
    assert_eq!(part(&outcome).text, "1 2 3 ");
    assert_eq!(outcome.chunks.len(), 3);
    let events = sent.recv_timeout(PATIENCE).unwrap();
    assert!(events < 100, "{events} events were sent after the third");
}

#[test]
fn an_answer_with_fewer_chunks_is_whole() {
    let server = Server::answering(good_answer());
    let client = Client::new(target(&server.base()));
    for session in 0..2 {
        client.transport.submit(cancelled_after(3, session));
        let response = client.outcome().result.unwrap();
        assert_eq!(
            (response.text.as_str(), response.finish_reason.as_str()),
            ("Hello world", "stop")
        );
        assert!(!response.cancelled);
    }
    assert_eq!(server.connections(), 1, "the connection is reused");
}

/// The count of the whole answer is not the count of the part, and half a call is left out.
#[test]
fn counts_and_calls_of_a_part_are_complete_or_absent() {
    let call = |index: u32, arguments: &str| {
        let call = serde_json::json!({"choices": [{"index": 0, "delta": {"tool_calls": [{
            "index": index, "id": format!("c{index}"), "function": {"name": "f", "arguments": arguments},
        }]}, "finish_reason": null}], "usage": {"prompt_tokens": 3, "completion_tokens": 90}});
        chunk(&format!("data: {call}\n\n"))
    };
    let events = format!(
        "{STREAM_HEAD}{}{}{}",
        chunk(&text_event("t")),
        call(0, "{}"),
        call(1, "{\"a\":")
    );
    let server = Server::start(move |_, mut stream, _| {
        read_request(&mut stream);
        stream.write_all(events.as_bytes()).unwrap();
        std::thread::sleep(PATIENCE);
    });
    let client = Client::new(target(&server.base()));
    client.transport.submit(cancelled_after(3, 0));
    let outcome = client.outcome();
    let response = part(&outcome);
    let calls: Vec<&str> = response.tool_calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((calls, response.usage), (vec!["c0"], None));
}

/// A failure that came before the cancellation stays a failure.
#[test]
fn an_error_status_is_reported_although_its_body_was_cut() {
    let server = Server::start(|_, mut stream, _| {
        read_request(&mut stream);
        let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 100\r\n\r\noverloaded";
        stream.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(PATIENCE);
    });
    let client = Client::new(target(&server.base()));
    // The arrival of the status is not reported. A cancellation before it returns an empty part.
    let is_status = [50, 500, 5_000].into_iter().enumerate().any(|(session, pause)| {
        let job = || job(session as u64, "hi");
        client.transport.submit(job());
        std::thread::sleep(Duration::from_millis(pause));
        client.transport.cancel(job().id);
        let failure = client.outcome().result.err();
        failure.is_some_and(|reason| reason.class == veeksha_model::ErrorClass::Status)
    });
    assert!(is_status);
}

#[test]
fn http2_resets_the_stream_and_keeps_the_connection() {
    let (sender, dropped) = channel();
    let server = H2Server::start(10, move |number| {
        let sender = sender.clone();
        let pause = if number == 0 { 10_000 } else { 200 };
        let body = Script::new([
            (0, text_event("Hello")),
            (pause, text_event(" world")),
            (0, FINISH.to_owned()),
        ]);
        let body = body.on_drop(move |left| sender.send((number, left)).unwrap());
        hyper::Response::builder()
            .header("content-type", "text/event-stream")
            .body(body)
            .unwrap()
    });
    let client = Client::of(server.config());
    client.transport.submit(job(0, "hi"));
    client.await_first_chunks(1);
    client.transport.submit(job(1, "hi"));
    client.await_first_chunks(1);
    client.transport.cancel(job(0, "hi").id);
    let outcome = client.outcome();
    assert_eq!(
        (outcome.job.id.session.0, part(&outcome).text.as_str()),
        (0, "Hello")
    );
    // The server gives up the rest of the first answer, long before it would have sent it.
    assert_eq!(dropped.recv_timeout(Duration::from_secs(5)), Ok((0, 2)));
    let other = client.outcome();
    assert_eq!(other.result.unwrap().text, "Hello world");
    // After a number of chunks, likewise.
    client.transport.submit(cancelled_after(1, 2));
    let outcome = client.outcome();
    assert_eq!(
        (outcome.job.id.session.0, part(&outcome).text.as_str()),
        (2, "Hello")
    );
    assert_eq!(server.connections(), 1);
}
