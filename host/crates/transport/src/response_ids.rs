//! The ids of a response in its head, for answers without one in the body.

/// Headers with the id of a response: the usual one, and Anthropic's.
const ID_HEADERS: [&str; 2] = ["x-request-id", "request-id"];

/// The values of the headers.
#[derive(Debug, Default)]
pub(crate) struct ResponseIds([Option<String>; ID_HEADERS.len()]);

impl ResponseIds {
    /// Reads them from a head.
    pub(crate) fn of(header: &impl Fn(&str) -> Option<String>) -> Self {
        ResponseIds(ID_HEADERS.map(|name| header(name).filter(|id| !id.is_empty())))
    }

    /// Returns the id that the server gave. A value that equals the request's header of the same
    /// name was not given by the server: many repeat it. `sent` returns the request's value.
    pub(crate) fn given(self, sent: impl Fn(&str) -> Option<String>) -> Option<String> {
        let ids = ID_HEADERS.into_iter().zip(self.0);
        ids.filter_map(|(name, id)| id.map(|id| (name, id)))
            .find(|(name, id)| sent(name).as_ref() != Some(id))
            .map(|(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_id_is_not_the_servers() {
        let given = |usual: &'static str, other: &'static str| {
            let header = |name: &str| Some(if name == "x-request-id" { usual } else { other }.to_owned());
            let sent = |name: &str| (name == "x-request-id").then(|| "run/0/1".to_owned());
            ResponseIds::of(&header).given(sent)
        };
        assert_eq!(given("a", "b").as_deref(), Some("a"));
        assert_eq!(given("run/0/1", "b").as_deref(), Some("b"));
        assert_eq!(given("run/0/1", ""), None);
        // Only the header of the same name can repeat it.
        assert_eq!(given("", "run/0/1").as_deref(), Some("run/0/1"));
    }
}
