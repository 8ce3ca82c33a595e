//! References to plugins, as scenarios and commands write them.

use std::fmt;

use crate::plugin_manifest::is_plugin_name;

/// The scheme of a reference to a registry.
const SCHEME: &str = "oci://";
const LONGEST_REFERENCE: usize = 512;
const LONGEST_TAG: usize = 128;

/// A plugin as a scenario names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginReference {
    /// A component, or a bundle (`.tar`), by its path.
    File(String),
    /// A bundle in a registry.
    Registry(RegistryReference),
    /// A name in the lock.
    Locked(String),
}

impl PluginReference {
    /// Reads the value of a scenario's key `plugin`. Text that begins with `oci://` is a reference to
    /// a registry; text with only lower case letters, digits, `-` and `_` is a name in the lock;
    /// everything else is a path.
    ///
    /// # Errors
    /// If the text begins with `oci://` and is not a reference.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        if text.starts_with(SCHEME) {
            return RegistryReference::parse(text).map(PluginReference::Registry);
        }
        if is_plugin_name(text) {
            return Ok(PluginReference::Locked(text.to_owned()));
        }
        Ok(PluginReference::File(text.to_owned()))
    }
}

/// A bundle in a registry: `oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryReference {
    /// The registry's host, with its port if it has one.
    pub host: String,
    /// The repository: `team/coder`.
    pub repository: String,
    /// The tag; if absent, `latest` unless there is a digest.
    pub tag: Option<String>,
    /// The digest of the bundle's manifest, as `sha256:` and 64 hexadecimal digits.
    pub digest: Option<String>,
}

impl RegistryReference {
    /// Reads a reference, with or without its scheme.
    ///
    /// # Errors
    /// If a part has characters that it may not have.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let error = |problem| ReferenceError {
            text: text.chars().take(LONGEST_REFERENCE).collect(),
            problem,
        };
        if text.len() > LONGEST_REFERENCE {
            return Err(error("it is longer than 512 bytes"));
        }
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (host, path) = rest.split_once('/').ok_or(error("it has no repository"))?;
        if !is_host(host) {
            return Err(error("its host has characters that a host cannot have"));
        }
        let (path, digest) = match path.split_once('@') {
            Some((path, digest)) => (path, Some(digest)),
            None => (path, None),
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if !is_repository(repository) {
            return Err(error(
                "its repository must have lower case letters, digits and single `.`, `_`, `-` between them",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(error(
                "its tag must have letters, digits, `.`, `_` and `-`, at most 128",
            ));
        }
        if digest.is_some_and(|digest| !is_sha256(digest)) {
            return Err(error("its digest must be `sha256:` and 64 hexadecimal digits"));
        }
        Ok(RegistryReference {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// Returns the tag or the digest by which a registry finds the manifest.
    pub fn version(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest,
            (None, Some(tag)) => tag,
            (None, None) => "latest",
        }
    }
}

impl fmt::Display for RegistryReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(formatter, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(formatter, "@{digest}")?;
        }
        Ok(())
    }
}

/// A text that begins like a reference to a registry and is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a reference to a registry: {problem}; the form is oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST]"
)]
pub struct ReferenceError {
    text: String,
    problem: &'static str,
}

/// Returns true for `sha256:` and 64 lower case hexadecimal digits.
pub fn is_sha256(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_digit))
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        // The colons of an address of IPv6 are inside brackets.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    let is_address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-');
    (is_address || is_name) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_repository(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split('/').all(|part| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|byte| is_letter(*byte))
            && bytes.last().is_some_and(|byte| is_letter(*byte))
            && bytes.iter().all(|byte| is_letter(*byte) || b"._-".contains(byte))
            && !part.contains("..")
    })
}

fn is_tag(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= LONGEST_TAG
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn text_is_a_path_a_reference_or_a_name() {
        assert_eq!(
            PluginReference::parse("coder"),
            Ok(PluginReference::Locked("coder".to_owned()))
        );
        for path in ["coder.wasm", "./coder", "/dev/zero", "a/b", "Coder"] {
            assert_eq!(
                PluginReference::parse(path),
                Ok(PluginReference::File(path.to_owned()))
            );
        }
        assert!(matches!(
            PluginReference::parse("oci://ghcr.io/team/coder:1.2"),
            Ok(PluginReference::Registry(_))
        ));
    }

    #[test]
    fn reads_the_parts_of_a_reference_and_prints_them_again() {
        let with_digest = format!("oci://[::1]:5000/a-b/c_d:1.2@{DIGEST}");
        for (text, host, repository, tag, version) in [
            ("oci://ghcr.io/coder", "ghcr.io", "coder", None, "latest"),
            (
                "oci://localhost:5000/team/coder:1.2",
                "localhost:5000",
                "team/coder",
                Some("1.2"),
                "1.2",
            ),
            (with_digest.as_str(), "[::1]:5000", "a-b/c_d", Some("1.2"), DIGEST),
        ] {
            let reference = RegistryReference::parse(text).unwrap();
            assert_eq!(reference.host, host);
            assert_eq!(reference.repository, repository);
            assert_eq!(reference.tag.as_deref(), tag);
            assert_eq!(reference.version(), version);
            assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn refuses_parts_that_could_leave_the_repository() {
        for text in [
            "oci://",
            "oci://ghcr.io",
            "oci://ghcr.io/",
            "oci:///coder",
            "oci://ghcr.io/../coder",
            "oci://ghcr.io/a//b",
            "oci://ghcr.io/Coder",
            "oci://ghcr.io/a?b",
            "oci://user@ghcr.io/a",
            "oci://ghcr.io:99999/a",
            "oci://ghcr.io/a:",
            "oci://ghcr.io/a:b/c:d e",
            "oci://ghcr.io/a@sha256:abc",
            "oci://ghcr.io/a@md5:abc",
        ] {
            assert!(PluginReference::parse(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        /// A reference that is read is printed as it was written.
        #[test]
        fn references_survive(text in "oci://[a-z.:0-9]{1,9}/[a-z/._-]{1,9}(:[a-zA-Z0-9._-]{0,9})?") {
            if let Ok(reference) = RegistryReference::parse(&text) {
                assert_eq!(reference.to_string(), text);
            }
        }
    }
}
