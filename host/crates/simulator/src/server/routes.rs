//! Routes requests to their answers.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::net::TcpStream;
use veeksha_clock::wall_nanos;

use super::answer::{AnswerOptions, ServedAnswer, Sink};
use super::answer_framing::AnswerFraming;
use super::answer_writer::After;
use super::completion::{Completion, PromptText};
use super::delivery_mode::DeliveryMode;
use super::driver::{EngineTicket, Submission};
use super::head::AnswerHead;
use super::incoming::{Incoming, RequestHead};
use super::recorder::RequestRecorder;
use super::script::{AnswerContent, error_answer};
use super::served_api::ServedApi;
use super::service::Service;
use super::truth::{ReceivedRequest, TruthOutcome};
use crate::wire_fault::WireFault;
use crate::wire_fault::wire_fault;

/// A longer prompt is tokenized on another thread, so that it does not delay other streams.
const INLINE_PROMPT: usize = 4096;

/// The reply to a request.
pub(super) enum RouteReply {
    /// Fixed bytes.
    Bytes(Vec<u8>, After),
    /// The engine's answer, with its ticket if it reached the engine.
    Answer(Arc<Sink>, Option<EngineTicket>),
    /// None: the connection is closed.
    Nothing,
}

const TOO_LONG: &str = "the body is longer than 64 MiB";
const UNAUTHORIZED: &str =
    "the API key is missing or wrong: send it as \"Authorization: Bearer KEY\", or as \"x-api-key: KEY\"";

fn after(keep_alive: bool) -> After {
    if keep_alive {
        After::KeepAlive
    } else {
        After::Close
    }
}

/// Returns the reply to invalid HTTP.
pub(super) fn unreadable(status: u16, message: &str) -> RouteReply {
    error(&AnswerHead::default(), status, message, false)
}

fn error(head: &AnswerHead, status: u16, message: &str, keep_alive: bool) -> RouteReply {
    let (status, body) = error_answer(ServedApi::Chat, status, message);
    let mut bytes = head.of_error(status, body.len(), keep_alive);
    bytes.extend_from_slice(&body);
    RouteReply::Bytes(bytes, after(keep_alive))
}

fn plain(head: &AnswerHead, content_type: &str, body: &[u8], keep_alive: bool) -> RouteReply {
    let mut bytes = head.of_body(
        200,
        content_type,
        Some(body.len()),
        keep_alive,
        (AnswerFraming::Length, None),
    );
    bytes.extend_from_slice(body);
    RouteReply::Bytes(bytes, after(keep_alive))
}

/// A completion request with an open record.
struct OpenRequest<'a> {
    service: &'a Arc<Service>,
    socket: &'a Arc<TcpStream>,
    recorder: RequestRecorder,
    api: ServedApi,
    head: AnswerHead,
    keep_alive: bool,
    takes_chunks: bool,
    fault: Option<WireFault>,
}

/// Returns the reply to a request with a body that is too long.
pub(super) fn too_long(
    service: &Arc<Service>,
    socket: &Arc<TcpStream>,
    connection: u64,
    request_head: RequestHead,
) -> RouteReply {
    match ServedApi::at(&request_head.path) {
        Some(api) => {
            OpenRequest::new(service, socket, connection, api, &request_head, false).refuse(413, TOO_LONG)
        }
        None => unreadable(413, TOO_LONG),
    }
}

/// Replies to one request.
pub(super) async fn respond(
    service: &Arc<Service>,
    socket: &Arc<TcpStream>,
    connection: u64,
    request: Incoming,
) -> RouteReply {
    let Incoming { request_head, body } = request;
    let (path, keep_alive) = (request_head.path.as_str(), request_head.keep_alive);
    let head = AnswerHead {
        request_id: request_head.request_id.clone(),
    };
    let api = ServedApi::at(path);
    let expected = match path {
        "/health" | "/metrics" | "/v1/models" => "GET",
        _ if api.is_some() => "POST",
        _ => return error(&head, 404, &format!("there is nothing at {path}"), keep_alive),
    };
    if request_head.method != expected {
        return error(&head, 405, &format!("{path} takes {expected} only"), keep_alive);
    }
    let allowed = match &service.profile.faults.api_key {
        Some(key) => request_head.key.as_deref() == Some(key.as_bytes()),
        None => true,
    };
    let Some(api) = api else {
        return match path {
            "/health" => plain(&head, "text/plain", b"", keep_alive),
            "/metrics" => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                plain(&head, kind, service.metrics().as_bytes(), keep_alive)
            }
            _ if allowed => {
                let models = models(service).to_string();
                plain(&head, "application/json", models.as_bytes(), keep_alive)
            }
            _ => error(&head, 401, UNAUTHORIZED, keep_alive),
        };
    };
    let visit = OpenRequest::new(service, socket, connection, api, &request_head, keep_alive);
    if !allowed {
        return visit.refuse(401, UNAUTHORIZED);
    }
    match visit.fault {
        Some(WireFault::Redirect) => visit.redirect(path),
        _ => visit.complete(&body).await,
    }
}

