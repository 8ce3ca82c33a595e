//! The manifest of a plugin.

use crate::capability::CapabilityRequest;
use crate::error::ManifestError;
use crate::kind::PluginKind;
use crate::language::Language;
use crate::run_rules::{InstancePolicy, OnTrap};
use crate::toml_reader::{TableReader, TomlValue, parse_document};

/// The name of the file.
pub const FILE_NAME: &str = "plugin.toml";

/// The maximum length of a plugin's name, in bytes.
const LONGEST_NAME: usize = 64;

/// The facts that a plugin's author states about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginManifest {
    /// The name: lower case letters, digits, `-` and `_`.
    pub name: String,
    /// The version of the plugin.
    pub version: semver::Version,
    /// The purpose, in one line.
    pub summary: String,
    /// The licence, as an SPDX expression.
    pub license: Option<String>,
    /// The authors.
    pub authors: Vec<String>,
    /// The address of the source.
    pub repository: Option<String>,
    /// The kinds that the component exports, at least one.
    pub kinds: Vec<PluginKind>,
    /// The language of the source.
    pub language: Language,
    /// The number of instances; if absent, the host's default.
    pub instances: Option<InstancePolicy>,
    /// The consequence of a trap; if absent, the host's default.
    pub on_trap: Option<OnTrap>,
    /// The capabilities that the plugin requests.
    pub requests: Vec<CapabilityRequest>,
}

/// Returns true for a name that a plugin may have.
pub fn is_plugin_name(name: &str) -> bool {
    let is_letter =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(is_letter)
}

impl PluginManifest {
    /// Reads the text of a manifest.
    ///
    /// # Errors
    /// The first mistake, with its line and the nearest name.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let document = parse_document(text)?;
        let mut root = TableReader::root(text, document.get_ref());
        let mut plugin = root.table("plugin")?;
        let mut build = root.table("build")?;
        let mut run = root.table("run")?;
        let mut capabilities = root.table("capabilities")?;
        root.finish()?;
        // Unknown keys are reported before missing ones, which they often explain.
        let name = plugin.required("name", NAME_FORM);
        let version = plugin.required("version", VERSION_FORM);
        let summary = plugin.required("summary", "the purpose, in one line");
        let license = plugin.optional("license");
        let authors = plugin.optional("authors");
        let repository = plugin.optional("repository");
        let kinds = plugin.required("kinds", "the interfaces that the plugin exports");
        plugin.finish()?;
        let language = build.required("language", "the language of the source");
        build.finish()?;
        let instances = run.optional("instances");
        let on_trap = run.optional("on_trap");
        run.finish()?;
        let requests = capabilities.optional("requests");
        capabilities.finish()?;
        Ok(PluginManifest {
            name: plugin_name(&name?)?,
            version: plugin_version(&version?)?,
            summary: one_line(&summary?)?,
            license: license.as_ref().map(one_line).transpose()?,
            authors: list(authors.as_ref(), one_line)?,
            repository: repository.as_ref().map(one_line).transpose()?,
            kinds: plugin_kinds(&kinds?)?,
            language: language?.one_of(&Language::ALL, Language::name)?,
            instances: instances
                .map(|value| value.one_of(&InstancePolicy::ALL, InstancePolicy::name))
                .transpose()?,
            on_trap: on_trap
                .map(|value| value.one_of(&OnTrap::ALL, OnTrap::name))
                .transpose()?,
            requests: list(requests.as_ref(), request)?,
        })
    }
}

const NAME_FORM: &str = "lower case letters, digits, `-` and `_`, first a letter, at most 64";
const VERSION_FORM: &str = "a version such as 0.1.0";

fn plugin_name(value: &TomlValue<'_>) -> Result<String, ManifestError> {
    let name = value.string()?;
    if is_plugin_name(name) {
        return Ok(name.to_owned());
    }
    Err(value.invalid(format!("`{name}`"), format!("expected {NAME_FORM}")))
}

fn plugin_version(value: &TomlValue<'_>) -> Result<semver::Version, ManifestError> {
    let text = value.string()?;
    semver::Version::parse(text)
        .map_err(|_| value.invalid(format!("`{text}`"), format!("expected {VERSION_FORM}")))
}

/// Text that is printed in one line.
fn one_line(value: &TomlValue<'_>) -> Result<String, ManifestError> {
    let text = value.string()?;
    if text.trim().is_empty() {
        return Err(value.invalid("empty".into(), "remove the key or give it a value".into()));
    }
    if text.chars().any(char::is_control) {
        return Err(value.invalid(
            "several lines".into(),
            "expected one line without control characters".into(),
        ));
    }
    Ok(text.to_owned())
}

fn plugin_kinds(value: &TomlValue<'_>) -> Result<Vec<PluginKind>, ManifestError> {
    let mut kinds = Vec::new();
    for entry in value.array()? {
        let kind = entry.one_of(&PluginKind::ALL, PluginKind::name)?;
        if kinds.contains(&kind) {
            return Err(entry.invalid(format!("`{kind}` again"), "name each kind once".into()));
        }
        kinds.push(kind);
    }
    if kinds.is_empty() {
        return Err(value.invalid(
            "empty".into(),
            "name the interfaces that the plugin exports".into(),
        ));
    }
    Ok(kinds)
}

