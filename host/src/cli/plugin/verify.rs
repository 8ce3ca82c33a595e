//! `veeksha-host plugin verify`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use veeksha_app::{BundleStore, CommandFailure, StandaloneHost, read_bundle};
use veeksha_bundle::{Bundle, Signature};
use veeksha_componentize::ComponentOutline;
use veeksha_manifest::PluginKind;
use veeksha_plugin_tools::conform::{ConformState, conform};
use veeksha_plugin_tools::{FileForm, OpenedPlugin, PluginFile};
use veeksha_present::terminal;

use super::keys::SignatureArgs;
use super::settings::PluginSettingArgs;
use super::transfer::parse;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The bundle: a file, or the reference of one that was pulled.
    #[arg(value_name = "FILE|REFERENCE")]
    bundle: String,
    #[command(flatten)]
    signatures: SignatureArgs,
    #[command(flatten)]
    settings: PluginSettingArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The result of one check.
struct BundleCheck {
    name: &'static str,
    /// None if there was nothing to check.
    passed: Option<bool>,
    text: String,
}

pub(super) fn verify(args: &VerifyArgs) -> Result<u8, CommandFailure> {
    let keys = args.signatures.keys()?;
    // Reading checks every digest, size and media type.
    let bundle = read(&args.bundle)?;
    let signature = signature(&bundle, &keys, args.signatures.require_signature);
    let checks = [
        BundleCheck {
            name: "digest",
            passed: Some(true),
            text: bundle.digest().to_string(),
        },
        signature,
        contract(&bundle, args.settings.no_cache)?,
        conformance(&bundle, &args.settings)?,
    ];
    let is_good = checks.iter().all(|check| check.passed != Some(false));
    if args.json {
        let of_check =
            |check: &BundleCheck| json!({"check": check.name, "passed": check.passed, "text": check.text});
        let checks: Vec<serde_json::Value> = checks.iter().map(of_check).collect();
        let whole = json!({
            "passed": is_good,
            "digest": bundle.digest().as_str(),
            "component": bundle.component_digest().as_str(),
            "checks": checks,
        });
        let text = serde_json::to_string_pretty(&whole).map_err(CommandFailure::internal)?;
        terminal::out(text);
    } else {
        for BundleCheck { name, passed, text } in &checks {
            let result = match passed {
                Some(true) => "PASSED",
                Some(false) => "FAILED",
                None => "SKIPPED",
            };
            terminal::out(veeksha_model::printable_lines(&format!(
                "{name:<11} {result:<7} {text}"
            )));
        }
    }
    Ok(if is_good {
        veeksha_exit::DONE
    } else {
        veeksha_exit::PLUGIN
    })
}

/// Reads a file, or a bundle of the store. Connects to nothing.
fn read(text: &str) -> Result<Bundle, CommandFailure> {
    if !text.starts_with("oci://") {
        return read_bundle(Path::new(text));
    }
    let reference = parse(text)?;
    let store = BundleStore::of_user()?;
    let digest = store.digest_of(&reference);
    let bundle = digest.map(|digest| store.get(&digest)).transpose()?.flatten();
    bundle.ok_or_else(|| {
        CommandFailure::usage(format!("the bundle of `{reference}` is not on this machine"))
            .hinted(format!("get it: `veeksha-host plugin pull {reference}`"))
    })
}

fn signature(bundle: &Bundle, keys: &[veeksha_bundle::TrustedKey], is_required: bool) -> BundleCheck {
    let sigstore = bundle
        .signatures()
        .iter()
        .filter(|signature| matches!(signature, Signature::Sigstore(_)))
        .count();
    let count = bundle.signatures().len() - sigstore;
    let (passed, text) = match bundle.signer(keys) {
        Some(signer) => (Some(true), format!("by {} ({})", signer.name, signer.key.id())),
        None if is_required => (
            Some(false),
            format!("none of {} by a trusted key", signatures(count)),
        ),
        None if count == 0 && sigstore == 0 => (None, "the bundle is not signed".to_owned()),
        None => (None, format!("{}, none by a trusted key", signatures(count))),
    };
    BundleCheck {
        name: "signature",
        passed,
        text,
    }
}

fn signatures(count: usize) -> String {
    veeksha_stats::counted(count as u64, "signature")
}

/// Compiles the component and compares its interfaces with the contract.
fn contract(bundle: &Bundle, no_cache: bool) -> Result<BundleCheck, CommandFailure> {
    let host = StandaloneHost::new(PathBuf::new(), &[], no_cache)?;
    let name = component_name(bundle);
    let facts = bundle.describe("bundle").map_err(CommandFailure::internal)?;
    let outline = ComponentOutline::read(bundle.component()).map_err(CommandFailure::internal)?;
    let kinds: Vec<&str> = outline.kinds().into_iter().map(PluginKind::name).collect();
    Ok(
        match host.load(name.trim_end_matches(".wasm"), bundle.component()) {
            Ok(_) => BundleCheck {
                name: "contract",
                passed: Some(true),
                text: format!("version {}, {}", facts.contract, kinds.join(", ")),
            },
            Err(failure) => BundleCheck {
                name: "contract",
                passed: Some(false),
                text: failure.message,
            },
        },
    )
}

/// Calls the plugin as `plugin conform` does. A component that does not load was reported above.
fn conformance(bundle: &Bundle, settings: &PluginSettingArgs) -> Result<BundleCheck, CommandFailure> {
    let file = PluginFile {
        path: PathBuf::from(component_name(bundle)),
        form: FileForm::Component,
        bytes: bundle.component().to_vec(),
        project: None,
    };
    let name = "conformance";
    let Ok(plugin) = OpenedPlugin::open(settings.host()?, &file) else {
        let text = "the component was not loaded".to_owned();
        return Ok(BundleCheck {
            name,
            passed: None,
            text,
        });
    };
    let report = conform(&plugin, &settings.settings()?);
    let failed = report.checks().iter().filter_map(|(check, state)| match state {
        ConformState::Failed(why) => Some(format!("{check}: {why}")),
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    Ok(BundleCheck {
        name,
        passed: Some(failed.is_empty()),
        text: if failed.is_empty() {
            veeksha_stats::counted(report.checks().len() as u64, "check")
        } else {
            failed.join("; ")
        },
    })
}

fn component_name(bundle: &Bundle) -> &str {
    let first = bundle.layers().next();
    first.map_or("component.wasm", |layer| layer.title)
}
