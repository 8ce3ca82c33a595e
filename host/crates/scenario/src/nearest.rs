//! Suggestions for mistyped names.

/// Returns the name closest to `typed`, if one is close enough to suggest.
///
/// A name is close if at most a third of its letters differ (Damerau-Levenshtein over the longer
/// name, ignoring case and treating dashes as underscores), or if one name contains the other.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let wanted = plain(typed);
    if wanted.is_empty() || wanted.len() > 200 {
        return None;
    }
    let mut best: Option<(f64, &str)> = None;
    for name in names {
        let candidate = plain(name);
        let mut score = strsim::normalized_damerau_levenshtein(&wanted, &candidate);
        if wanted.len() >= 3
            && candidate.len() >= 3
            && (candidate.contains(&wanted) || wanted.contains(&candidate))
        {
            score = score.max(0.67);
        }
        if score > 0.66 && best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name.to_owned())
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggests_similar_names() {
        let names = ["arrival_rate", "cv", "type", "max_sessions", "seed"];
        assert_eq!(nearest("arival_rate", names).as_deref(), Some("arrival_rate"));
        assert_eq!(nearest("arrival-rate", names).as_deref(), Some("arrival_rate"));
        assert_eq!(nearest("Type", names).as_deref(), Some("type"));
        assert_eq!(nearest("tpye", names).as_deref(), Some("type"));
        assert_eq!(nearest("rate", names).as_deref(), Some("arrival_rate"));
        assert_eq!(nearest("maxsessions", names).as_deref(), Some("max_sessions"));
    }

    #[test]
    fn suggests_nothing_for_unlike_names() {
        let names = ["arrival_rate", "cv", "type"];
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
    }
}
