//! A bundle as one file: an OCI image layout in a tar.

use std::collections::BTreeMap;
use std::io::Read;

use crate::bundle::{Bundle, check_manifest, check_size, media_type};
use crate::digest::BlobDigest;
use crate::error::BundleError;
use crate::image::{
    BlobDescriptor, INDEX_TYPE, ImageIndex, ImageManifest, LAYOUT, LayoutMarker, MANIFEST_TYPE, REF_NAME,
    json,
};
use crate::limits::BundleLimits;
use crate::signature_artifact::{SignatureArtifact, is_signature};
use crate::tar::{self, TarReader};

const MARKER_FILE: &str = "oci-layout";
const INDEX_FILE: &str = "index.json";
const BLOBS: &str = "blobs/sha256/";

impl Bundle {
    /// Returns the bytes of the tar. Equal bundles are equal bytes.
    ///
    /// # Errors
    /// If a part does not fit into a tar.
    pub fn to_tar(&self) -> Result<Vec<u8>, BundleError> {
        let mut descriptor = self.descriptor();
        if let Some(tag) = self.tag() {
            descriptor.annotations.insert(REF_NAME.to_owned(), tag.to_owned());
        }
        let mut manifests = vec![descriptor];
        let mut blobs: BTreeMap<BlobDigest, Vec<u8>> = self
            .blobs()
            .map(|(digest, blob)| (digest.clone(), blob.to_vec()))
            .collect();
        blobs.insert(self.digest().clone(), self.manifest().to_vec());
        for artifact in SignatureArtifact::all(self)? {
            manifests.push(artifact.descriptor());
            let SignatureArtifact {
                manifest,
                blobs: more,
                ..
            } = artifact;
            for blob in more.into_iter().chain([manifest]) {
                blobs.insert(BlobDigest::of(&blob), blob);
            }
        }
        let index = json(&ImageIndex {
            schema_version: 2,
            media_type: Some(INDEX_TYPE.to_owned()),
            manifests,
        })?;
        let named: Vec<(String, Vec<u8>)> = blobs
            .into_iter()
            .map(|(digest, blob)| (format!("{BLOBS}{}", digest.hex()), blob))
            .collect();
        let documents = [(MARKER_FILE, LAYOUT.as_bytes()), (INDEX_FILE, index.as_slice())];
        let blobs = named.iter().map(|(name, blob)| (name.as_str(), blob.as_slice()));
        let mut bytes = Vec::new();
        tar::write(&mut bytes, documents.into_iter().chain(blobs))?;
        Ok(bytes)
    }

    /// Reads a tar. Memory is bounded by the limits; nothing is written.
    ///
    /// # Errors
    /// If the tar, the layout or a part of it is damaged, incomplete, too large, changed, or
    /// contains anything that is not part of a bundle.
    pub fn read_tar(source: impl Read, limits: &BundleLimits) -> Result<Self, BundleError> {
        let mut files = read_files(source, limits)?;
        let mut document = |name: &str| {
            let missing = || BundleError::Missing(format!("the file `{name}`"));
            files.remove(name).ok_or_else(missing)
        };
        check_marker(&document(MARKER_FILE)?)?;
        let index = read_index(&document(INDEX_FILE)?, limits)?;
        let mut blobs = ReadBlobs::default();
        for (name, content) in files {
            let digest = BlobDigest::of(&content);
            if name.strip_prefix(BLOBS) != Some(digest.hex()) {
                return Err(BundleError::WrongDigest {
                    part: format!("`{name}`"),
                    found: digest.to_string(),
                    expected: name.replace(BLOBS, "sha256:"),
                });
            }
            blobs.blobs.insert(digest, (content, false));
        }
        assemble(index, blobs, limits)
    }
}

/// Makes the bundle of an index and the checked blobs.
fn assemble(index: ImageIndex, mut blobs: ReadBlobs, limits: &BundleLimits) -> Result<Bundle, BundleError> {
    let mut image = None;
    let mut artifacts = Vec::new();
    for descriptor in &index.manifests {
        let manifest = blobs.get(descriptor, "a manifest of the index")?;
        if is_signature(descriptor.artifact_type.as_deref()) {
            let found: ImageManifest = parse(&manifest, "the manifest of a signature")?;
            let mut parts = Vec::new();
            for part in std::iter::once(&found.config).chain(&found.layers) {
                parts.push(blobs.get(part, "a part of a signature")?);
            }
            artifacts.push(SignatureArtifact {
                manifest,
                blobs: parts,
            });
        } else if image.is_none() {
            image = Some((descriptor, manifest));
        } else {
            return Err(BundleError::TooMany {
                parts: "images",
                limit: 1,
            });
        }
    }
    let (descriptor, manifest) = image.ok_or_else(|| BundleError::Missing("the image".to_owned()))?;
    let image = check_manifest(&manifest, limits)?;
    let mut parts = vec![blobs.get(&image.config, "the configuration")?];
    for (index, layer) in image.layers.iter().enumerate() {
        parts.push(blobs.get(layer, &format!("layer {}", index + 1))?);
    }
    blobs.finish()?;
    let mut bundle = Bundle::new(manifest, parts, limits)?;
    bundle.set_tag(descriptor.annotations.get(REF_NAME).cloned());
    for artifact in artifacts {
        artifact.add_to(&mut bundle, limits)?;
    }
    Ok(bundle)
}

