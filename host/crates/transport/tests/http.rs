//! The transport against scripted servers on real sockets.

mod support;

use support::*;
use veeksha_model::ChunkKind;
use veeksha_transport::Secret;

#[test]
fn a_streamed_answer_is_read_and_timed() {
    let server = Server::answering(good_answer());
    let mut target = target(&server.base());
    target.api_key = Some(Secret::new("sk-1"));
    let client = Client::new(target);
    let before = client.clock.now();
    let outcome = client.ask(0);
    let after = client.clock.now();

    let response = outcome.result.unwrap();
    assert_eq!(response.text, "Hello world");
    assert_eq!(response.finish_reason, "stop");
    assert_eq!(response.output_tokens, 2);
    assert_eq!(outcome.status, Some(200));
    let kinds: Vec<ChunkKind> = outcome.chunks.iter().map(|chunk| chunk.kind).collect();
    use ChunkKind::*;
    assert_eq!(kinds, [Content, Content, Finish, Usage, Done]);
    let data = text_event("Hello").len() - "data: \n\n".len();
    assert_eq!(outcome.chunks[0].bytes as usize, data);

    let timings = outcome.timings;
    let (picked, sent, first) = (
        timings.picked_up_at.unwrap(),
        timings.sent_at.unwrap(),
        timings.first_byte_at.unwrap(),
    );
    assert!(before <= picked && picked < sent && sent < first, "{timings:?}");
    assert!(first <= outcome.chunks[0].at && outcome.chunks.is_sorted_by_key(|chunk| chunk.at));
    assert_eq!(timings.completed_at, outcome.chunks.last().unwrap().at);
    assert!(timings.completed_at <= after);
    assert!(
        outcome.connection.connect.is_some()
            && !outcome.connection.reused
            && outcome.connection.tls.is_none()
    );

    let request = &server.requests()[0];
    assert!(
        request.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert_eq!(request.header("authorization").as_deref(), Some("Bearer sk-1"));
    assert_eq!(request.header("accept-encoding").as_deref(), Some("identity"));
    assert_eq!(request.header("host"), Some(server.address.to_string()));
    assert_eq!(
        request.json(),
        serde_json::json!({
            "model": "tiny",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_completion_tokens": 2,
        })
    );
}
