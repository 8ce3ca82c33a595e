//! Push and pull of bundles.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use veeksha_bundle::{
    BlobDescriptor, BlobDigest, Bundle, BundleError, BundleLimits, ImageIndex, ImageManifest, MANIFEST_TYPE,
    SignatureArtifact, check_manifest, is_signature,
};
use veeksha_manifest::RegistryReference;

use crate::connection::{RegistryConnection, RegistryRequest};
use crate::error::RegistryError;

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const BLOB_TYPE: &str = "application/octet-stream";
/// The header by which a registry reports that it lists the referrers of a manifest.
const SUBJECT_HEADER: &str = "oci-subject";

/// Options of a transfer.
pub struct TransferOptions<'p> {
    /// True to speak to the registry without TLS. Registries on this machine never use it.
    pub plain_http: bool,
    /// The limits of a bundle that is pulled.
    pub limits: BundleLimits,
    /// Receives one line for each part.
    pub progress: &'p dyn Fn(&str),
}

/// Pulls a bundle with its signatures and checks every digest.
///
/// # Errors
/// If the registry cannot be reached, does not have the bundle or denies access, or the bundle is
/// refused.
pub fn pull(reference: &RegistryReference, options: &TransferOptions<'_>) -> Result<Bundle, RegistryError> {
    block_on(async {
        let mut connection = RegistryConnection::new(reference, options.plain_http, "pull")?;
        Pull {
            connection: &mut connection,
            reference,
            options,
        }
        .bundle()
        .await
    })?
}

/// Pushes a bundle with its signatures. The tag is that of the reference, else that of the bundle.
///
/// # Errors
/// If the registry cannot be reached, denies access, or refuses a part.
pub fn push(
    reference: &RegistryReference,
    bundle: &Bundle,
    options: &TransferOptions<'_>,
) -> Result<(), RegistryError> {
    block_on(async {
        let mut connection = RegistryConnection::new(reference, options.plain_http, "pull,push")?;
        let mut push = Push {
            connection: &mut connection,
            options,
        };
        push.bundle(reference, bundle).await
    })?
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, RegistryError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| RegistryError::Client(error.to_string()))?;
    Ok(runtime.block_on(future))
}

struct Pull<'c> {
    connection: &'c mut RegistryConnection,
    reference: &'c RegistryReference,
    options: &'c TransferOptions<'c>,
}

