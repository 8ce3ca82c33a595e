//! A checked bundle: manifest, configuration, layers and signatures.

use std::collections::{BTreeMap, BTreeSet};

use veeksha_manifest::PluginManifest;

use crate::digest::BlobDigest;
use crate::error::BundleError;
use crate::image::{BlobDescriptor, CONFIG_TYPE, ImageManifest, LayerKind, MANIFEST_TYPE, WasmConfig};
use crate::limits::BundleLimits;
use crate::signature::Signature;

/// Maximum length of a layer's title.
const LONGEST_TITLE: usize = 255;

/// A bundle whose digests, sizes and media types were checked.
#[derive(Clone, Debug)]
pub struct Bundle {
    manifest: Vec<u8>,
    digest: BlobDigest,
    image: ImageManifest,
    blobs: BTreeMap<BlobDigest, Vec<u8>>,
    signatures: Vec<Signature>,
    tag: Option<String>,
}

/// A layer of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct BundleLayer<'a> {
    /// Its role.
    pub kind: LayerKind,
    /// Its path in the project, relative and without `..`.
    pub title: &'a str,
    /// Its content.
    pub content: &'a [u8],
}

impl Bundle {
    /// Makes a bundle of a manifest and the blobs that it refers to.
    ///
    /// # Errors
    /// If the manifest is refused ([`check_manifest`]), a blob is missing, or a blob does not have
    /// the digest or the size that the manifest states.
    pub fn new(manifest: Vec<u8>, blobs: Vec<Vec<u8>>, limits: &BundleLimits) -> Result<Self, BundleError> {
        let image = check_manifest(&manifest, limits)?;
        let mut found: BTreeMap<BlobDigest, Vec<u8>> = blobs
            .into_iter()
            .map(|blob| (BlobDigest::of(&blob), blob))
            .collect();
        let mut blobs = BTreeMap::new();
        for (part, descriptor) in parts(&image) {
            let digest = digest_of(&part, descriptor)?;
            if blobs.contains_key(&digest) {
                continue;
            }
            let blob = found
                .remove(&digest)
                .ok_or_else(|| BundleError::Missing(format!("the content of {part} ({digest})")))?;
            if blob.len() as u64 != descriptor.size {
                return Err(BundleError::WrongSize {
                    part,
                    found: blob.len() as u64,
                    expected: descriptor.size,
                });
            }
            blobs.insert(digest, blob);
        }
        if let Some(digest) = found.keys().next() {
            return Err(BundleError::Unreferenced {
                digest: digest.to_string(),
            });
        }
        let bundle = Bundle {
            digest: BlobDigest::of(&manifest),
            manifest,
            image,
            blobs,
            signatures: Vec::new(),
            tag: None,
        };
        bundle.check_config()?;
        Ok(bundle)
    }

    fn check_config(&self) -> Result<(), BundleError> {
        let bad = |reason: String| BundleError::BadDocument {
            part: "the configuration".to_owned(),
            reason,
        };
        let config: WasmConfig =
            serde_json::from_slice(self.blob(&self.image.config)).map_err(|error| bad(error.to_string()))?;
        let layers = self.image.layers.iter().map(|layer| &layer.digest);
        if !config.layer_digests.iter().eq(layers) {
            return Err(bad(
                "its list of layers differs from that of the manifest".to_owned()
            ));
        }
        Ok(())
    }

    fn blob(&self, descriptor: &BlobDescriptor) -> &[u8] {
        let digest = BlobDigest::parse(&descriptor.digest);
        // `new` has inserted every blob.
        digest
            .and_then(|digest| self.blobs.get(&digest))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the digest of the manifest, which is the digest of the bundle.
    pub fn digest(&self) -> &BlobDigest {
        &self.digest
    }

    /// Returns the bytes of the manifest.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Returns the manifest.
    pub fn image(&self) -> &ImageManifest {
        &self.image
    }

    /// Returns the descriptor of the manifest.
    pub fn descriptor(&self) -> BlobDescriptor {
        BlobDescriptor::of(MANIFEST_TYPE, &self.manifest)
    }

    /// Returns the configuration and the layers by their digests.
    pub fn blobs(&self) -> impl Iterator<Item = (&BlobDigest, &[u8])> {
        self.blobs.iter().map(|(digest, blob)| (digest, blob.as_slice()))
    }

    /// Returns the component.
    pub fn component(&self) -> &[u8] {
        self.image.layers.first().map_or(&[], |layer| self.blob(layer))
    }

    /// Returns the digest of the component.
    pub fn component_digest(&self) -> BlobDigest {
        BlobDigest::of(self.component())
    }

    /// Returns the layers in order: the component first.
    pub fn layers(&self) -> impl Iterator<Item = BundleLayer<'_>> {
        self.image.layers.iter().filter_map(|layer| {
            Some(BundleLayer {
                kind: LayerKind::of(&layer.media_type)?,
                title: layer.title().unwrap_or("component.wasm"),
                content: self.blob(layer),
            })
        })
    }

    /// Returns the manifest of the plugin, as the component carries it.
    ///
    /// # Errors
    /// If the component is damaged, or its manifest is not valid.
    pub fn plugin_manifest(&self) -> Result<Option<PluginManifest>, BundleError> {
        plugin_manifest(self.component())
    }

    /// Returns the tag that the layout states.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Returns the signatures.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Sets the tag of the layout. It is not part of the digest.
    pub fn set_tag(&mut self, tag: Option<String>) {
        self.tag = tag;
    }