fn request(value: &TomlValue<'_>) -> Result<CapabilityRequest, ManifestError> {
    let text = value.string()?;
    CapabilityRequest::parse(text).ok_or_else(|| {
        value.invalid(
            format!("`{text}`"),
            format!("expected {}", CapabilityRequest::FORMS),
        )
    })
}

fn list<T>(
    value: Option<&TomlValue<'_>>,
    entry: fn(&TomlValue<'_>) -> Result<T, ManifestError>,
) -> Result<Vec<T>, ManifestError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    value.array()?.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
[plugin]
name = "coder"
version = "0.1.0"
summary = "an agent"
license = "Apache-2.0"
authors = ["A", "B"]
repository = "https://example.org/coder"
kinds = ["agent-generator", "metric"]
[build]
language = "rust"
[run]
instances = "pooled"
on_trap = "restart"
[capabilities]
requests = ["blob:read data/*.jsonl", "env:HF_HOME"]
"#;

    fn mistake(from: &str, to: &str) -> String {
        let text = WHOLE.replace(from, to);
        assert_ne!(text, WHOLE, "{from}");
        PluginManifest::parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn reads_every_key() {
        let manifest = PluginManifest::parse(WHOLE).unwrap();
        assert_eq!(manifest.name, "coder");
        assert_eq!(manifest.version, semver::Version::new(0, 1, 0));
        assert_eq!(manifest.license.as_deref(), Some("Apache-2.0"));
        assert_eq!(manifest.authors, ["A", "B"]);
        assert_eq!(manifest.kinds, [PluginKind::AgentGenerator, PluginKind::Metric]);
        assert_eq!(manifest.language, Language::Rust);
        assert_eq!(manifest.instances, Some(InstancePolicy::Pooled));
        assert_eq!(manifest.on_trap, Some(OnTrap::Restart));
        assert_eq!(manifest.requests.len(), 2);
    }

    #[test]
    fn tables_run_and_capabilities_are_optional() {
        let text = WHOLE.split("[run]").next().unwrap();
        let manifest = PluginManifest::parse(text).unwrap();
        assert_eq!((manifest.instances, manifest.on_trap), (None, None));
        assert!(manifest.requests.is_empty());
    }

    #[test]
    fn unknown_keys_have_the_nearest_name() {
        assert_eq!(
            mistake("summary", "sumary"),
            "line 5: unknown key plugin.sumary: did you mean summary?"
        );
        assert_eq!(
            mistake("[run]", "[runs]"),
            "line 12: unknown key runs: did you mean run?"
        );
        assert_eq!(
            mistake("on_trap =", "zzz ="),
            "line 14: unknown key run.zzz: expected one of instances, on_trap"
        );
    }

    #[test]
    fn wrong_values_name_line_key_and_fix() {
        assert_eq!(
            mistake("\"rust\"", "\"rusty\""),
            "line 11: build.language is `rusty`: did you mean rust?"
        );
        assert_eq!(
            mistake("\"metric\"", "\"agent_generator\""),
            "line 9: plugin.kinds[1] is `agent_generator`: did you mean agent-generator?"
        );
        assert_eq!(
            mistake("\"metric\"", "\"agent-generator\""),
            "line 9: plugin.kinds[1] is `agent-generator` again: name each kind once"
        );
        assert_eq!(
            mistake("\"coder\"", "\"My Coder\""),
            "line 3: plugin.name is `My Coder`: expected lower case letters, digits, `-` and `_`, first a letter, at \
             most 64"
        );
        assert_eq!(
            mistake("\"0.1.0\"", "1"),
            "line 4: plugin.version is an integer: expected a string"
        );
        assert_eq!(
            mistake("env:HF_HOME", "net:all"),
            "line 16: capabilities.requests[1] is `net:all`: expected `blob:read GLOB` or `env:NAME`; a GLOB is \
             relative, without `..`"
        );
    }

    #[test]
    fn missing_keys_and_syntax_are_errors() {
        assert_eq!(
            mistake("version = \"0.1.0\"\n", ""),
            "plugin.version is missing: a version such as 0.1.0"
        );
        assert_eq!(
            PluginManifest::parse("").unwrap_err().to_string(),
            "plugin.name is missing: lower case letters, digits, `-` and `_`, first a letter, at most 64"
        );
        assert!(matches!(
            PluginManifest::parse("[plugin]\nname = \n"),
            Err(ManifestError::Syntax { line: 2, .. })
        ));
    }

    proptest::proptest! {
        /// Any text is read or refused.
        #[test]
        fn no_text_panics(text in "[\\[\\]a-z=\".\n#{},0-9-]{0,200}") {
            let _ = PluginManifest::parse(&text);
        }

        /// A manifest with bytes exchanged is read or refused.
        #[test]
        fn no_mutation_panics(at in 0..WHOLE.len(), byte in 0_u8..128) {
            let mut bytes = WHOLE.as_bytes().to_vec();
            bytes[at] = byte;
            let _ = PluginManifest::parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
