//! Untimed requests: the list of models and the files of a tokenizer. They use a general-purpose
//! HTTP client on a dedicated runtime. The list of models is requested directly from the target,
//! like the timed requests; downloads use the proxy settings of the environment. Both follow
//! redirects.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::runtime::Builder;

use crate::api_key::ApiKey;
use crate::error::TransportError;
use crate::proxy::Proxy;
use crate::target::{Server, Target, TlsOptions};
use crate::tls::client_config;
use crate::url::ServerAddress;
use veeksha_endpoint::{HeaderTemplate, error_in};
use veeksha_endpoint::{one_line, shorten};
use veeksha_model::redact_address;

/// Maximum size in bytes. A list of models or an error message is never this large; a larger body
/// would only fill memory.
const LARGEST: usize = 4 << 20;

/// Maximum time without progress of a download.
const STALLED: Duration = Duration::from_secs(60);

/// Returns the ids of the models that one server of a target offers (`GET models`), requested
/// through its proxy if it has one. An empty list is a valid answer: dynamo without workers returns
/// it.
pub fn list_models(
    target: &Target,
    server: &Server,
    timeout: Duration,
) -> Result<Vec<String>, TransportError> {
    let endpoint = ServerAddress::parse(&server.api_base, "models")?;
    let scheme = if endpoint.tls { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", endpoint.authority, endpoint.path_and_query);
    let mut builder = Client::builder()
        .timeout(timeout)
        .redirect(Policy::none())
        .no_proxy();
    let proxy = match &server.proxy {
        Some(address) => {
            let proxy = reqwest::Proxy::all(address).map_err(|_| TransportError::Proxy {
                server: redact_address(&server.api_base),
                reason: "it is not an address such as http://proxy:3128".to_owned(),
            })?;
            builder = builder.proxy(proxy);
            Some(Proxy::parse(address, &server.api_base)?.place())
        }
        None => None,
    };
    // Over plain HTTP, without redirects, no certificate is ever checked. Reading the certificates
    // of the system would only delay the start.
    let tls = if endpoint.tls {
        server.tls.clone()
    } else {
        TlsOptions {
            insecure: true,
            ..TlsOptions::default()
        }
    };
    let mut request = client(builder, &tls, &url)?.get(&url);
    for (name, text) in target.api.endpoint.extra_headers() {
        request = request.header(&**name, &**text);
    }
    if let Some((name, text)) = target.key_header(server) {
        request = request.header(name, text);
    }
    for (name, value) in target.headers.iter().chain(&server.headers) {
        // The request belongs to no session.
        if HeaderTemplate::parse(value, "").is_ok_and(|template| template.constant() == Some(value)) {
            request = request.header(name, value);
        }
    }
    let answer: Result<Value, TransportError> = block_on(&url, async {
        let response = answered(request, &url, proxy.as_deref(), |text| target.redact(text)).await?;
        let body = body_of(response, &url).await?;
        serde_json::from_slice(&body)
            .map_err(|error| untimed(&url, &format!("the answer is not JSON: {error}")))
    })?;
    let answer = answer?;
    let models = answer.get("data").and_then(Value::as_array).ok_or_else(|| {
        let text = shorten(&target.redact(&answer.to_string()), 200);
        untimed(&url, &format!("the answer is not a list of models: {text}"))
    })?;
    Ok(models
        .iter()
        .filter_map(|model| model.get("id").and_then(Value::as_str))
        .map(str::to_owned)
        .collect())
}

/// Downloads `url` to the file `to`, which is replaced only when everything has arrived.
pub fn download(url: &str, bearer: Option<&ApiKey>, to: &Path) -> Result<(), TransportError> {
    let builder = Client::builder().connect_timeout(STALLED).read_timeout(STALLED);
    let mut request = client(builder, &TlsOptions::default(), url)?.get(url);
    if let Some(key) = bearer {
        request = request.bearer_auth(key.expose());
    }
    let part = part_file(to);
    let result = block_on(url, fetch(request, url, bearer, &part))?;
    let result = result.and_then(|()| {
        std::fs::rename(&part, to).map_err(|source| TransportError::Write {
            path: to.to_owned(),
            source,
        })
    });
    if result.is_err() {
        // The partial file is useless, and it may not exist.
        let _ = std::fs::remove_file(&part);
    }
    result
}

async fn fetch(
    request: RequestBuilder,
    url: &str,
    bearer: Option<&ApiKey>,
    part: &Path,
) -> Result<(), TransportError> {
    let redact = |text: &str| {
        bearer.map_or_else(
            || text.to_owned(),
            |key| crate::api_key::redact(text, key.expose()),
        )
    };
    let mut response = answered(request, url, None, redact).await?;
    let failed = |source| TransportError::Write {
        path: part.to_owned(),
        source,
    };
    let mut file = std::fs::File::create(part).map_err(failed)?;
    loop {
        let piece = response
            .chunk()
            .await
            .map_err(|error| untimed(url, &causes(&error)))?;
        let Some(piece) = piece else { break };
        file.write_all(&piece).map_err(failed)?;
    }
    file.sync_all().map_err(failed)
}

/// Returns a path next to `to` that no other process uses.
fn part_file(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    to.with_file_name(name)
}

/// Returns a client with the certificates of the system, for requests that are not measured.
///
/// # Errors
/// If the certificates cannot be used.
pub fn client_of_system(builder: reqwest::ClientBuilder) -> Result<Client, TransportError> {
    client(builder, &TlsOptions::default(), "")
}

fn client(builder: reqwest::ClientBuilder, tls: &TlsOptions, url: &str) -> Result<Client, TransportError> {
    let user_agent = concat!("veeksha-host/", env!("CARGO_PKG_VERSION"));
    builder
        .user_agent(user_agent)
        .tls_backend_preconfigured(client_config(tls)?)
        .build()
        .map_err(|error| untimed(url, &causes(&error)))
}

/// Sends a request and returns its answer if the status is 2xx. `proxy` is the configured proxy.
async fn answered(
    request: RequestBuilder,
    url: &str,
    proxy: Option<&str>,
    redact: impl Fn(&str) -> String,
) -> Result<Response, TransportError> {
    let proxy_failed = |proxy: &str, reason: String| TransportError::ProxyFailed {
        proxy: proxy.to_owned(),
        url: redact_address(url),
        reason,
    };
    let response = request.send().await.map_err(|error| {
        let reason = redact(&causes(&error));
        match proxy {
            _ if !error.is_connect() => untimed(url, &reason),
            // Through a proxy, only the TLS handshake is with the server.
            Some(proxy) if !is_tls(&error) => proxy_failed(proxy, reason),
            _ => TransportError::Unreachable {
                url: redact_address(url),
                reason,
            },
        }
    })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    if let (Some(proxy), StatusCode::PROXY_AUTHENTICATION_REQUIRED) = (proxy, status) {
        return Err(proxy_failed(
            proxy,
            format!("it refuses the request with HTTP {status}"),
        ));
    }
    let body = body_of(response, url).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let words = match serde_json::from_str::<Value>(&body)
        .ok()
        .as_ref()
        .and_then(error_in)
    {
        Some(error) => error.message,
        None => shorten(&redact(&body), 200),
    };
    Err(untimed(
        url,
        &one_line(&redact(&format!("HTTP {status}: {words}"))),
    ))
}

fn block_on<T>(url: &str, future: impl Future<Output = T>) -> Result<T, TransportError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| untimed(url, &error.to_string()))?;
    Ok(runtime.block_on(future))
}

/// Returns a body of at most [`LARGEST`] bytes.
async fn body_of(mut response: Response, url: &str) -> Result<Vec<u8>, TransportError> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| untimed(url, &causes(&error)))?
    {
        if body.len() + piece.len() > LARGEST {
            return Err(untimed(
                url,
                &format!("the answer is larger than {LARGEST} bytes"),
            ));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn untimed(url: &str, reason: &str) -> TransportError {
    TransportError::Untimed {
        url: redact_address(url),
        reason: reason.to_owned(),
    }
}

/// Returns true if an error of TLS is among the causes.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        let inner = source
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        if source.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        next = source.source();
    }
    false
}

/// Returns an error of the client and its causes as text, without the URL, which the caller adds.
fn causes(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "no answer in time".to_owned()
    } else {
        "no answer".to_owned()
    };
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}
