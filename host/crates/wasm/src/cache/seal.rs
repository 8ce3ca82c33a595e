//! Seals: a keyed hash that precedes a file's content.

use std::fs::File;
use std::io::Read;

use super::folder::{CacheError, Folder};

/// Size of a key and of a seal, in bytes.
pub(super) const SEAL_BYTES: usize = blake3::OUT_LEN;
/// The file of the key, in the folder of the sealed files.
const KEY_FILE: &str = "key";

/// The user's secret key.
pub(super) struct SealKey([u8; SEAL_BYTES]);

/// Content with a valid seal. Only [`SealKey::open`] creates one.
pub(super) struct Opened(Vec<u8>);

impl Opened {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0[SEAL_BYTES..]
    }
}

impl SealKey {
    /// Returns the key of a folder. Generates it from the system's randomness if there is none.
    pub(super) fn of(folder: &Folder) -> Result<Self, CacheError> {
        if folder.read(KEY_FILE).is_none() {
            let mut fresh = [0; SEAL_BYTES];
            File::open("/dev/urandom")
                .and_then(|mut file| file.read_exact(&mut fresh))
                .map_err(CacheError::NoRandom)?;
            folder.create(KEY_FILE, &fresh)?;
        }
        // Another process may have created it first; the stored key is used.
        let bytes = folder
            .read(KEY_FILE)
            .ok_or_else(|| CacheError::Key(folder.path().join(KEY_FILE)))?;
        let key = bytes
            .try_into()
            .map_err(|_| CacheError::Key(folder.path().join(KEY_FILE)))?;
        Ok(SealKey(key))
    }

    /// Returns the seal of `content` in a file named `name`: a renamed file is not sealed.
    pub(super) fn seal(&self, name: &str, content: &[u8]) -> [u8; SEAL_BYTES] {
        *self.hash(name, content).as_bytes()
    }

    /// Returns the content of `sealed` (a seal, then the content) if it was sealed under this name
    /// with this key.
    pub(super) fn open(&self, name: &str, sealed: Vec<u8>) -> Option<Opened> {
        let (seal, content) = sealed.split_first_chunk::<SEAL_BYTES>()?;
        // `Hash` compares in constant time.
        (self.hash(name, content) == *seal).then_some(Opened(sealed))
    }

    fn hash(&self, name: &str, content: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(content);
        hasher.finalize()
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(key: &SealKey, name: &str, content: &[u8]) -> Vec<u8> {
        [&key.seal(name, content)[..], content].concat()
    }

    #[test]
    fn opens_what_it_sealed_and_nothing_else() {
        let key = SealKey([7; SEAL_BYTES]);
        let good = sealed(&key, "a.cwasm", b"content");
        assert_eq!(key.open("a.cwasm", good.clone()).unwrap().bytes(), b"content");
        assert!(key.open("b.cwasm", good.clone()).is_none(), "renamed");
        assert!(
            SealKey([8; SEAL_BYTES]).open("a.cwasm", good.clone()).is_none(),
            "another key"
        );
        for cut in 0..good.len() {
            assert!(
                key.open("a.cwasm", good[..cut].to_vec()).is_none(),
                "cut to {cut} bytes"
            );
        }
        for bit in 0..good.len() * 8 {
            let mut altered = good.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open("a.cwasm", altered).is_none(), "bit {bit} altered");
        }
    }

    /// Without the length, the end of the name could be confused with the beginning of the content.
    #[test]
    fn name_and_content_do_not_run_together() {
        let key = SealKey([7; SEAL_BYTES]);
        assert_ne!(key.seal("ab", b"c"), key.seal("a", b"bc"));
    }
}
