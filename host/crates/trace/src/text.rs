//! Pieces of messages.

/// How much of a value a message shows, in characters.
const SHOWN: usize = 60;

/// In backquotes, shortened.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

/// The beginning of a text on one line, without characters that would confuse a terminal.
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

/// Names for a message: the first twelve.
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

/// Row numbers for a message: the first eight.
pub(crate) fn numbers(rows: &[u64]) -> String {
    let mut shown = rows.iter().take(8).map(u64::to_string).collect::<Vec<_>>();
    if rows.len() > shown.len() {
        shown.push(format!("{} more", rows.len() - shown.len()));
    }
    shown.join(", ")
}

/// What to do about a column that stands under another name.
pub(crate) fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| {
        format!("; the row has {}: `columns` can rename it", quoted(name))
    })
}

/// The name most like `wanted`, if one is like it at all.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes time that grows with the lengths of both, and nobody calls a column like that.
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
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["timestamp", "input_tokens", "Output Length", "hash_ids"];
        assert_eq!(nearest("output_length", names), Some("Output Length"));
        assert_eq!(nearest("inputs_tokens", names), Some("input_tokens"));
        assert_eq!(nearest("session_id", names), None);
    }

    #[test]
    fn lists_end() {
        let names: Vec<String> = (0..14).map(|i| i.to_string()).collect();
        assert!(list(&names).ends_with("`11`, 2 more"));
        assert_eq!(
            numbers(&(1..=9).collect::<Vec<_>>()),
            "1, 2, 3, 4, 5, 6, 7, 8, 1 more"
        );
    }
}
