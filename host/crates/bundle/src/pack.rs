//! Making a bundle of a component and its files.

use std::collections::BTreeMap;

use veeksha_componentize::ComponentOutline;
use veeksha_manifest::PluginManifest;

use crate::bundle::{Bundle, check_title, plugin_manifest};
use crate::error::BundleError;
use crate::image::{
    BlobDescriptor, CONFIG_TYPE, ImageManifest, LayerKind, MANIFEST_TYPE, TITLE, WasmConfig, WasmInterfaces,
    json,
};
use crate::limits::BundleLimits;

/// The header of a core module: magic, version 1, layer 0.
const CORE_MODULE: [u8; 8] = [0, b'a', b's', b'm', 1, 0, 0, 0];

/// A file that a bundle contains next to the component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleFile {
    /// Its role.
    pub kind: LayerKind,
    /// Its path in the project.
    pub title: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// Makes a bundle. Equal arguments give equal bytes: the bundle has no time, no folder and no user.
/// `name` is the name of a component without a manifest. Unless `component_only`, the manifest that
/// the component carries is also a layer, which other tools can read.
///
/// # Errors
/// If the bytes are not a component, a file has a title that leads out of its folder, or the bundle
/// exceeds a limit.
pub fn pack(
    component: Vec<u8>,
    name: &str,
    mut files: Vec<BundleFile>,
    component_only: bool,
) -> Result<Bundle, BundleError> {
    let interfaces = interfaces(&component)?;
    let manifest = plugin_manifest(&component)?;
    let name = manifest
        .as_ref()
        .map_or(name, |manifest| &manifest.name)
        .to_owned();
    if component_only {
        files.clear();
    } else if let Ok(Some(text)) = veeksha_manifest::section::read(&component) {
        files.push(BundleFile {
            kind: LayerKind::Manifest,
            title: "plugin.toml".to_owned(),
            content: text.as_bytes().to_vec(),
        });
    }
    files.sort_by(|a, b| (a.kind, &a.title).cmp(&(b.kind, &b.title)));
    files.insert(
        0,
        BundleFile {
            kind: LayerKind::Component,
            title: format!("{name}.wasm"),
            content: component,
        },
    );
    for file in &files {
        check_title(&file.title)?;
    }
    let layers: Vec<BlobDescriptor> = files.iter().map(layer).collect();
    let config = config(&layers, interfaces, manifest.as_ref())?;
    let image = ImageManifest {
        schema_version: 2,
        media_type: Some(MANIFEST_TYPE.to_owned()),
        artifact_type: None,
        config: BlobDescriptor::of(CONFIG_TYPE, &config),
        layers,
        subject: None,
        annotations: annotations(&name, manifest.as_ref()),
    };
    let mut blobs = vec![config];
    blobs.extend(files.into_iter().map(|file| file.content));
    let mut bundle = Bundle::new(json(&image)?, blobs, &BundleLimits::default())?;
    bundle.set_tag(manifest.map(|manifest| tag(&manifest.version)));
    Ok(bundle)
}

fn layer(file: &BundleFile) -> BlobDescriptor {
    let mut layer = BlobDescriptor::of(file.kind.media_type(), &file.content);
    layer.annotations.insert(TITLE.to_owned(), file.title.clone());
    layer
}

fn config(
    layers: &[BlobDescriptor],
    interfaces: WasmInterfaces,
    manifest: Option<&PluginManifest>,
) -> Result<Vec<u8>, BundleError> {
    let authors = manifest.map(|manifest| manifest.authors.join(", "));
    json(&WasmConfig {
        // The key is required; a real time would make each bundle another one.
        created: "1970-01-01T00:00:00Z".to_owned(),
        author: authors.filter(|authors| !authors.is_empty()),
        architecture: "wasm".to_owned(),
        os: "wasip2".to_owned(),
        layer_digests: layers.iter().map(|layer| layer.digest.clone()).collect(),
        component: Some(interfaces),
    })
}

/// Returns the interfaces of a component. A core module cannot be a plugin.
fn interfaces(component: &[u8]) -> Result<WasmInterfaces, BundleError> {
    if component.starts_with(&CORE_MODULE) {
        let reason = "it is a core module: build it with `veeksha-host plugin build`";
        return Err(BundleError::BadComponent(reason.to_owned()));
    }
    let outline = ComponentOutline::read(component);
    let mut outline = outline.map_err(|error| BundleError::BadComponent(error.to_string()))?;
    outline.imports.sort();
    outline.exports.sort();
    Ok(WasmInterfaces {
        exports: outline.exports,
        imports: outline.imports,
        target: None,
    })
}

fn annotations(name: &str, manifest: Option<&PluginManifest>) -> BTreeMap<String, String> {
    let mut annotations = BTreeMap::from([(TITLE.to_owned(), name.to_owned())]);
    let Some(manifest) = manifest else {
        return annotations;
    };
    let version = manifest.version.to_string();
    let authors = manifest.authors.join(", ");
    for (key, value) in [
        ("version", Some(version.as_str())),
        ("description", Some(manifest.summary.as_str())),
        ("licenses", manifest.license.as_deref()),
        ("source", manifest.repository.as_deref()),
        ("authors", Some(authors.as_str())),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            annotations.insert(format!("org.opencontainers.image.{key}"), value.to_owned());
        }
    }
    annotations
}

/// Returns the tag of a version. A tag cannot have the `+` of build metadata.
pub fn tag(version: &impl ToString) -> String {
    version.to_string().replace('+', "_")
}
