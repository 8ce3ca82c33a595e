//! `plugin check`, `inspect`, `run` and `test` from outside.

use crate::support::{assert_code, stderr, stdout, veeksha};

#[test]
fn check_tells_sound_plugins_from_others() {
    let sound = veeksha(["plugin", "check", "plugins/dist/synthetic.wasm"]);
    assert_code(&sound, 0);
    assert!(stdout(&sound).contains("kinds: session-generator"));
    let stranger = veeksha(["plugin", "check", "tests/guests/dist/stranger.wasm", "--json"]);
    assert_code(&stranger, 4);
    assert!(stdout(&stranger).contains("acme:cloud/upload@1.0.0"));
    let scenario = veeksha(["plugin", "check", "scenarios/sweep.yml"]);
    assert_code(&scenario, 2);
    assert!(stderr(&scenario).contains("veeksha-host check scenarios/sweep.yml"));
    assert_code(&veeksha(["plugin", "check", "nothing.wasm"]), 2);
}

#[test]
fn inspect_prints_the_descriptor() {
    let output = veeksha(["plugin", "inspect", "plugins/dist/synthetic.wasm", "--json"]);
    assert_code(&output, 0);
    let facts: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(facts["descriptor"]["name"], "synthetic");
    assert_eq!(facts["kinds"][0], "session-generator");
    assert_code(
        &veeksha(["plugin", "inspect", "tests/guests/dist/stranger.wasm"]),
        4,
    );
}

#[test]
fn run_prints_the_same_sessions_each_time() {
    let sessions = |seed: &str| {
        let output = veeksha([
            "plugin",
            "run",
            "plugins/dist/synthetic.wasm",
            "--json",
            "--seed",
            seed,
        ]);
        assert_code(&output, 0);
        stdout(&output)
    };
    let first = sessions("7");
    assert_eq!(first, sessions("7"));
    assert_ne!(first, sessions("8"));
    let list: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    let refused = veeksha(["plugin", "run", "tests/guests/dist/sdk-agent.wasm"]);
    assert_code(&refused, 2);
    assert!(stderr(&refused).contains("steps"), "{}", stderr(&refused));
}

#[test]
fn a_failed_test_prints_the_difference_and_its_exit_code() {
    let project = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = project.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write(
        "plugin.toml",
        "[plugin]\nname = \"one\"\nversion = \"0.1.0\"\nsummary = \"one\"\nkinds = [\"session-generator\"]\n\
         [build]\nlanguage = \"lua\"\n",
    );
    write(
        "src/plugin.lua",
        "return { sessions = function() return { requests = { { user = \"Hello.\" } } } end }\n",
    );
    write(
        "tests/a.toml",
        "[[test]]\nname = \"one\"\nexpect = [\"sessions[0].requests.length == 2\"]\nsnapshot = true\n",
    );
    let folder = project.path().to_str().expect("UTF-8");
    let failed = veeksha(["plugin", "test", folder]);
    assert_code(&failed, 4);
    let text = stdout(&failed);
    assert!(
        text.contains("`sessions[0].requests.length` is 1, expected == 2"),
        "{text}"
    );
    assert!(text.contains("there is no snapshot"), "{text}");
    assert!(text.ends_with("0 passed, 1 failed\n"), "{text}");
    write("tests/a.toml", "[[test]]\nname = \"one\"\nsnapshot = true\n");
    assert_code(&veeksha(["plugin", "test", folder, "--update"]), 0);
    assert_code(&veeksha(["plugin", "test", folder]), 0);
    write(
        "src/plugin.lua",
        "return { sessions = function() return { requests = { { user = \"Bye.\" } } } end }\n",
    );
    let changed = stdout(&veeksha(["plugin", "test", folder]));
    assert!(
        changed.contains("Bye.") && changed.contains("differs from the snapshot"),
        "{changed}"
    );
    write("tests/a.toml", "[[test]]\nnam = \"one\"\n");
    let wrong = veeksha(["plugin", "test", folder]);
    assert_code(&wrong, 2);
    assert!(
        stderr(&wrong).contains("did you mean `name`"),
        "{}",
        stderr(&wrong)
    );
}
