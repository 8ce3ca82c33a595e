//! The entry of a component in the lock.

use veeksha_componentize::ComponentOutline;
use veeksha_manifest::is_plugin_name;
use veeksha_manifest::lock::LockedPlugin;

use crate::bundle::{Bundle, plugin_manifest};
use crate::digest::BlobDigest;
use crate::error::BundleError;

/// The name of a component without a manifest whose file has no name that a plugin may have.
const UNNAMED: &str = "plugin";

/// Returns the facts of a component that a lock pins. `source` is the reference or path of the
/// scenario; `fallback` is the name of a component without a manifest. Grants and signature are
/// decisions of the caller and absent.
///
/// # Errors
/// If the component or its manifest is damaged.
pub fn describe(
    source: &str,
    fallback: &str,
    component: &[u8],
    bundle: Option<&BlobDigest>,
) -> Result<LockedPlugin, BundleError> {
    let outline = ComponentOutline::read(component);
    let mut outline = outline.map_err(|error| BundleError::BadComponent(error.to_string()))?;
    outline.imports.sort();
    let manifest = plugin_manifest(component)?;
    let fallback = if is_plugin_name(fallback) {
        fallback
    } else {
        UNNAMED
    };
    Ok(LockedPlugin {
        name: manifest
            .as_ref()
            .map_or(fallback, |manifest| &manifest.name)
            .to_owned(),
        source: source.to_owned(),
        version: manifest.map(|manifest| manifest.version.to_string()),
        digest: BlobDigest::of(component).to_string(),
        bundle: bundle.map(BlobDigest::to_string),
        // A component of several versions is compared by all of them.
        contract: outline.contract_versions().join(", "),
        imports: outline.imports,
        grants: Vec::new(),
        signed_by: None,
    })
}

impl Bundle {
    /// Returns the entry of the bundle's component in the lock ([`describe`]).
    ///
    /// # Errors
    /// If the component or its manifest is damaged.
    pub fn describe(&self, source: &str) -> Result<LockedPlugin, BundleError> {
        describe(source, UNNAMED, self.component(), Some(self.digest()))
    }
}
