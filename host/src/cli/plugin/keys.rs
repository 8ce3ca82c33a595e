//! Keys: `plugin keygen`, `plugin sign`, and the arguments of commands that check signatures.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use veeksha_app::{CommandFailure, read_bundle, write_file};
use veeksha_bundle::{Bundle, KeySignature, Signature, SigningKey, TrustedKey, trusted_keys};
use veeksha_present::terminal;

/// The file of trusted keys below the folder of configurations.
const TRUSTED_FILE: &str = "veeksha-host/trusted-keys.pem";

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The private key to write; the public key gets the name KEY.pub.
    #[arg(value_name = "KEY")]
    key: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// The bundle.
    bundle: PathBuf,
    /// The private key.
    #[arg(long, value_name = "KEY")]
    key: Option<PathBuf>,
    /// Attach a sigstore bundle, which another tool made of the bundle's manifest.
    #[arg(long, value_name = "FILE", required_unless_present = "key")]
    sigstore: Option<PathBuf>,
    /// The file to write instead of the bundle itself.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The signatures that a command accepts.
#[derive(Debug, Args)]
pub(crate) struct SignatureArgs {
    /// A file with public keys that are trusted; may be repeated [default:
    /// ~/.config/veeksha-host/trusted-keys.pem].
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Refuse plugins that no trusted key has signed.
    #[arg(long)]
    pub(crate) require_signature: bool,
}

impl SignatureArgs {
    /// Reads the trusted keys.
    pub(crate) fn keys(&self) -> Result<Vec<TrustedKey>, CommandFailure> {
        let mut files = self.key.clone();
        if files.is_empty() {
            files.extend(trusted_file().filter(|path| path.exists()));
        }
        let mut keys = Vec::new();
        for path in files {
            let text = read_text(&path)?;
            let found = trusted_keys(&text)
                .map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?;
            keys.extend(found);
        }
        if keys.is_empty() && self.require_signature {
            return Err(CommandFailure::usage("no key is trusted")
                .hinted("name a file with public keys: `--key FILE`"));
        }
        Ok(keys)
    }
}

/// Returns the file of trusted keys of this user.
fn trusted_file() -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let folder = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")));
    Some(folder?.join(TRUSTED_FILE))
}

pub(super) fn keygen(args: &KeygenArgs) -> Result<u8, CommandFailure> {
    let key = SigningKey::generate().map_err(CommandFailure::internal)?;
    let mut public = args.key.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    create(&args.key, &key.to_pem(), 0o600)?;
    create(&public, &key.public().to_pem(), 0o644)?;
    terminal::out(format!("private key  {}", args.key.display()));
    terminal::out(format!("public key   {}", public.display()));
    terminal::out(format!("identity     {}", key.public().id()));
    Ok(veeksha_exit::DONE)
}

/// Writes a file that must not exist: a lost private key cannot be made again.
fn create(path: &Path, text: &str, mode: u32) -> Result<(), CommandFailure> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| CommandFailure::usage(format!("cannot write {}: {error}", path.display())))
}

pub(super) fn sign(args: &SignArgs) -> Result<u8, CommandFailure> {
    let mut bundle = read_bundle(&args.bundle)?;
    if let Some(path) = &args.key {
        let id = add_signature(&mut bundle, path)?;
        terminal::out(format!("signed {} by {id}", bundle.digest()));
    }
    if let Some(path) = &args.sigstore {
        bundle.add_signature(Signature::Sigstore(read_text(path)?.into_bytes()));
        terminal::out(format!("attached {} to {}", path.display(), bundle.digest()));
    }
    let output = args.output.as_ref().unwrap_or(&args.bundle);
    let tar = bundle.to_tar().map_err(CommandFailure::internal)?;
    write_file(output, &tar)?;
    Ok(veeksha_exit::DONE)
}

/// Signs a bundle with the key of a file. Returns the identity of the key.
pub(super) fn add_signature(bundle: &mut Bundle, path: &Path) -> Result<String, CommandFailure> {
    let key = SigningKey::from_pem(&read_text(path)?)
        .map_err(|error| CommandFailure::usage(format!("{}: {error}", path.display())))?;
    let signature = KeySignature::new(bundle.digest(), "", &key).map_err(CommandFailure::internal)?;
    bundle.add_signature(Signature::Key(signature));
    Ok(key.public().id())
}

pub(super) fn read_text(path: &Path) -> Result<String, CommandFailure> {
    std::fs::read_to_string(path)
        .map_err(|error| CommandFailure::usage(format!("cannot read {}: {error}", path.display())))
}
