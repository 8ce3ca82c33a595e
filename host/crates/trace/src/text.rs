//! Parts of messages.

/// Maximum number of characters of a value in a message.
const SHOWN: usize = 60;

/// Returns the text in backquotes, shortened.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

/// Returns the beginning of a text on one line, without control characters.
pub(crate) fn shortened(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Lists names for a message: the first twelve.
pub(crate) fn list(names: &[String]) -> String {
    let mut shown = names.iter().take(12).map(|name| quoted(name)).collect::<Vec<_>>();
    if names.is_empty() {
        return "none".to_owned();
    }
    if names.len() > shown.len() {
        shown.push(format!("{} more", names.len() - shown.len()));
    }
    shown.join(", ")
}

/// Lists row numbers for a message: the first eight.
pub(crate) fn numbers(rows: &[u64]) -> String {
    let mut shown = rows.iter().take(8).map(u64::to_string).collect::<Vec<_>>();
    if rows.len() > shown.len() {
        shown.push(format!("{} more", rows.len() - shown.len()));
    }
    shown.join(", ")
}

/// Returns advice about a column with a similar name.
pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| {
        format!("; the row has {}: `columns` can rename it", quoted(name))
    })
}

/// Returns the name most similar to `wanted`, if one is similar enough.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparison time grows with both lengths, and real column names are short.
    let sane = |name: &&str| name.len() <= 256;
    let plain = |name: &str| name.to_lowercase().replace([' ', '-', '.'], "_");
    let wanted = plain(wanted);
    let score = |name: &str| {
        let name = plain(name);
        let contains =
            name.len() >= 4 && wanted.len() >= 4 && (name.contains(&wanted) || wanted.contains(&name));
        strsim::jaro_winkler(&wanted, &name) + if contains { 0.1 } else { 0.0 }
    };
    names
        .into_iter()
        .filter(sane)
        .map(|name| (score(name), name))
        .filter(|(score, _)| *score >= 0.85)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shortened_to_one_line() {
        assert_eq!(shortened("a\nb\u{1b}"), "a b ");
        let long = "é".repeat(61);
        assert_eq!(shortened(&long), format!("{}...", "é".repeat(60)));
        assert_eq!(shortened(&long[..120]), "é".repeat(60));
    }

    #[test]
    fn finds_only_similar_names() {
        let names = ["timestamp", "input_tokens", "Output Length", "hash_ids"];
        assert_eq!(nearest("output_length", names), Some("Output Length"));
        assert_eq!(nearest("inputs_tokens", names), Some("input_tokens"));
        assert_eq!(nearest("session_id", names), None);
    }

    #[test]
    fn shortens_lists() {
        let names: Vec<String> = (0..14).map(|i| i.to_string()).collect();
        assert!(list(&names).ends_with("`11`, 2 more"));
        assert_eq!(
            numbers(&(1..=9).collect::<Vec<_>>()),
            "1, 2, 3, 4, 5, 6, 7, 8, 1 more"
        );
    }
}
