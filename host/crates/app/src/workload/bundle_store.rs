//! The bundles that were pulled from registries, on this machine.
//!
//! Each bundle is a file named by the digest of its manifest. A file whose content has another
//! digest is refused when it is read, so that the folder need not be trusted.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use veeksha_bundle::{BlobDigest, Bundle, BundleLimits};
use veeksha_manifest::RegistryReference;

use crate::failure::CommandFailure;
use crate::scenario::source::read;

/// The environment variable that names another folder.
const FOLDER_VARIABLE: &str = "VEEKSHA_BUNDLES";

/// The bundles on this machine.
#[derive(Clone, Debug)]
pub struct BundleStore {
    folder: PathBuf,
}

impl BundleStore {
    /// Returns the store of this user: `$VEEKSHA_BUNDLES`, else
    /// `$XDG_DATA_HOME/veeksha-host/bundles`, else `~/.local/share/veeksha-host/bundles`.
    ///
    /// # Errors
    /// If none of the variables is set.
    pub fn of_user() -> Result<Self, CommandFailure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let below = |base: PathBuf| base.join("veeksha-host/bundles");
        let folder = variable(FOLDER_VARIABLE)
            .map(PathBuf::from)
            .or_else(|| variable("XDG_DATA_HOME").map(|base| below(base.into())))
            .or_else(|| variable("HOME").map(|home| below(PathBuf::from(home).join(".local/share"))));
        let folder = folder.ok_or_else(|| {
            CommandFailure::usage("no folder for bundles is known").hinted(format!("set {FOLDER_VARIABLE}"))
        })?;
        Ok(BundleStore { folder })
    }

    /// Returns the bundle with a digest, if the store has it.
    ///
    /// # Errors
    /// If the file was changed or cannot be read.
    pub fn get(&self, digest: &BlobDigest) -> Result<Option<Bundle>, CommandFailure> {
        let path = self.path(digest);
        if !path.exists() {
            return Ok(None);
        }
        let bundle = read_bundle(&path)?;
        if bundle.digest() != digest {
            return Err(CommandFailure::usage(format!("{} was changed", path.display()))
                .hinted("remove the file and pull the bundle again"));
        }
        Ok(Some(bundle))
    }

    /// Returns the digest that a reference had when it was pulled last.
    pub fn digest_of(&self, reference: &RegistryReference) -> Option<BlobDigest> {
        if let Some(digest) = &reference.digest {
            return BlobDigest::parse(digest);
        }
        let text = std::fs::read_to_string(self.reference_path(reference)).ok()?;
        let (digest, name) = text.trim_end().split_once(' ')?;
        (name == reference.to_string()).then(|| BlobDigest::parse(digest))?
    }

    /// Stores a bundle, and the digest of the reference that it was pulled by.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn put(&self, bundle: &Bundle, reference: Option<&RegistryReference>) -> Result<(), CommandFailure> {
        let tar = bundle.to_tar().map_err(CommandFailure::internal)?;
        write_file(&self.path(bundle.digest()), &tar)?;
        if let Some(reference) = reference {
            let text = format!("{} {reference}\n", bundle.digest());
            write_file(&self.reference_path(reference), text.as_bytes())?;
        }
        Ok(())
    }

    fn path(&self, digest: &BlobDigest) -> PathBuf {
        self.folder.join(format!("sha256-{}.tar", digest.hex()))
    }

    /// References have characters that file names cannot have.
    fn reference_path(&self, reference: &RegistryReference) -> PathBuf {
        let name = BlobDigest::of(reference.to_string().as_bytes());
        self.folder.join("references").join(name.hex())
    }
}

/// Reads the bundle of a file.
///
/// # Errors
/// If it cannot be read, or is not a bundle.
pub fn read_bundle(path: &Path) -> Result<Bundle, CommandFailure> {
    let shown = path.display();
    let bytes =
        read(path).map_err(|reason| CommandFailure::usage(format!("cannot read {shown}: {reason}")))?;
    bundle_of(&shown.to_string(), &bytes)
}

/// Reads the bundle of bytes; `shown` names their place in messages.
pub(crate) fn bundle_of(shown: &str, bytes: &[u8]) -> Result<Bundle, CommandFailure> {
    Bundle::read_tar(bytes, &BundleLimits::default()).map_err(|error| {
        CommandFailure::new(
            veeksha_exit::PLUGIN,
            format!("the bundle {shown} is refused: {error}"),
        )
    })
}

/// Writes a file that is either complete or absent: it gets its name at the end.
///
/// # Errors
/// If a folder or the file cannot be written.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), CommandFailure> {
    let failure =
        |error: std::io::Error| CommandFailure::internal(format!("cannot write {}: {error}", path.display()));
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(failure)?;
    // Two processes that store the same bundle must not write to one file.
    let part = folder.join(format!(
        ".{}.{}.part",
        path.file_name().unwrap_or_default().to_string_lossy(),
        std::process::id()
    ));
    let written = std::fs::File::create(&part)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    written.map_err(failure)
}
