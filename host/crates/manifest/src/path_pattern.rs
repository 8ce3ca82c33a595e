//! Patterns of paths below a folder: `data/*.jsonl`.

use std::fmt;

/// The maximum length of a pattern, in bytes.
const LONGEST: usize = 1024;

/// A pattern of relative paths. `*` matches any characters of one name, `?` one character, and `**`
/// as a whole name any number of folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathPattern(String);

impl PathPattern {
    /// Reads a pattern; none if it is empty, absolute or too long, or has an empty name, `.` or
    /// `..`.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() <= LONGEST && is_plain_path(text)).then(|| PathPattern(text.to_owned()))
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a path matches. A path that is not plain (absolute, `..`) never does.
    pub fn matches(&self, path: &str) -> bool {
        let pattern: Vec<&str> = self.0.split('/').collect();
        let names: Vec<&str> = path.split('/').collect();
        is_plain_path(path) && names_match(&pattern, &names)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Returns true for a relative path whose names are neither empty nor `.` nor `..`, without
/// backslashes and control characters.
fn is_plain_path(path: &str) -> bool {
    let is_name = |name: &str| {
        !matches!(name, "" | "." | "..") && !name.contains(|c: char| c == '\\' || c.is_control())
    };
    path.split('/').all(is_name)
}

/// Matches the names of a path. Each `**` tries the shortest match first; only the last one is
/// extended after a mismatch, so that the time is at most the product of both lengths.
fn names_match(pattern: &[&str], names: &[&str]) -> bool {
    greedy(
        pattern,
        names,
        |part| *part == "**",
        |part, name| {
            let (part, name): (Vec<char>, Vec<char>) = (part.chars().collect(), name.chars().collect());
            greedy(&part, &name, |c| *c == '*', |c, other| *c == '?' || c == other)
        },
    )
}

/// Matches two sequences, of which the first may have parts that match any number of items.
fn greedy<P, N>(
    pattern: &[P],
    items: &[N],
    is_any: impl Fn(&P) -> bool,
    is_match: impl Fn(&P, &N) -> bool,
) -> bool {
    let (mut at, mut item) = (0, 0);
    // The position after the last part that matches any number, and the first item after its match.
    let mut retry: Option<(usize, usize)> = None;
    while item < items.len() {
        match pattern.get(at) {
            Some(part) if is_any(part) => {
                at += 1;
                retry = Some((at, item));
            }
            Some(part) if is_match(part, &items[item]) => {
                at += 1;
                item += 1;
            }
            _ => {
                let Some((after, from)) = retry else { return false };
                at = after;
                item = from + 1;
                retry = Some((after, item));
            }
        }
    }
    pattern[at..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        PathPattern::parse(pattern).unwrap().matches(path)
    }

    #[test]
    fn stars_stay_within_a_name() {
        for (pattern, path, expected) in [
            ("data/*.jsonl", "data/a.jsonl", true),
            ("data/*.jsonl", "data/.jsonl", true),
            ("data/*.jsonl", "data/a.json", false),
            ("data/*.jsonl", "data/b/a.jsonl", false),
            ("data/*.jsonl", "a.jsonl", false),
            ("data/?.txt", "data/ä.txt", true),
            ("data/?.txt", "data/ab.txt", false),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("**/x", "a/b/xy", false),
            ("a/**", "a/b/c", true),
            ("a/**/c/d", "a/c/b/c/d", true),
            ("a", "a", true),
            ("a", "A", false),
            ("*a*b", "xaybzb", true),
            ("*a*b", "xaybz", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn paths_that_leave_the_folder_never_match() {
        for path in ["../x", "a/../x", "/x", "./x", "a//x", "", "a\\x", "a/x\0"] {
            assert!(!matches("**", path), "{path}");
            assert_eq!(PathPattern::parse(path), None, "{path}");
        }
    }

    /// A backtracking matcher would take years for this one.
    #[test]
    fn hostile_patterns_take_no_time() {
        let pattern = format!("{}b", "*a".repeat(400));
        assert!(!matches(&pattern, &"a".repeat(5000)));
        let pattern = format!("{}b", "**/a/".repeat(200));
        assert!(!matches(&pattern, &vec!["a"; 2000].join("/")));
    }

    proptest::proptest! {
        /// A plain path matches itself, if it has no characters with a meaning.
        #[test]
        fn a_path_matches_itself(path in "[a-z]{1,3}(/[a-z.]{1,3}x){0,4}") {
            proptest::prop_assert!(matches(&path, &path));
            proptest::prop_assert!(matches("**", &path));
        }

        #[test]
        fn no_text_panics(pattern in "\\PC{0,20}", path in "\\PC{0,20}") {
            if let Some(pattern) = PathPattern::parse(&pattern) {
                pattern.matches(&path);
            }
        }
    }
}
