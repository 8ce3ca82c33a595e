//! Bundles that are written, read again, signed, and bundles that are refused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use veeksha_bundle::{
    BlobDescriptor, BlobDigest, Bundle, BundleError, BundleFile, BundleLimits, KeySignature, LayerKind,
    Signature, SigningKey, TrustedKey, pack,
};

const PLUGIN: &str = r#"
[plugin]
name = "coder"
version = "1.2.0+build.7"
summary = "an agent that writes code"
license = "Apache-2.0"
authors = ["A", "B"]
repository = "https://example.org/coder"
kinds = ["agent-generator"]
[build]
language = "rust"
"#;

fn component() -> Vec<u8> {
    let text = r#"(component
        (import "veeksha:plugin/random@0.2.0" (instance))
        (instance $i)
        (export "veeksha:plugin/agent-generator@0.2.0" (instance $i))
    )"#;
    veeksha_manifest::section::write(&wat::parse_str(text).unwrap(), PLUGIN).unwrap()
}

fn file(kind: LayerKind, title: &str, content: &str) -> BundleFile {
    BundleFile {
        kind,
        title: title.to_owned(),
        content: content.as_bytes().to_vec(),
    }
}

fn files() -> Vec<BundleFile> {
    vec![
        file(LayerKind::Docs, "README.md", "# coder\n"),
        file(LayerKind::Scenario, "scenario.lua", "return {}\n"),
        file(LayerKind::Lua, "lib/sizes.lua", "return { 1 }\n"),
    ]
}

fn bundle() -> Bundle {
    pack(component(), "ignored", files(), false).unwrap()
}

fn read(tar: &[u8]) -> Result<Bundle, BundleError> {
    Bundle::read_tar(tar, &BundleLimits::default())
}

fn message(tar: &[u8]) -> String {
    read(tar).unwrap_err().to_string()
}

/// The header of the entry with this content: `ustar` fields by their positions in POSIX.
struct Entry<'a> {
    name: &'a str,
    kind: u8,
    size: Option<&'a str>,
    content: &'a [u8],
}

fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut tar = Vec::new();
    for entry in entries {
        let mut header = [0_u8; 512];
        header[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        let size = format!("{:011o}", entry.content.len());
        let size = entry.size.unwrap_or(&size);
        header[124..124 + size.len()].copy_from_slice(size.as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = entry.kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(entry.content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn one(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    tar_of(&[Entry {
        name,
        kind,
        size: None,
        content,
    }])
}

/// A layout of these blobs, whose index names the first one.
fn layout(blobs: &[&[u8]]) -> Vec<u8> {
    let manifest = serde_json::to_value(BlobDescriptor::of(
        "application/vnd.oci.image.manifest.v1+json",
        blobs[0],
    ))
    .unwrap();
    let index = serde_json::json!({"schemaVersion": 2, "manifests": [manifest]}).to_string();
    let names: Vec<String> = blobs
        .iter()
        .map(|blob| format!("blobs/sha256/{}", BlobDigest::of(blob).hex()))
        .collect();
    let mut entries = vec![
        ("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#.as_bytes()),
        ("index.json", index.as_bytes()),
    ];
    entries.extend(names.iter().map(String::as_str).zip(blobs.iter().copied()));
    let entries: Vec<Entry<'_>> = entries
        .into_iter()
        .map(|(name, content)| Entry {
            name,
            kind: b'0',
            size: None,
            content,
        })
        .collect();
    tar_of(&entries)
}

/// A layout whose manifest is that of [`bundle`] with changed members.
fn with_manifest(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let bundle = bundle();
    let mut manifest: serde_json::Value = serde_json::from_slice(bundle.manifest()).unwrap();
    change(&mut manifest);
    let manifest = manifest.to_string();
    let mut blobs = vec![manifest.as_bytes()];
    blobs.extend(bundle.blobs().map(|(_, blob)| blob));
    layout(&blobs)
}

#[test]
fn what_is_packed_is_read() {
    let bundle = bundle();
    let again = read(&bundle.to_tar().unwrap()).unwrap();
    assert_eq!(again.digest(), bundle.digest());
    assert_eq!(again.component(), component());
    let layers: Vec<(LayerKind, &str, &[u8])> = again
        .layers()
        .map(|layer| (layer.kind, layer.title, layer.content))
        .collect();
    assert_eq!(
        layers[1..],
        [
            (LayerKind::Manifest, "plugin.toml", PLUGIN.as_bytes()),
            (LayerKind::Scenario, "scenario.lua", b"return {}\n"),
            (LayerKind::Lua, "lib/sizes.lua", b"return { 1 }\n"),
            (LayerKind::Docs, "README.md", b"# coder\n"),
        ]
    );
    // A tag has no `+`.
    assert_eq!(again.tag(), Some("1.2.0_build.7"));
    assert_eq!(again.plugin_manifest().unwrap().unwrap().name, "coder");
}

/// The members that the specification of artifacts for WebAssembly requires, written by hand.
#[test]
fn documents_have_the_members_of_the_specification() {
    let bundle = bundle();
    let manifest: serde_json::Value = serde_json::from_slice(bundle.manifest()).unwrap();
    let component = BlobDigest::of(&component()).to_string();
    assert_eq!(manifest["schemaVersion"], 2);
    assert_eq!(
        manifest["mediaType"],
        "application/vnd.oci.image.manifest.v1+json"
    );
    assert_eq!(
        manifest["config"]["mediaType"],
        "application/vnd.wasm.config.v0+json"
    );
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], component.as_str());
    let annotations = &manifest["annotations"];
    for (key, value) in [
        ("title", "coder"),
        ("version", "1.2.0+build.7"),
        ("licenses", "Apache-2.0"),
        ("source", "https://example.org/coder"),
        ("authors", "A, B"),
        ("description", "an agent that writes code"),
    ] {
        assert_eq!(annotations[format!("org.opencontainers.image.{key}")], value);
    }
    let digest = manifest["config"]["digest"].as_str().unwrap();
    let (_, config) = bundle
        .blobs()
        .find(|(found, _)| found.as_str() == digest)
        .unwrap();
    let config: serde_json::Value = serde_json::from_slice(config).unwrap();
    let digests: Vec<&serde_json::Value> = manifest["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| &layer["digest"])
        .collect();
    assert_eq!(config["architecture"], "wasm");
    assert_eq!(config["os"], "wasip2");
    assert_eq!(config["layerDigests"], serde_json::json!(digests));
    assert_eq!(
        config["component"],
        serde_json::json!({
            "exports": ["veeksha:plugin/agent-generator@0.2.0"],
            "imports": ["veeksha:plugin/random@0.2.0"],
            "target": null,
        })
    );
}

#[test]
fn equal_contents_are_equal_bytes_in_any_order() {
    let mut reversed = files();
    reversed.reverse();
    let other = pack(component(), "other", reversed, false).unwrap();
    assert_eq!(bundle().to_tar().unwrap(), other.to_tar().unwrap());
}

#[test]
fn a_component_alone_is_one_layer() {
    let bundle = pack(component(), "x", files(), true).unwrap();
    assert_eq!(bundle.layers().count(), 1);
    assert_eq!(bundle.component(), component());
}

#[test]
fn core_modules_are_not_packed() {
    let module = wat::parse_str("(module)").unwrap();
    let error = pack(module, "x", Vec::new(), false).unwrap_err().to_string();
    assert!(error.contains("core module"), "{error}");
}

#[test]
fn titles_stay_in_their_folder() {
    for title in [
        "../x",
        "/etc/passwd",
        "a/../../b",
        "",
        "a//b",
        "./a",
        "C:\\x",
        "c:x",
        "a\0b",
        "a\nb",
    ] {
        let files = vec![file(LayerKind::Docs, title, "x")];
        assert!(
            matches!(
                pack(component(), "x", files, false),
                Err(BundleError::PathTraversal { .. })
            ),
            "{title:?}"
        );
    }
    let tar = with_manifest(|manifest| {
        manifest["layers"][2]["annotations"]["org.opencontainers.image.title"] = "../../.bashrc".into();
    });
    assert_eq!(message(&tar), "the name `../../.bashrc` leads out of the bundle");
}

#[test]
fn a_changed_byte_of_any_blob_is_found() {
    let bundle = bundle();
    let tar = bundle.to_tar().unwrap();
    for (digest, blob) in bundle.blobs() {
        let name = format!("blobs/sha256/{}", digest.hex());
        let header = tar.windows(name.len()).position(|part| part == name.as_bytes());
        let mut changed = tar.clone();
        changed[header.unwrap() + 512 + blob.len() / 2] ^= 1;
        let message = message(&changed);
        assert!(
            message.contains("was changed") && message.contains(digest.as_str()),
            "{message}"
        );
    }
}

#[test]
fn every_prefix_is_cut_short() {
    let tar = bundle().to_tar().unwrap();
    assert!(matches!(read(&[]), Err(BundleError::Truncated(_))));
    for length in (1..tar.len()).step_by(97).chain([tar.len() - 1]) {
        let error = read(&tar[..length]).unwrap_err();
        assert!(matches!(error, BundleError::Truncated(_)), "{length}: {error}");
    }
}

#[test]
fn padding_of_zeros_is_accepted_and_other_data_is_not() {
    let mut tar = bundle().to_tar().unwrap();
    tar.resize(tar.len().next_multiple_of(10_240), 0);
    assert!(read(&tar).is_ok());
    tar.push(1);
    assert_eq!(message(&tar), "it has data after the end of the tar");
    tar.pop();
    tar.resize(tar.len() + (1 << 20), 0);
    assert_eq!(message(&tar), "it has data after the end of the tar");
}

#[test]
fn compressed_files_are_named() {
    for (bytes, format) in [
        (&[0x1f, 0x8b, 8, 0][..], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"PK\x03\x04", "zip"),
    ] {
        let mut file = bytes.to_vec();
        file.resize(4096, 7);
        let message = message(&file);
        assert!(
            message.starts_with(&format!("it is compressed with {format}")),
            "{message}"
        );
    }
    assert_eq!(message(&[b'x'; 1024]), "it is not a tar file");
}

#[test]
fn links_devices_and_strange_entries_are_refused() {
    for (kind, name) in [
        (b'1', "a hard link"),
        (b'2', "a symbolic link"),
        (b'3', "a device"),
        (b'S', "a sparse file"),
        (b'L', "a long name"),
        (b'?', "an entry of an unknown kind"),
    ] {
        let message = message(&one("index.json", kind, b""));
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in [
        "../index.json",
        "/etc/passwd",
        "blobs/../../x",
        "blobs\\sha256\\x",
        "./../x",
    ] {
        assert_eq!(
            message(&one(name, b'0', b"x")),
            format!("the name `{name}` leads out of the bundle")
        );
    }
    for name in ["manifest.json", "blobs/sha256/abc", "blobs/md5/0", "index.json/x"] {
        assert!(
            message(&one(name, b'0', b"x")).contains("is not part of an OCI image layout"),
            "{name}"
        );
    }
}

#[test]
fn declared_sizes_are_refused_before_they_are_read() {
    let huge = tar_of(&[Entry {
        name: "index.json",
        kind: b'0',
        size: Some("77777777777"),
        content: b"",
    }]);
    assert_eq!(
        message(&huge),
        "`index.json` has 8589934591 bytes, at most 4194304 are allowed"
    );
    let binary = tar_of(&[Entry {
        name: "index.json",
        kind: b'0',
        size: Some("\u{7f}00000000000"),
        content: b"",
    }]);
    assert!(message(&binary).contains("its size is not an octal number"));
}

#[test]
fn a_layer_larger_than_the_limit_is_refused_by_its_descriptor() {
    let tar = with_manifest(|manifest| manifest["layers"][0]["size"] = u64::MAX.into());
    assert!(message(&tar).contains("layer 1 (component) has 18446744073709551615 bytes"));
    let limits = BundleLimits {
        layer: 10,
        ..BundleLimits::default()
    };
    let tar = bundle().to_tar().unwrap();
    assert!(matches!(
        Bundle::read_tar(tar.as_slice(), &limits),
        Err(BundleError::TooLarge { .. })
    ));
    let limits = BundleLimits {
        total: 400,
        ..BundleLimits::default()
    };
    assert!(matches!(
        Bundle::read_tar(tar.as_slice(), &limits),
        Err(BundleError::TooLarge { .. })
    ));
}

#[test]
fn absurd_counts_are_refused() {
    let entries: Vec<Entry<'_>> = (0..300)
        .map(|_| Entry {
            name: "blobs/",
            kind: b'5',
            size: None,
            content: b"",
        })
        .collect();
    assert_eq!(message(&tar_of(&entries)), "it has more than 256 entries");
    let tar = with_manifest(|manifest| {
        let layer = manifest["layers"][1].clone();
        manifest["layers"] = vec![layer; 1000].into();
    });
    assert_eq!(message(&tar), "it has more than 64 layers");
}

#[test]
fn an_entry_or_a_title_occurs_once() {
    let twice = tar_of(&[
        Entry {
            name: "oci-layout",
            kind: b'0',
            size: None,
            content: b"{}",
        },
        Entry {
            name: "./oci-layout",
            kind: b'0',
            size: None,
            content: b"{}",
        },
    ]);
    assert_eq!(message(&twice), "`oci-layout` occurs twice");
    let titles = vec![
        file(LayerKind::Docs, "a.md", "1"),
        file(LayerKind::Docs, "a.md", "2"),
    ];
    assert_eq!(
        pack(component(), "x", titles, false).unwrap_err().to_string(),
        "`a.md` occurs twice"
    );
}

#[test]
fn unknown_media_types_are_refused() {
    for (pointer, value, part) in [
        (
            "/config/mediaType",
            "application/vnd.oci.image.config.v1+json",
            "the configuration",
        ),
        ("/layers/0/mediaType", "application/wasm+gzip", "layer 1"),
        ("/layers/1/mediaType", "application/octet-stream", "layer 2"),
        ("/layers/2/mediaType", "application/wasm", "layer 3"),
        (
            "/mediaType",
            "application/vnd.docker.distribution.manifest.v2+json",
            "the manifest",
        ),
    ] {
        let tar = with_manifest(|manifest| *manifest.pointer_mut(pointer).unwrap() = value.into());
        let message = message(&tar);
        assert!(
            message.starts_with(&format!("{part} has the media type `{value}`: expected ")),
            "{message}"
        );
    }
}

#[test]
fn documents_that_contradict_each_other_are_refused() {
    let sizes = with_manifest(|manifest| manifest["layers"][0]["size"] = 7.into());
    assert!(
        message(&sizes).contains("bytes, expected 7"),
        "{}",
        message(&sizes)
    );
    let order = with_manifest(|manifest| manifest["layers"].as_array_mut().unwrap().swap(1, 2));
    assert!(message(&order).contains("its list of layers differs"));
    let bundle = bundle();
    let mut blobs = vec![bundle.manifest()];
    blobs.extend(bundle.blobs().map(|(_, blob)| blob));
    assert!(read(&layout(&blobs)).is_ok());
    let mut more = blobs.clone();
    more.push(b"hidden");
    assert!(message(&layout(&more)).contains("belongs to nothing in the bundle"));
    blobs.pop();
    assert!(message(&layout(&blobs)).ends_with("is missing"));
}

fn trusted(key: &SigningKey, name: &str) -> Vec<TrustedKey> {
    let text = format!("# {name}\n{}", key.public().to_pem());
    veeksha_bundle::trusted_keys(&text).unwrap()
}

fn signed(key: &SigningKey) -> Bundle {
    let mut bundle = bundle();
    let signature = KeySignature::new(bundle.digest(), "example.org/coder", key).unwrap();
    bundle.add_signature(Signature::Key(signature));
    bundle
}

#[test]
fn signatures_survive_the_tar_and_do_not_change_the_digest() {
    let (alice, eve) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let signed = signed(&alice);
    assert_eq!(signed.digest(), bundle().digest());
    let mut again = read(&signed.to_tar().unwrap()).unwrap();
    let keys = trusted(&alice, "alice");
    assert_eq!(again.signer(&keys).unwrap().name, "alice");
    assert_eq!(again.signer(&trusted(&eve, "eve")), None);
    // A second signature and a bundle of sigstore.
    again.add_signature(Signature::Key(
        KeySignature::new(again.digest(), "", &eve).unwrap(),
    ));
    again.add_signature(Signature::Sigstore(b"{}".to_vec()));
    let third = read(&again.to_tar().unwrap()).unwrap();
    assert_eq!(third.signatures(), again.signatures());
    assert_eq!(third.signer(&trusted(&eve, "eve")).unwrap().name, "eve");
}

#[test]
fn the_signature_of_another_bundle_is_none() {
    let key = SigningKey::generate().unwrap();
    let signed = signed(&key);
    let mut other = pack(component(), "x", Vec::new(), false).unwrap();
    assert_ne!(other.digest(), signed.digest());
    other.add_signature(signed.signatures()[0].clone());
    assert_eq!(other.signer(&trusted(&key, "k")), None);
    // The manifest of the signature names its subject.
    let artifacts = veeksha_bundle::SignatureArtifact::all(&signed).unwrap();
    let error = artifacts[0]
        .add_to(&mut other, &BundleLimits::default())
        .unwrap_err();
    assert!(error.to_string().contains("belongs to another bundle"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A changed byte is refused, or changes nothing that the bundle means.
    #[test]
    fn no_changed_byte_changes_the_bundle(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let key = SigningKey::from_seed([7; 32]).unwrap();
        let signed = signed(&key);
        let mut tar = signed.to_tar().unwrap();
        let at = at.index(tar.len());
        tar[at] = byte;
        if let Ok(read) = read(&tar) {
            prop_assert_eq!(read.digest(), signed.digest());
            prop_assert_eq!(read.component(), signed.component());
        }
    }

    /// Any bytes are read or refused.
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        let _ = read(&bytes);
    }

    /// Any bytes as manifest are read or refused.
    #[test]
    fn no_manifest_panics(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut manifest = bundle().manifest().to_vec();
        let at = at.index(manifest.len());
        if cut {
            manifest.truncate(at);
        } else {
            manifest[at] = byte;
        }
        let _ = veeksha_bundle::check_manifest(&manifest, &BundleLimits::default());
        let _ = read(&layout(&[&manifest]));
    }
}
