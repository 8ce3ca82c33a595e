//! The last call of a host function, for the report of a failure.

use std::fmt;

use crate::text::one_line;

/// Maximum length of a text in a report, in characters.
const MAX_TEXT_CHARS: usize = 80;

/// A call of a host function, with its arguments shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostCall {
    Words {
        session: u64,
        stream: String,
        first: u32,
        count: u32,
    },
    /// `tokens.count` or `tokens.encode`, with the length of the text in bytes.
    Tokens {
        function: &'static str,
        bytes: usize,
    },
    Vocabulary,
    BlobOpen {
        name: String,
    },
    BlobRead {
        offset: u64,
        len: u32,
    },
    /// A query about the results of a run, with the name of the metric.
    Results {
        function: &'static str,
        metric: String,
    },
}

impl HostCall {
    /// A query about the results of a run.
    pub(crate) fn results(function: &'static str, metric: &str) -> Self {
        let metric = one_line(metric, MAX_TEXT_CHARS);
        HostCall::Results { function, metric }
    }
}

impl fmt::Display for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = |text: &str| one_line(text, MAX_TEXT_CHARS);
        match self {
            HostCall::Words {
                session,
                stream,
                first,
                count,
            } => write!(
                f,
                "random.words(session = {session}, stream = \"{}\", first = {first}, count = {count})",
                cut(stream)
            ),
            HostCall::Tokens { function, bytes } => write!(f, "tokens.{function}({bytes} bytes)"),
            HostCall::Vocabulary => f.write_str("tokens.vocabulary()"),
            HostCall::BlobOpen { name } => write!(f, "blob.open(\"{}\")", cut(name)),
            HostCall::BlobRead { offset, len } => write!(f, "blob.read(offset = {offset}, len = {len})"),
            HostCall::Results { function, metric } => write!(f, "results.{function}(\"{metric}\")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_are_shortened() {
        let call = HostCall::BlobOpen {
            name: "x".repeat(200),
        };
        assert_eq!(call.to_string(), format!("blob.open(\"{}…\")", "x".repeat(80)));
        let call = HostCall::Tokens {
            function: "count",
            bytes: 7,
        };
        assert_eq!(call.to_string(), "tokens.count(7 bytes)");
    }
}
