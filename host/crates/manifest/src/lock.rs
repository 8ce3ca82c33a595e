//! The lock of a folder of scenarios, `veeksha.lock`: the digest of each component that they use,
//! its imports, and the grants that were accepted for exactly that component.
//!
//! The text is sorted and has one value per line, so that a change of one plugin is a change of its
//! lines.

use std::fmt::Write as _;

use crate::error::ManifestError;
use crate::plugin_manifest::is_plugin_name;
use crate::reference::is_sha256;
use crate::toml_reader::{TableReader, TomlValue, parse_document};

/// The name of the file.
pub const LOCK_FILE: &str = "veeksha.lock";

/// The version of the format.
const LOCK_VERSION: i64 = 1;

/// The maximum length of a lock, in bytes.
pub const LONGEST_LOCK: usize = 1 << 20;

/// The locked components of the scenarios of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginLock {
    /// The components, sorted by name.
    plugins: Vec<LockedPlugin>,
}

/// A component that scenarios may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedPlugin {
    /// Its name, unique in the lock.
    pub name: String,
    /// The reference or path that scenarios name.
    pub source: String,
    /// The version of the plugin, if its manifest states one.
    pub version: Option<String>,
    /// The digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The digest of the bundle's manifest; none for a component in a file.
    pub bundle: Option<String>,
    /// The version of the contract.
    pub contract: String,
    /// The imports of the component, sorted.
    pub imports: Vec<String>,
    /// The grants of the scenarios, sorted: `blob:read data/*.jsonl`.
    pub grants: Vec<String>,
    /// The key that signed the bundle, if a trusted one did.
    pub signed_by: Option<String>,
}

/// A difference between a component and its entry in the lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockMismatch {
    /// The component imports more than the locked one.
    #[error("it imports {}, which the locked component does not", names(.0))]
    NewImports(Vec<String>),
    /// The component was built for another version of the contract.
    #[error("it has version {found} of the contract, the lock {locked}")]
    Contract {
        /// The version of the component.
        found: String,
        /// The version in the lock.
        locked: String,
    },
    /// The component is another one.
    #[error("its digest is {found}, the lock has {locked}")]
    Digest {
        /// The digest of the component.
        found: String,
        /// The digest in the lock.
        locked: String,
    },
    /// The bundle is another one with the same component.
    #[error("the digest of its bundle is {found}, the lock has {locked}")]
    Bundle {
        /// The digest of the bundle.
        found: String,
        /// The digest in the lock.
        locked: String,
    },
    /// The component has not all of the locked imports.
    #[error("it does not import {}, which the locked component does", names(.0))]
    LostImports(Vec<String>),
}

