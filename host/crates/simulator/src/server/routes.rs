//! From an HTTP request to its answer.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use veeksha_clock::{RunClock, wall_nanos};
use veeksha_model::{ChunkKind, Nanos, Usage};

use crate::{Fault, Profile};

use super::answer::{Aborted, Answer, End, Recorder, Stream, end_of};
use super::dialect::{Dialect, MID_STREAM, Writer, error_json};
use super::driver::{Driver, Submission, Ticket};
use super::metrics::{Latencies, ServerStats, render};
use super::request::{Completion, Delivery, PromptText};
use super::truth::{TruthLog, TruthOutcome};
use super::{SimOptions, Tokenize};

/// The longest body that is read.
const BODY_LIMIT: usize = 64 << 20;
/// A longer prompt is tokenized on a thread of its own, so that the streams of others do not wait for it.
const INLINE_PROMPT: usize = 4096;

/// What all connections share.
pub(super) struct Service {
    pub(super) clock: RunClock,
    pub(super) driver: Arc<Driver>,
    pub(super) truth: TruthLog,
    profile: Profile,
    tokenize: Tokenize,
    latencies: Mutex<Latencies>,
    connections_total: AtomicU64,
    connections_closed: AtomicU64,
    /// Seconds since 1970 when the server started: the model's `created`.
    created: u64,
}

