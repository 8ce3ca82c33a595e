//! Compiled components on disk, so that only the first run pays for the compiler.
//!
//! Machine code from a file is trusted as much as the host's own, so a file is used only if its
//! seal is valid: a keyed BLAKE3 over its name and content, with a key that only this user can
//! read. A file without a valid seal (truncated, altered, copied, written by another user) is
//! treated as absent and is written again.

mod deserialize;
mod folder;
mod seal;

use std::hash::{Hash, Hasher};
use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::describe::Descriptor;
pub(crate) use folder::CacheError;
use folder::Folder;
use seal::SealKey;

/// The folder below the cache folder.
const COMPONENTS: &str = "components";

/// An open cache.
#[derive(Debug)]
pub(crate) struct ComponentCache {
    folder: Folder,
    key: SealKey,
    fingerprint: String,
}

impl ComponentCache {
    /// Opens the cache below `cache_dir`, and creates it if it does not exist.
    pub(crate) fn open(cache_dir: &Path, engine: &Engine) -> Result<Self, CacheError> {
        let folder = Folder::open(&cache_dir.join(COMPONENTS))?;
        let key = SealKey::of(&folder)?;
        Ok(ComponentCache {
            folder,
            key,
            fingerprint: fingerprint(engine),
        })
    }

    /// Returns the compiled form of the component with this digest, if one with a valid seal is
    /// stored.
    pub(crate) fn component(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = self.name(digest, "cwasm");
        let sealed = self.folder.read(&name)?;
        deserialize::component(engine, &self.key.open(&name, sealed)?)
    }

    /// Stores a compiled form.
    pub(crate) fn keep_component(&self, digest: &str, component: &Component) -> Result<(), CacheError> {
        let bytes = component
            .serialize()
            .map_err(|error| CacheError::Serialize(error.to_string()))?;
        self.keep(&self.name(digest, "cwasm"), &bytes)
    }

    /// Returns the descriptor of the component with this digest.
    pub(crate) fn descriptor(&self, digest: &str) -> Option<Descriptor> {
        let name = self.name(digest, "describe");
        let sealed = self.folder.read(&name)?;
        serde_json::from_slice(self.key.open(&name, sealed)?.bytes()).ok()
    }

    /// Stores the descriptor of a component.
    pub(crate) fn keep_descriptor(&self, digest: &str, descriptor: &Descriptor) -> Result<(), CacheError> {
        let bytes =
            serde_json::to_vec(descriptor).map_err(|error| CacheError::Serialize(error.to_string()))?;
        self.keep(&self.name(digest, "describe"), &bytes)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), CacheError> {
        self.folder.write(name, &self.key.seal(name, bytes), bytes)
    }

    fn name(&self, digest: &str, kind: &str) -> String {
        format!("{digest}-{}.{kind}", self.fingerprint)
    }
}

/// Returns a key that distinguishes engines with incompatible machine code: wasmtime's version,
/// settings, processor features, and this crate's version.
fn fingerprint(engine: &Engine) -> String {
    struct Blake(blake3::Hasher);
    impl Hasher for Blake {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Blake(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    hasher.0.finalize().to_hex()[..16].to_owned()
}
