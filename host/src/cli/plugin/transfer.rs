//! `veeksha-host plugin push` and `plugin pull`.

use std::path::PathBuf;

use clap::Args;

use veeksha_app::{BundleStore, CommandFailure, read_bundle, write_file};
use veeksha_bundle::{Bundle, BundleLimits};
use veeksha_manifest::RegistryReference;
use veeksha_present::terminal;
use veeksha_registry::{RegistryError, TransferOptions};

use super::keys::SignatureArgs;

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The bundle.
    bundle: PathBuf,
    /// The place: oci://HOST[:PORT]/NAME[:TAG]; the default tag is the version of the plugin.
    reference: String,
    #[command(flatten)]
    registry: RegistryArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The bundle: oci://HOST[:PORT]/NAME[:TAG][@sha256:DIGEST].
    reference: String,
    /// Also write the bundle to a file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    signatures: SignatureArgs,
}

/// The connection to a registry.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Speak to the registry without TLS. Registries on this machine never use TLS.
    #[arg(long)]
    plain_http: bool,
}

impl RegistryArgs {
    /// Pulls a bundle.
    pub(super) fn pull(&self, reference: &RegistryReference) -> Result<Bundle, CommandFailure> {
        veeksha_registry::pull(reference, &self.options()).map_err(registry_failure)
    }

    fn options(&self) -> TransferOptions<'static> {
        TransferOptions {
            plain_http: self.plain_http,
            limits: BundleLimits::default(),
            progress: &|line| terminal::err(line),
        }
    }
}

pub(super) fn push(args: &PushArgs) -> Result<u8, CommandFailure> {
    let bundle = read_bundle(&args.bundle)?;
    let mut reference = parse(&args.reference)?;
    if reference.digest.is_some() {
        return Err(
            CommandFailure::usage(format!("{reference}: a digest cannot be chosen"))
                .hinted("give a tag, or nothing"),
        );
    }
    if reference.tag.is_none() {
        reference.tag = Some(bundle.tag().unwrap_or("latest").to_owned());
    }
    veeksha_registry::push(&reference, &bundle, &args.registry.options()).map_err(registry_failure)?;
    terminal::out(format!("pushed {reference}@{}", bundle.digest()));
    Ok(veeksha_exit::DONE)
}

pub(super) fn pull(args: &PullArgs) -> Result<u8, CommandFailure> {
    let reference = parse(&args.reference)?;
    let keys = args.signatures.keys()?;
    let bundle = args.registry.pull(&reference)?;
    let signer = bundle.signer(&keys);
    if args.signatures.require_signature && signer.is_none() {
        return Err(
            CommandFailure::new(veeksha_exit::PLUGIN, format!("no trusted key signed {reference}"))
                .hinted("trust the key of its author: `--key FILE`"),
        );
    }
    BundleStore::of_user()?.put(&bundle, Some(&reference))?;
    if let Some(output) = &args.output {
        let tar = bundle.to_tar().map_err(CommandFailure::internal)?;
        write_file(output, &tar)?;
    }
    terminal::out(format!("pulled {reference}"));
    terminal::out(veeksha_model::printable_lines(&super::pack::layers(&bundle)));
    if let Some(signer) = signer {
        let line = format!("  signed by {} ({})", signer.name, signer.key.id());
        terminal::out(veeksha_model::printable_lines(&line));
    }
    Ok(veeksha_exit::DONE)
}

pub(super) fn parse(text: &str) -> Result<RegistryReference, CommandFailure> {
    RegistryReference::parse(text).map_err(CommandFailure::usage)
}

pub(super) fn registry_failure(error: RegistryError) -> CommandFailure {
    let code = match &error {
        RegistryError::Bundle { .. } => veeksha_exit::PLUGIN,
        RegistryError::Unreachable { .. } | RegistryError::Status { .. } | RegistryError::Protocol { .. } => {
            veeksha_exit::TARGET
        }
        RegistryError::Client(_) => veeksha_exit::INTERNAL,
        _ => veeksha_exit::USAGE,
    };
    CommandFailure::new(code, error)
}