fn names(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl LockedPlugin {
    /// Returns the differences of another component from this entry, the most important first.
    /// Grants and signature are not compared: they are decisions of the lock, not of the component.
    pub fn differences(&self, found: &LockedPlugin) -> Vec<LockMismatch> {
        let beyond = |these: &[String], those: &[String]| -> Vec<String> {
            let new = these.iter().filter(|import| !those.contains(import));
            new.cloned().collect()
        };
        let mut differences = Vec::new();
        let new = beyond(&found.imports, &self.imports);
        if !new.is_empty() {
            differences.push(LockMismatch::NewImports(new));
        }
        if found.contract != self.contract {
            differences.push(LockMismatch::Contract {
                found: found.contract.clone(),
                locked: self.contract.clone(),
            });
        }
        if found.digest != self.digest {
            differences.push(LockMismatch::Digest {
                found: found.digest.clone(),
                locked: self.digest.clone(),
            });
        } else if let (Some(found), Some(locked)) = (&found.bundle, &self.bundle)
            && found != locked
        {
            differences.push(LockMismatch::Bundle {
                found: found.clone(),
                locked: locked.clone(),
            });
        }
        let lost = beyond(&self.imports, &found.imports);
        if !lost.is_empty() {
            differences.push(LockMismatch::LostImports(lost));
        }
        differences
    }
}

impl PluginLock {
    /// Returns the components, sorted by name.
    pub fn plugins(&self) -> &[LockedPlugin] {
        &self.plugins
    }

    /// Returns the component that a scenario names by its name in the lock.
    pub fn by_name(&self, name: &str) -> Option<&LockedPlugin> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// Returns the component of a reference or path.
    pub fn by_source(&self, source: &str) -> Option<&LockedPlugin> {
        self.plugins.iter().find(|plugin| plugin.source == source)
    }

    /// Returns the name that is nearest to one that the lock does not have.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        veeksha_slo::nearest(name, self.plugins.iter().map(|plugin| plugin.name.as_str()))
    }

    /// Adds a component, or replaces the one with the same source. A name that another component
    /// has gets a number.
    pub fn insert(&mut self, mut plugin: LockedPlugin) {
        if let Some(old) = self.by_source(&plugin.source) {
            plugin.name.clone_from(&old.name);
        }
        self.plugins.retain(|other| other.source != plugin.source);
        let wanted = plugin.name.clone();
        let mut number = 1;
        while self.by_name(&plugin.name).is_some() {
            number += 1;
            plugin.name = format!("{wanted}-{number}");
        }
        for list in [&mut plugin.imports, &mut plugin.grants] {
            list.sort();
            list.dedup();
        }
        self.plugins.push(plugin);
        self.plugins.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Reads the text of a lock.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let document = parse_document(text)?;
        let mut root = TableReader::root(text, document.get_ref());
        let version = root.required("version", "the version of the format")?;
        if version.integer()? != LOCK_VERSION {
            return Err(version.invalid(
                "another version".to_owned(),
                format!("expected {LOCK_VERSION}: update veeksha-host, or write the lock again"),
            ));
        }
        let entries = root.optional("plugin");
        root.finish()?;
        let mut lock = PluginLock::default();
        for entry in entries
            .map(|entries| entries.array())
            .transpose()?
            .unwrap_or_default()
        {
            let plugin = locked_plugin(&entry)?;
            let is_repeated =
                lock.by_name(&plugin.name).is_some() || lock.by_source(&plugin.source).is_some();
            if is_repeated {
                let found = format!("a second entry of `{}`", plugin.name);
                return Err(entry.invalid(found, "each name and each source once".to_owned()));
            }
            lock.insert(plugin);
        }
        Ok(lock)
    }

    /// Returns the text of the lock. [`PluginLock::parse`] reads it.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# The plugins of the scenarios in this folder. Written by `veeksha-host plugin lock`.\nversion = {LOCK_VERSION}\n"
        );
        for plugin in &self.plugins {
            text.push_str("\n[[plugin]]\n");
            let mut line = |key: &str, value: &str| {
                let _ = writeln!(text, "{key} = {}", quoted(value));
            };
            line("name", &plugin.name);
            line("source", &plugin.source);
            if let Some(version) = &plugin.version {
                line("version", version);
            }
            line("digest", &plugin.digest);
            if let Some(bundle) = &plugin.bundle {
                line("bundle", bundle);
            }
            line("contract", &plugin.contract);
            if let Some(signed_by) = &plugin.signed_by {
                line("signed_by", signed_by);
            }
            for (key, list) in [("imports", &plugin.imports), ("grants", &plugin.grants)] {
                let _ = writeln!(text, "{key} = [");
                for value in list {
                    let _ = writeln!(text, "    {},", quoted(value));
                }
                text.push_str("]\n");
            }
        }
        text
    }
}

fn locked_plugin(entry: &TomlValue<'_>) -> Result<LockedPlugin, ManifestError> {
    let mut table = entry.table()?;
    let name = table.required("name", "the name of the plugin");
    let source = table.required("source", "the reference or path of the plugin");
    let version = table.optional("version");
    let digest = table.required("digest", "the digest of the component");
    let bundle = table.optional("bundle");
    let contract = table.required("contract", "the version of the contract");
    let imports = table.required("imports", "the imports of the component");
    let grants = table.optional("grants");
    let signed_by = table.optional("signed_by");
    table.finish()?;
    let text = |value: TomlValue<'_>| value.string().map(str::to_owned);
    let name = name?;
    if !is_plugin_name(name.string()?) {
        return Err(name.invalid(
            "another text".to_owned(),
            "expected the name of a plugin".to_owned(),
        ));
    }
    Ok(LockedPlugin {
        name: text(name)?,
        source: text(source?)?,
        version: version.map(text).transpose()?,
        digest: sha256(digest?)?,
        bundle: bundle.map(sha256).transpose()?,
        contract: text(contract?)?,
        imports: texts(Some(imports?))?,
        grants: texts(grants)?,
        signed_by: signed_by.map(text).transpose()?,
    })
}

fn sha256(value: TomlValue<'_>) -> Result<String, ManifestError> {
    let text = value.string()?;
    if is_sha256(text) {
        return Ok(text.to_owned());
    }
    Err(value.invalid(
        "another text".to_owned(),
        "expected `sha256:` and 64 hexadecimal digits".to_owned(),
    ))
}

