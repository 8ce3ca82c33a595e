//! Validation of the metrics that a plugin defines.

use std::collections::HashSet;

use veeksha_model::{Better, MetricDefinition};
use veeksha_ports::MAX_METRICS;

use crate::bindings::metric as wit;
use crate::text::{cut, one_line};

/// Maximum length of a name, in characters.
const NAME: usize = 64;
/// Maximum length of a unit, in characters; the rest is cut.
const UNIT: usize = 32;
/// Maximum length of a summary, in characters; the rest is cut.
const SUMMARY: usize = 500;

/// Converts the definitions to the host's types.
///
/// # Errors
/// If a definition is invalid; the error is the reason.
pub(crate) fn admit(
    definitions: Vec<wit::Definition>,
    plugin: &str,
) -> Result<Vec<MetricDefinition>, String> {
    if definitions.is_empty() {
        return Err("it defines no metrics".into());
    }
    if definitions.len() > MAX_METRICS {
        return Err(format!(
            "it defines {} metrics, at most {MAX_METRICS} are taken",
            definitions.len()
        ));
    }
    let mut names = HashSet::new();
    definitions
        .into_iter()
        .map(|definition| {
            let name = definition.name;
            if !is_name(&name) {
                return Err(format!(
                    "`{}` is not a metric name; one begins with a letter a to z, goes on with letters, digits and `_`, and has \
                     at most {NAME} characters",
                    cut(&name, 80).escape_debug()
                ));
            }
            if !names.insert(name.clone()) {
                return Err(format!("it defines `{name}` twice"));
            }
            Ok(MetricDefinition {
                name,
                unit: one_line(&definition.unit, UNIT),
                better: match definition.better {
                    wit::Better::Higher => Better::Higher,
                    wit::Better::Less => Better::Less,
                    wit::Better::Neither => Better::Neither,
                },
                summary: one_line(&definition.summary, SUMMARY),
                plugin: plugin.to_owned(),
            })
        })
        .collect()
}

/// Returns true for `[a-z][a-z0-9_]*` within the maximum length.
fn is_name(name: &str) -> bool {
    name.len() <= NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(names: &[&str]) -> Result<Vec<MetricDefinition>, String> {
        let definition = |name: &&str| wit::Definition {
            name: (*name).into(),
            unit: "s\n".into(),
            better: wit::Better::Less,
            summary: "how\nlong".into(),
        };
        admit(names.iter().map(definition).collect(), "p")
    }

    #[test]
    fn sound_definitions_are_taken_with_the_plugins_name() {
        let longest = "a".repeat(64);
        let definitions = defined(&["x", "a_1", &longest]).unwrap();
        let expected = MetricDefinition {
            name: "x".into(),
            unit: "s".into(),
            better: Better::Less,
            summary: "how long".into(),
            plugin: "p".into(),
        };
        assert_eq!(definitions[0], expected);
        assert_eq!(definitions[1].name, "a_1");
        assert_eq!(definitions[2].name, longest);
    }

    #[test]
    fn names_that_files_and_objectives_cannot_carry_are_refused() {
        for name in [
            "",
            "A",
            "1a",
            "_a",
            "a-b",
            "a b",
            "ä",
            "a{",
            "a.b",
            &"a".repeat(65),
        ] {
            let why = defined(&["fine", name]).unwrap_err();
            assert!(why.contains("is not a metric name"), "{name:?}: {why}");
        }
        assert_eq!(defined(&["a", "b", "a"]).unwrap_err(), "it defines `a` twice");
        assert_eq!(defined(&[]).unwrap_err(), "it defines no metrics");
        let names: Vec<String> = (0..257).map(|i| format!("m{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(defined(&names[..256]).map(|all| all.len()), Ok(256));
        assert_eq!(
            defined(&names).unwrap_err(),
            "it defines 257 metrics, at most 256 are taken"
        );
    }
}
