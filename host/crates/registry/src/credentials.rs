//! Credentials of registries: of the environment, or of the files of docker and podman.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::error::RegistryError;

/// The environment variables with a name and a password.
const USER_VARIABLE: &str = "VEEKSHA_REGISTRY_USERNAME";
const PASSWORD_VARIABLE: &str = "VEEKSHA_REGISTRY_PASSWORD";

/// The places of credentials, for messages.
pub(crate) const PLACES: &str = "log in with `docker login` or `podman login`, or set VEEKSHA_REGISTRY_USERNAME and VEEKSHA_REGISTRY_PASSWORD";

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) username: String,
    pub(crate) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Credentials").finish_non_exhaustive()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DockerConfig {
    auths: BTreeMap<String, DockerAuth>,
    creds_store: Option<String>,
    cred_helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DockerAuth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

impl Credentials {
    /// Returns the credentials of a host, if there are any.
    ///
    /// # Errors
    /// If a file that exists cannot be read.
    pub(crate) fn of(host: &str) -> Result<Option<Self>, RegistryError> {
        let variable = |name| {
            std::env::var(name)
                .ok()
                .filter(|value: &String| !value.is_empty())
        };
        if let (Some(username), Some(password)) = (variable(USER_VARIABLE), variable(PASSWORD_VARIABLE)) {
            return Ok(Some(Credentials { username, password }));
        }
        for path in files() {
            if let Ok(text) = std::fs::read_to_string(&path)
                && let Some(found) = of_file(&path, &text, host)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the files with credentials, the most specific first.
fn files() -> Vec<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let docker = variable("DOCKER_CONFIG").or_else(|| Some(variable("HOME")?.join(".docker")));
    [
        variable("REGISTRY_AUTH_FILE"),
        docker.map(|folder| folder.join("config.json")),
        variable("XDG_RUNTIME_DIR").map(|folder| folder.join("containers/auth.json")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_file(path: &Path, text: &str, host: &str) -> Result<Option<Credentials>, RegistryError> {
    let failure = |reason: &str| RegistryError::Credentials {
        path: path.display().to_string(),
        reason: reason.to_owned(),
    };
    // The message of the parser could repeat a password.
    let config: DockerConfig =
        serde_json::from_str(text).map_err(|_| failure("the file is not valid JSON"))?;
    let helper = config.cred_helpers.get(host).or(config.creds_store.as_ref());
    if let Some(found) = helper.and_then(|helper| of_helper(helper, host)) {
        return Ok(Some(found));
    }
    let keys = [
        host.to_owned(),
        format!("https://{host}"),
        format!("http://{host}"),
    ];
    let Some(auth) = keys.iter().find_map(|key| config.auths.get(key)) else {
        return Ok(None);
    };
    if let Some(encoded) = auth.auth.as_deref().filter(|encoded| !encoded.is_empty()) {
        let bytes = STANDARD
            .decode(encoded)
            .map_err(|_| failure("`auth` is not base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| failure("`auth` is not UTF-8"))?;
        let (username, password) = text
            .split_once(':')
            .ok_or_else(|| failure("`auth` has no colon"))?;
        return Ok(Some(Credentials {
            username: username.to_owned(),
            // Some versions of docker fill up the password with NUL.
            password: password.trim_end_matches('\0').to_owned(),
        }));
    }
    Ok(auth
        .username
        .clone()
        .zip(auth.password.clone())
        .map(|(username, password)| Credentials { username, password }))
}

/// Asks the program that docker's file names. One that fails has no credentials.
fn of_helper(helper: &str, host: &str) -> Option<Credentials> {
    let is_name = helper
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if !is_name || helper.is_empty() {
        return None;
    }
    let mut child = Command::new(format!("docker-credential-{helper}"))
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(host.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    let answer: HelperAnswer = serde_json::from_slice(&output.stdout).ok()?;
    Some(Credentials {
        username: answer.username,
        password: answer.secret,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, host: &str) -> Option<(String, String)> {
        let found = of_file(Path::new("config.json"), text, host).unwrap()?;
        Some((found.username, found.password))
    }

    #[test]
    fn reads_the_forms_of_docker() {
        // `me:secret` and `me:a:b` in base64.
        let text = r#"{"auths": {
            "ghcr.io": {"auth": "bWU6c2VjcmV0"},
            "https://quay.io": {"auth": "bWU6YTpi"},
            "localhost:5000": {"username": "u", "password": "p"},
            "empty": {}
        }, "unknown": 1}"#;
        let pair = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        assert_eq!(found(text, "ghcr.io"), pair("me", "secret"));
        assert_eq!(found(text, "quay.io"), pair("me", "a:b"));
        assert_eq!(found(text, "localhost:5000"), pair("u", "p"));
        assert_eq!(found(text, "empty"), None);
        assert_eq!(found(text, "docker.io"), None);
    }

    #[test]
    fn messages_do_not_repeat_the_file() {
        for text in [
            "{\"auths\": \"hidden\"",
            r#"{"auths": {"h": {"auth": "hid den"}}}"#,
        ] {
            let error = of_file(Path::new("c.json"), text, "h").unwrap_err().to_string();
            assert!(!error.contains("hid"), "{error}");
        }
    }

    #[test]
    fn a_helper_is_a_plain_name() {
        assert_eq!(of_helper("../../bin/sh", "h"), None);
        assert_eq!(of_helper("does-not-exist", "h"), None);
    }
}