impl<'a> OpenRequest<'a> {
    fn new(
        service: &'a Arc<Service>,
        socket: &'a Arc<TcpStream>,
        connection: u64,
        api: ServedApi,
        request_head: &RequestHead,
        keep_alive: bool,
    ) -> Self {
        let text = |id: &Vec<u8>| String::from_utf8_lossy(id).into_owned();
        let arrival = ReceivedRequest {
            request_id: request_head.request_id.as_ref().map(text),
            connection,
            path: request_head.path.clone(),
            at: service.clock.now(),
        };
        let recorder = RequestRecorder::open(&service.requests, arrival);
        let fault = wire_fault(&service.profile.faults.wire, service.seed, recorder.ordinal());
        OpenRequest {
            service,
            socket,
            recorder,
            api,
            head: AnswerHead {
                request_id: request_head.request_id.clone(),
            },
            keep_alive,
            takes_chunks: request_head.takes_chunks,
            fault,
        }
    }

    /// Returns an error reply.
    fn refuse(self, status: u16, message: &str) -> RouteReply {
        let sink = self.sink(None, "", 0);
        sink.answer().fail(status, message, TruthOutcome::Status(status));
        RouteReply::Answer(sink, None)
    }

    fn redirect(mut self, path: &str) -> RouteReply {
        let bytes = self.head.of_redirect(path, self.keep_alive);
        self.recorder.fault(Some(WireFault::Redirect));
        let now = self.recorder.now();
        self.recorder.head(now);
        self.recorder.finish(TruthOutcome::Status(307), None);
        RouteReply::Bytes(bytes, after(self.keep_alive))
    }

    async fn complete(self, body: &[u8]) -> RouteReply {
        let profile = &self.service.profile;
        let mut completion = match Completion::parse(body, self.api) {
            Ok(completion) => completion,
            Err(message) => return self.refuse(400, &message),
        };
        let model = completion.model.take().unwrap_or_else(|| profile.model.clone());
        if profile.faults.strict_model && model != profile.model {
            let message = format!(
                "the model {model} does not exist: this server has {}",
                profile.model
            );
            return self.refuse(404, &message);
        }
        let prompt = std::mem::replace(&mut completion.prompt, PromptText::Ids(Vec::new()));
        let Some(tokens) = self.tokenize(prompt).await else {
            return RouteReply::Nothing;
        };
        let (service, arrived_at) = (self.service, self.recorder.arrived_at());
        let count = u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let sink = self.sink(Some(&completion), &model, count);
        let request = if service.counts_only() {
            completion.into_counted_request(count)
        } else {
            completion.into_engine_request(tokens, service.profile.block_size)
        };
        // Locked until the head is written: the engine's thread may have the first token
        // immediately.
        let mut answer = sink.answer();
        match service.driver.submit(arrived_at, request, &sink) {
            Submission::Accepted(ticket) => {
                answer.accepted();
                drop(answer);
                RouteReply::Answer(sink, Some(ticket))
            }
            Submission::Rejected { status, message } => {
                answer.fail(status, &message, TruthOutcome::Status(status));
                drop(answer);
                RouteReply::Answer(sink, None)
            }
            Submission::Refused => {
                answer.writer.recorder().finish(TruthOutcome::Refused, None);
                RouteReply::Nothing
            }
        }
    }

    async fn tokenize(&self, prompt: PromptText) -> Option<Vec<u32>> {
        match prompt {
            PromptText::Ids(ids) => Some(ids),
            PromptText::Text(text)
                if text.len() <= INLINE_PROMPT || self.service.profile.constant.is_some() =>
            {
                Some((self.service.tokenize)(&text))
            }
            PromptText::Text(text) => {
                // The semaphore is never closed.
                let _slot = self.service.tokenizer_slots.acquire().await.ok()?;
                let tokenize = Arc::clone(&self.service.tokenize);
                // Fails only if the tokenizer panics.
                tokio::task::spawn_blocking(move || tokenize(&text)).await.ok()
            }
        }
    }

    /// Creates the sink of an answer from the request alone.
    fn sink(self, completion: Option<&Completion>, model: &str, prompt: u32) -> Arc<Sink> {
        let profile = &self.service.profile;
        let content = AnswerContent {
            ordinal: self.recorder.ordinal(),
            created: wall_nanos(),
            model: Value::from(model).to_string(),
            delivery: completion.map_or(DeliveryMode::Whole, |requested| requested.delivery),
            reasoning: match self.api {
                ServedApi::Chat | ServedApi::Responses | ServedApi::Messages | ServedApi::Ollama => {
                    profile.reasoning_tokens
                }
                ServedApi::Text | ServedApi::Generate | ServedApi::GenerateStream => 0,
            },
            tool: completion.and_then(|requested| requested.tool.clone()),
            details: completion.is_some_and(|requested| requested.details),
            huge: None,
            max_tokens: completion.and_then(|requested| requested.max_tokens),
        };
        let options = AnswerOptions {
            api: self.api,
            head: self.head,
            keep_alive: self.keep_alive,
            takes_chunks: self.takes_chunks,
            fault: self.fault,
            fault_after: profile.faults.after_tokens.unwrap_or(1),
            huge_token: profile.faults.after_tokens.unwrap_or(0),
            stall: (profile.faults.stall_ms * 1e6).round() as u64,
            prompt,
        };
        Sink::new(ServedAnswer::new(
            Arc::clone(self.socket),
            self.recorder,
            options,
            content,
        ))
    }
}

fn models(service: &Service) -> Value {
    let profile = &service.profile;
    json!({
        "object": "list",
        "data": [{
            "id": profile.model,
            "object": "model",
            "created": service.created,
            "owned_by": "veeksha-host",
            "max_model_len": profile.max_context,
        }],
    })
}