    /// Adds a signature, unless the bundle has it. It is not part of the digest.
    pub fn add_signature(&mut self, signature: Signature) {
        if !self.signatures.contains(&signature) {
            self.signatures.push(signature);
        }
    }
}

/// Returns the manifest of the plugin that a component carries.
///
/// # Errors
/// If the component is damaged, or its manifest is not valid.
pub fn plugin_manifest(component: &[u8]) -> Result<Option<PluginManifest>, BundleError> {
    let bad = |reason: String| BundleError::BadDocument {
        part: "the plugin's manifest".to_owned(),
        reason,
    };
    let text = veeksha_manifest::section::read(component).map_err(|error| bad(error.to_string()))?;
    text.map(PluginManifest::parse)
        .transpose()
        .map_err(|error| bad(error.to_string()))
}

/// Reads a manifest and checks everything that is known before its blobs are: media types, sizes,
/// numbers and titles.
///
/// # Errors
/// If it is not the manifest of a bundle, or exceeds a limit.
pub fn check_manifest(manifest: &[u8], limits: &BundleLimits) -> Result<ImageManifest, BundleError> {
    let part = || "the manifest".to_owned();
    let bad = |reason: String| BundleError::BadDocument { part: part(), reason };
    check_size("the manifest", manifest.len() as u64, limits.document)?;
    let image: ImageManifest = serde_json::from_slice(manifest).map_err(|error| bad(error.to_string()))?;
    if image.schema_version != 2 {
        return Err(bad(format!(
            "`schemaVersion` must be 2, got {}",
            image.schema_version
        )));
    }
    if let Some(found) = image
        .media_type
        .as_deref()
        .filter(|found| *found != MANIFEST_TYPE)
    {
        return Err(media_type(part(), found, MANIFEST_TYPE));
    }
    if image.config.media_type != CONFIG_TYPE {
        return Err(media_type(
            "the configuration".to_owned(),
            &image.config.media_type,
            CONFIG_TYPE,
        ));
    }
    check_size("the configuration", image.config.size, limits.document)?;
    if image.layers.len() > limits.layers {
        return Err(BundleError::TooMany {
            parts: "layers",
            limit: limits.layers,
        });
    }
    let mut titles = BTreeSet::new();
    let mut total = 0_u64;
    for (index, layer) in image.layers.iter().enumerate() {
        let kind = layer_kind(index, layer)?;
        let part = format!("layer {} ({})", index + 1, kind.name());
        check_size(&part, layer.size, limits.layer)?;
        total = total.saturating_add(layer.size);
        let Some(title) = layer.title() else {
            if kind == LayerKind::Component {
                continue;
            }
            return Err(bad(format!("{part} has no title")));
        };
        check_title(title)?;
        if !titles.insert(title) {
            return Err(BundleError::Duplicate {
                name: title.to_owned(),
            });
        }
    }
    check_size("the bundle", total, limits.total)?;
    if image.layers.is_empty() {
        return Err(BundleError::Missing("the component".to_owned()));
    }
    for (part, descriptor) in parts(&image) {
        digest_of(&part, descriptor)?;
    }
    Ok(image)
}

/// Returns the kind of a layer. The first one is the component, and only the first one.
fn layer_kind(index: usize, layer: &BlobDescriptor) -> Result<LayerKind, BundleError> {
    let kind = LayerKind::of(&layer.media_type);
    match kind {
        Some(kind) if (kind == LayerKind::Component) == (index == 0) => Ok(kind),
        _ => {
            let known = LayerKind::ALL
                .iter()
                .filter(|kind| **kind != LayerKind::Component);
            let known: Vec<&str> = known.map(|kind| kind.media_type()).collect();
            let expected = if index == 0 {
                LayerKind::Component.media_type().to_owned()
            } else {
                format!("one of {}", known.join(", "))
            };
            Err(media_type(
                format!("layer {}", index + 1),
                &layer.media_type,
                &expected,
            ))
        }
    }
}

/// Returns the configuration and the layers, each with its name in messages.
fn parts(image: &ImageManifest) -> impl Iterator<Item = (String, &BlobDescriptor)> {
    let layers = image.layers.iter().enumerate();
    std::iter::once(("the configuration".to_owned(), &image.config))
        .chain(layers.map(|(index, layer)| (format!("layer {}", index + 1), layer)))
}

fn digest_of(part: &str, descriptor: &BlobDescriptor) -> Result<BlobDigest, BundleError> {
    BlobDigest::parse(&descriptor.digest).ok_or_else(|| BundleError::BadDocument {
        part: part.to_owned(),
        reason: "its digest must be `sha256:` and 64 hexadecimal digits".to_owned(),
    })
}

pub(crate) fn check_size(part: &str, size: u64, limit: u64) -> Result<(), BundleError> {
    if size <= limit {
        return Ok(());
    }
    Err(BundleError::TooLarge {
        part: part.to_owned(),
        size,
        limit,
    })
}

pub(crate) fn media_type(part: String, found: &str, expected: &str) -> BundleError {
    BundleError::MediaType {
        part,
        found: found.chars().take(200).collect(),
        expected: expected.to_owned(),
    }
}

/// Refuses a title that is not a relative path inside a folder. Tools such as `oras` write the
/// layer to this path.
pub(crate) fn check_title(title: &str) -> Result<(), BundleError> {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_inside = title.len() <= LONGEST_TITLE
        && !title.contains(['\\', ':'])
        && !title.chars().any(char::is_control)
        && title.split('/').all(is_part);
    if is_inside {
        return Ok(());
    }
    Err(BundleError::PathTraversal {
        name: title.chars().take(200).collect(),
    })
}
