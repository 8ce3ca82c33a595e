//! Loading of scenario files: valid return values, and every kind of failure.

use crate::common::Folder;
use veeksha_lua::{LuaError, LuaLimits, LuaScenario};
use veeksha_model::Segment;
use veeksha_ports::Workload;
use veeksha_scenario::LuaKind;
use veeksha_scenario::{Node, Value};

fn at<'a>(root: &'a Node, path: &str) -> &'a Node {
    path.split('.').fold(root, |node, step| match &node.value {
        Value::Map(entries) => {
            &entries
                .iter()
                .find(|(key, _)| key == step)
                .unwrap_or_else(|| panic!("no {step}"))
                .1
        }
        Value::List(items) => &items[step.parse::<usize>().unwrap()],
        other => panic!("{step} of {other:?}"),
    })
}

#[test]
fn a_table_becomes_a_document_with_lines() {
    let folder = Folder::new(
        "local rate = 3\nreturn {\n  seed = 42,\n  traffic = { rate = rate * 1.5, burst = math.huge },\n\
         evaluators = {\n    { type = \"slo\", strict = true },\n  },\n  empty = {},\n  run = function() end,\n}",
    );
    let scenario = folder.load().unwrap();
    let root = &scenario.documents.single().unwrap().root;
    assert_eq!(at(root, "seed").value, Value::Int(42));
    assert_eq!(at(root, "traffic.rate").value, Value::Float(4.5));
    assert_eq!(at(root, "traffic.burst").value, Value::Float(f64::INFINITY));
    assert_eq!(at(root, "evaluators.0.type").value, Value::Text("slo".into()));
    assert_eq!(at(root, "evaluators.0.strict").value, Value::Bool(true));
    assert_eq!(at(root, "empty").value, Value::Map(Vec::new()));
    assert_eq!(at(root, "run").value, Value::Function);
    let line = |path| at(root, path).place.as_ref().map(|place| place.line);
    assert_eq!(line("seed"), Some(3));
    assert_eq!(line("traffic.burst"), Some(4));
    assert_eq!(line("evaluators.0.strict"), Some(6));
    let file = &at(root, "seed").place.as_ref().unwrap().file;
    assert_eq!(folder.clean(file), "scenario.lua");
    let Value::Map(entries) = &root.value else {
        panic!()
    };
    let keys: Vec<_> = entries.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["seed", "traffic", "evaluators", "empty", "run"],
        "the order of the source"
    );
}

#[test]
fn each_failure_names_problem_and_location() {
    let cases = [
        (
            "return { a = }",
            "scenario.lua:1: syntax error: Expected identifier when parsing expression, got '}'",
        ),
        (
            "local x = nil\n\nreturn x.y",
            "scenario.lua:3: attempt to index nil with 'y'",
        ),
        ("error('boom')", "scenario.lua:1: boom"),
        (
            "error({ code = 1 })",
            "an error was raised with a table as its value; raise a string",
        ),
        (
            "return 7",
            "scenario.lua: the file returned the number 7; end it with `return { ... }`: the table of a scenario or a plugin",
        ),
        (
            "local a = 1",
            "scenario.lua: the file returned nothing (nil); end it with `return { ... }`",
        ),
        (
            "local t = { b = {} }\nt.b.c = t\nreturn t",
            "`b.c`: the table contains itself",
        ),
        (
            "return {\n  x = 1,\n  list = { 1, 2, name = 3 },\n}",
            "scenario.lua:3: `list`: the table is both a list (of 2) and a set of named fields (`name`)",
        ),
        (
            "return { list = { 1, nil, nil, nil, 5, [9] = 1 } }",
            "`list`: the list has a gap",
        ),
        (
            "return { [true] = 1 }",
            "expected names or list positions as keys, found the boolean true",
        ),
        ("return { s = synthetic(5) }", "`s`: an object of the host"),
        ("return { s = '\\255' }", "`s`: the string is not UTF-8"),
        (
            "local row, rows = table.create(1000, 1), {}\nfor i = 1, 1000 do rows[i] = row end\nreturn { rows = rows }",
            "more than 1000000 values",
        ),
        (
            "return { t = table.create(90000, string.rep('x', 1000000)) }",
            "more than 67108864 bytes of text",
        ),
        (
            "local t = {}\nlocal r = t\nfor i = 1, 80 do t.a = {} t = t.a end\nreturn r",
            "nested deeper than 64 tables",
        ),
        (
            "return { x = coroutine.create(function() end) }",
            "`x`: a thread cannot stand in a scenario",
        ),
    ];
    for (source, expected) in cases {
        let error = Folder::new(source).load_error();
        assert!(error.contains(expected), "{source}\n{error}\n{expected}");
    }
}

