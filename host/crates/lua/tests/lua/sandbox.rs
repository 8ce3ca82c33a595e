//! Sandbox restrictions.

use crate::common::{Folder, agent, answer, node, sessions};
use veeksha_model::SessionId;

#[test]
fn nothing_leads_out_of_the_sandbox() {
    let absent = [
        "debug",
        "package",
        "loadstring",
        "load",
        "dofile",
        "loadfile",
        "getfenv",
        "setfenv",
        "newproxy",
        "collectgarbage",
        "gcinfo",
        "integer",
    ];
    for name in absent {
        Folder::new(&format!(
            "assert({name} == nil and _G.{name} == nil, 'there')\nreturn {{}}"
        ))
        .load()
        .unwrap();
    }
}

#[test]
fn the_machine_is_refused_with_the_alternative() {
    let cases = [
        ("os.time()", "os.time is not available; plugins have no clock"),
        ("os.clock()", "os.clock is not available; plugins have no clock"),
        (
            "os.getenv('HOME')",
            "os.getenv is not available; plugins have no environment",
        ),
        (
            "os.execute('ls')",
            "os.execute is not available; plugins have no processes",
        ),
        (
            "io.open('a.txt')",
            "io.open is not available; plugins have no file system",
        ),
        (
            "os.remove('a.txt')",
            "os.remove is not available; plugins have no file system",
        ),
    ];
    for (call, expected) in cases {
        let error = Folder::new(&format!("local x = {call}\nreturn {{}}")).load_error();
        assert!(
            error.starts_with(&format!("scenario.lua:1: {expected}")),
            "{call}: {error}"
        );
    }
    for attack in [
        "os.time = 1",
        "io.open = print",
        "setmetatable(os, {})",
        "getmetatable(os).__index = nil",
    ] {
        let error = Folder::new(&format!("{attack}\nreturn {{}}")).load_error();
        assert!(error.starts_with("scenario.lua:1:"), "{attack}: {error}");
    }
}

/// Once in the log of the run, however often it is tried.
#[test]
fn a_refused_access_is_logged_once() {
    let folder = sessions(
        "for i = 1, 3 do pcall(function() return os.time() end) end\nreturn { requests = { { user = 'x' } } }",
    );
    folder.planned(1, None).sessions(0, 4).unwrap();
    let lines = folder.log.lock().unwrap().clone();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].1.starts_with("os.time is not available"), "{lines:?}");
}

#[test]
fn lines_beyond_the_limit_of_a_call_are_counted() {
    let folder = sessions("for i = 1, 1000 do print(i) end\nreturn { requests = { { user = 'x' } } }");
    folder.planned(1, None).sessions(1, 1).unwrap();
    let lines = folder.log.lock().unwrap().clone();
    assert_eq!(lines.len(), 257);
    assert_eq!(
        lines[256],
        (
            "warn".to_owned(),
            "744 more lines of one call were not logged".to_owned()
        )
    );
    let usage = folder.meter.usage();
    assert_eq!((usage.log_lines, usage.dropped_log_lines), (256, 744));
    assert!(usage.memory_bytes > 0 && usage.calls > 0, "{usage:?}");
}

#[test]
fn shared_tables_cannot_be_polluted() {
    let attacks = [
        "string.upper = nil",
        "getmetatable('').__index = {}",
        "getmetatable('').__index.upper = nil",
        "rawset(string, 'upper', 1)",
        "math.floor = nil",
        "setmetatable(string, {})",
        "_G.print = nil",
        "setmetatable(_G, {})",
        "table.insert(string, 1)",
        "table.clear(math)",
        "log.info = nil",
    ];
    for attack in attacks {
        let error = Folder::new(&format!("{attack}\nreturn {{}}")).load_error();
        assert!(error.contains("scenario.lua:1:"), "{attack}\n{error}");
    }
}

#[test]
fn randomness_is_refused_with_the_way_out() {
    for call in ["math.random(6)", "math.randomseed(1)"] {
        let error = Folder::new(&format!("local x = {call}")).load_error();
        assert!(
            error.starts_with("scenario.lua:1: math.random") && error.contains("rng:int(1, 6)"),
            "{error}"
        );
    }
}

