//! Location of the tokenizer of a model of the Hugging Face hub, on the hub and on this machine.
//! Downloads nothing.

use std::path::{Path, PathBuf};

const FILE: &str = "tokenizer.json";

/// Returns true if a text is a valid name of a model on the hub: `name` or `organization/name`, of
/// letters, digits, `-`, `_`, `.`.
///
/// An existing path should take precedence: `models/llama` can be both.
pub fn is_hub_name(name: &str) -> bool {
    let mut parts = name.split('/');
    let good = |part: &str| {
        !part.is_empty()
            && part.len() <= 96
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.', '-'])
            && !part.contains("..")
            && !part.contains("--")
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
    };
    let (first, second, third) = (parts.next(), parts.next(), parts.next());
    third.is_none() && first.is_some_and(good) && second.is_none_or(good) && !name.ends_with(".json")
}

/// Returns the URL of a model's tokenizer on the hub.
pub fn url(name: &str) -> String {
    format!("https://huggingface.co/{name}/resolve/main/{FILE}")
}

/// Returns the path of a downloaded tokenizer below the host's cache folder.
pub fn cache_file(name: &str, cache_root: &Path) -> PathBuf {
    cache_root.join("tokenizers").join(folder(name)).join(FILE)
}

/// Returns the path of a model's tokenizer on this machine: in the host's cache, if there is one,
/// else in that of the Hugging Face tools (`$HF_HUB_CACHE`, `$HF_HOME/hub`,
/// `~/.cache/huggingface/hub`).
pub fn cached(name: &str, cache_root: Option<&Path>) -> Option<PathBuf> {
    cached_in(name, cache_root, hugging_face_cache().as_deref())
}

/// Returns the cache of the Hugging Face tools according to their environment variables.
fn hugging_face_cache() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("HF_HUB_CACHE")
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

fn cached_in(name: &str, cache_root: Option<&Path>, hugging_face: Option<&Path>) -> Option<PathBuf> {
    if !is_hub_name(name) {
        return None;
    }
    let own = cache_root.map(|root| cache_file(name, root));
    if let Some(own) = own.filter(|file| file.is_file()) {
        return Some(own);
    }
    let model = hugging_face?.join(format!("models--{}", folder(name)));
    let snapshots = model.join("snapshots");
    // `refs/main` names the commit that the tools would use; other snapshots are older or from
    // other branches.
    if let Ok(commit) = std::fs::read_to_string(model.join("refs/main")) {
        let file = snapshots.join(commit.trim()).join(FILE);
        if file.is_file() {
            return Some(file);
        }
    }
    let folders = std::fs::read_dir(snapshots).ok()?;
    folders
        .filter_map(|entry| Some(entry.ok()?.path().join(FILE)))
        .filter(|file| file.is_file())
        .max()
}

/// `organization--name`, as in the Hugging Face tools.
fn folder(name: &str) -> String {
    name.replace('/', "--")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_names_from_paths() {
        for name in [
            "gpt2",
            "meta-llama/Llama-3.1-8B-Instruct",
            "Qwen/Qwen2.5-0.5B",
            "a_b/c.d",
        ] {
            assert!(is_hub_name(name), "{name}");
        }
        for path in [
            "",
            "/models/x",
            "./x",
            "../x",
            "a/b/c",
            "a//b",
            "x/",
            "tokenizer.json",
            "a b",
            "~/m",
            "a/..",
            "a--b",
        ] {
            assert!(!is_hub_name(path), "{path}");
        }
    }

    #[test]
    fn builds_hub_urls() {
        assert_eq!(
            url("Qwen/Qwen3-8B"),
            "https://huggingface.co/Qwen/Qwen3-8B/resolve/main/tokenizer.json"
        );
        assert_eq!(
            cache_file("Qwen/Qwen3-8B", Path::new("/c")),
            Path::new("/c/tokenizers/Qwen--Qwen3-8B/tokenizer.json")
        );
    }

    #[test]
    fn searches_host_cache_first() {
        let root = tempfile::tempdir().unwrap();
        let (own, theirs) = (root.path().join("own"), root.path().join("hub"));
        let find = || cached_in("org/model", Some(&own), Some(&theirs));
        assert_eq!(find(), None);

        let model = theirs.join("models--org--model");
        for commit in ["aaaa", "bbbb"] {
            let snapshot = model.join("snapshots").join(commit);
            std::fs::create_dir_all(&snapshot).unwrap();
            std::fs::write(snapshot.join("tokenizer.json"), "{}").unwrap();
        }
        assert_eq!(find(), Some(model.join("snapshots/bbbb/tokenizer.json")));

        std::fs::create_dir_all(model.join("refs")).unwrap();
        std::fs::write(model.join("refs/main"), "aaaa\n").unwrap();
        assert_eq!(find(), Some(model.join("snapshots/aaaa/tokenizer.json")));

        let file = cache_file("org/model", &own);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(find(), Some(file));
    }
}
