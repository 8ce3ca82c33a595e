//! The SDKs and their examples, which this program contains.

use veeksha_manifest::{FILE_NAME, Language, PluginKind, PluginManifest};

/// The files below `sdk/` of the repository, by their paths there.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

/// The folder of an SDK that contains its examples.
const EXAMPLES: &str = "/examples/";

/// An example of an SDK: the template of projects of its kind.
pub(crate) struct Example {
    /// Its folder below `sdk/`: `rust/examples/metric`.
    pub(crate) folder: String,
    pub(crate) manifest: PluginManifest,
    pub(crate) kind: PluginKind,
}

/// Returns the files below a folder, by their paths in it.
pub(crate) fn files_below(folder: &str) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, content)| {
        let path = path.strip_prefix(folder)?.strip_prefix('/')?;
        Some((path, *content))
    })
}

/// Returns the example of each kind and language.
///
/// The folder of an example is named after its kind. Where an SDK is that of two languages, those
/// of the second are named after kind and language.
pub(crate) fn examples() -> Vec<Example> {
    let mut found = Vec::new();
    for (path, text) in FILES {
        let Some(folder) = path
            .strip_suffix(FILE_NAME)
            .and_then(|path| path.strip_suffix('/'))
        else {
            continue;
        };
        let Some((_, name)) = folder.split_once(EXAMPLES) else {
            continue;
        };
        let manifest = std::str::from_utf8(text).ok().map(PluginManifest::parse);
        let Some(Ok(manifest)) = manifest else { continue };
        let of_kind = |kind: &PluginKind| {
            name == kind.name() || name == format!("{}-{}", kind.name(), manifest.language.name())
        };
        if let Some(kind) = PluginKind::ALL.into_iter().find(of_kind) {
            found.push(Example {
                folder: folder.to_owned(),
                manifest,
                kind,
            });
        }
    }
    found
}

/// Returns the example of a kind in a language, if there is one.
pub(crate) fn example_of(language: Language, kind: PluginKind) -> Option<Example> {
    examples()
        .into_iter()
        .find(|example| example.manifest.language == language && example.kind == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_of_an_example_is_read() {
        for (path, text) in FILES {
            if path.contains(EXAMPLES) && path.ends_with(FILE_NAME) {
                let text = std::str::from_utf8(text).unwrap();
                let manifest = PluginManifest::parse(text).unwrap_or_else(|error| panic!("{path}: {error}"));
                assert!(!manifest.kinds.is_empty());
            }
        }
    }

    #[test]
    fn rust_has_an_example_of_each_kind() {
        for kind in PluginKind::ALL {
            let example = example_of(Language::Rust, kind).unwrap_or_else(|| panic!("{kind}"));
            assert_eq!(example.manifest.kinds, [kind]);
        }
    }

    #[test]
    fn no_two_examples_are_of_one_kind_and_language() {
        let mut seen = Vec::new();
        for example in examples() {
            let pair = (example.manifest.language, example.kind);
            assert!(!seen.contains(&pair), "{pair:?} is also {}", example.folder);
            seen.push(pair);
        }
    }

    #[test]
    fn the_sdk_of_rust_inherits_nothing_from_the_workspace() {
        for path in ["rust/Cargo.toml", "coroutines/Cargo.toml"] {
            let (_, text) = FILES.iter().find(|(found, _)| *found == path).unwrap();
            let text = std::str::from_utf8(text).unwrap();
            assert!(!text.contains("workspace = true"), "{text}");
            assert!(
                !text.contains("[lints]") && !text.contains("[dev-dependencies]"),
                "{text}"
            );
        }
        let mut contract = files_below("rust/wit");
        assert!(contract.any(|(path, _)| path == "worlds.wit"));
    }
}
