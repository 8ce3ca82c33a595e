//! Suggestions for mistyped names.

/// Returns the name closest to `typed`, if one is close enough to suggest.
///
/// A name is close if at most a third of its letters differ (Damerau-Levenshtein over the longer
/// name, ignoring case and treating dashes as underscores), or if one name contains the other.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = plain(typed);
    if wanted.is_empty() || wanted.len() > 200 {
        return None;
    }
    let mut best: Option<(f64, &str)> = None;
    for name in names {
        let candidate = plain(name);
        let mut score = strsim::normalized_damerau_levenshtein(&wanted, &candidate);
        let contained = candidate.contains(&wanted) || wanted.contains(&candidate);
        if wanted.len() >= 3 && candidate.len() >= 3 && contained {
            score = score.max(0.67);
        }
        if score > 0.66 && best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, name));
        }
    }
    best.map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggests_similar_names_only() {
        let names = ["ttfc", "tbc", "error_rate", "end_to_end_latency"];
        assert_eq!(nearest("error-rate", names), Some("error_rate"));
        assert_eq!(nearest("errorate", names), Some("error_rate"));
        assert_eq!(nearest("TTFC", names), Some("ttfc"));
        assert_eq!(nearest("ttcf", names), Some("ttfc"));
        assert_eq!(nearest("latency", names), Some("end_to_end_latency"));
        let keys = ["arrival_rate", "cv", "type", "max_sessions", "seed"];
        assert_eq!(nearest("arival_rate", keys), Some("arrival_rate"));
        assert_eq!(nearest("arrival-rate", keys), Some("arrival_rate"));
        assert_eq!(nearest("Type", keys), Some("type"));
        assert_eq!(nearest("tpye", keys), Some("type"));
        assert_eq!(nearest("rate", keys), Some("arrival_rate"));
        assert_eq!(nearest("maxsessions", keys), Some("max_sessions"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest(&"t".repeat(500), names), None);
    }
}
