//! Headers by which routers and servers recognize the requests of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The session headers of a router or of a coding agent. Header names, values and sources are in
/// the table of [`SessionHeaders::set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum SessionHeaders {
    /// NVIDIA Dynamo: `x-dynamo-session-id`.
    Dynamo,
    /// The session affinity of the llm-d router: `x-session-id`.
    LlmD,
    /// The sticky policies of the Shepherd (SGLang) Model Gateway: `x-smg-routing-key`.
    Smg,
    /// Claude Code: `x-claude-code-session-id`.
    ClaudeCode,
    /// OpenCode: `x-session-affinity` and `x-session-id`.
    Opencode,
    /// Codex: `session-id` and `thread-id`.
    Codex,
}

/// The headers of one entry of [`SessionHeaders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHeaderSet {
    /// Names and values, as in `client.headers`.
    pub headers: &'static [(&'static str, &'static str)],
    /// The document or the code that defines the names.
    pub source: &'static str,
}

/// A session's id that no session of another run has.
const SESSION: &str = "{{run.id}}-{{session.id}}";

impl SessionHeaders {
    /// All of them, in the order of the documentation.
    pub const ALL: [SessionHeaders; 6] = [
        SessionHeaders::Dynamo,
        SessionHeaders::LlmD,
        SessionHeaders::Smg,
        SessionHeaders::ClaudeCode,
        SessionHeaders::Opencode,
        SessionHeaders::Codex,
    ];

    /// Returns the headers and their source.
    pub fn set(self) -> SessionHeaderSet {
        let (headers, source): (&'static [_], _) = match self {
            SessionHeaders::Dynamo => (
                &[("x-dynamo-session-id", SESSION)],
                "https://docs.nvidia.com/dynamo/dev/agents/identify-agent-sessions \
                 (dynamo-llm 1.4.0, src/protocols/agents.rs)",
            ),
            SessionHeaders::LlmD => (
                &[("x-session-id", SESSION)],
                "the default of session-id-producer: llm-d/llm-d-router a3b490f0, \
                 pkg/epp/framework/plugins/requestcontrol/dataproducer/sessionid/README.md",
            ),
            SessionHeaders::Smg => (
                &[("x-smg-routing-key", SESSION)],
                "lightseekorg/smg 6fcadf99, docs/configuration/routing.md",
            ),
            SessionHeaders::ClaudeCode => (
                &[("x-claude-code-session-id", SESSION)],
                "https://code.claude.com/docs/en/llm-gateway-protocol (llm-d/llm-d-router 3a44f6e9, \
                 pkg/epp/framework/plugins/requestcontrol/preadmissionprocessor/agentidentity/README.md)",
            ),
            SessionHeaders::Opencode => (
                &[("x-session-affinity", SESSION), ("x-session-id", SESSION)],
                "anomalyco/opencode 05f35982, packages/opencode/src/session/llm/request.ts",
            ),
            SessionHeaders::Codex => (
                &[("session-id", SESSION), ("thread-id", SESSION)],
                "openai/codex d6670823, codex-rs/codex-api/src/requests/headers.rs",
            ),
        };
        SessionHeaderSet { headers, source }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(SessionHeaders),
    Several(Vec<SessionHeaders>),
}

/// Reads one entry, or a list.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<SessionHeaders>, D::Error> {
    Ok(match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(one) => vec![one],
        OneOrSeveral::Several(several) => several,
    })
}

pub(super) fn one_or_several_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let one = generator.subschema_for::<SessionHeaders>();
    schemars::json_schema!({"anyOf": [one, {"type": "array", "items": one}]})
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use veeksha_endpoint::HeaderTemplate;
    use veeksha_model::is_reserved_header;

    use super::*;

    #[test]
    fn every_set_has_valid_headers_and_a_source() {
        for headers in SessionHeaders::ALL {
            let set = headers.set();
            assert!(!set.headers.is_empty() && !set.source.is_empty(), "{headers:?}");
            let names: BTreeSet<&str> = set.headers.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), set.headers.len(), "{headers:?}");
            for (name, value) in set.headers {
                assert!(!is_reserved_header(name) && *name == name.to_ascii_lowercase());
                assert!(HeaderTemplate::parse(value, "r").unwrap().constant().is_none());
            }
        }
    }
}
