//! Messages for errors in a scenario or on the command line: path, position, nearest name, exit
//! code 2.

use crate::support::{assert_code, program, scenario, stderr, stdout, veeksha};

/// Returns the output of `check` for a scenario, without the folder's name.
#[track_caller]
fn printed(name: &str, text: &str, more: &[&str], code: i32) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), name, text);
    let mut arguments = vec!["check", &file];
    arguments.extend(more);
    let output = veeksha(arguments);
    assert_code(&output, code);
    stderr(&output).replace(folder.path().to_str().expect("UTF-8"), "FOLDER")
}

#[test]
fn yaml_scenarios() {
    insta::assert_snapshot!("unknown-key-at-the-root", printed("s.yml", "sead: 1\n", &[], 2));
    let deep =
        "traffic_scheduler:\n  type: rate\n  interval_generator:\n    type: poisson\n    arival_rate: 5\n";
    insta::assert_snapshot!("unknown-key-deep", printed("s.yml", deep, &[], 2));
    let component = "session_generator:\n  type: synthetic\n  channels:\n    - type: text\n      body_lenght_generator: { type: fixed }\n";
    insta::assert_snapshot!("unknown-key-of-a-component", printed("s.yml", component, &[], 2));
    insta::assert_snapshot!(
        "unknown-type",
        printed("s.yml", "client: { type: openai_chat }\n", &[], 2)
    );
    insta::assert_snapshot!(
        "wrong-type",
        printed("s.yml", "runtime:\n  max_sessions: many\n", &[], 2)
    );
    let impossible = "traffic_scheduler: { type: concurrent, target_concurrent_sessions: 0 }\n";
    insta::assert_snapshot!("impossible-value", printed("s.yml", impossible, &[], 2));
    insta::assert_snapshot!("not-yaml", printed("s.yml", "a: [1, 2\n", &[], 2));
    insta::assert_snapshot!(
        "not-supported-yet",
        printed("s.yml", "session_generator: { type: lmeval }\n", &[], 2)
    );
    let several = "runtime: { max_sesions: 3 }\nclient: { modle: x }\nseed: -1\n";
    insta::assert_snapshot!("several-problems", printed("s.yml", several, &[], 2));
}

#[test]
fn lua_scenarios() {
    insta::assert_snapshot!(
        "lua-syntax",
        printed("s.lua", "return {\n  seed = = 1,\n}\n", &[], 2)
    );
    insta::assert_snapshot!(
        "lua-runtime",
        printed("s.lua", "local x = nil\nreturn { seed = x.y }\n", &[], 2)
    );
    insta::assert_snapshot!("lua-not-a-table", printed("s.lua", "return 7\n", &[], 2));
    let key = "return {\n  runtime = {\n    max_sesions = 3,\n  },\n}\n";
    insta::assert_snapshot!("lua-unknown-key", printed("s.lua", key, &[], 2));
    insta::assert_snapshot!(
        "lua-outside",
        printed("s.lua", "return require('../secret')\n", &[], 2)
    );
}

#[test]
fn an_endless_lua_scenario_is_stopped() {
    let said = printed(
        "s.lua",
        "local n = 0\nwhile true do n = n + 1 end\nreturn {}\n",
        &[],
        2,
    );
    assert!(said.contains("s.lua:2"), "{said}");
}

