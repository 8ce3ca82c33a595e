//! Bundles from outside: pack, sign, verify, lock, and runs that the lock refuses.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::results::latest;
use crate::simulated::path;
use crate::support::{assert_code, program, root, scenario, stderr, stdout, veeksha};

/// A folder with a scenario, and a separate store of bundles.
pub(crate) struct Workplace {
    folder: tempfile::TempDir,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Workplace {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies a shipped component.
    pub(crate) fn component(&self, shipped: &str, name: &str) -> PathBuf {
        let file = self.file(name);
        std::fs::copy(root().join("plugins/dist").join(shipped), &file).expect("a copy");
        file
    }

    /// Writes a scenario that uses a plugin as its session generator.
    pub(crate) fn scenario(&self, plugin: &str) -> String {
        let text = format!(
            "session_generator: {{ type: wasm, plugin: {plugin:?} }}\n\
             client: {{ api_base: 'sim://fast' }}\n\
             traffic_scheduler: {{ type: concurrent, target_concurrent_sessions: 2, rampup_seconds: 0 }}\n\
             runtime: {{ max_sessions: 4, benchmark_timeout: 30 }}\n"
        );
        scenario(self.folder.path(), "scenario.yml", &text)
    }

    /// Runs the program in the folder.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = program();
        command
            .current_dir(self.folder.path())
            .env("VEEKSHA_BUNDLES", self.file("bundles"))
            .env("XDG_CONFIG_HOME", self.file("config"))
            .env_remove("DOCKER_CONFIG")
            .env("HOME", self.folder.path())
            .args(arguments);
        command.output().expect("the program starts")
    }

    #[track_caller]
    pub(crate) fn passes(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_code(&output, 0);
        stdout(&output)
    }

    /// Asserts that a command fails with this code and a message with all of the parts.
    #[track_caller]
    pub(crate) fn fails(&self, arguments: &[&str], code: i32, parts: &[&str]) {
        let output = self.run(arguments);
        assert_code(&output, code);
        let said = stderr(&output);
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
}

fn read(file: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(file).expect("a file")
}

/// Twice, in other folders, with other times and another umask.
#[test]
fn a_bundle_depends_on_its_content_alone() {
    let (here, there) = (Workplace::new(), Workplace::new());
    for place in [&here, &there] {
        place.component("synthetic.wasm", "mine.wasm");
        std::fs::write(place.file("notes.md"), "# notes\n").expect("a file");
    }
    here.passes(&["plugin", "pack", "mine.wasm", "--docs", "notes.md", "-o", "a.tar"]);
    let old = std::fs::File::options().write(true).open(there.file("mine.wasm"));
    old.and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("another time");
    let umask = "umask 077; exec \"$0\" plugin pack mine.wasm --docs notes.md -o a.tar";
    let output = std::process::Command::new("sh")
        .args(["-c", umask, env!("CARGO_BIN_EXE_veeksha-host")])
        .current_dir(there.folder.path())
        .output()
        .expect("a shell");
    assert_code(&output, 0);
    assert_eq!(read(here.file("a.tar")), read(there.file("a.tar")));
}

/// Another implementation of tar and SHA-256 reads the layout: the tools of the system.
#[test]
fn a_bundle_is_a_tar_with_blobs_named_by_their_digests() {
    let place = Workplace::new();
    let component = place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "pack", "mine.wasm"]);
    let script = "mkdir x && tar -xf mine.tar -C x && cd x/blobs/sha256 && \
                  for blob in *; do echo \"$blob  $blob\" | sha256sum -c --quiet || exit 1; done";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .current_dir(place.folder.path())
        .output()
        .expect("a shell");
    assert_code(&output, 0);
    let json = |file: PathBuf| -> Value { serde_json::from_slice(&read(file)).expect("JSON") };
    let blob = |digest: &Value| {
        let hex = digest.as_str().expect("a digest").replace("sha256:", "");
        place.file("x/blobs/sha256").join(hex)
    };
    let index = json(place.file("x/index.json"));
    let manifest = json(blob(&index["manifests"][0]["digest"]));
    assert_eq!(read(blob(&manifest["layers"][0]["digest"])), read(component));
    assert_eq!(
        manifest["layers"][0]["annotations"]["org.opencontainers.image.title"],
        "mine.wasm"
    );
}

