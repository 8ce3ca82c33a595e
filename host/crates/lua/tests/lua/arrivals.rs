//! Arrival processes: valid return values, and refusals.

use std::sync::Arc;

use veeksha_ports::{ArrivalFactory, PluginFailure, PluginFailureKind, check_arrivals};

use crate::common::Folder;

const PATH: &str = "traffic_scheduler.process.arrivals";

/// Creates a scenario whose function `arrivals` has this body.
fn folder(body: &str) -> Folder {
    Folder::new(&format!(
        "return {{ traffic_scheduler = {{ type = 'arrival_process', process = {{ type = 'lua',\n\
         arrivals = function(rng)\n{body}\nend }} }} }}"
    ))
}

fn process(folder: &Folder) -> Arc<dyn ArrivalFactory> {
    folder.load().unwrap().arrivals(PATH, folder.grants(7)).unwrap()
}

/// Returns the failure of the check before a run.
fn failure(body: &str) -> PluginFailure {
    check_arrivals(&*process(&folder(body))).unwrap_err()
}

/// Every second, with the number of the session in the closure.
const SECONDS: &str = "local session = 0
return function(count)
  local list = {}
  for i = 1, count do
    list[i] = session
    session += 1
  end
  return list
end";

#[test]
fn a_closure_keeps_its_place_between_batches() {
    let folder = folder(SECONDS);
    let process = process(&folder);
    assert_eq!(check_arrivals(&*process), Ok(()));
    let mut source = process.open().unwrap();
    assert_eq!(source.next(2), Ok(vec![0, 1_000_000_000]));
    assert_eq!(source.next(1), Ok(vec![2_000_000_000]));
    let mut again = process.open().unwrap();
    assert_eq!(again.next(1), Ok(vec![0]), "each instance begins with session 0");
}

#[test]
fn arrivals_are_random_by_seed_and_may_end() {
    let body = "local at, left = 0, 5
return function(count)
  local list = {}
  while #list < count and left > 0 do
    table.insert(list, `{at}s`)
    at += rng:exponential(2)
    left -= 1
  end
  return list
end";
    let folder = folder(body);
    let arrivals = |seed| {
        let scenario = folder.load().unwrap();
        let process = scenario.arrivals(PATH, folder.grants(seed)).unwrap();
        assert_eq!(check_arrivals(&*process), Ok(()));
        process.open().unwrap().next(100).unwrap()
    };
    assert_eq!(arrivals(1).len(), 5);
    assert_eq!(arrivals(1), arrivals(1));
    assert_ne!(arrivals(1), arrivals(2));
}

#[test]
fn values_that_are_not_arrivals_are_refused_with_their_line() {
    for (body, message) in [
        (
            "return 5",
            "`arrivals`: expected a function that returns the next arrivals, found the number 5",
        ),
        (
            "return function(count) return 5 end",
            "arrivals: expected a list of seconds (an empty one is the end), found the number 5",
        ),
        (
            "return function(count) return { 0, -1 } end",
            "arrivals[2]: expected a duration from 0 to 104 days",
        ),
        (
            "return function(count) return { 0, 'soon' } end",
            "arrivals[2]: expected seconds as a number",
        ),
        (
            "return function(count) return { 2, 1 } end",
            "session 1: its arrival at 1000000000 ns is before 2000000000 ns",
        ),
        (
            "return function(count) return table.create(count + 1, 0) end",
            "arrivals: asked for 64, returned 65",
        ),
        (
            "return function(count) return {} end",
            "the process has no arrivals",
        ),
        (
            "return function(count) return table.create(count, count) end",
            "session 0: its arrival was 64000000000 ns, and 1000000000 ns when",
        ),
    ] {
        let failure = failure(body);
        assert_eq!(failure.kind, PluginFailureKind::Result, "{body}");
        assert!(failure.message.contains(message), "{body}: {failure}");
    }
    let raised = failure("return function(count)\nerror('no more')\nend");
    assert_eq!(raised.kind, PluginFailureKind::Trap);
    assert!(raised.to_string().contains("scenario.lua:4"), "{raised}");
    assert_eq!(raised.input.as_deref(), Some("count = 64, from session 0 on"));
}

#[test]
fn an_endless_loop_is_stopped() {
    let folder = folder("return function(count) while true do end end").hurried();
    let failure = check_arrivals(&*process(&folder)).unwrap_err();
    assert_eq!(failure.kind, PluginFailureKind::Deadline { allowed_ms: 300 });
}

#[test]
fn a_function_without_return_is_refused() {
    let folder = folder("local at = 0");
    let error = folder
        .load()
        .unwrap()
        .arrivals(PATH, folder.grants(1))
        .err()
        .unwrap();
    assert!(error.to_string().contains("has no `return`"), "{error}");
}