#[test]
fn overrides() {
    insta::assert_snapshot!(
        "set-without-value",
        printed("s.yml", "seed: 1\n", &["--set", "seed"], 2)
    );
    insta::assert_snapshot!(
        "set-unknown-key",
        printed("s.yml", "seed: 1\n", &["--set", "runtime.max_sesions=1"], 2)
    );
    insta::assert_snapshot!(
        "flag-unknown-key",
        printed("s.yml", "seed: 1\n", &["--runtime.max_sesions", "1"], 2)
    );
    insta::assert_snapshot!(
        "flag-without-value",
        printed("s.yml", "seed: 1\n", &["--runtime.max_sessions"], 2)
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(
        folder.path(),
        "s.yml",
        "runtime: { max_sessions: 3 }\nclient: { api_base: 'sim://fast' }\n",
    );
    let output = veeksha(["check", &file, "--set", "runtime.max_sessions=77"]);
    assert_code(&output, 0);
    assert!(stdout(&output).contains("77"), "{}", stdout(&output));
    let output = veeksha(["check", &file, "--runtime.max_sessions=78"]);
    assert!(stdout(&output).contains("78"), "{}", stdout(&output));
}

#[test]
fn files_and_commands() {
    let output = veeksha(["run", "no-such-scenario.lua"]);
    assert_code(&output, 2);
    insta::assert_snapshot!("missing-lua", stderr(&output));
    let output = veeksha(["run", "no-such-scenario.yml"]);
    assert_code(&output, 2);
    insta::assert_snapshot!("missing-yaml", stderr(&output));
    let output = veeksha(["rnu"]);
    assert_code(&output, 2);
    insta::assert_snapshot!("unknown-command", stderr(&output));
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", "runtime: { max_sessions: 3 }\n");
    let output = veeksha(["run", &file]);
    assert_code(&output, 2);
    let said = stderr(&output).replace(folder.path().to_str().expect("UTF-8"), "FOLDER");
    insta::assert_snapshot!("no-target", said);
    let output = veeksha(["run", &file, "--client.api_base", "sim://no-such-profile"]);
    assert_code(&output, 2);
    let said = stderr(&output).replace(folder.path().to_str().expect("UTF-8"), "FOLDER");
    insta::assert_snapshot!("no-profile", said);
}

/// The plan is printed nevertheless: `simulate` needs no target.
#[test]
fn check_without_target_prints_the_plan_and_exits_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = scenario(folder.path(), "one.yml", "runtime: { max_sessions: 3 }\n");
    let sweep = scenario(
        folder.path(),
        "sweep.yml",
        "seed: !expand [1, 2]\nruntime: { max_sessions: 3 }\n",
    );
    for (file, plan) in [(&one, "Sessions per second"), (&sweep, "run 2")] {
        let output = veeksha(["check", file]);
        assert_code(&output, 2);
        assert!(stdout(&output).contains(plan), "{}", stdout(&output));
        assert!(
            stderr(&output).contains("client.api_base: the target is missing"),
            "{}",
            stderr(&output)
        );
        let with_target = veeksha(["check", file, "--client.api_base", "sim://fast"]);
        assert_code(&with_target, 0);
    }
    let out = folder.path().join("out");
    let run = veeksha(["run", &sweep, "--output_dir", out.to_str().expect("UTF-8")]);
    assert_code(&run, 2);
    assert!(!out.exists(), "no run of the sweep has started");
}

#[test]
fn rejects_devices_at_once() {
    let output = veeksha(["check", "/dev/zero"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("not a regular file"),
        "{}",
        stderr(&output)
    );
    let said = printed(
        "s.yml",
        "session_generator: { type: wasm, plugin: /dev/zero }\n",
        &[],
        2,
    );
    assert!(
        said.contains("session_generator.plugin") && said.contains("not a regular file"),
        "{said}"
    );
}

#[test]
fn argument_that_is_not_utf_8_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let argument = std::ffi::OsStr::from_bytes(b"--runtime.max_\xff");
    let output = veeksha([std::ffi::OsStr::new("check"), argument]);
    assert_code(&output, 2);
    assert!(stderr(&output).contains("not UTF-8"), "{}", stderr(&output));
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::process::Stdio;
    for command in [
        &["schema"][..],
        &["completions", "bash"],
        &["check", "scenarios/quickstart.lua"],
    ] {
        let mut child = program()
            .args(command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_code(&output, 0);
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    }
}

#[test]
fn api_key_is_redacted_everywhere() {
    for key in ["\"SECRET", "{SECRET", "[SECRET", "*SECRET"] {
        let said = printed(
            "s.yml",
            "client: { api_base: 'sim://fast', modle: x }\n",
            &["--client.api_key", key],
            2,
        );
        assert!(!said.contains("SECRET"), "{said}");
    }
}

/// A misspelled override of a key that the scenario sets refers to that key.
#[test]
fn nearest_name_may_be_an_existing_key() {
    let output = veeksha(["check", "scenarios/quickstart.lua", "--runtime.max_sesions", "3"]);
    assert_code(&output, 2);
    assert!(
        stderr(&output).contains("did you mean `max_sessions`?"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_key_of_the_root_is_a_flag() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = scenario(folder.path(), "s.yml", "client: { api_base: 'sim://fast' }\n");
    let output = veeksha(["check", &file, "--runtime", "{max_sessions: 79}"]);
    assert_code(&output, 0);
    assert!(stdout(&output).contains("79"), "{}", stdout(&output));
}

#[test]
fn the_plan_of_the_quickstart() {
    let output = veeksha(["check", "scenarios/quickstart.lua"]);
    assert_code(&output, 0);
    // The digest changes with the component, and the estimate with the sample; the text is
    // constant.
    let said: String = stdout(&output)
        .lines()
        .filter(|line| !line.contains("Digest"))
        .map(|line| format!("{line}\n"))
        .collect();
    insta::assert_snapshot!("check-quickstart", said);
}