#[test]
fn verify_reports_digest_signature_and_contract_in_one_code() {
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "pack", "mine.wasm", "-o", "mine.tar"]);
    let report = place.passes(&["plugin", "verify", "mine.tar"]);
    assert!(report.contains("contract    PASSED"), "{report}");
    assert!(
        report.contains("signature   SKIPPED the bundle is not signed"),
        "{report}"
    );

    place.passes(&["plugin", "keygen", "alice"]);
    place.fails(&["plugin", "keygen", "alice"], 2, &["cannot write alice"]);
    let required = [
        "plugin",
        "verify",
        "mine.tar",
        "--require-signature",
        "--key",
        "alice.pub",
    ];
    let output = place.run(&required);
    assert_code(&output, 4);
    assert!(
        stdout(&output).contains("signature   FAILED"),
        "{}",
        stdout(&output)
    );

    place.passes(&["plugin", "sign", "mine.tar", "--key", "alice"]);
    assert!(
        place.passes(&required).contains("signature   PASSED"),
        "not signed"
    );
    // Another key, and trust by the file of the user.
    place.passes(&["plugin", "keygen", "eve"]);
    let of_eve = [
        "plugin",
        "verify",
        "mine.tar",
        "--require-signature",
        "--key",
        "eve.pub",
    ];
    assert_code(&place.run(&of_eve), 4);
    place.fails(
        &["plugin", "verify", "mine.tar", "--require-signature"],
        2,
        &["no key is trusted"],
    );
    std::fs::create_dir_all(place.file("config/veeksha-host")).expect("a folder");
    let trusted = format!(
        "# alice\n{}",
        String::from_utf8_lossy(&read(place.file("alice.pub")))
    );
    std::fs::write(place.file("config/veeksha-host/trusted-keys.pem"), trusted).expect("a file");
    let report = place.passes(&["plugin", "verify", "mine.tar", "--require-signature"]);
    assert!(report.contains("by alice (ed25519:"), "{report}");

    // A component of another contract fits nothing.
    let stranger = root().join("tests/guests/dist/stranger.wasm");
    place.passes(&["plugin", "pack", path(&stranger), "-o", "stranger.tar"]);
    let output = place.run(&["plugin", "verify", "stranger.tar", "--json"]);
    assert_code(&output, 4);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["passed"], false);
    assert_eq!(report["checks"][2]["check"], "contract");
    assert_eq!(report["checks"][2]["passed"], false);
    assert_eq!(report["checks"][3]["passed"], Value::Null);
}

/// A plugin that fits the contract and does not keep it.
#[test]
fn verify_reports_a_plugin_that_does_not_conform() {
    let place = Workplace::new();
    let hostile = root().join("tests/guests/dist/hostile-sessions.wasm");
    place.passes(&["plugin", "pack", path(&hostile), "-o", "hostile.tar"]);
    let output = place.run(&[
        "plugin",
        "verify",
        "hostile.tar",
        "--json",
        "--config",
        r#"{"mode": "trap"}"#,
    ]);
    assert_code(&output, 4);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["checks"][2]["passed"], true);
    assert_eq!(report["checks"][3]["check"], "conformance");
    assert_eq!(report["checks"][3]["passed"], false);
}

/// The private key is readable by its owner alone.
#[cfg(unix)]
#[test]
fn private_keys_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Workplace::new();
    place.passes(&["plugin", "keygen", "mine"]);
    let mode = std::fs::metadata(place.file("mine"))
        .expect("a key")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn damaged_bundles_are_refused() {
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "pack", "mine.wasm", "-o", "mine.tar"]);
    let good = read(place.file("mine.tar"));
    let write = |bytes: &[u8]| std::fs::write(place.file("bad.tar"), bytes).expect("a file");
    let verify = ["plugin", "verify", "bad.tar"];
    write(&good[..good.len() / 2]);
    place.fails(&verify, 4, &["the bundle bad.tar is refused: it is cut short"]);
    let mut changed = good.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    write(&changed);
    place.fails(&verify, 4, &["bad.tar is refused", "was changed"]);
    write(b"\x1f\x8b\x08\x00");
    place.fails(&verify, 4, &["bad.tar is refused"]);
    let file = place.scenario("bad.tar");
    place.fails(&["simulate", &file], 4, &["bad.tar is refused"]);
    place.fails(&["plugin", "verify", "none.tar"], 2, &["cannot read none.tar"]);
}

