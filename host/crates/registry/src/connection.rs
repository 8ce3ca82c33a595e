//! Requests to one repository: addresses, attempts, authentication, and bounded answers.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Deserialize;
use veeksha_manifest::RegistryReference;

use crate::auth::{Challenge, TokenAnswer};
use crate::credentials::{Credentials, PLACES};
use crate::error::RegistryError;

/// Number of attempts for a request that the network or a busy registry lost.
const ATTEMPTS: u32 = 4;
/// Pause before the second attempt; it doubles for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that a registry can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest time without a byte.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum size of an answer with a token or an error.
const LONGEST_ANSWER: u64 = 1 << 20;
const REDIRECTS: usize = 5;

/// A request that can be sent several times.
pub(crate) struct RegistryRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
}

/// A repository of a registry.
pub(crate) struct RegistryConnection {
    client: Client,
    reference: RegistryReference,
    base: Url,
    /// The access that a token must have: `pull`, or `pull,push`.
    actions: &'static str,
    credentials: Option<Credentials>,
    authorization: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl RegistryConnection {
    /// Prepares requests; connects to nothing. Registries on this machine are spoken to without
    /// TLS, as docker does; `plain_http` does so for all.
    pub(crate) fn new(
        reference: &RegistryReference,
        plain_http: bool,
        actions: &'static str,
    ) -> Result<Self, RegistryError> {
        let scheme = if plain_http || is_loopback(&reference.host) {
            "http"
        } else {
            "https"
        };
        let base = format!("{scheme}://{}/v2/{}/", reference.host, reference.repository);
        let base = Url::parse(&base).map_err(|error| RegistryError::Client(error.to_string()))?;
        let is_plain = scheme == "http";
        // An answer of an encrypted registry must not lead to an unencrypted address.
        let policy = Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS {
                attempt.error("too many redirects")
            } else if attempt.url().scheme() != "https" && !is_plain {
                attempt.error("a redirect to an address without TLS")
            } else {
                attempt.follow()
            }
        });
        let builder = Client::builder()
            .redirect(policy)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT);
        let client = veeksha_transport::untimed::client_of_system(builder)
            .map_err(|error| RegistryError::Client(error.to_string()))?;
        Ok(RegistryConnection {
            client,
            base,
            actions,
            credentials: Credentials::of(&reference.host)?,
            authorization: None,
            reference: reference.clone(),
        })
    }

    /// Returns the address of a path below the repository.
    pub(crate) fn url(&self, path: &str) -> Result<Url, RegistryError> {
        self.base.join(path).map_err(|error| self.protocol(error))
    }

    pub(crate) fn protocol(&self, reason: impl ToString) -> RegistryError {
        RegistryError::Protocol {
            host: self.reference.host.clone(),
            reason: reason.to_string(),
        }
    }

    fn denied(&self, reason: impl ToString) -> RegistryError {
        RegistryError::Denied {
            host: self.reference.host.clone(),
            repository: self.reference.repository.clone(),
            reason: reason.to_string(),
        }
    }

    /// Sends a request without a body, whose subject may be missing.
    pub(crate) async fn get(
        &mut self,
        method: Method,
        path: &str,
        accept: Option<&'static str>,
    ) -> Result<Option<Response>, RegistryError> {
        let mut headers = HeaderMap::new();
        if let Some(accept) = accept {
            headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static(accept));
        }
        let request = RegistryRequest {
            method,
            url: self.url(path)?,
            headers,
            body: None,
        };
        let response = self.send(&request).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.success(&request, response).await.map(Some)
    }

    /// Sends a request, and logs in if the registry asks for it.
    pub(crate) async fn send(&mut self, request: &RegistryRequest) -> Result<Response, RegistryError> {
        let response = self.attempts(request).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !self.is_ours(&request.url) {
            return Ok(response);
        }
        let header = response.headers().get(WWW_AUTHENTICATE);
        let challenge = header.and_then(|header| Challenge::parse(header.to_str().ok()?));
        let challenge = challenge.ok_or_else(|| self.denied("it asks for an unknown kind of login"))?;
        self.authorization = Some(self.log_in(challenge).await?);
        let response = self.attempts(request).await?;
        let is_denied = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&response.status());
        if !is_denied {
            return Ok(response);
        }
        Err(match &self.credentials {
            Some(_) => self.denied("the credentials do not allow it"),
            None => self.denied(PLACES),
        })
    }

    /// Returns the answer if it is a success.
    pub(crate) async fn success(
        &self,
        request: &RegistryRequest,
        response: Response,
    ) -> Result<Response, RegistryError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::FORBIDDEN {
            return Err(self.denied(PLACES));
        }
        let body = self.body(response, LONGEST_ANSWER).await.unwrap_or_default();
        let errors = serde_json::from_slice::<ErrorAnswer>(&body);
        let first = errors.ok().and_then(|answer| answer.errors.into_iter().next());
        let message = first.map_or_else(String::new, |error| {
            let text = format!(": {} {}", error.code, error.message);
            text.chars()
                .filter(|letter| !letter.is_control())
                .take(200)
                .collect()
        });
        Err(RegistryError::Status {
            host: self.reference.host.clone(),
            action: format!("{} {}", request.method, request.url.path()),
            status: status.as_u16(),
            message,
        })
    }

    /// Reads at most `limit` bytes of an answer.
    pub(crate) async fn body(&self, mut response: Response, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(&error))? {
            if (body.len() + piece.len()) as u64 > limit {
                return Err(self.protocol(format!("it is longer than {limit} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Sends a request until the registry answers, at most [`ATTEMPTS`] times.
    async fn attempts(&self, request: &RegistryRequest) -> Result<Response, RegistryError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let mut builder = self
                .client
                .request(request.method.clone(), request.url.clone())
                .headers(request.headers.clone());
            if let Some(authorization) = self.authorization.as_ref().filter(|_| self.is_ours(&request.url)) {
                builder = builder.header(AUTHORIZATION, authorization.clone());
            }
            if let Some(body) = &request.body {
                builder = builder.body(body.clone());
            }
            let is_last = attempt >= ATTEMPTS;
            match builder.send().await {
                Ok(response) if is_last || !is_busy(response.status()) => return Ok(response),
                Ok(response) => pause = asked_pause(&response).unwrap_or(pause),
                Err(error) if is_last || error.is_redirect() || error.is_builder() => {
                    return Err(self.unreachable(&error));
                }
                Err(_) => {}
            }
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
            pause *= 2;
        }
        Err(self.protocol("no attempt was made"))
    }

    /// Credentials and tokens are for the registry alone, not for the stores of blobs that it leads
    /// to.
    fn is_ours(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    async fn log_in(&self, challenge: Challenge) -> Result<HeaderValue, RegistryError> {
        let header = |text: String| {
            let header = HeaderValue::from_str(&text).map(|mut header| {
                header.set_sensitive(true);
                header
            });
            header.map_err(|_| self.denied("the credentials have characters that HTTP does not allow"))
        };
        let (realm, service, scope) = match challenge {
            Challenge::Basic => {
                let credentials = self.credentials.as_ref().ok_or_else(|| self.denied(PLACES))?;
                return header(basic(credentials));
            }
            Challenge::Bearer {
                realm,
                service,
                scope,
            } => (realm, service, scope),
        };
        let mut url = Url::parse(&realm).map_err(|_| self.protocol("the address for tokens is not a URL"))?;
        let is_safe =
            url.scheme() == "https" || self.is_ours(&url) || url.host_str().is_some_and(is_loopback);
        if !is_safe {
            return Err(self.protocol("the address for tokens has no TLS"));
        }
        let own = format!("repository:{}:{}", self.reference.repository, self.actions);
        let scope = scope.unwrap_or(own);
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = &service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let mut request = self.client.get(url);
        if let Some(credentials) = &self.credentials {
            request = request.header(AUTHORIZATION, header(basic(credentials))?);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            let reason = if self.credentials.is_some() {
                "the credentials are not accepted"
            } else {
                PLACES
            };
            return Err(self.denied(reason));
        }
        let body = self.body(response, LONGEST_ANSWER).await?;
        let answer = serde_json::from_slice::<TokenAnswer>(&body).ok();
        let token = answer.and_then(TokenAnswer::token);
        let token = token.ok_or_else(|| self.protocol("the answer has no token"))?;
        header(format!("Bearer {token}"))
    }

    fn unreachable(&self, error: &reqwest::Error) -> RegistryError {
        let mut reason = String::new();
        let mut cause: Option<&dyn std::error::Error> = Some(error);
        // The first message repeats the address, the last one has the reason.
        while let Some(error) = cause {
            reason = error.to_string();
            cause = error.source();
        }
        RegistryError::Unreachable {
            host: self.reference.host.clone(),
            reason,
        }
    }
}

fn basic(credentials: &Credentials) -> String {
    use base64::Engine as _;
    let pair = format!("{}:{}", credentials.username, credentials.password);
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
}

/// Returns true for answers that a later attempt may replace.
fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

fn asked_pause(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// Returns true for a host of this machine, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.is_empty() => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for host in [
            "localhost",
            "localhost:5000",
            "127.0.0.1:1",
            "[::1]:5000",
            "[::1]",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "ghcr.io",
            "localhost.example.org",
            "10.0.0.1:5000",
            "127.0.0.1.example.org",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
