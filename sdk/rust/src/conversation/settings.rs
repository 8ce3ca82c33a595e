//! Settings that flavors with recorded answers share, as the user writes them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::flavor::HistoryMode;
use crate::types::Request;

/// The kind of limit on the length of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputControl {
    /// Exactly that many tokens.
    #[default]
    Exact,
    /// At most that many tokens.
    AtMost,
    /// Not at all: the server decides.
    Free,
}

impl OutputControl {
    /// Asks for an answer of this length. A length that is unknown, or 0, is not asked for.
    pub fn ask(self, request: Request, tokens: Option<u32>) -> Request {
        match (self, tokens) {
            (OutputControl::Free, _) | (_, None | Some(0)) => request,
            (OutputControl::Exact, Some(tokens)) => request.output_exactly(tokens),
            (OutputControl::AtMost, Some(tokens)) => request.output_at_most(tokens),
        }
    }
}

/// The names of the history modes in a configuration.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Live,
    Recorded,
    Fresh,
}

impl<'de> Deserialize<'de> for HistoryMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Name::deserialize(deserializer)? {
            Name::Live => HistoryMode::Live,
            Name::Recorded => HistoryMode::Recorded,
            Name::Fresh => HistoryMode::Fresh,
        })
    }
}

impl Serialize for HistoryMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self {
            HistoryMode::Live => Name::Live,
            HistoryMode::Recorded => Name::Recorded,
            HistoryMode::Fresh => Name::Fresh,
        };
        name.serialize(serializer)
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the type is generated from the contract, which knows no defaults"
)]
impl Default for HistoryMode {
    fn default() -> Self {
        HistoryMode::Live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::types::Output;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    #[derive(Default)]
    struct Config {
        history: HistoryMode,
        output_control: OutputControl,
    }

    #[test]
    fn the_settings_are_written_by_name_and_have_defaults() {
        let read = |text| config::from_json::<Config>(text);
        assert_eq!(
            read("{}"),
            Ok(Config {
                history: HistoryMode::Live,
                output_control: OutputControl::Exact
            })
        );
        assert_eq!(
            read(r#"{"history": "recorded", "output_control": "at_most"}"#),
            Ok(Config {
                history: HistoryMode::Recorded,
                output_control: OutputControl::AtMost
            })
        );
        let error = read(r#"{"history": "recoded"}"#).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("/history"));
        assert_eq!(error.hint.as_deref(), Some("did you mean `recorded`?"));
        for mode in [HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh] {
            let written = serde_json::to_string(&mode).unwrap();
            assert_eq!(serde_json::from_str::<HistoryMode>(&written).unwrap(), mode);
        }
    }

    #[test]
    fn a_length_is_asked_for_as_chosen_and_never_zero() {
        let asked = |control: OutputControl, tokens| {
            let Output {
                target_tokens, exact, ..
            } = control.ask(Request::new(0), tokens).output;
            (target_tokens, exact)
        };
        assert_eq!(asked(OutputControl::Exact, Some(7)), (Some(7), true));
        assert_eq!(asked(OutputControl::AtMost, Some(7)), (Some(7), false));
        assert_eq!(asked(OutputControl::Free, Some(7)), (None, false));
        assert_eq!(asked(OutputControl::Exact, None), (None, false));
        assert_eq!(asked(OutputControl::Exact, Some(0)), (None, false));
    }
}
