//! Push and pull with a real registry on this machine: Debian's `docker-registry`.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bundles::Workplace;
use crate::results::latest;
use crate::simulated::path;
use crate::skip::skip;
use crate::support::{assert_code, root, stderr};

/// `open sesame` by bcrypt, which is the only form that the registry reads.
const PASSWORDS: &str = "me:$2b$12$SKTIh7.ENKVT10eBBz1cPueFTSxUFFYxKoW6iDX8uVKwhVXV/1z8C\n";
const PASSWORD: &str = "open sesame";

/// A registry that ends with the test.
struct RegistryProcess {
    child: Child,
    host: String,
    folder: tempfile::TempDir,
}

impl Drop for RegistryProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl RegistryProcess {
    /// Starts a registry; none if it is not installed. `auth` wants a password for everything.
    fn start(auth: bool) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a port").to_string();
        let config = folder.path().join("config.yml");
        let storage = folder.path().join("storage");
        let passwords = folder.path().join("passwords");
        std::fs::write(&passwords, PASSWORDS).expect("a file");
        let auth = if auth {
            format!("auth: {{ htpasswd: {{ realm: test, path: {passwords:?} }} }}\n")
        } else {
            String::new()
        };
        let text = format!(
            "version: 0.1\nlog: {{ level: error }}\nhttp: {{ addr: {address:?} }}\n{auth}\
             storage: {{ filesystem: {{ rootdirectory: {storage:?} }} }}\n"
        );
        std::fs::write(&config, text).expect("a file");
        let child = Command::new("docker-registry")
            .args(["serve", path(&config)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            skip("docker-registry", "docker-registry is not installed");
            return None;
        };
        let registry = RegistryProcess {
            child,
            host: address.clone(),
            folder,
        };
        for _ in 0..200 {
            if TcpStream::connect(&address).is_ok() {
                return Some(registry);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the registry does not listen on {address}");
    }

    fn reference(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.host)
    }

    /// Returns the file of a blob in the registry's storage.
    fn blob(&self, digest: &str) -> PathBuf {
        let hex = digest.replace("sha256:", "");
        let blobs = self.folder.path().join("storage/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }
}

/// Returns a line's last word: `digest    sha256:…`.
fn digest_in(text: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with("digest"));
    let digest = line.and_then(|line| line.split_whitespace().last());
    digest.expect("a digest").to_owned()
}

#[test]
fn a_bundle_travels_through_a_registry_to_a_run() {
    let Some(registry) = RegistryProcess::start(false) else {
        return;
    };
    let (author, user) = (Workplace::new(), Workplace::new());
    author.component("synthetic.wasm", "mine.wasm");
    author.passes(&["plugin", "keygen", "alice"]);
    author.passes(&["plugin", "pack", "mine.wasm", "--sign", "alice", "-o", "mine.tar"]);
    let reference = registry.reference("team/mine:1.0");
    let pushed = author.passes(&["plugin", "push", "mine.tar", &reference]);
    // Everything is there already.
    assert_eq!(author.passes(&["plugin", "push", "mine.tar", &reference]), pushed);

    std::fs::copy(author.file("alice.pub"), user.file("alice.pub")).expect("a copy");
    let file = user.scenario(&reference);
    // A run connects to nothing.
    user.fails(&["simulate", &file], 2, &["is not in veeksha.lock"]);
    let trusted = ["--require-signature", "--key", "alice.pub"];
    user.passes(&[&["plugin", "lock", file.as_str()][..], &trusted].concat());
    let lock = std::fs::read_to_string(user.file("veeksha.lock")).expect("a lock");
    assert!(lock.contains("signed_by = \"ed25519:"), "{lock}");
    user.passes(&["simulate", &file, "--output_dir", "out"]);
    let run = latest(&user.file("out"));
    let config = std::fs::read_to_string(run.join("config.yml")).expect("a file");
    assert!(config.contains(&format!("{reference}@sha256:")), "{config}");
    // The run can be repeated from its folder, also without the registry.
    drop(registry);
    user.passes(&["simulate", path(&run), "--output_dir", "again"]);
    user.passes(&[&["plugin", "verify", reference.as_str()][..], &trusted].concat());
    user.passes(&[
        "plugin",
        "lock",
        "--offline",
        "--check",
        &file,
        "--key",
        "alice.pub",
    ]);
    let missing = user.run(&["plugin", "lock", &file]);
    assert_code(&missing, 5);
    assert!(
        stderr(&missing).contains("cannot be reached"),
        "{}",
        stderr(&missing)
    );
    std::fs::remove_dir_all(user.file("bundles")).expect("the store");
    user.fails(
        &["simulate", &file],
        2,
        &["is not on this machine", "plugin pull oci://"],
    );
}

#[test]
fn pulled_bundles_are_those_that_were_pushed() {
    let Some(registry) = RegistryProcess::start(false) else {
        return;
    };
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "keygen", "alice"]);
    place.passes(&["plugin", "pack", "mine.wasm", "--sign", "alice", "-o", "mine.tar"]);
    let reference = registry.reference("mine:1.0");
    place.passes(&["plugin", "push", "mine.tar", &reference]);
    let pulled = place.passes(&["plugin", "pull", &reference, "-o", "pulled.tar"]);
    // The tag of the pulled one is that of the reference; nothing else differs.
    let digest = digest_in(&pulled);
    let verified = place.passes(&[
        "plugin",
        "verify",
        "pulled.tar",
        "--require-signature",
        "--key",
        "alice.pub",
    ]);
    assert!(verified.contains(&digest), "{verified}");
    let exact = format!("{reference}@{digest}");
    place.passes(&["plugin", "pull", &exact]);
    let other = format!("{reference}@sha256:{}", "0".repeat(64));
    place.fails(
        &["plugin", "pull", &other],
        2,
        &["does not exist in the registry"],
    );
    place.fails(
        &["plugin", "pull", &registry.reference("nothing:1")],
        2,
        &["does not exist in the registry"],
    );