#[test]
fn files_are_required_below_the_folder_and_run_once() {
    let folder = Folder::new(
        "local a = require('lib/a')\nlocal b = include('lib/a.lua')\nassert(a == b and rawequal(a, b))\nreturn { n = a.n, c = require('./lib/c') }",
    )
    .with("lib/a.lua", "print('ran')\nreturn { n = require('lib/c') + 1 }")
    .with("lib/c.lua", "return 41");
    let scenario = folder.load().unwrap();
    assert_eq!(scenario.messages.len(), 1, "once");
    let text = format!("{:?}", scenario.documents.single().unwrap().root.value);
    assert!(text.contains("Int(42)") && text.contains("Int(41)"), "{text}");
}

#[test]
fn no_name_and_no_link_leads_out() {
    let folder = Folder::new("").with("lib/ok.lua", "return 1");
    std::fs::write(
        folder.folder.path().parent().unwrap().join("veeksha-outside.lua"),
        "return 1",
    )
    .unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("x.lua"), "return 1").unwrap();
    std::os::unix::fs::symlink(
        outside.path().join("x.lua"),
        folder.folder.path().join("link.lua"),
    )
    .unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.folder.path().join("linked")).unwrap();
    std::os::unix::fs::symlink(
        folder.folder.path().join("lib/ok.lua"),
        folder.folder.path().join("inner.lua"),
    )
    .unwrap();
    let cases = [
        ("../veeksha-outside", "`..` is not allowed"),
        ("lib/../../veeksha-outside", "`..` is not allowed"),
        ("/etc/passwd", "an absolute path is not allowed"),
        ("link", "leads out of the scenario's folder"),
        ("linked/x", "leads out of the scenario's folder"),
        ("missing", "cannot read"),
        ("", "expected the name of a file"),
        ("lib", "cannot read"),
    ];
    for (name, expected) in cases {
        for call in ["require", "include"] {
            let folder = &folder;
            std::fs::write(folder.path(), format!("\n{call}('{name}')\nreturn {{}}")).unwrap();
            let error = folder.load_error();
            assert!(error.contains(expected), "{name}\n{error}");
            assert!(error.starts_with("scenario.lua:2: "), "{name}\n{error}");
        }
    }
    std::fs::write(folder.path(), "require('inner')\nreturn {}").unwrap();
    folder.load().unwrap();
    std::fs::remove_file(folder.folder.path().parent().unwrap().join("veeksha-outside.lua")).unwrap();
}

#[test]
fn cycles_and_broken_files_are_named() {
    let cycle = Folder::new("require('a')\nreturn {}")
        .with("a.lua", "require('b')")
        .with("b.lua", "\nrequire('a')");
    let error = cycle.load_error();
    assert!(
        error.contains("the files require one another: a.lua → b.lua → a.lua"),
        "{error}"
    );
    assert!(error.starts_with("b.lua:2:"), "{error}");
    let broken = Folder::new("require('a')\nreturn {}").with("a.lua", "\n\nreturn )");
    let error = broken.load_error();
    assert!(error.starts_with("a.lua:3: syntax error:"), "{error}");
    let raises = Folder::new("require('a')\nreturn {}").with("a.lua", "\nerror('boom')");
    let error = raises.load_error();
    assert!(error.starts_with("a.lua:2: boom"), "{error}");
}

#[test]
fn sessions_run_the_text_that_was_loaded() {
    let folder = Folder::new("local p = require('p')\nreturn { session_generator = { sessions = function() return { requests = { { user = p } } } end } }")
        .with("p.lua", "return 'before'");
    let scenario = folder.load().unwrap();
    let digest = scenario.digest();
    let factory = scenario
        .workload(
            "session_generator.sessions",
            veeksha_scenario::LuaKind::Sessions,
            None,
            folder.grants(1),
        )
        .unwrap();
    let folder = folder.with("p.lua", "return 'after'");
    let veeksha_ports::Workload::Planned(mut source) = factory.open().unwrap() else {
        panic!()
    };
    assert_eq!(
        crate::common::text_of(&source.sessions(0, 1).unwrap()[0].requests[0]),
        "before"
    );
    assert_ne!(
        digest,
        folder.load().unwrap().digest(),
        "the digest covers required files"
    );
}