#[test]
fn a_runtime_error_shows_the_stack() {
    let folder = Folder::new(
        "local function inner()\n  error('boom')\nend\nlocal function outer()\n  inner()\n  return 1\nend\nouter()\nreturn {}",
    );
    let LuaError::Runtime {
        line,
        message,
        frames,
        ..
    } = folder.load().unwrap_err()
    else {
        panic!()
    };
    assert_eq!((line, message.as_str()), (Some(2), "boom"));
    let frames: Vec<_> = frames
        .iter()
        .map(|frame| (frame.function.as_str(), frame.line.unwrap()))
        .collect();
    assert_eq!(frames[..2], [("inner", 2), ("outer", 5)]);
    assert_eq!(frames[2].1, 8);
}

#[test]
fn files_that_are_no_text_are_named() {
    let missing = LuaScenario::load("nowhere/none.lua".as_ref(), LuaLimits::default()).unwrap_err();
    assert!(
        missing.to_string().starts_with("cannot read `nowhere/none.lua`:"),
        "{missing}"
    );
    let folder = Folder::new("").with("scenario.lua", b"return { a = \xff }");
    assert_eq!(
        folder.load_error(),
        "`scenario.lua` is not UTF-8 text (byte 13); compiled Lua is not accepted"
    );
    let byte_code = Folder::new("").with("scenario.lua", b"\x06\x03\x00\x00");
    assert!(
        matches!(byte_code.load(), Err(LuaError::Syntax { .. })),
        "byte code is read as text, and is none"
    );
    let large = Folder::new("").with("scenario.lua", vec![b' '; 4 * 1024 * 1024 + 1]);
    assert!(matches!(
        large.load(),
        Err(LuaError::TooLarge { bytes: 4_194_305, .. })
    ));
    let is_a_folder = LuaScenario::load(large.folder.path(), LuaLimits::default()).unwrap_err();
    assert!(
        is_a_folder.to_string().ends_with("it is not a regular file"),
        "{is_a_folder}"
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    assert!(
        Folder::new("")
            .with("scenario.lua", "\u{feff}return {}")
            .load()
            .is_ok()
    );
}

#[test]
fn an_endless_loop_ends_at_its_line_however_it_hides() {
    let cases = [
        ("local x = 0\nwhile true do\n  x += 1\nend", 3),
        (
            "while true do\n  pcall(function()\n    while true do end\n  end)\nend",
            3,
        ),
        ("local function f()\n  pcall(f)\n  f()\nend\nf()", 2),
        (
            "local t = setmetatable({}, { __index = function(t, k)\n  return t[k .. 'x'] end })\nwhile true do\n  pcall(function() return t.a end)\nend",
            0,
        ),
        ("coroutine.wrap(function()\n  while true do end\nend)()", 2),
        (
            "local s = string.rep('a', 60)\nreturn string.find(s, string.rep('a-', 30) .. 'b')",
            2,
        ),
        (
            "xpcall(function()\n  while true do end\nend, function()\n  while true do end\nend)",
            2,
        ),
        (
            "local t = table.create(1000, 1)\ntable.sort(t, function(a, b)\n  while true do end\nend)",
            3,
        ),
    ];
    for (source, line) in cases {
        let folder = Folder::new(source).hurried();
        match folder.load().unwrap_err() {
            LuaError::Deadline {
                line: found,
                allowed_ms: 300,
                ..
            } => {
                assert!(
                    line == 0 || found.is_some_and(|found| found.abs_diff(line) <= 1),
                    "{source}: {found:?}"
                );
            }
            other => panic!("{source}\n{other}"),
        }
    }
}

/// Each of these would take hours in one uninterruptible call of Luau's library.
#[test]
fn long_library_calls_do_not_outlast_the_deadline() {
    let cases = [
        "local s = string.rep('a', 4000000)\nreturn { x = string.find(s, string.rep('a', 2000000) .. 'b', 1, true) }",
        "local s = string.rep('a', 4000000)\nreturn { x = s:find(string.rep('a', 2000000) .. 'b') }",
        "local s = string.rep('a', 4000000)\nreturn { x = #string.split(s, string.rep('a', 2000000) .. 'b') }",
    ];
    for source in cases {
        assert!(Folder::new(source).load().is_ok(), "{source}");
    }
    let error = Folder::new("table.move({}, 1, 2000000000, 1, {})").load_error();
    assert!(
        error.contains("table.move: more than 50000000 elements"),
        "{error}"
    );
}

/// The bounded functions must equal the library's where no bound applies.
#[test]
fn bounded_functions_agree_with_the_library() {
    let source = r##"
local long = string.rep("ab", 40)
local hay = "xx" .. long .. "yy" .. long
local checks = {
  find = select("#", string.find("hello", "l")) == 2 and string.find("hello", "l+") == 3,
  captures = select(3, string.find("key=value", "(%w+)=")) == "key",
  long_plain = string.find(hay, long) == 3 and select(2, string.find(hay, long)) == 82,
  from = string.find(hay, long, 4, true) == 85,
  negative = string.find(hay, long, -80, true) == 85,
  past = string.find(hay, long, 500, true) == nil,
  pattern = string.find(hay, string.rep("%a", 70)) == 1,
  split = #string.split("a,b,,c", ",") == 4 and #string.split(hay, long) == 3 and string.split(hay, long)[2] == "yy",
  moved = table.move({ 1, 2, 3 }, 1, 3, 2, {})[4] == 3,
}
for name, ok in checks do assert(ok, name) end
return {}
"##;
    Folder::new(source).load().unwrap();
}

#[test]
fn too_much_memory_is_refused_with_the_limit() {
    let cases = [
        "local t = {}\nwhile true do t[#t + 1] = string.rep('x', 100000) .. #t end",
        "return { s = string.rep('x', 1000000000) }",
        "return { b = buffer.create(1000000000) }",
        "local s = 'x'\nwhile true do s = s .. s end",
        "return { t = table.create(50000000, 1) }",
    ];
    for source in cases {
        let folder = Folder::new(source);
        let error = folder.load_error();
        assert_eq!(
            error, "scenario.lua: it needs more memory than the 33554432 bytes it may have",
            "{source}"
        );
    }
}

#[test]
fn the_top_level_may_log() {
    let scenario = Folder::new("print('a', 1, {})\nlog.warn('b')\nreturn {}")
        .load()
        .unwrap();
    let expected = [("info", "a\t1\ttable"), ("warn", "b")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(scenario.messages, expected);
}

/// A sweep is written as a loop.
#[test]
fn a_list_of_scenarios_is_a_sweep() {
    let folder = Folder::new(
        "
local cells = {}
for _, tokens in { 10, 20 } do
  for _, rate in { 1, 2, 4 } do
    table.insert(cells, {
      seed = 5,
      session_generator = { type = 'lua', sessions = function(index, rng)
        return { { user = synthetic(tokens), output = rate } }
      end },
      traffic_scheduler = { interval_generator = { arrival_rate = rate } },
    })
  end
end
return cells",
    );
    let loaded = folder.load().unwrap();
    let cells = loaded.documents.cells().unwrap();
    assert_eq!(cells.len(), 6);
    for (index, cell) in cells.iter().enumerate() {
        let (tokens, rate) = ([10, 20][index / 3], [1, 2, 4][index % 3]);
        assert_eq!(cell.scenario, index);
        let settings: Vec<String> = cell
            .settings
            .iter()
            .map(|setting| format!("{}={}", setting.path, setting.text()))
            .collect();
        assert_eq!(
            settings,
            [format!(
                "traffic_scheduler.interval_generator.arrival_rate={rate}"
            )]
        );
        // The functions are those of the cell, and a machine opens them again.
        let factory = loaded
            .of(cell.scenario)
            .unwrap()
            .workload(
                "session_generator.sessions",
                LuaKind::Sessions,
                None,
                folder.grants(1),
            )
            .unwrap();
        let Workload::Planned(mut source) = factory.open().unwrap() else {
            panic!("a planned workload")
        };
        let session = source.sessions(0, 1).unwrap().remove(0);
        let request = &session.requests[0];
        assert_eq!(request.output.target_tokens, Some(rate));
        assert!(matches!(
            request.messages[0].content[0],
            Segment::Synthetic { tokens: made, .. } if made == tokens
        ));
    }
    assert!(loaded.documents.clone().single().is_err());
    assert_eq!(
        folder.clean(&loaded.of(6).unwrap_err().to_string()),
        "scenario.lua: the list of scenarios has no element 7"
    );
}

#[test]
fn the_scenarios_of_a_list_have_their_lines() {
    let folder = Folder::new("return {\n  { seed = 1,\n    sed = 2 },\n  { seed = 3 },\n}");
    let cells = folder.load().unwrap().documents.cells().unwrap();
    let line = |cell: usize, key: &str| {
        let node = cells[cell].document.root.get(key).unwrap();
        node.place.as_ref().unwrap().line
    };
    assert_eq!((line(0, "seed"), line(0, "sed"), line(1, "seed")), (2, 3, 4));
}

#[test]
fn one_scenario_is_no_sweep() {
    let folder = Folder::new("return { seed = 1 }");
    let loaded = folder.load().unwrap();
    let document = loaded.documents.clone().single().unwrap();
    assert_eq!(document.root.get("seed").unwrap().value, Value::Int(1));
    assert_eq!(loaded.of(0).unwrap().documents, loaded.documents);
    assert!(loaded.of(1).is_err());
}
