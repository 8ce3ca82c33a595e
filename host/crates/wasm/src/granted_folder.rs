//! Files of a granted folder: opened below it, never outside.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use veeksha_manifest::{CapabilityGrants, GrantRefusal};

use crate::bindings::types::Error as GuestError;
use crate::guest_resources::OpenBlob;
use crate::text::one_line;

/// The code of a refused access.
pub(crate) const NOT_GRANTED: &str = "not-granted";
/// Maximum length of a path in a message, in characters.
const MAX_PATH_CHARS: usize = 200;
/// Flags of an opened file. A pipe does not wait for its other end, and a terminal does not become
/// that of the process.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// A folder, and the files below it that a plugin may read.
#[derive(Clone, Debug, Default)]
pub struct GrantedFolder {
    /// The folder: that of the scenario.
    pub root: PathBuf,
    /// The capabilities that the user grants.
    pub grants: CapabilityGrants,
    /// The plugin's name on the command line, for the advice in a refusal.
    pub plugin: String,
}

impl GrantedFolder {
    /// Opens a file that is granted. The path is relative to the folder.
    pub(crate) fn open(&self, path: &str) -> Result<OpenBlob, GuestError> {
        if let Err(refusal) = self.grants.may_read(path) {
            return Err(self.refused(path, refusal));
        }
        let opened = open_below(&self.root, path).and_then(regular);
        opened.map_err(|error| GuestError {
            code: "unreadable".into(),
            message: format!("cannot read `{}`: {}", shown(path), explained(&error)),
            hint: None,
            path: None,
        })
    }

    fn refused(&self, path: &str, refusal: GrantRefusal) -> GuestError {
        let (path, plugin) = (shown(path), &self.plugin);
        let (message, hint) = match refusal {
            GrantRefusal::NotGranted => (
                format!("the file `{path}` is not granted"),
                format!(
                    "the grant `blob:read {path}` allows it: in `grants` of the plugin in the scenario, or with \
                     --grant '{plugin}=blob:read {path}'; paths are relative to the scenario's folder, without `..`"
                ),
            ),
            GrantRefusal::NotRequested => (
                format!("the file `{path}` is granted, and the manifest of the plugin does not request it"),
                format!("add `blob:read {path}` to `requests` in plugin.toml, and build the plugin again"),
            ),
        };
        GuestError {
            code: NOT_GRANTED.into(),
            message,
            hint: Some(hint),
            path: None,
        }
    }
}

fn shown(path: &str) -> String {
    one_line(path, MAX_PATH_CHARS)
}

/// Returns an open file, if it is a regular one.
pub(crate) fn regular(file: File) -> io::Result<OpenBlob> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let size = metadata.len();
    Ok(OpenBlob { size, file })
}

fn explained(error: &io::Error) -> String {
    let is = |errno: rustix::io::Errno| error.raw_os_error() == Some(errno.raw_os_error());
    if is(rustix::io::Errno::XDEV) || is(rustix::io::Errno::LOOP) {
        "it is a link that leads out of the folder, or cannot be followed".to_owned()
    } else {
        error.to_string()
    }
}

/// Opens a file below a folder. The kernel follows links only within the folder, also while they
/// are being changed.
#[cfg(target_os = "linux")]
fn open_below(root: &Path, path: &str) -> io::Result<File> {
    use rustix::fs::{ResolveFlags, openat2};

    let folder = File::open(root_or_here(root))?;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&folder, path, FLAGS, Mode::empty(), within) {
        Ok(file) => Ok(File::from(file)),
        // Kernels before 5.6, and some containers, do not have the call.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => open_without_links(root, path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_below(root: &Path, path: &str) -> io::Result<File> {
    open_without_links(root, path)
}

/// Opens a file below a folder name by name, and refuses every link.
fn open_without_links(root: &Path, path: &str) -> io::Result<File> {
    let mut folder = File::open(root_or_here(root))?;
    let mut names = path.split('/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        let flags = FLAGS | OFlags::NOFOLLOW;
        let flags = if is_last { flags } else { flags | OFlags::DIRECTORY };
        folder = File::from(rustix::fs::openat(&folder, name, flags, Mode::empty())?);
    }
    Ok(folder)
}