/// Reads the files of the tar: those of a layout, each once, within the limits.
fn read_files(source: impl Read, limits: &BundleLimits) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut reader = TarReader::new(source, limits.entries);
    let mut files = BTreeMap::new();
    let mut total = 0_u64;
    while let Some(entry) = reader.next()? {
        let unexpected = || BundleError::UnexpectedEntry {
            name: entry.name.chars().take(200).collect(),
        };
        let Some(size) = entry.size else {
            if !["", ".", "blobs", "blobs/sha256"].contains(&entry.name.as_str()) {
                return Err(unexpected());
            }
            continue;
        };
        let is_document = [MARKER_FILE, INDEX_FILE].contains(&entry.name.as_str());
        let is_blob = entry
            .name
            .strip_prefix(BLOBS)
            .is_some_and(|hex| BlobDigest::parse(&format!("sha256:{hex}")).is_some());
        if !is_document && !is_blob {
            return Err(unexpected());
        }
        let limit = if is_document {
            limits.document
        } else {
            limits.layer
        };
        check_size(&format!("`{}`", entry.name), size, limit)?;
        total = total.saturating_add(size);
        check_size("the bundle", total, limits.total)?;
        let content = reader.content(size)?;
        if files.insert(entry.name.clone(), content).is_some() {
            return Err(BundleError::Duplicate { name: entry.name });
        }
    }
    Ok(files)
}

fn check_marker(bytes: &[u8]) -> Result<(), BundleError> {
    let marker: LayoutMarker = parse(bytes, "`oci-layout`")?;
    if marker.image_layout_version == "1.0.0" {
        return Ok(());
    }
    Err(BundleError::BadDocument {
        part: "`oci-layout`".to_owned(),
        reason: format!(
            "`imageLayoutVersion` must be 1.0.0, got {}",
            marker.image_layout_version
        ),
    })
}

fn read_index(bytes: &[u8], limits: &BundleLimits) -> Result<ImageIndex, BundleError> {
    let index: ImageIndex = parse(bytes, "`index.json`")?;
    if let Some(found) = index.media_type.as_deref().filter(|found| *found != INDEX_TYPE) {
        return Err(media_type("`index.json`".to_owned(), found, INDEX_TYPE));
    }
    if index.manifests.len() > limits.signatures {
        return Err(BundleError::TooMany {
            parts: "manifests",
            limit: limits.signatures,
        });
    }
    for descriptor in &index.manifests {
        if descriptor.media_type != MANIFEST_TYPE {
            let part = "a manifest of the index".to_owned();
            return Err(media_type(part, &descriptor.media_type, MANIFEST_TYPE));
        }
        check_size("a manifest of the index", descriptor.size, limits.document)?;
    }
    Ok(index)
}

/// The blobs of a tar, each checked against its name.
#[derive(Default)]
struct ReadBlobs {
    /// The content of each blob, and true once something has referred to it.
    blobs: BTreeMap<BlobDigest, (Vec<u8>, bool)>,
    /// The size of all copies, which several references to one blob could make large.
    copied: u64,
}

impl ReadBlobs {
    /// Returns the blob of a descriptor, and compares its size with the one that is stated.
    fn get(&mut self, descriptor: &BlobDescriptor, part: &str) -> Result<Vec<u8>, BundleError> {
        let missing = || BundleError::Missing(format!("{part} ({})", descriptor.digest));
        let digest = BlobDigest::parse(&descriptor.digest).ok_or_else(missing)?;
        let (blob, is_used) = self.blobs.get_mut(&digest).ok_or_else(missing)?;
        if blob.len() as u64 != descriptor.size {
            return Err(BundleError::WrongSize {
                part: part.to_owned(),
                found: blob.len() as u64,
                expected: descriptor.size,
            });
        }
        *is_used = true;
        self.copied = self.copied.saturating_add(descriptor.size);
        check_size("the bundle", self.copied, 2 * BundleLimits::default().total)?;
        Ok(blob.clone())
    }

    /// Refuses blobs that nothing has referred to.
    fn finish(self) -> Result<(), BundleError> {
        let unused = self.blobs.iter().find(|(_, (_, is_used))| !is_used);
        unused.map_or(Ok(()), |(digest, _)| {
            Err(BundleError::Unreferenced {
                digest: digest.to_string(),
            })
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], part: &str) -> Result<T, BundleError> {
    serde_json::from_slice(bytes).map_err(|error| BundleError::BadDocument {
        part: part.to_owned(),
        reason: error.to_string(),
    })
}
