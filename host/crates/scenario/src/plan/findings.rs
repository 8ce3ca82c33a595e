//! Violated rules of a scenario, and the rule for addresses.

use veeksha_model::redact_address;

use crate::problem::Problem;
use crate::tree::Node;

/// The violated rules found so far.
pub(super) struct Findings<'a> {
    pub(super) root: &'a Node,
    pub(super) problems: Vec<Problem>,
}

impl Findings<'_> {
    /// Adds a violated rule of the key at a path.
    pub(super) fn add(&mut self, path: &str, message: impl Into<String>) {
        self.add_near(path, message, None);
    }

    /// Adds a violated rule of the key at a path, with the valid name closest to the typed one.
    pub(super) fn add_near(&mut self, path: &str, message: impl Into<String>, nearest: Option<String>) {
        self.problems.push(Problem {
            path: path.to_owned(),
            place: self.root.nearest_to(path).place.clone(),
            message: message.into(),
            nearest,
        });
    }
}

/// Returns the problem with a server's address.
pub(super) fn address_problem(address: &str) -> Option<String> {
    let shown = redact_address(address);
    let Some((scheme, rest)) = address.split_once("://") else {
        return Some(format!("`{shown}` has no scheme; write `http://{shown}`"));
    };
    if !["http", "https", "sim"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Some(format!(
            "the scheme `{scheme}` is unknown; it must be `http`, `https` or `sim`"
        ));
    }
    if address
        .chars()
        .any(|character| character.is_whitespace() || character.is_control())
    {
        return Some("an address must not contain spaces".to_owned());
    }
    // A profile is a name or a file.
    if scheme.eq_ignore_ascii_case("sim") && !rest.is_empty() {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.is_empty() || host.starts_with(':') {
        let example = if scheme.eq_ignore_ascii_case("sim") {
            "sim://PROFILE"
        } else {
            "http://localhost:8000/v1"
        };
        return Some(format!("`{shown}` has no host; write it as in `{example}`"));
    }
    let port = host
        .rsplit_once(':')
        .filter(|_| !host.ends_with(']'))
        .map(|(_, port)| port);
    match port {
        Some(port) if port.parse::<u16>().map_or(true, |port| port == 0) => Some(format!(
            "`{port}` is not a port; a port is a number from 1 to 65535"
        )),
        _ => None,
    }
}