#[test]
fn files_cannot_be_required_in_a_session() {
    let failure = sessions("require('late')")
        .planned(1, None)
        .sessions(0, 1)
        .unwrap_err();
    assert!(
        failure.message.contains("only while the scenario is loaded"),
        "{failure}"
    );
}

#[test]
fn a_session_cannot_write_globals_or_scenario_tables() {
    for body in ["counter = (counter or 0) + 1", "_G.x = 1", "rawset(_G, 'x', 1)"] {
        let failure = sessions(body).planned(1, None).sessions(0, 1).unwrap_err();
        assert!(failure.message.contains("readonly table"), "{failure}");
    }
    let folder = Folder::new(
        "local scenario = { shared = { n = 0 } }\nscenario.session_generator = { sessions = function()\n  scenario.shared.n += 1\n  return nil\nend }\nreturn scenario",
    );
    let failure = folder.planned(1, None).sessions(0, 1).unwrap_err();
    assert!(
        failure.message.contains("no session may depend on another"),
        "{failure}"
    );
}

/// A local outside the function cannot be locked: creating the first session twice detects it.
#[test]
fn a_function_that_counts_is_found_out() {
    let source = |what: &str, call: &str| {
        format!(
            "local n = 0\nreturn {{ session_generator = {{ {what} = function(session)\n  n += 1\n  {call}\nend }} }}"
        )
    };
    let planned = Folder::new(&source(
        "sessions",
        "return { requests = { { user = 'turn ' .. n } } }",
    ));
    let failure = planned.planned(1, None).sessions(5, 1).unwrap_err();
    assert!(
        failure.message.contains("session 5 came out differently"),
        "{failure}"
    );
    assert!(
        planned.clean(&failure.message).starts_with("scenario.lua:2:"),
        "{failure}"
    );
    let reactive = Folder::new(&source("agent", "session:request { user = 'turn ' .. n }"));
    let failure = reactive.agents(1).start(SessionId(5)).unwrap_err();
    assert!(failure.message.contains("began differently"), "{failure}");
}

#[test]
fn an_address_in_a_prompt_is_found_out() {
    let failure = sessions("return { requests = { { user = tostring({}) } } }")
        .planned(1, None)
        .sessions(0, 1);
    assert!(failure.unwrap_err().message.contains("came out differently"));
}

#[test]
fn the_session_object_is_protected() {
    let attacks = [
        ("session.index = 7", "readonly"),
        ("getmetatable(session).request = nil", ""),
        ("setmetatable(session, nil)", "protected"),
        ("session.request { user = 'x' }", "call it with a colon"),
        ("coroutine.yield()", "called coroutine.yield itself"),
        (
            "coroutine.wrap(function() session:request { user = 'x' } end)()",
            "from the agent's function itself",
        ),
    ];
    for (attack, expected) in attacks {
        let failure = agent(attack).agents(1).start(crate::common::S).unwrap_err();
        assert!(failure.message.contains(expected), "{attack}\n{failure}");
    }
}

#[test]
fn one_sessions_object_is_of_no_use_in_another() {
    let folder = Folder::new(
        "local kept\nreturn { session_generator = { agent = function(session)\n  if session.index == 1 then kept = session end\n\
         session:request { user = 'a' }\n  if session.index == 2 then kept:request { user = 'b' } end\n  session:request { user = 'c' }\nend } }",
    );
    let mut agents = folder.agents(1);
    for index in 0..3 {
        agents.start(SessionId(index)).unwrap();
    }
    let failure = agents
        .answered(SessionId(2), node(1), &answer("x"), 1)
        .unwrap_err();
    assert!(
        failure.message.contains("the object of another session"),
        "{failure}"
    );
    assert_eq!(
        agents
            .answered(SessionId(1), node(1), &answer("x"), 1)
            .unwrap()
            .added
            .requests
            .len(),
        1
    );
}
