//! The documents of an OCI image layout, and the media types of a bundle.
//!
//! The layout is that of the image specification 1.1, the configuration that of the artifacts for
//! WebAssembly of CNCF's TAG Runtime, which `wkg`, Spin and wasmCloud read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::BlobDigest;
use crate::error::BundleError;

/// The media type of an image's manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of an index of manifests.
pub(crate) const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of the configuration of a component.
pub(crate) const CONFIG_TYPE: &str = "application/vnd.wasm.config.v0+json";
/// The annotation with the name of a file, by which `oras` writes a layer to a folder.
pub(crate) const TITLE: &str = "org.opencontainers.image.title";
/// The annotation of an index with the tag of a manifest.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The version of the image layout.
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// A reference to a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobDescriptor {
    /// The media type of the content.
    pub media_type: String,
    /// The digest of the content.
    pub digest: String,
    /// The size of the content in bytes.
    pub size: u64,
    /// The type of an artifact's manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Further facts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl BlobDescriptor {
    /// Returns the descriptor of bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        BlobDescriptor {
            media_type: media_type.to_owned(),
            digest: BlobDigest::of(bytes).to_string(),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns the name of the file.
    pub fn title(&self) -> Option<&str> {
        self.annotations.get(TITLE).map(String::as_str)
    }
}

/// The manifest of an image: its configuration and its layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The type of an artifact that is not an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: BlobDescriptor,
    /// The layers.
    pub layers: Vec<BlobDescriptor>,
    /// The manifest that this one is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<BlobDescriptor>,
    /// Title, version, licence, source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The index of a layout, or the list of referrers of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the index itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The manifests.
    pub manifests: Vec<BlobDescriptor>,
}

/// The marker of a layout.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LayoutMarker {
    pub(crate) image_layout_version: String,
}

/// The configuration of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WasmConfig {
    pub(crate) created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    pub(crate) architecture: String,
    pub(crate) os: String,
    pub(crate) layer_digests: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) component: Option<WasmInterfaces>,
}

/// The interfaces of a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WasmInterfaces {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
    /// The world; unknown, because a component does not state it.
    #[serde(default)]
    pub(crate) target: Option<String>,
}

/// The role of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerKind {
    /// The component; always the first layer, and the only one of its kind.
    Component,
    /// The plugin's manifest, `plugin.toml`.
    Manifest,
    /// A scenario.
    Scenario,
    /// A Lua file that a scenario requires.
    Lua,
    /// A page of documentation.
    Docs,
    /// The debug information of the component.
    Debug,
}

impl LayerKind {
    /// All kinds, in the order of the layers.
    pub const ALL: [LayerKind; 6] = [
        LayerKind::Component,
        LayerKind::Manifest,
        LayerKind::Scenario,
        LayerKind::Lua,
        LayerKind::Docs,
        LayerKind::Debug,
    ];

    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            LayerKind::Component => "application/wasm",
            LayerKind::Manifest => "application/vnd.veeksha.plugin.manifest.v1+toml",
            LayerKind::Scenario => "application/vnd.veeksha.plugin.scenario.v1",
            LayerKind::Lua => "application/vnd.veeksha.plugin.lua.v1",
            LayerKind::Docs => "application/vnd.veeksha.plugin.docs.v1+markdown",
            LayerKind::Debug => "application/vnd.veeksha.plugin.debug.v1+wasm",
        }
    }

    /// Returns the kind of a media type.
    pub fn of(media_type: &str) -> Option<Self> {
        LayerKind::ALL
            .into_iter()
            .find(|kind| kind.media_type() == media_type)
    }

    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::Component => "component",
            LayerKind::Manifest => "manifest",
            LayerKind::Scenario => "scenario",
            LayerKind::Lua => "Lua file",
            LayerKind::Docs => "documentation",
            LayerKind::Debug => "debug information",
        }
    }
}

/// Returns a document as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, BundleError> {
    serde_json::to_vec(value).map_err(|error| BundleError::BadDocument {
        part: "a document".to_owned(),
        reason: error.to_string(),
    })
}
