//! Responses of the live page.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use super::access::AccessDecision;
use super::events::EventStream;
use super::server::LiveServer;
use crate::html::{self, LIVE_POLICY};

/// A fixed body, or a stream of events.
pub(crate) type AnswerBody = Either<Full<Bytes>, Either<EventStream, Empty<Bytes>>>;

/// JSON shared with other readers.
struct SharedJson(Arc<str>);

impl AsRef<[u8]> for SharedJson {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Responds to one request.
pub(crate) fn answer<B>(server: &Arc<LiveServer>, request: &Request<B>) -> Response<AnswerBody> {
    let cookie = match server.access.admit(request.uri(), request.headers()) {
        AccessDecision::Refused(status, why) => return text(status, why),
        AccessDecision::Admitted => None,
        AccessDecision::AdmittedWithCookie(cookie) => Some(cookie),
    };
    let reads_head = request.method() == Method::HEAD;
    if !reads_head && request.method() != Method::GET {
        let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "this page can only be read\n");
        refusal
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    let mut response = match request.uri().path() {
        "/" => {
            let page = html::live_page(&server.data(false));
            known("text/html; charset=utf-8", Bytes::from(page))
        }
        "/data" => {
            let data = server.data(!reads_head);
            known("application/json", Bytes::from_owner(SharedJson(data)))
        }
        "/events" if reads_head => known("text/event-stream", Bytes::new()),
        "/events" => plain("text/event-stream", Either::Right(Either::Left(server.events()))),
        _ => return text(StatusCode::NOT_FOUND, "there is nothing here; the page is at /\n"),
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn known(kind: &'static str, body: Bytes) -> Response<AnswerBody> {
    plain(kind, Either::Left(Full::new(body)))
}

fn text(status: StatusCode, body: &'static str) -> Response<AnswerBody> {
    let mut response = known("text/plain; charset=utf-8", Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    response
}

fn plain(kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, LIVE_POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