    // Bytes that the registry changed.
    let blob = registry.blob(&digest);
    let mut manifest = std::fs::read(&blob).expect("the manifest");
    let layer = String::from_utf8_lossy(&manifest).into_owned();
    let component = layer
        .split("application/wasm\",\"digest\":\"")
        .nth(1)
        .expect("a layer")[..71]
        .to_owned();
    let file = registry.blob(&component);
    let mut bytes = std::fs::read(&file).expect("the component");
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).expect("a changed component");
    place.fails(
        &["plugin", "pull", &reference],
        4,
        &["was changed: its digest is"],
    );
    let at = manifest.len() - 3;
    manifest[at] ^= 1;
    std::fs::write(&blob, manifest).expect("a changed manifest");
    let output = place.run(&["plugin", "pull", &exact]);
    assert_ne!(output.status.code(), Some(0), "a changed manifest was accepted");
}

#[test]
fn a_registry_with_a_password_wants_it() {
    let Some(registry) = RegistryProcess::start(true) else {
        return;
    };
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "pack", "mine.wasm", "-o", "mine.tar"]);
    let reference = registry.reference("mine:1.0");
    let push = ["plugin", "push", "mine.tar", &reference];
    place.fails(&push, 2, &["refuses access to mine", "docker login"]);
    // What `docker login` writes: base64 of `me:wrong`, then of `me:open sesame`.
    std::fs::create_dir_all(place.file(".docker")).expect("a folder");
    let log_in = |auth: &str| {
        let text = format!(
            "{{\"auths\": {{\"{}\": {{\"auth\": \"{auth}\"}}}}}}",
            registry.host
        );
        std::fs::write(place.file(".docker/config.json"), text).expect("a file");
    };
    log_in("bWU6d3Jvbmc=");
    let output = place.run(&push);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("the credentials do not allow it"),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&output).contains("wrong"), "{}", stderr(&output));
    log_in("bWU6b3BlbiBzZXNhbWU=");
    place.passes(&push);
    let output = place.run(&["plugin", "pull", &reference]);
    assert_code(&output, 0);
    assert!(!stderr(&output).contains(PASSWORD), "{}", stderr(&output));
}

/// Every command of `docs/bundles.md`, in its order.
#[test]
fn documented_commands_run() {
    let Some(registry) = RegistryProcess::start(false) else {
        return;
    };
    let document = std::fs::read_to_string(root().join("docs/bundles.md")).expect("the document");
    let place = Workplace::new();
    place.component("synthetic.wasm", "coder.wasm");
    std::fs::write(place.file("notes.md"), "# notes\n").expect("a file");
    place.scenario(&registry.reference("team/coder:1.2"));
    let mut count = 0;
    for line in document.lines() {
        let Some(command) = line.strip_prefix("veeksha-host ") else {
            continue;
        };
        let command = command.replace("localhost:5000", &registry.host);
        let arguments: Vec<&str> = command.split_whitespace().collect();
        place.passes(&arguments);
        count += 1;
    }
    assert_eq!(count, 9);
}

/// `oras` of Python is another implementation of the client.
#[test]
fn oras_fetches_the_component() {
    let Some(registry) = RegistryProcess::start(false) else {
        return;
    };
    let python = std::env::var("VEEKSHA_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_oras = Command::new(&python)
        .args(["-c", "import oras"])
        .stderr(Stdio::null())
        .status();
    if !has_oras.is_ok_and(|status| status.success()) {
        skip("oras", "the Python package oras is not installed");
        return;
    }
    let place = Workplace::new();
    let component = place.component("synthetic.wasm", "mine.wasm");
    std::fs::write(place.file("notes.md"), "# notes\n").expect("a file");
    place.passes(&[
        "plugin",
        "pack",
        "mine.wasm",
        "--docs",
        "notes.md",
        "-o",
        "mine.tar",
    ]);
    place.passes(&["plugin", "push", "mine.tar", &registry.reference("mine:1.0")]);
    let script = "import oras.client, sys\n\
                  client = oras.client.OrasClient(insecure=True)\n\
                  client.pull(target=sys.argv[1], outdir=sys.argv[2], allowed_media_type=[])\n";
    let target = format!("{}/mine:1.0", registry.host);
    let output = Command::new(&python)
        .args(["-c", script, &target, path(&place.file("pulled"))])
        .output()
        .expect("python");
    assert_code(&output, 0);
    let same = |name: &str, original: &Path| {
        let pulled = std::fs::read(place.file("pulled").join(name)).expect("a pulled file");
        assert_eq!(pulled, std::fs::read(original).expect("a file"), "{name}");
    };
    same("mine.wasm", &component);
    same("notes.md", &place.file("notes.md"));
}