impl Pull<'_> {
    async fn bundle(&mut self) -> Result<Bundle, RegistryError> {
        let limits = &self.options.limits;
        let manifest = self.manifest(self.reference.version()).await?;
        let manifest = manifest.ok_or_else(|| RegistryError::NotFound(self.reference.to_string()))?;
        let found = BlobDigest::of(&manifest);
        if let Some(expected) = self
            .reference
            .digest
            .as_deref()
            .filter(|expected| *expected != found.as_str())
        {
            return Err(self.refused(BundleError::WrongDigest {
                part: "the manifest".to_owned(),
                found: found.to_string(),
                expected: expected.to_owned(),
            }));
        }
        let image = check_manifest(&manifest, limits).map_err(|error| self.refused(error))?;
        let mut blobs = Vec::new();
        let parts: Vec<&BlobDescriptor> = std::iter::once(&image.config).chain(&image.layers).collect();
        for (index, part) in parts.iter().enumerate() {
            let title = part.title().unwrap_or("configuration");
            let size = part.size;
            (self.options.progress)(&format!(
                "pulling {} of {}: {title}, {size} bytes",
                index + 1,
                parts.len()
            ));
            blobs.push(self.blob(part).await?);
        }
        let bundle = Bundle::new(manifest, blobs, limits);
        let mut bundle = bundle.map_err(|error| self.refused(error))?;
        bundle.set_tag(self.reference.tag.clone());
        for descriptor in self.signatures(bundle.digest()).await? {
            let artifact = self.artifact(&descriptor).await?;
            let added = artifact.add_to(&mut bundle, limits);
            added.map_err(|error| self.refused(error))?;
        }
        Ok(bundle)
    }

    fn refused(&self, source: BundleError) -> RegistryError {
        RegistryError::Bundle {
            reference: self.reference.to_string(),
            source,
        }
    }

    /// Returns the bytes of a manifest, if the registry has it.
    async fn manifest(&mut self, version: &str) -> Result<Option<Vec<u8>>, RegistryError> {
        let path = format!("manifests/{version}");
        let response = self
            .connection
            .get(Method::GET, &path, Some(MANIFEST_TYPE))
            .await?;
        let Some(response) = response else { return Ok(None) };
        let limit = self.options.limits.document;
        self.connection.body(response, limit).await.map(Some)
    }

    /// Returns the bytes of a blob, which must have the size and the digest of its descriptor.
    async fn blob(&mut self, descriptor: &BlobDescriptor) -> Result<Vec<u8>, RegistryError> {
        let path = format!("blobs/{}", descriptor.digest);
        let response = self.connection.get(Method::GET, &path, None).await?;
        let response =
            response.ok_or_else(|| self.refused(BundleError::Missing(descriptor.digest.clone())))?;
        let blob = self.connection.body(response, descriptor.size).await?;
        self.check(descriptor, blob)
    }

    fn check(&self, descriptor: &BlobDescriptor, content: Vec<u8>) -> Result<Vec<u8>, RegistryError> {
        let found = BlobDigest::of(&content);
        if found.as_str() == descriptor.digest {
            return Ok(content);
        }
        Err(self.refused(BundleError::WrongDigest {
            part: descriptor.title().unwrap_or("a part").to_owned(),
            found: found.to_string(),
            expected: descriptor.digest.clone(),
        }))
    }

    /// Returns the signatures of a manifest: of the registry's list, or of the tag that replaces
    /// it where the registry has no list.
    async fn signatures(&mut self, digest: &BlobDigest) -> Result<Vec<BlobDescriptor>, RegistryError> {
        let mut body = None;
        for path in [
            format!("referrers/{digest}"),
            format!("manifests/{}", list_tag(digest)),
        ] {
            // A registry without the list may answer with other errors than 404.
            match self.connection.get(Method::GET, &path, Some(INDEX_TYPE)).await {
                Ok(Some(response)) => {
                    let limit = self.options.limits.document;
                    body = Some(self.connection.body(response, limit).await?);
                    break;
                }
                Ok(None) | Err(RegistryError::Status { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(body) = body else { return Ok(Vec::new()) };
        let index: ImageIndex =
            serde_json::from_slice(&body).map_err(|error| self.connection.protocol(error))?;
        let limits = &self.options.limits;
        let is_small = |descriptor: &BlobDescriptor| descriptor.size <= limits.document;
        Ok(index
            .manifests
            .into_iter()
            .filter(|descriptor| is_signature(descriptor.artifact_type.as_deref()) && is_small(descriptor))
            .take(limits.signatures)
            .collect())
    }

    async fn artifact(&mut self, descriptor: &BlobDescriptor) -> Result<SignatureArtifact, RegistryError> {
        let manifest = self.manifest(&descriptor.digest).await?;
        let manifest =
            manifest.ok_or_else(|| self.refused(BundleError::Missing("a signature".to_owned())))?;
        let manifest = self.check(descriptor, manifest)?;
        let image: ImageManifest =
            serde_json::from_slice(&manifest).map_err(|error| self.connection.protocol(error))?;
        let limits = self.options.limits;
        let mut blobs = Vec::new();
        for part in std::iter::once(&image.config).chain(image.layers.iter().take(limits.signatures)) {
            if part.size > limits.document {
                return Err(self.refused(BundleError::TooLarge {
                    part: "a signature".to_owned(),
                    size: part.size,
                    limit: limits.document,
                }));
            }
            blobs.push(self.blob(part).await?);
        }
        Ok(SignatureArtifact { manifest, blobs })
    }
}

struct Push<'c> {
    connection: &'c mut RegistryConnection,
    options: &'c TransferOptions<'c>,
}

impl Push<'_> {
    async fn bundle(&mut self, reference: &RegistryReference, bundle: &Bundle) -> Result<(), RegistryError> {
        let count = bundle.blobs().count();
        for (index, (digest, blob)) in bundle.blobs().enumerate() {
            let size = blob.len();
            (self.options.progress)(&format!(
                "pushing {} of {count}: {digest}, {size} bytes",
                index + 1
            ));
            self.blob(digest, blob).await?;
        }
        let refused = |source| RegistryError::Bundle {
            reference: reference.to_string(),
            source,
        };
        // A manifest must not appear under its tag before its signatures can be found.
        self.manifest(bundle.digest().as_str(), bundle.manifest(), MANIFEST_TYPE)
            .await?;
        for artifact in SignatureArtifact::all(bundle).map_err(refused)? {
            self.signature(bundle, &artifact).await?;
        }
        let tag = reference.tag.as_deref().or(bundle.tag()).unwrap_or("latest");
        self.manifest(tag, bundle.manifest(), MANIFEST_TYPE).await?;
        Ok(())
    }

    /// Pushes a manifest with signatures, and lists it where the registry does not.
    async fn signature(
        &mut self,
        bundle: &Bundle,
        artifact: &SignatureArtifact,
    ) -> Result<(), RegistryError> {
        for blob in &artifact.blobs {
            self.blob(&BlobDigest::of(blob), blob).await?;
        }
        let descriptor = artifact.descriptor();
        let is_listed = self
            .manifest(&descriptor.digest, &artifact.manifest, MANIFEST_TYPE)
            .await?;
        if descriptor.artifact_type.as_deref() == Some(veeksha_bundle::KEY_ARTIFACT) {
            // The tag by which cosign finds signatures.
            let tag = format!("{}.sig", list_tag(bundle.digest()));
            self.manifest(&tag, &artifact.manifest, MANIFEST_TYPE).await?;
        }
        if !is_listed {
            self.list(bundle.digest(), descriptor).await?;
        }
        Ok(())
    }

    /// Adds a signature to the tag that replaces the list of referrers.
    async fn list(&mut self, subject: &BlobDigest, descriptor: BlobDescriptor) -> Result<(), RegistryError> {
        let path = format!("manifests/{}", list_tag(subject));
        let response = self.connection.get(Method::GET, &path, Some(INDEX_TYPE)).await?;
        let mut index = match response {
            None => ImageIndex {
                schema_version: 2,
                media_type: Some(INDEX_TYPE.to_owned()),
                manifests: Vec::new(),
            },
            Some(response) => {
                let body = self
                    .connection
                    .body(response, self.options.limits.document)
                    .await?;
                serde_json::from_slice(&body).map_err(|error| self.connection.protocol(error))?
            }
        };
        index.manifests.retain(|other| other.digest != descriptor.digest);
        index.manifests.push(descriptor);
        let bytes = serde_json::to_vec(&index).map_err(|error| self.connection.protocol(error))?;
        self.manifest(&list_tag(subject), &bytes, INDEX_TYPE).await?;
        Ok(())
    }

    /// Uploads a blob, unless the repository has it.
    async fn blob(&mut self, digest: &BlobDigest, content: &[u8]) -> Result<(), RegistryError> {
        let path = format!("blobs/{digest}");
        if self.connection.get(Method::HEAD, &path, None).await?.is_some() {
            return Ok(());
        }
        let start = RegistryRequest {
            method: Method::POST,
            url: self.connection.url("blobs/uploads/")?,
            headers: HeaderMap::new(),
            body: Some(Vec::new()),
        };
        let response = self.connection.send(&start).await?;
        let response = self.connection.success(&start, response).await?;
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok());
        let location = location.ok_or_else(|| self.connection.protocol("it has no place for an upload"))?;
        let url = start.url.join(location);
        let mut url = url.map_err(|error| self.connection.protocol(error))?;
        if url.scheme() != start.url.scheme() && url.scheme() != "https" {
            return Err(self.connection.protocol("the place for an upload has no TLS"));
        }
        url.query_pairs_mut().append_pair("digest", digest.as_str());
        let upload = RegistryRequest {
            method: Method::PUT,
            url,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(BLOB_TYPE))]),
            body: Some(content.to_vec()),
        };
        let response = self.connection.send(&upload).await?;
        self.connection.success(&upload, response).await?;
        Ok(())
    }

    /// Uploads a manifest. Returns true if the registry lists it as a referrer of its subject.
    async fn manifest(
        &mut self,
        version: &str,
        content: &[u8],
        media_type: &'static str,
    ) -> Result<bool, RegistryError> {
        let request = RegistryRequest {
            method: Method::PUT,
            url: self.connection.url(&format!("manifests/{version}"))?,
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]),
            body: Some(content.to_vec()),
        };
        let response = self.connection.send(&request).await?;
        let response = self.connection.success(&request, response).await?;
        if response.status() == StatusCode::ACCEPTED {
            return Err(self.connection.protocol("it has not stored a manifest"));
        }
        Ok(response.headers().contains_key(SUBJECT_HEADER))
    }
}

/// The tag that replaces the list of referrers of a manifest, as the specification of distribution
/// 1.1 defines it.
fn list_tag(digest: &BlobDigest) -> String {
    format!("sha256-{}", digest.hex())
}
