//! The headers of requests to one server: those that are the same for every request, and those that
//! are made for each.

use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use veeksha_endpoint::{Failure, HeaderTemplate, HeaderValues};
use veeksha_model::{ErrorClass, TRACEPARENT, is_reserved_header, is_safe_header, trace_id_in};
use veeksha_ports::Job;

use crate::config::TransportConfig;
use crate::error::TransportError;
use crate::target::Server;
use crate::trace_id::{trace_id, traceparent};

/// The default of a header that identifies the request in the server's logs: the run, and
/// `session/node`, like the files of the run.
const REQUEST_ID: &str = "x-request-id";

/// The headers of requests to one server.
pub(crate) struct RequestHeaders {
    /// Headers that every request has.
    pub(crate) constant: HeaderMap,
    /// Headers whose values differ between requests.
    variable: Vec<(HeaderName, HeaderTemplate)>,
    /// Set if requests have a `traceparent` of the client: the id of the run.
    traced_run: Option<String>,
}

impl RequestHeaders {
    /// Collects the headers. Later ones replace earlier ones, in this order: client, API, key,
    /// target, server.
    pub(crate) fn new(config: &TransportConfig, server: &Server) -> Result<Self, TransportError> {
        let target = &config.target;
        let mut headers = RequestHeaders {
            constant: HeaderMap::new(),
            variable: Vec::new(),
            traced_run: None,
        };
        let constant = &mut headers.constant;
        constant.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        constant.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        constant.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        constant.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("veeksha-host/", env!("CARGO_PKG_VERSION"))),
        );
        let request_id = match config.run_id.as_str() {
            "" => "{{request.id}}",
            _ => "{{run.id}}/{{request.id}}",
        };
        headers.set(REQUEST_ID, template(REQUEST_ID, request_id, config)?)?;
        for (name, value) in target.api.endpoint.extra_headers() {
            headers.set(name, HeaderTemplate::literal(value))?;
        }
        if let Some((name, value)) = target.key_header(server) {
            headers.set(name, HeaderTemplate::literal(&value))?;
        }
        for (name, value) in target.headers.iter().chain(&server.headers) {
            headers.set(name, template(name, value, config)?)?;
        }
        let has_traceparent = headers.constant.contains_key(TRACEPARENT)
            || headers.variable.iter().any(|(name, _)| *name == TRACEPARENT);
        if config.traceparent && !has_traceparent {
            headers.traced_run = Some(config.run_id.clone());
        }
        for (name, value) in &mut headers.constant {
            // Excludes the value from HTTP/2 header compression tables and from debug output.
            let is_public = [CONTENT_TYPE, ACCEPT, ACCEPT_ENCODING, USER_AGENT].contains(name);
            value.set_sensitive(!is_public);
        }
        Ok(headers)
    }

    /// Sets a header for all requests, in place of an earlier one.
    fn set(&mut self, name: &str, template: HeaderTemplate) -> Result<(), TransportError> {
        let refuse = |reason: &str| TransportError::Header {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        let parsed: HeaderName = name.parse().map_err(|_| refuse("this is not a header name"))?;
        if is_reserved_header(name) {
            return Err(refuse("the HTTP client sets it"));
        }
        self.variable.retain(|(known, _)| *known != parsed);
        let Some(value) = template.constant() else {
            self.constant.remove(&parsed);
            self.variable.push((parsed, template));
            return Ok(());
        };
        // The error omits the value.
        let value = HeaderValue::from_str(value).map_err(|_| {
            refuse("its value has a line end or another character that a header cannot carry")
        })?;
        self.constant.insert(parsed, value);
        Ok(())
    }

    /// Returns the headers that are made for a request, in addition to the constant ones or in
    /// place of them. A header with a label that the request or its session does not have is
    /// omitted. Headers of the session and of the request replace those of the configuration.
    ///
    /// # Errors
    /// If a value cannot be sent.
    pub(crate) fn of<'a>(&'a self, job: &'a Job) -> Result<Vec<(&'a str, String)>, Failure> {
        let (request_labels, session_labels) = job.request.split_labels();
        let values = HeaderValues {
            id: job.id,
            request_labels,
            session_labels,
        };
        let mut headers = Vec::with_capacity(self.variable.len() + 1);
        for (name, template) in &self.variable {
            let value = template.render(values).map_err(|error| {
                let message = format!("the header `{name}` cannot be sent: {error}");
                Failure::new(ErrorClass::Protocol, message)
            })?;
            headers.extend(value.map(|value| (name.as_str(), value)));
        }
        if let Some(trace_id) = self.trace_id(job) {
            headers.push((TRACEPARENT, traceparent(trace_id)));
        }
        for (name, value) in &job.request.request.headers {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            headers.push((name, value.clone()));
        }
        Ok(headers)
    }

    /// Returns the value of a header of a request.
    pub(crate) fn sent(&self, job: &Job, name: &str) -> Option<String> {
        let own = self.of(job).unwrap_or_default().into_iter();
        let mut own = own.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        own.next().map(|(_, value)| value).or_else(|| {
            let value = self.constant.get(name)?.to_str().ok()?;
            Some(value.to_owned())
        })
    }

    /// Returns the trace id of a request, if it has a `traceparent` of the client or of the
    /// workload.
    pub(crate) fn trace_id(&self, job: &Job) -> Option<u128> {
        let mut own = job.request.request.headers.iter();
        match own.find(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT)) {
            Some((_, value)) => trace_id_in(value),
            None => self.traced_run.as_ref().map(|run_id| trace_id(run_id, job.id)),
        }
    }

    /// Returns all headers of a request.
    ///
    /// # Errors
    /// As [`RequestHeaders::of`].
    pub(crate) fn map_of(&self, job: &Job) -> Result<HeaderMap, Failure> {
        let mut map = self.constant.clone();
        for (name, value) in self.of(job)? {
            let refuse = || {
                let message = format!("the header `{name}` cannot be sent");
                Failure::new(ErrorClass::Protocol, message)
            };
            let parsed = HeaderName::try_from(name).map_err(|_| refuse())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| refuse())?;
            value.set_sensitive(!is_safe_header(name));
            map.insert(parsed, value);
        }
        Ok(map)
    }
}

/// Reads the value of a header that may differ between requests. The error omits the value.
fn template(name: &str, value: &str, config: &TransportConfig) -> Result<HeaderTemplate, TransportError> {
    HeaderTemplate::parse(value, &config.run_id).map_err(|error| TransportError::Header {
        name: name.to_owned(),
        reason: error.to_string(),
    })
}
