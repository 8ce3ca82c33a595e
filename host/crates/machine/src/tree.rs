//! Access to the small files of `/proc` and `/sys`, below a configurable root so that tests can
//! replace them.

use std::path::{Path, PathBuf};

/// A file system as seen from a root.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
}

impl Tree {
    pub(crate) fn under(root: &Path) -> Self {
        Tree {
            root: root.to_owned(),
        }
    }

    /// Returns the path below the root for an absolute path.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Returns the text of a file, or `None` if it is absent or unreadable. Bytes that are not
    /// UTF-8 are replaced: a process may have any name.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.place(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the first word of a file.
    pub(crate) fn word(&self, path: &str) -> Option<String> {
        self.text(path)?.split_whitespace().next().map(str::to_owned)
    }

    /// Returns the first word of a file, as a number.
    pub(crate) fn number<N: std::str::FromStr>(&self, path: &str) -> Option<N> {
        self.word(path)?.parse().ok()
    }

    /// Returns the value of `key` in a file of lines `key value` or `key: value`.
    pub(crate) fn field(&self, path: &str, key: &str) -> Option<String> {
        field(&self.text(path)?, key).map(str::to_owned)
    }

    /// Returns the names in a folder, in order. Empty if it is absent.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.place(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }
}

/// Returns the value of `key` in a text of lines `key value` or `key: value`.
pub(crate) fn field<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(key)?;
        let value = rest.trim_start().strip_prefix(':').unwrap_or(rest);
        // The key `nr_thr` must not match the line of `nr_throttled`.
        (value.is_empty() || value.starts_with(char::is_whitespace)).then(|| value.trim())
    })
}

/// Returns the numbers of a list such as `0-3,8,10-11`. Omits invalid parts, and everything beyond
/// `most` numbers.
pub(crate) fn numbers(list: &str, most: usize) -> Vec<usize> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
            let room = most.saturating_sub(numbers.len());
            numbers.extend((first..=last).take(room));
        }
    }
    numbers
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a synthetic tree of paths and their texts.
    pub(crate) fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let place = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(place.parent().expect("a parent")).expect("folders");
            std::fs::write(place, text).expect("a file");
        }
        let tree = Tree::under(folder.path());
        (folder, tree)
    }

    #[test]
    fn lists_of_numbers() {
        assert_eq!(numbers("0-3,8,10-11\n", 100), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(numbers("", 100), [] as [usize; 0]);
        assert_eq!(numbers("x,2-,7-5,4", 100), [4]);
        assert_eq!(numbers("0-18446744073709551615", 3), [0, 1, 2]);
    }

    #[test]
    fn fields_are_whole_words() {
        let text = "nr_periods 10\nnr_throttled 3\nCapEff:\t00ff\nempty\n";
        assert_eq!(field(text, "nr_throttled"), Some("3"));
        assert_eq!(field(text, "nr_thr"), None);
        assert_eq!(field(text, "CapEff"), Some("00ff"));
        assert_eq!(field(text, "empty"), Some(""));
        assert_eq!(field(text, "absent"), None);
    }

    #[test]
    fn what_is_not_there_is_none() {
        let (_folder, tree) = tree(&[("/proc/a", "  \n"), ("/proc/b", "12 x")]);
        assert_eq!(tree.word("/proc/a"), None);
        assert_eq!(tree.number::<u64>("/proc/b"), Some(12));
        assert_eq!(tree.number::<u64>("/proc/c"), None);
        assert_eq!(tree.names("/proc"), ["a", "b"]);
        assert!(tree.names("/sys").is_empty());
    }
}