/// Counts a connection as closed when dropped.
pub(super) struct OpenConnection(Arc<Service>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections_closed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Service {
    pub(super) fn new(options: SimOptions, clock: RunClock, driver: Arc<Driver>) -> Self {
        Service {
            clock,
            driver,
            truth: TruthLog::new(options.truth_capacity),
            profile: options.profile,
            tokenize: options.tokenize,
            latencies: Mutex::new(Latencies::new()),
            connections_total: AtomicU64::new(0),
            connections_closed: AtomicU64::new(0),
            created: wall_nanos() / 1_000_000_000,
        }
    }

    pub(super) fn connected(self: &Arc<Self>) -> OpenConnection {
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        OpenConnection(Arc::clone(self))
    }

    pub(super) fn observe_first_token(&self, latency: Nanos) {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .first_token
            .observe(latency);
    }

    pub(super) fn observe_end(&self, latency: Nanos) {
        self.latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .end
            .observe(latency);
    }

    pub(super) fn stats(&self) -> ServerStats {
        // In this order: a connection that is counted as closed has been counted before.
        let closed = self.connections_closed.load(Ordering::Relaxed);
        let total = self.connections_total.load(Ordering::Relaxed);
        ServerStats {
            engine: self.driver.stats(),
            connections_total: total,
            connections_open: total.saturating_sub(closed),
        }
    }

    fn metrics(&self) -> String {
        let stats = self.stats();
        render(
            &stats,
            &self.latencies.lock().unwrap_or_else(PoisonError::into_inner),
        )
    }
}

/// Answers one request. An error closes the connection.
pub(super) async fn handle(
    service: Arc<Service>,
    connection: u64,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Aborted> {
    let path = request.uri().path().to_owned();
    let allowed = is_authorized(&service.profile, &request);
    let expected = match path.as_str() {
        "/health" | "/metrics" | "/v1/models" => Method::GET,
        "/v1/chat/completions" | "/v1/completions" => Method::POST,
        _ => return Ok(error(404, &format!("there is nothing at {path}"))),
    };
    if request.method() != expected {
        return Ok(error(405, &format!("{path} takes {expected} only")));
    }
    let dialect = match path.as_str() {
        "/health" => return Ok(Response::new(Answer::Whole(Bytes::new()))),
        "/metrics" => return Ok(text(service.metrics())),
        "/v1/models" if allowed => return Ok(json_answer(200, models(&service).to_string())),
        "/v1/models" => return Ok(error(401, UNAUTHORIZED)),
        "/v1/completions" => Dialect::Text,
        _ => Dialect::Chat,
    };
    let request_id = request.headers().get("x-request-id").cloned();
    let announced = request.body().size_hint().lower();
    if announced > BODY_LIMIT as u64 {
        let name = request_id.as_ref().map(lossy);
        return Ok(refuse(Recorder::open(&service, name, connection), 413, TOO_LONG));
    }
    let body = Limited::new(request.into_body(), BODY_LIMIT).collect().await;
    let name = request_id
        .as_ref()
        .map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    let recorder = Recorder::open(&service, name, connection);
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(failure) if failure.is::<LengthLimitError>() => {
            return Ok(refuse(recorder, 413, TOO_LONG));
        }
        Err(_) => return Err(Aborted),
    };
    let mut answer = match allowed {
        true => complete(&service, recorder, dialect, &body).await?,
        false => refuse(recorder, 401, UNAUTHORIZED),
    };
    if let Some(id) = request_id {
        answer.headers_mut().insert("x-request-id", id);
    }
    Ok(answer)
}

/// Header values are bytes; the log takes text.
fn lossy(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

const TOO_LONG: &str = "the body is longer than 64 MiB";
const UNAUTHORIZED: &str = "the API key is missing or wrong: send it as \"Authorization: Bearer KEY\"";

fn is_authorized(profile: &Profile, request: &Request<Incoming>) -> bool {
    let Some(key) = &profile.faults.api_key else {
        return true;
    };
    let sent = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    sent.and_then(|value| value.strip_prefix("Bearer ")) == Some(key)
}

async fn complete(
    service: &Arc<Service>,
    recorder: Recorder,
    dialect: Dialect,
    body: &[u8],
) -> Result<Response<Answer>, Aborted> {
    let mut completion = match Completion::parse(body, dialect) {
        Ok(completion) => completion,
        Err(message) => return Ok(refuse(recorder, 400, &message)),
    };
    let model = completion
        .model
        .take()
        .unwrap_or_else(|| service.profile.model.clone());
    if service.profile.faults.strict_model && model != service.profile.model {
        let message = format!(
            "the model {model} does not exist: this server has {}",
            service.profile.model
        );
        return Ok(refuse(recorder, 404, &message));
    }
    let prompt = std::mem::replace(&mut completion.prompt, PromptText::Ids(Vec::new()));
    let tokens = tokenize(service, prompt).await?;
    let delivery = completion.delivery;
    let request = completion.into_engine_request(tokens, service.profile.block_size);
    let ticket = match service.driver.submit(request) {
        Submission::Accepted(ticket) => ticket,
        Submission::Rejected { status, message } => return Ok(refuse(recorder, status, &message)),
        Submission::Refused => {
            let mut recorder = recorder;
            recorder.finish(TruthOutcome::Refused, None);
            return Err(Aborted);
        }
    };
    let writer = Writer::new(
        dialect,
        delivery,
        recorder.ordinal(),
        wall_nanos() / 1_000_000_000,
        &model,
    );
    if delivery == Delivery::Whole {
        return whole(recorder, ticket, &writer).await;
    }
    let mut answer = Response::new(Answer::Stream(Box::new(Stream::new(
        recorder, ticket, writer, delivery,
    ))));
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    Ok(answer)
}

async fn tokenize(service: &Arc<Service>, prompt: PromptText) -> Result<Vec<u32>, Aborted> {
    match prompt {
        PromptText::Ids(ids) => Ok(ids),
        PromptText::Text(text) if text.len() <= INLINE_PROMPT => Ok((service.tokenize)(&text)),
        PromptText::Text(text) => {
            let tokenize = Arc::clone(&service.tokenize);
            // It fails only if the tokenizer panics.
            tokio::task::spawn_blocking(move || tokenize(&text))
                .await
                .map_err(|_| Aborted)
        }
    }
}

/// Waits for the end, then answers at once.
async fn whole(
    mut recorder: Recorder,
    mut ticket: Ticket,
    writer: &Writer,
) -> Result<Response<Answer>, Aborted> {
    let mut tokens = 0;
    let end = loop {
        let event = poll_fn(|cx| ticket.poll_next(cx)).await.ok_or(Aborted)?;
        match end_of(&event) {
            Some(end) => break end,
            None if matches!(event, crate::EngineEvent::Token { .. }) => tokens += 1,
            None => {}
        }
    };
    let (body, outcome, usage) = match end {
        End::Finished(reason, usage) => (
            writer.whole(Some(reason.name()), &usage),
            TruthOutcome::Finished(reason),
            Some(usage),
        ),
        End::Broken(Fault::MidStreamError) => {
            return Ok(fail(recorder, 500, MID_STREAM, TruthOutcome::MidStreamError));
        }
        End::Broken(Fault::Truncate) => {
            let usage = Usage {
                completion: tokens,
                ..Usage::default()
            };
            (writer.whole(None, &usage), TruthOutcome::Truncated, None)
        }
        End::Broken(Fault::DropConnection | Fault::Stall { .. }) => {
            recorder.finish(TruthOutcome::Dropped, None);
            return Err(Aborted);
        }
    };
    let answer = json_answer(200, body);
    recorder.head();
    recorder.chunks(&[ChunkKind::Content]);
    recorder.finish(outcome, usage);
    Ok(answer)
}

fn refuse(recorder: Recorder, status: u16, message: &str) -> Response<Answer> {
    fail(recorder, status, message, TruthOutcome::Status(status))
}

fn fail(mut recorder: Recorder, status: u16, message: &str, outcome: TruthOutcome) -> Response<Answer> {
    let answer = error(status, message);
    recorder.head();
    recorder.finish(outcome, None);
    answer
}

fn error(status: u16, message: &str) -> Response<Answer> {
    let mut answer = json_answer(status, error_json(status, message).to_string());
    match status {
        401 => {
            answer
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        429 | 503 => {
            answer
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        _ => {}
    }
    answer
}

fn json_answer(status: u16, body: String) -> Response<Answer> {
    let mut answer = Response::new(Answer::Whole(Bytes::from(body)));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn text(body: String) -> Response<Answer> {
    let mut answer = Response::new(Answer::Whole(Bytes::from(body)));
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    answer
}

fn models(service: &Service) -> serde_json::Value {
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
