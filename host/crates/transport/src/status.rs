//! Failure messages for answers with a status other than 2xx.

use serde_json::Value;
use veeksha_endpoint::{Failure, error_in, one_line, shorten};
use veeksha_model::ErrorClass;

use crate::proxy::{CREDENTIALS, Proxy};
use crate::target::{Server, Target};

/// Maximum number of characters of an unknown body that are quoted.
const QUOTED_CHARS: usize = 200;

/// Returns the failure for an answer whose status is not 2xx. `location` is the header of that
/// name.
pub(crate) fn status_failure(
    target: &Target,
    server: &Server,
    status: u16,
    location: Option<&str>,
    body: &[u8],
) -> Failure {
    let text = String::from_utf8_lossy(body);
    let words = match serde_json::from_str::<Value>(&text)
        .ok()
        .as_ref()
        .and_then(error_in)
    {
        Some(error) => error.message,
        None => shorten(&target.redact(&text), QUOTED_CHARS),
    };
    let words = if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    };
    let proxy = server
        .proxy
        .as_deref()
        .and_then(|address| Proxy::parse(address, &server.api_base).ok());
    let message = match status {
        401 | 403 if server.api_key.is_some() => {
            format!(
                "the server refused the API key (HTTP {status}){words}; set OPENAI_API_KEY or client.api_key"
            )
        }
        401 | 403 => {
            format!(
                "the server requires an API key, and none was sent (HTTP {status}){words}; set OPENAI_API_KEY or client.api_key"
            )
        }
        404 => format!(
            "the server has no such model or path (HTTP 404){words}; asked for the model `{}` at `{}` below `{}`",
            target.api.model,
            veeksha_model::redact_address(target.path()),
            veeksha_model::redact_address(&server.api_base)
        ),
        300..=399 => match location {
            Some(location) => format!(
                "the server redirects to `{location}` (HTTP {status}), and redirects are not followed; set client.api_base to the final address"
            ),
            None => format!(
                "the server redirects without an address (HTTP {status}){words}; set client.api_base to the final address"
            ),
        },
        _ => match proxy {
            Some(proxy) if status == 407 => format!(
                "the proxy {} for {} refuses the request (HTTP 407){words}{CREDENTIALS}",
                proxy.place(),
                veeksha_model::redact_address(&server.api_base)
            ),
            // The proxy's own errors, unless the server has the same.
            Some(proxy) if matches!(status, 502..=504) => {
                format!("HTTP {status} through the proxy {}{words}", proxy.place())
            }
            _ => format!("HTTP {status}{words}"),
        },
    };
    Failure::with_status(
        ErrorClass::Status,
        Some(status),
        one_line(&target.redact(&message)),
    )
}

#[cfg(test)]
mod tests {
    use veeksha_endpoint::Api;

    use super::*;
    use crate::ApiKey;

    fn target() -> Target {
        let api = Api {
            model: "tiny".into(),
            ..Api::default()
        };
        Target::single(Server::at("http://h/v1"), api)
    }

    #[test]
    fn status_messages_name_the_fix() {
        let text = |target: &Target, status, location, body: &str| {
            status_failure(target, &target.servers[0], status, location, body.as_bytes()).message
        };
        let plain = target();
        assert_eq!(text(&plain, 503, None, r#"{"message":"down"}"#), "HTTP 503: down");
        assert_eq!(
            text(&plain, 502, None, "<html>\n bad gateway"),
            "HTTP 502: <html> bad gateway"
        );
        assert_eq!(text(&plain, 500, None, ""), "HTTP 500");
        assert!(text(&plain, 401, None, "").contains("none was sent"));
        assert!(text(&plain, 307, Some("https://x/y"), "").contains("`https://x/y`"));
        assert!(text(&plain, 404, None, "").contains("`tiny`"));
        let body = "x".repeat(1_000);
        assert_eq!(
            text(&plain, 500, None, &body),
            format!("HTTP 500: {}…", "x".repeat(200))
        );
    }

    #[test]
    fn redacts_key_in_the_servers_message() {
        let mut target = target();
        target.servers[0].api_key = Some(ApiKey::new("sk-secret-1"));
        target.headers = vec![("X-Api-Key".into(), "other-secret".into())];
        let body = br#"{"error":{"message":"bad key sk-secret-1 and other-secret"}}"#;
        let message = status_failure(&target, &target.servers[0], 401, None, body).message;
        assert!(
            message.contains("OPENAI_API_KEY") && message.contains("client.api_key"),
            "{message}"
        );
        assert!(message.contains("bad key *** and ***"), "{message}");
    }
}
