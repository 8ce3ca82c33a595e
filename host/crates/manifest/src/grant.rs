//! Capabilities that a user grants to a plugin.

use crate::capability::CapabilityRequest;

/// The capabilities of a plugin in one run. A capability works only if it is granted, and requested
/// by the plugin's manifest. A plugin without a manifest requests whatever it is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityGrants {
    granted: Vec<CapabilityRequest>,
    requested: Option<Vec<CapabilityRequest>>,
}

/// The reason why a plugin may not use a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    /// Nothing grants it.
    NotGranted,
    /// It is granted, and the manifest of the plugin does not request it.
    NotRequested,
}

impl CapabilityGrants {
    /// Combines the grants of the user with the requests of the manifest, if there is one.
    pub fn new(granted: Vec<CapabilityRequest>, requested: Option<Vec<CapabilityRequest>>) -> Self {
        CapabilityGrants { granted, requested }
    }

    /// Returns true if nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.granted.is_empty()
    }

    /// The grants.
    pub fn granted(&self) -> &[CapabilityRequest] {
        &self.granted
    }

    /// Decides if the plugin may read a file, by its path below the scenario's folder.
    ///
    /// # Errors
    /// What is missing.
    pub fn may_read(&self, path: &str) -> Result<(), GrantRefusal> {
        self.decide(|capability| capability.allows_reading(path))
    }

    /// Decides if the plugin may read an environment variable.
    ///
    /// # Errors
    /// What is missing.
    pub fn may_read_variable(&self, variable: &str) -> Result<(), GrantRefusal> {
        self.decide(
            |capability| matches!(capability, CapabilityRequest::Environment { name } if name == variable),
        )
    }

    /// The environment variables that the plugin may read.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let names = self.granted.iter().filter_map(|grant| match grant {
            CapabilityRequest::Environment { name } => Some(name.as_str()),
            CapabilityRequest::ReadBlobs { .. } => None,
        });
        names.filter(|name| self.may_read_variable(name).is_ok())
    }

    /// The grants that the manifest does not request. They have no effect.
    pub fn without_request(&self) -> impl Iterator<Item = &CapabilityRequest> {
        let requested = self.requested.as_deref();
        let grants = self.granted.iter();
        grants.filter(move |grant| {
            requested.is_some_and(|requested| !requested.iter().any(|r| overlap(r, grant)))
        })
    }

    fn decide(&self, allows: impl Fn(&CapabilityRequest) -> bool) -> Result<(), GrantRefusal> {
        if !self.granted.iter().any(&allows) {
            return Err(GrantRefusal::NotGranted);
        }
        match &self.requested {
            Some(requested) if !requested.iter().any(&allows) => Err(GrantRefusal::NotRequested),
            _ => Ok(()),
        }
    }
}

/// Returns true if a request and a grant are of one kind, and of one variable.
fn overlap(request: &CapabilityRequest, grant: &CapabilityRequest) -> bool {
    use CapabilityRequest::{Environment, ReadBlobs};
    match (request, grant) {
        (ReadBlobs { .. }, ReadBlobs { .. }) => true,
        (Environment { name }, Environment { name: other }) => name == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(texts: &[&str]) -> Vec<CapabilityRequest> {
        let parsed = texts.iter().map(|text| CapabilityRequest::parse(text).unwrap());
        parsed.collect()
    }

    #[test]
    fn nothing_is_granted_by_default() {
        let none = CapabilityGrants::new(Vec::new(), Some(capabilities(&["blob:read data/*", "env:A"])));
        assert_eq!(none.may_read("data/a"), Err(GrantRefusal::NotGranted));
        assert_eq!(none.may_read_variable("A"), Err(GrantRefusal::NotGranted));
        assert_eq!(none.variables().count(), 0);
    }

    #[test]
    fn a_capability_needs_a_grant_and_a_request() {
        let grants = CapabilityGrants::new(
            capabilities(&["blob:read data/*", "blob:read more/*", "env:A", "env:B"]),
            Some(capabilities(&["blob:read data/*.txt", "env:A"])),
        );
        assert_eq!(grants.may_read("data/a.txt"), Ok(()));
        assert_eq!(grants.may_read("data/a.bin"), Err(GrantRefusal::NotRequested));
        assert_eq!(grants.may_read("other/a.txt"), Err(GrantRefusal::NotGranted));
        assert_eq!(
            grants.may_read("data/../data/a.txt"),
            Err(GrantRefusal::NotGranted)
        );
        assert_eq!(grants.variables().collect::<Vec<_>>(), ["A"]);
        let idle: Vec<String> = grants.without_request().map(ToString::to_string).collect();
        assert_eq!(idle, ["env:B"]);
    }

    #[test]
    fn a_plugin_without_a_manifest_has_what_it_is_granted() {
        let grants = CapabilityGrants::new(capabilities(&["blob:read data/*", "env:A"]), None);
        assert_eq!(grants.may_read("data/a"), Ok(()));
        assert_eq!(grants.variables().count(), 1);
        assert_eq!(grants.without_request().count(), 0);
    }
}