fn root_or_here(root: &Path) -> &Path {
    if root.as_os_str().is_empty() {
        Path::new(".")
    } else {
        root
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use veeksha_manifest::CapabilityRequest;

    use super::*;

    fn folder(grants: &[&str]) -> (tempfile::TempDir, GrantedFolder) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("scenario");
        std::fs::create_dir_all(root.join("data/deep")).unwrap();
        std::fs::write(outer.path().join("secret.txt"), "secret").unwrap();
        for file in ["data/a.txt", "data/deep/b.txt", "other.txt"] {
            std::fs::write(root.join(file), file).unwrap();
        }
        symlink("../../secret.txt", root.join("data/out.txt")).unwrap();
        symlink(outer.path().join("secret.txt"), root.join("data/absolute.txt")).unwrap();
        symlink("../..", root.join("data/up")).unwrap();
        symlink("deep/b.txt", root.join("data/in.txt")).unwrap();
        let granted = grants.iter().map(|text| CapabilityRequest::parse(text).unwrap());
        let granted = GrantedFolder {
            root,
            grants: CapabilityGrants::new(granted.collect(), None),
            plugin: "coder".into(),
        };
        (outer, granted)
    }

    #[test]
    fn granted_files_are_opened() {
        let (_outer, folder) = folder(&["blob:read data/**"]);
        for path in ["data/a.txt", "data/deep/b.txt"] {
            assert_eq!(folder.open(path).unwrap().size, path.len() as u64, "{path}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_within_the_folder_is_followed() {
        let (_outer, folder) = folder(&["blob:read data/*"]);
        assert_eq!(folder.open("data/in.txt").unwrap().size, 15);
    }

    #[test]
    fn files_outside_of_the_folder_are_refused() {
        let (outer, folder) = folder(&["blob:read **"]);
        for path in [
            "data/out.txt",
            "data/absolute.txt",
            "data/up/secret.txt",
            "data/up/scenario/other.txt",
        ] {
            assert_eq!(folder.open(path).unwrap_err().code, "unreadable", "{path}");
            assert!(open_without_links(&folder.root, path).is_err(), "{path}");
        }
        let absolute = outer.path().join("secret.txt").display().to_string();
        for path in [
            "../secret.txt",
            "data/../../secret.txt",
            &absolute,
            "",
            "data//a.txt",
            "./data/a.txt",
        ] {
            assert_eq!(folder.open(path).unwrap_err().code, "not-granted", "{path}");
        }
    }

    #[test]
    fn folders_and_pipes_are_refused_at_once() {
        let (_outer, folder) = folder(&["blob:read **"]);
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.root.join("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        for path in ["data", "pipe"] {
            let error = folder.open(path).unwrap_err();
            assert!(error.message.ends_with("not a regular file"), "{error:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_grant() {
        let (_outer, folder) = folder(&["blob:read data/*.txt"]);
        let error = folder.open("other.txt").unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("not-granted", "the file `other.txt` is not granted")
        );
        let hint = error.hint.unwrap();
        assert!(hint.contains("--grant 'coder=blob:read other.txt'"), "{hint}");
    }

    #[test]
    fn a_grant_without_a_request_is_refused() {
        let (_outer, mut folder) = folder(&[]);
        let read = CapabilityRequest::parse("blob:read **").unwrap();
        folder.grants = CapabilityGrants::new(vec![read], Some(Vec::new()));
        let error = folder.open("other.txt").unwrap_err();
        assert!(
            error
                .hint
                .unwrap()
                .starts_with("add `blob:read other.txt` to `requests`")
        );
    }

    /// A link that is exchanged while the file is opened leads nowhere else.
    #[test]
    fn a_race_with_a_link_never_leaves_the_folder() {
        let (outer, folder) = folder(&["blob:read **"]);
        let swapped = folder.root.join("data/swap.txt");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let next = folder.root.join("data/next.txt");
                    let _ = symlink(outer.path().join("secret.txt"), &next);
                    let _ = std::fs::rename(&next, &swapped);
                    let _ = std::fs::write(&next, "inside the folder");
                    let _ = std::fs::rename(&next, &swapped);
                }
            });
            let mut opened = 0;
            for _ in 0..2000 {
                if let Ok(blob) = folder.open("data/swap.txt") {
                    opened += 1;
                    assert_ne!(blob.size, "secret".len() as u64);
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(opened > 0);
        });
    }
}
