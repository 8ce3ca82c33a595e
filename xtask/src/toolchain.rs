//! Finding, or setting up, the compiler that components are built with.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::digests::digest;

/// The target of every component.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const SCRIPT: &str = "xtask/guest-toolchain.sh";
/// The script's exit status for "the pinned packages cannot be had here".
const CANNOT: i32 = 3;

/// Nothing that can build the components as they are in the repository.
#[derive(Debug, thiserror::Error)]
#[error(
    "the pinned guest toolchain ({pin}) cannot be had here: {reason}; nothing was compared (running the host needs no \
     guest toolchain, only rebuilding its components does)"
)]
pub(crate) struct Unavailable {
    pin: String,
    reason: String,
}

/// A compiler for [`TARGET`].
pub(crate) enum Toolchain {
    /// Exactly the pinned packages, in a folder: the digests must come out as they are listed.
    Pinned { folder: PathBuf, pin: String },
    /// The target that rustup installed: good components, but other bytes.
    Rustup { version: String },
}

impl Toolchain {
    /// What built a component, for people.
    pub(crate) fn describe(&self) -> &str {
        match self {
            Toolchain::Pinned { pin, .. } => pin,
            Toolchain::Rustup { version } => version,
        }
    }

    /// The environment in which cargo uses it.
    pub(crate) fn apply(&self, cargo: &mut Command) {
        if let Toolchain::Pinned { folder, .. } = self {
            cargo.env("RUSTC", folder.join("bin/rustc"));
            cargo.env(
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER",
                folder.join("bin/wasm-ld"),
            );
        }
    }

    /// A short name for what it is, made when: what one built, cargo must not take for what another
    /// built.
    pub(crate) fn key(&self) -> String {
        let mut identity = self.describe().to_owned();
        if let Toolchain::Pinned { folder, .. } = self {
            let made = std::fs::metadata(folder.join("pin")).and_then(|pin| pin.modified());
            identity.push_str(&format!("{} {made:?}", folder.display()));
        }
        digest(identity.as_bytes())[..12].to_owned()
    }

    /// The folder that must not show in a component, and the one in it where the standard library's
    /// source lies.
    pub(crate) fn folders(&self) -> Option<(PathBuf, PathBuf)> {
        match self {
            Toolchain::Pinned { folder, .. } => {
                let root = folder.join("root");
                let source = root.join("usr/lib/rustlib/src/rust");
                Some((root, source))
            }
            Toolchain::Rustup { .. } => None,
        }
    }
}

/// The toolchain asked for; else the environment's; else the one in the cache folder, set up if
/// need be; else rustup's.
pub(crate) fn find(repository: &Path, asked: Option<&Path>) -> Result<Toolchain> {
    let pin = pin(repository)?;
    let named = asked.map(Path::to_owned).or_else(|| {
        std::env::var_os("VEEKSHA_GUEST_TOOLCHAIN")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    });
    if let Some(named) = named {
        if named.as_os_str() == "rustup" {
            return rustup().with_context(|| format!("no target {TARGET}: rustup target add {TARGET}"));
        }
        return pinned(&named, &pin)?.with_context(|| {
            format!(
                "{} is not a guest toolchain: create one with {SCRIPT} {0}",
                named.display()
            )
        });
    }
    let folder = cache()?;
    if let Ok(Some(toolchain)) = pinned(&folder, &pin) {
        return Ok(toolchain);
    }
    eprintln!("setting up {pin} in {} (once, about a minute)", folder.display());
    let status = Command::new("bash")
        .arg(repository.join(SCRIPT))
        .arg(&folder)
        .status()
        .with_context(|| format!("cannot run {SCRIPT}"))?;
    if status.success() {
        return pinned(&folder, &pin)?.with_context(|| format!("{SCRIPT} left no toolchain"));
    }
    if status.code() != Some(CANNOT) {
        bail!("{SCRIPT} failed: {status}");
    }
    match rustup() {
        Some(toolchain) => Ok(toolchain),
        None => Err(Unavailable {
            pin,
            reason: format!("see above; and rustup has no target {TARGET} installed either"),
        }
        .into()),
    }
}

/// The error for a comparison that only the pinned toolchain can make.
pub(crate) fn unavailable(repository: &Path, reason: String) -> Result<Unavailable> {
    Ok(Unavailable {
        pin: pin(repository)?,
        reason,
    })
}

fn pin(repository: &Path) -> Result<String> {
    let output = Command::new("bash")
        .arg(repository.join(SCRIPT))
        .arg("--pin")
        .output();
    let output = output.with_context(|| format!("cannot run {SCRIPT}"))?;
    if !output.status.success() {
        bail!(
            "{SCRIPT} --pin failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The toolchain in a folder: none when there is none, an error when it is of another pin.
fn pinned(folder: &Path, pin: &str) -> Result<Option<Toolchain>> {
    let Ok(found) = std::fs::read_to_string(folder.join("pin")) else {
        return Ok(None);
    };
    if found.trim() != pin {
        bail!(
            "{} holds {}, but {pin} is required: recreate it with {SCRIPT}",
            folder.display(),
            found.trim()
        );
    }
    let folder = folder
        .canonicalize()
        .with_context(|| format!("cannot find {}", folder.display()))?;
    Ok(Some(Toolchain::Pinned {
        folder,
        pin: pin.to_owned(),
    }))
}

fn rustup() -> Option<Toolchain> {
    let print = |arguments: &[&str]| {
        let output = Command::new("rustc")
            .args(arguments)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let libraries = print(&["--print", "target-libdir", "--target", TARGET])?;
    let core = std::fs::read_dir(libraries)
        .ok()?
        .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("libcore-")));
    core.then(|| print(&["--version"]))
        .flatten()
        .map(|version| Toolchain::Rustup { version })
}

fn cache() -> Result<PathBuf> {
    let folder = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => {
            PathBuf::from(std::env::var_os("HOME").context("no HOME, so no cache folder")?).join(".cache")
        }
    };
    Ok(folder.join("veeksha-host/guest-toolchain"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_only_with_the_pin_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        assert!(pinned(folder.path(), "rustc 1").unwrap().is_none());
        std::fs::write(folder.path().join("pin"), "rustc 1\n").unwrap();
        assert!(matches!(
            pinned(folder.path(), "rustc 1").unwrap(),
            Some(Toolchain::Pinned { .. })
        ));
        let refused = pinned(folder.path(), "rustc 2").err().unwrap().to_string();
        assert!(
            refused.contains("holds rustc 1, but rustc 2 is required"),
            "{refused}"
        );
    }
}