#[test]
fn a_scenario_uses_a_bundle_as_it_uses_a_component() {
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "pack", "mine.wasm", "-o", "mine.tar"]);
    let digests = ["mine.wasm", "mine.tar"].map(|plugin| {
        let file = place.scenario(plugin);
        place.passes(&[
            "simulate",
            &file,
            "--output_dir",
            plugin.trim_start_matches("mine."),
        ]);
        let run = latest(&place.file(plugin.trim_start_matches("mine.")));
        let manifest: Value =
            serde_json::from_slice(&read(run.join("scenario/manifest.json"))).expect("JSON");
        manifest["plugins"][0]["digest"].clone()
    });
    assert!(digests[0].is_string());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_locked_component_must_not_change() {
    let place = Workplace::new();
    place.component("synthetic.wasm", "mine.wasm");
    let file = place.scenario("mine.wasm");
    let simulate = ["simulate", file.as_str(), "--output_dir", "out"];
    place.passes(&simulate);
    let text = place.passes(&["plugin", "lock", &file]);
    assert!(text.contains("new: mine (mine.wasm)"), "{text}");
    place.passes(&["plugin", "lock", "--check", &file]);
    place.passes(&simulate);
    // The run keeps the entry, with the path that its `config.yml` has.
    let run = latest(&place.file("out"));
    let copy = String::from_utf8(read(run.join("veeksha.lock"))).expect("text");
    assert!(
        copy.contains(&format!("source = {:?}", path(&place.file("mine.wasm")))),
        "{copy}"
    );
    place.passes(&["simulate", path(&run), "--output_dir", "again"]);

    // A component with other imports: the message names them.
    let guest = root().join("tests/guests/dist/wasi.wasm");
    std::fs::copy(guest, place.file("mine.wasm")).expect("a copy");
    let refused = [
        "session_generator.plugin: `mine.wasm` is not the component of veeksha.lock",
        "it imports `wasi:",
    ];
    place.fails(&simulate, 2, &refused);
    place.fails(&["run", &file, "--output_dir", "out"], 2, &refused);
    place.fails(&["check", &file], 2, &refused);
    place.fails(
        &["simulate", path(&run), "--output_dir", "again"],
        2,
        &["is not the component"],
    );
    let output = place.run(&["plugin", "lock", "--check", &file]);
    assert_code(&output, 2);
    assert!(
        stdout(&output).contains("changed: mine: it imports `wasi:"),
        "{}",
        stdout(&output)
    );
    place.passes(&["plugin", "lock", &file]);
    place.passes(&["plugin", "lock", "--check", &file]);

    // A name of the lock, a name that it lacks, and a file that it lacks.
    place.component("synthetic.wasm", "mine.wasm");
    place.passes(&["plugin", "lock", &file]);
    let named = place.scenario("mine");
    place.passes(&["simulate", &named, "--output_dir", "named"]);
    let unknown = place.scenario("mime");
    place.fails(
        &["simulate", &unknown],
        2,
        &["has no plugin `mime`; did you mean `mine`?"],
    );
    place.component("synthetic.wasm", "other.wasm");
    let other = place.scenario("other.wasm");
    place.fails(
        &["simulate", &other],
        2,
        &["`other.wasm` is not in veeksha.lock", "plugin lock"],
    );
    std::fs::write(place.file("veeksha.lock"), "version = 7\n").expect("a file");
    place.fails(&["simulate", &other], 2, &["line 1: version is another version"]);
}

#[test]
fn a_reference_needs_a_lock_and_a_pulled_bundle() {
    let place = Workplace::new();
    let file = place.scenario("oci://localhost:1/team/mine:1.0");
    place.fails(&["simulate", &file], 2, &["is not in veeksha.lock"]);
    place.fails(
        &["plugin", "lock", "--offline", &file],
        2,
        &["is not on this machine", "plugin pull"],
    );
    let bad = place.scenario("oci://localhost:1/../mine");
    place.fails(&["simulate", &bad], 2, &["is not a reference to a registry"]);
    assert_code(&veeksha(["plugin", "push"]), 2);
}
