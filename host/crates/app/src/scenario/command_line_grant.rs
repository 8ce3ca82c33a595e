//! Capabilities that the command line grants.

use veeksha_manifest::CapabilityRequest;

/// A grant of the command line: `--grant 'PLUGIN=blob:read data/*'`. It concerns one invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLineGrant {
    pub(crate) plugin: String,
    pub(crate) capability: CapabilityRequest,
}

impl std::str::FromStr for CommandLineGrant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(plugin, capability)| {
            Some(CommandLineGrant {
                plugin: plugin.trim().to_owned(),
                capability: CapabilityRequest::parse(capability.trim())?,
            })
        });
        parsed.ok_or_else(|| {
            format!(
                "expected PLUGIN=CAPABILITY, with the name of the plugin (its file without `.wasm`) and {}",
                CapabilityRequest::FORMS
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_of_the_command_line_names_a_plugin_and_a_capability() {
        let grant: CommandLineGrant = "coder=blob:read data/*.jsonl".parse().unwrap();
        assert_eq!(grant.plugin, "coder");
        assert_eq!(grant.capability.to_string(), "blob:read data/*.jsonl");
        for text in ["", "coder", "coder=", "coder=blob:read ../x", "env:A"] {
            assert!(text.parse::<CommandLineGrant>().is_err(), "{text}");
        }
    }
}
