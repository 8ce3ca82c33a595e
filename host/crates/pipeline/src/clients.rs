//! The clients of a scenario, which requests choose by name.

use std::sync::Arc;

use veeksha_model::{DEFAULT_CLIENT, Request, Session, printable};
use veeksha_stats::RandomStream;

use crate::fallback::MinTokensPrompt;

/// The label with the name of a request's client, in a scenario with several clients.
pub const CLIENT_LABEL: &str = "client";

/// A client as the pipeline knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpec {
    /// The name by which requests choose it.
    pub name: Arc<str>,
    /// Asks for the minimum output length in the prompt.
    pub min_tokens_prompt: Option<MinTokensPrompt>,
}

/// The clients of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSpecs {
    /// That of requests without a client first.
    specs: Arc<[ClientSpec]>,
}

/// One client.
impl Default for ClientSpecs {
    fn default() -> Self {
        ClientSpecs::new(None, Vec::new())
    }
}

impl ClientSpecs {
    /// The clients of a run: the one of requests that name none, by the text with which it asks for
    /// a minimum length, and the others.
    pub fn new(min_tokens_prompt: Option<MinTokensPrompt>, others: Vec<ClientSpec>) -> Self {
        let default = ClientSpec {
            name: DEFAULT_CLIENT.into(),
            min_tokens_prompt,
        };
        ClientSpecs {
            specs: std::iter::once(default).chain(others).collect(),
        }
    }

    /// Returns the position of a request's client; 0 if its name is unknown, which a checked
    /// request's is not.
    pub(crate) fn index(&self, client: Option<&str>) -> usize {
        client.map_or(0, |name| self.position(name).unwrap_or(0))
    }

    /// Returns the names of the clients.
    pub(crate) fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.specs.iter().map(|spec| &*spec.name)
    }

    /// Returns the text by which a request asks for a minimum length.
    pub(crate) fn min_tokens_prompt(&self, request: &Request) -> Option<&MinTokensPrompt> {
        let spec = self.specs.get(self.index(request.client.as_deref()))?;
        spec.min_tokens_prompt.as_ref()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| *spec.name == *name)
    }

    /// Checks that the clients of a session's requests exist.
    ///
    /// # Errors
    /// One line for the workload's author.
    pub fn check(&self, session: &Session) -> Result<(), String> {
        session.requests.iter().try_for_each(|request| {
            let why = match &request.client {
                Some(name) if self.position(name).is_none() => self.unknown(name),
                _ if self.specs.len() > 1 && has_label(session, request) => format!(
                    "the label `{CLIENT_LABEL}` is the name of the request's client in a scenario with `clients`; give the \
                     workload's label another name"
                ),
                _ => return Ok(()),
            };
            Err(format!("node {}: {why}", request.node))
        })
    }

    /// Checks a session, and labels its requests with their clients if there are several.
    ///
    /// # Errors
    /// The same as for [`ClientSpecs::check`].
    pub(crate) fn take(&self, session: &mut Session) -> Result<(), String> {
        self.check(session)?;
        for request in &mut session.requests {
            let index = self.index(request.client.as_deref());
            if index == 0 {
                // One way to write it, so that requests of one client are known to be.
                request.client = None;
            }
            if let Some(spec) = self.specs.get(index).filter(|_| self.specs.len() > 1) {
                request
                    .labels
                    .push((CLIENT_LABEL.to_owned(), spec.name.to_string()));
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let shown = printable(&name.chars().take(80).collect::<String>());
        let remedy = match veeksha_slo::nearest(name, self.names()) {
            Some(name) => format!("; did you mean `{name}`?"),
            None if self.specs.len() < 2 => "; declare it in `clients` of the scenario".to_owned(),
            None => {
                let names: Vec<_> = self.names().map(|name| format!("`{name}`")).collect();
                format!("; the scenario's clients are {}", names.join(", "))
            }
        };
        format!("the client `{shown}` does not exist{remedy}")
    }
}

fn has_label(session: &Session, request: &Request) -> bool {
    let mut labels = session.labels.iter().chain(&request.labels);
    labels.any(|(name, _)| name == CLIENT_LABEL)
}

/// Returns the seed of the simulator behind a client: equal profiles do not draw equal times.
/// `None` is the client of requests that name none.
pub fn engine_seed(seed: u64, client: Option<&str>) -> u64 {
    client.map_or(seed, |name| {
        RandomStream::new(seed, 0, &format!("client {name}"))
            .draws()
            .next_u64()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use veeksha_model::NodeId;

    fn specs(others: &[&str]) -> ClientSpecs {
        let spec = |name: &&str| ClientSpec {
            name: (*name).into(),
            min_tokens_prompt: None,
        };
        ClientSpecs::new(None, others.iter().map(spec).collect())
    }

    fn session(client: Option<&str>) -> Session {
        Session::from(vec![Request {
            node: NodeId(4),
            client: client.map(str::to_owned),
            ..Request::default()
        }])
    }

    #[test]
    fn unknown_clients_are_refused_with_the_nearest_name() {
        let several = specs(&["judge", "critic"]);
        for client in [None, Some("default"), Some("judge")] {
            assert_eq!(several.check(&session(client)), Ok(()));
        }
        let refused = |specs: &ClientSpecs, name: &str| specs.check(&session(Some(name))).unwrap_err();
        assert_eq!(
            refused(&several, "jugde"),
            "node 4: the client `jugde` does not exist; did you mean `judge`?"
        );
        assert_eq!(
            refused(&several, "xyz"),
            "node 4: the client `xyz` does not exist; the scenario's clients are `default`, `judge`, `critic`"
        );
        assert_eq!(
            refused(&specs(&[]), "judge"),
            "node 4: the client `judge` does not exist; declare it in `clients` of the scenario"
        );
        assert!(specs(&[]).check(&session(Some("default"))).is_ok());
    }

    #[test]
    fn requests_are_labelled_with_their_clients() {
        let several = specs(&["judge"]);
        for (client, label, left) in [
            (None, "default", None),
            (Some("default"), "default", None),
            (Some("judge"), "judge", Some("judge")),
        ] {
            let mut taken = session(client);
            several.take(&mut taken).unwrap();
            assert_eq!(
                taken.requests[0].labels,
                [("client".to_owned(), label.to_owned())]
            );
            assert_eq!(taken.requests[0].client.as_deref(), left);
        }
    }

    #[test]
    fn scenarios_with_one_client_have_no_label() {
        let mut taken = session(Some("default"));
        specs(&[]).take(&mut taken).unwrap();
        assert_eq!(taken, session(None));
    }

    #[test]
    fn the_label_is_reserved_where_there_are_several_clients() {
        let labelled = Session {
            labels: vec![("client".to_owned(), "acme".to_owned())],
            ..session(None)
        };
        assert!(specs(&[]).check(&labelled).is_ok());
        let refused = specs(&["judge"]).check(&labelled).unwrap_err();
        assert!(refused.starts_with("node 4: the label `client` is"), "{refused}");
    }

    #[test]
    fn simulators_of_several_clients_draw_separately() {
        assert_eq!(engine_seed(7, None), 7);
        let seeds = [None, Some("a"), Some("b")].map(|name| engine_seed(7, name));
        assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2]);
    }
}
