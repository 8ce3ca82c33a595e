//! `veeksha-host plugin lock`.

use std::path::{Path, PathBuf};

use clap::Args;

use veeksha_app::{
    BundleStore, CommandFailure, Loaded, LockOptions, Source, collect_errors, lock_plugins, read_lock,
    write_file,
};
use veeksha_bundle::Bundle;
use veeksha_manifest::RegistryReference;
use veeksha_manifest::lock::{LOCK_FILE, PluginLock};
use veeksha_present::terminal;

use super::keys::SignatureArgs;
use super::transfer::RegistryArgs;

#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    /// The scenarios, all in one folder. The lock is written next to them.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Compare with the lock and write nothing.
    #[arg(long)]
    check: bool,
    /// Connect to no registry: use the bundles that were pulled.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    signatures: SignatureArgs,
}

pub(super) fn lock(args: &LockArgs) -> Result<u8, CommandFailure> {
    let folder = folder(&args.scenarios)?;
    let mut scenarios: Vec<Loaded> = Vec::new();
    for path in &args.scenarios {
        let variants = Source::read(path)?.variants(&[], &[], true)?;
        scenarios.extend(
            collect_errors(variants)?
                .into_iter()
                .map(|variant| variant.loaded),
        );
    }
    let options = LockOptions {
        keys: args.signatures.keys()?,
        require_signature: args.signatures.require_signature,
    };
    let old = read_lock(&folder)?;
    let mut fetch = |reference: &RegistryReference| fetched(args, reference);
    let lock = lock_plugins(&scenarios, old.as_ref(), &options, &mut fetch)?;
    let old = old.unwrap_or_default();
    let changes = changes(&old, &lock);
    let path = folder.join(LOCK_FILE);
    for line in &changes {
        terminal::out(veeksha_model::printable_lines(line));
    }
    if args.check {
        if changes.is_empty() {
            terminal::out(format!("{} is up to date", path.display()));
            return Ok(veeksha_exit::DONE);
        }
        return Err(
            CommandFailure::usage(format!("{} is not up to date", path.display()))
                .hinted("review the changes, then write them: `veeksha-host plugin lock SCENARIO`"),
        );
    }
    write_file(&path, lock.text().as_bytes())?;
    let count = lock.plugins().len();
    terminal::out(format!(
        "wrote {}: {}",
        path.display(),
        veeksha_stats::counted(count as u64, "plugin")
    ));
    Ok(veeksha_exit::DONE)
}

/// Returns the one folder of the scenarios.
fn folder(scenarios: &[PathBuf]) -> Result<PathBuf, CommandFailure> {
    let folder_of = |path: &PathBuf| path.parent().unwrap_or(Path::new("")).to_owned();
    let mut folders: Vec<PathBuf> = scenarios.iter().map(folder_of).collect();
    folders.dedup();
    match folders.as_slice() {
        [folder] => Ok(folder.clone()),
        _ => Err(CommandFailure::usage("the scenarios are in several folders")
            .hinted("lock the scenarios of each folder separately")),
    }
}

fn fetched(args: &LockArgs, reference: &RegistryReference) -> Result<Bundle, CommandFailure> {
    if !args.offline {
        return args.registry.pull(reference);
    }
    let store = BundleStore::of_user()?;
    let digest = store.digest_of(reference);
    let bundle = digest.map(|digest| store.get(&digest)).transpose()?.flatten();
    bundle.ok_or_else(|| {
        CommandFailure::usage(format!("the bundle of `{reference}` is not on this machine"))
            .hinted(format!("get it: `veeksha-host plugin pull {reference}`"))
    })
}

/// Returns a line for each difference of two locks.
fn changes(old: &PluginLock, new: &PluginLock) -> Vec<String> {
    let mut lines = Vec::new();
    for plugin in new.plugins() {
        let name = &plugin.name;
        let Some(before) = old.by_source(&plugin.source) else {
            lines.push(format!("new: {name} ({})", plugin.source));
            continue;
        };
        let differences = before.differences(plugin);
        lines.extend(
            differences
                .iter()
                .map(|difference| format!("changed: {name}: {difference}")),
        );
        for (kind, before, now) in [("grants", &before.grants, &plugin.grants)] {
            if before != now {
                let list = |list: &[String]| {
                    if list.is_empty() {
                        "none".to_owned()
                    } else {
                        list.join(", ")
                    }
                };
                lines.push(format!(
                    "changed: {name}: {kind} are {}, the lock has {}",
                    list(now),
                    list(before)
                ));
            }
        }
        if before.signed_by != plugin.signed_by {
            let shown = |key: &Option<String>| key.clone().unwrap_or_else(|| "no trusted key".to_owned());
            lines.push(format!(
                "changed: {name}: it is signed by {}, the locked one by {}",
                shown(&plugin.signed_by),
                shown(&before.signed_by)
            ));
        }
    }
    lines
}
