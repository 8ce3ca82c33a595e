//! Short questions about one long document, which a server can cache.

use veeksha_plugin::{Error, Plugin, Random, Request, Session, SessionGenerator, synthetic};

#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SharedDocument {
    /// Tokens of the document that all questions share.
    document_tokens: u32,
    /// Questions of one user, who reads each answer before the next question.
    questions: u32,
}

impl Default for SharedDocument {
    fn default() -> Self {
        SharedDocument {
            document_tokens: 2000,
            questions: 2,
        }
    }
}

impl Plugin for SharedDocument {
    type Config = Self;
    const NAME: &'static str = "shared_document";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "short questions about one long document";
}

impl SessionGenerator for SharedDocument {
    fn open(config: Self) -> Result<Self, Error> {
        if config.document_tokens == 0 {
            return Err(Error::config("/document_tokens", "must be at least 1"));
        }
        Ok(config)
    }

    fn session(&self, index: u64, random: Random) -> Result<Session, Error> {
        let mut lengths = random.stream("question");
        let mut requests = Vec::new();
        for node in 0..self.questions {
            let question = synthetic(1000 * index + u64::from(node), lengths.between(20, 60));
            let request = Request::new(node).user(question).output_exactly(64);
            requests.push(match node {
                // The same seed in every session gives the same text.
                0 => request.system(synthetic(1, self.document_tokens)),
                _ => request.history(node - 1),
            });
        }
        Ok(Session::new(requests))
    }
}

veeksha_plugin::export_session_generator!(SharedDocument);
