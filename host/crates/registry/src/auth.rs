//! Authentication as the registries of OCI do it: a challenge, and a token for one repository.

use serde::Deserialize;

/// The challenge of an answer with status 401.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A name and a password with every request.
    Basic,
    /// A token from another address.
    Bearer {
        /// The address.
        realm: String,
        /// The service that the token is for.
        service: Option<String>,
        /// The access that the registry wants.
        scope: Option<String>,
    },
}

/// The answer with a token.
#[derive(Deserialize)]
pub(crate) struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl TokenAnswer {
    pub(crate) fn token(self) -> Option<String> {
        self.token.or(self.access_token).filter(|token| !token.is_empty())
    }
}

impl Challenge {
    /// Reads the header `WWW-Authenticate`.
    pub(crate) fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Challenge::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = rest.trim();
        while let Some((key, after)) = rest.split_once('=') {
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_once(',').unwrap_or((after, "")),
            };
            match key.trim().to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value.to_owned()),
                "service" => service = Some(value.to_owned()),
                "scope" => scope = Some(value.to_owned()),
                _ => {}
            }
            rest = after.trim_start_matches([',', ' ']);
        }
        Some(Challenge::Bearer {
            realm: realm?,
            service,
            scope,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification of distribution's token authentication.
    #[test]
    fn reads_the_example_of_the_specification() {
        let header = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:samalba/my-app:pull,push""#;
        assert_eq!(
            Challenge::parse(header),
            Some(Challenge::Bearer {
                realm: "https://auth.docker.io/token".to_owned(),
                service: Some("registry.docker.io".to_owned()),
                scope: Some("repository:samalba/my-app:pull,push".to_owned()),
            })
        );
        assert_eq!(
            Challenge::parse("Basic realm=\"Registry\""),
            Some(Challenge::Basic)
        );
        for header in [
            "",
            "Bearer",
            "Bearer service=x",
            "Bearer realm=\"x",
            "BlobDigest a=b",
        ] {
            assert_eq!(Challenge::parse(header), None, "{header}");
        }
    }
}