fn texts(value: Option<TomlValue<'_>>) -> Result<Vec<String>, ManifestError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let entries = value.array()?;
    entries
        .iter()
        .map(|entry| entry.string().map(str::to_owned))
        .collect()
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(letter);
            }
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(letter: char) -> String {
        format!("sha256:{}", letter.to_string().repeat(64))
    }

    fn plugin(name: &str, source: &str) -> LockedPlugin {
        LockedPlugin {
            name: name.to_owned(),
            source: source.to_owned(),
            version: Some("1.2.0".to_owned()),
            digest: digest('a'),
            bundle: Some(digest('b')),
            contract: "0.2.0".to_owned(),
            imports: vec![
                "veeksha:plugin/random@0.2.0".to_owned(),
                "veeksha:plugin/log@0.2.0".to_owned(),
            ],
            grants: vec!["blob:read data/*.jsonl".to_owned()],
            signed_by: None,
        }
    }

    #[test]
    fn text_is_sorted_and_read_again() {
        let mut lock = PluginLock::default();
        lock.insert(plugin("zebra", "oci://h/zebra:1"));
        lock.insert(plugin("coder", "a \"quoted\"\\path\u{1}.wasm"));
        let text = lock.text();
        assert!(
            text.find("coder").unwrap() < text.find("zebra").unwrap(),
            "{text}"
        );
        assert!(text.find("plugin/log").unwrap() < text.find("plugin/random").unwrap());
        let again = PluginLock::parse(&text).unwrap();
        assert_eq!(again, lock);
        assert_eq!(again.text(), text);
    }

    #[test]
    fn a_second_component_of_a_source_replaces_the_first() {
        let mut lock = PluginLock::default();
        lock.insert(plugin("coder", "a.wasm"));
        lock.insert(plugin("coder", "b.wasm"));
        assert_eq!(lock.by_source("b.wasm").unwrap().name, "coder-2");
        let mut newer = plugin("coder", "b.wasm");
        newer.digest = digest('c');
        lock.insert(newer);
        assert_eq!(lock.plugins().len(), 2);
        assert_eq!(lock.by_name("coder-2").unwrap().digest, digest('c'));
        assert_eq!(lock.nearest("codr"), Some("coder"));
    }

    #[test]
    fn a_new_import_is_the_first_difference() {
        let locked = plugin("coder", "a.wasm");
        assert_eq!(locked.differences(&locked), []);
        let mut newer = locked.clone();
        newer.digest = digest('c');
        newer.contract = "0.3.0".to_owned();
        newer.imports[0] = "veeksha:plugin/blobs@0.2.0".to_owned();
        let messages: Vec<String> = locked
            .differences(&newer)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            messages,
            [
                "it imports `veeksha:plugin/blobs@0.2.0`, which the locked component does not".to_owned(),
                "it has version 0.3.0 of the contract, the lock 0.2.0".to_owned(),
                format!("its digest is {}, the lock has {}", digest('c'), digest('a')),
                "it does not import `veeksha:plugin/random@0.2.0`, which the locked component does"
                    .to_owned(),
            ]
        );
    }

    #[test]
    fn another_bundle_of_the_same_component_is_a_difference() {
        let locked = plugin("coder", "a.tar");
        let mut newer = locked.clone();
        newer.bundle = Some(digest('d'));
        assert!(matches!(
            locked.differences(&newer).as_slice(),
            [LockMismatch::Bundle { .. }]
        ));
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, message) in [
            ("", "version is missing: the version of the format"),
            (
                "version = 2",
                "line 1: version is another version: expected 1: update veeksha-host, or write the lock again",
            ),
            (
                "version = 1\n[[plugin]]\nname = \"a\"\ndigset = \"x\"",
                "line 4: unknown key plugin[0].digset: did you mean digest?",
            ),
            (
                "version = 1\n[[plugin]]\nname = \"a\"\nsource = \"s\"\ndigest = \"x\"\ncontract = \"0\"\nimports = []",
                "line 5: plugin[0].digest is another text: expected `sha256:` and 64 hexadecimal digits",
            ),
            (
                "version = 1\nplugin = 7",
                "line 2: plugin is an integer: expected an array",
            ),
        ] {
            assert_eq!(PluginLock::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_name_has_one_entry() {
        let mut lock = PluginLock::default();
        lock.insert(plugin("a", "a.wasm"));
        let text = lock.text();
        let entry = text.split_once("\n[[plugin]]").unwrap().1;
        let twice = format!("{text}\n[[plugin]]{entry}");
        let message = PluginLock::parse(&twice).unwrap_err().to_string();
        assert!(message.contains("a second entry of `a`"), "{message}");
    }

    proptest::proptest! {
        /// Any text in an entry survives.
        #[test]
        fn any_text_survives(source in ".{1,40}", import in ".{0,20}", grant in ".{0,20}") {
            let mut lock = PluginLock::default();
            let mut entry = plugin("coder", &source);
            entry.imports = vec![import];
            entry.grants = vec![grant];
            lock.insert(entry);
            assert_eq!(PluginLock::parse(&lock.text()).unwrap(), lock);
        }

        /// A damaged lock is read or refused.
        #[test]
        fn no_mutation_panics(at in 0_usize..400, byte in 0_u8..128) {
            let mut lock = PluginLock::default();
            lock.insert(plugin("coder", "a.wasm"));
            let mut bytes = lock.text().into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = PluginLock::parse(&String::from_utf8_lossy(&bytes));
        }
    }
}
