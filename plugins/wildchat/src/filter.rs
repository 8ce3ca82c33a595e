//! The filter of conversations.

use crate::config::Config;
use crate::row::Cells;

/// Why a conversation is not used; `None` if it is.
pub(crate) fn refusal(row: &Cells, config: &Config) -> Option<String> {
    for (column, value, key, wanted) in [
        ("language", &row.language, "languages", &config.languages),
        ("model", &row.model, "models", &config.models),
    ] {
        if wanted.is_empty() {
            continue;
        }
        match value {
            Some(value) if wanted.contains(value) => {}
            Some(value) => return Some(format!("the {column} `{value}` is none of `{key}`")),
            None => return Some(format!("it has no {column}, and `{key}` asks for one")),
        }
    }
    for (column, marked, key, skipped) in [
        ("toxic", row.toxic, "skip_toxic", config.skip_toxic),
        ("redacted", row.redacted, "skip_redacted", config.skip_redacted),
    ] {
        if skipped && marked == Some(true) {
            return Some(format!("it is marked as {column}, and `{key}` is set"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(config: &str, row: &str) -> Option<String> {
        let row: Cells = serde_json::from_str(row).unwrap();
        refusal(&row, &veeksha_plugin::config::from_json(config).unwrap())
    }

    #[test]
    fn each_filter_looks_at_its_column() {
        let row = r#"{"language": "German", "model": "gpt-4", "toxic": true, "redacted": true, "conversation": []}"#;
        for passes in [
            "{}",
            r#"{"languages": ["English", "German"]}"#,
            r#"{"models": ["gpt-4"]}"#,
            r#"{"skip_toxic": false}"#,
        ] {
            assert_eq!(refused(passes, row), None, "{passes}");
        }
        for (config, expected) in [
            (
                r#"{"languages": ["English"]}"#,
                "the language `German` is none of `languages`",
            ),
            (
                r#"{"models": ["gpt-4o"]}"#,
                "the model `gpt-4` is none of `models`",
            ),
            (
                r#"{"skip_toxic": true}"#,
                "it is marked as toxic, and `skip_toxic` is set",
            ),
            (
                r#"{"skip_redacted": true}"#,
                "it is marked as redacted, and `skip_redacted` is set",
            ),
        ] {
            assert_eq!(refused(config, row).as_deref(), Some(expected));
        }
        let bare = r#"{"conversation": []}"#;
        assert_eq!(
            refused(r#"{"skip_toxic": true, "skip_redacted": true}"#, bare),
            None
        );
        assert!(refused(r#"{"languages": ["English"]}"#, bare).is_some());
    }
}
