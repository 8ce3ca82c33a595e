//! Capabilities that a plugin requests.

use std::fmt;

use crate::path_pattern::PathPattern;

/// A capability that a manifest requests. Nothing is granted by a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapabilityRequest {
    /// `blob:read GLOB`: reading the files that match, relative to the scenario's folder.
    ReadBlobs {
        /// The pattern of paths.
        glob: String,
    },
    /// `env:NAME`: reading one environment variable.
    Environment {
        /// The name of the variable.
        name: String,
    },
}

impl CapabilityRequest {
    /// The forms of a request, for messages.
    pub const FORMS: &'static str = "`blob:read GLOB` or `env:NAME`; a GLOB is relative, without `..`";

    /// Reads a request; none if the text has none of the [`FORMS`](Self::FORMS).
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(glob) = text.strip_prefix("blob:read ") {
            let glob = glob.trim();
            return PathPattern::parse(glob).map(|_| CapabilityRequest::ReadBlobs {
                glob: glob.to_owned(),
            });
        }
        let name = text.strip_prefix("env:")?;
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        is_name(name).then(|| CapabilityRequest::Environment {
            name: name.to_owned(),
        })
    }

    /// Returns the capability as a phrase: "read the environment variable `A`".
    pub fn sentence(&self) -> String {
        match self {
            CapabilityRequest::ReadBlobs { glob } if glob.contains(['*', '?']) => {
                format!("read the files `{glob}` of the scenario's folder")
            }
            CapabilityRequest::ReadBlobs { glob } => {
                format!("read the file `{glob}` of the scenario's folder")
            }
            CapabilityRequest::Environment { name } => format!("read the environment variable `{name}`"),
        }
    }

    /// Returns true if it allows to read a file, by its path below the scenario's folder.
    pub fn allows_reading(&self, path: &str) -> bool {
        match self {
            CapabilityRequest::ReadBlobs { glob } => {
                PathPattern::parse(glob).is_some_and(|pattern| pattern.matches(path))
            }
            CapabilityRequest::Environment { .. } => false,
        }
    }
}

impl fmt::Display for CapabilityRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CapabilityRequest::ReadBlobs { glob } => write!(formatter, "blob:read {glob}"),
            CapabilityRequest::Environment { name } => write!(formatter, "env:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_and_prints_them_again() {
        for text in ["blob:read data/*.jsonl", "env:HF_HOME"] {
            let request = CapabilityRequest::parse(text).unwrap();
            assert_eq!(request.to_string(), text);
        }
    }

    #[test]
    fn a_sentence_states_what_it_allows() {
        let sentence = |text| CapabilityRequest::parse(text).unwrap().sentence();
        assert_eq!(
            sentence("blob:read a/*"),
            "read the files `a/*` of the scenario's folder"
        );
        assert_eq!(
            sentence("blob:read a"),
            "read the file `a` of the scenario's folder"
        );
        assert_eq!(sentence("env:A"), "read the environment variable `A`");
    }

    #[test]
    fn refuses_other_forms() {
        for text in [
            "",
            "blob:read ",
            "blob:write data",
            "blob:read ../data",
            "blob:read /data",
            "env:",
            "env:A B",
            "env:1",
            "net:host",
        ] {
            assert_eq!(CapabilityRequest::parse(text), None, "{text}");
        }
    }
}
