//! Equivalence of a rule in Lua and in a component: both receive the same requests with the same
//! data, and return the same verdicts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use veeksha_lua::{LuaGrants, LuaLimits, LuaScenario};
use veeksha_model::{ErrorClass, RequestRecord, Status};
use veeksha_ports::{PluginFailure, RequestCheck};
use veeksha_wasm::EngineLimits;

use crate::records::{full, plain};
use crate::support::{grants, load};

/// The rule of the fixture `measure`, whose component tests `output_tokens >= 3` and ignores the
/// status of a request.
const RULE: &str = "return { good = function(request) return request.output_tokens >= 3 end }";

fn in_lua(folder: &Path) -> Box<dyn RequestCheck> {
    let path = folder.join("rule.lua");
    std::fs::write(&path, RULE).unwrap();
    let scenario = LuaScenario::load(&path, LuaLimits::default()).unwrap();
    let grants = LuaGrants {
        seed: 42,
        tokens: None,
        log: Arc::new(|_, _| {}),
        meter: Arc::default(),
    };
    let check = scenario.evaluator("", None, grants).unwrap().request_check;
    check.unwrap().open().unwrap()
}

fn in_a_component() -> Box<dyn RequestCheck> {
    let plugin = load(EngineLimits::default(), "measure");
    let check = plugin.request_check(r#"{"at_least": "3"}"#.into(), grants());
    check.unwrap().open().unwrap()
}

/// A check that accepts all requests and counts them.
struct Gullible(AtomicUsize);

impl RequestCheck for Gullible {
    fn judge(&mut self, batch: &[&RequestRecord]) -> Result<Vec<bool>, PluginFailure> {
        assert!(
            batch.iter().all(|record| record.is_ok()),
            "no check receives failures"
        );
        self.0.fetch_add(batch.len(), Ordering::Relaxed);
        Ok(vec![true; batch.len()])
    }
}

fn failed(class: ErrorClass, record: RequestRecord) -> RequestRecord {
    let status = Status::Failed {
        class,
        message: "no more".into(),
    };
    RequestRecord { status, ..record }
}

#[test]
fn one_rule_has_one_verdict_in_both_languages() {
    let folder = tempfile::tempdir().unwrap();
    let (mut lua, mut component) = (in_lua(folder.path()), in_a_component());
    let tokens = |output_tokens, record| RequestRecord {
        output_tokens,
        ..record
    };
    // Failures with enough tokens to pass the check, if they were checked.
    let all = [
        tokens(3, plain(0, 0)),
        tokens(2, plain(1, 0)),
        failed(ErrorClass::Timeout, tokens(9, plain(2, 0))),
        failed(ErrorClass::Cancelled, tokens(9, plain(3, 0))),
        failed(ErrorClass::Connect, tokens(0, plain(4, 0))),
        RequestRecord {
            chunks: Vec::new(),
            ..tokens(0, plain(5, 0))
        },
        RequestRecord {
            measured: false,
            ..tokens(7, plain(6, 0))
        },
        full(),
    ];
    let batch: Vec<&RequestRecord> = all.iter().collect();
    let expected = vec![true, false, false, false, false, false, true, true];
    assert_eq!(veeksha_ports::judge(lua.as_mut(), &batch), Ok(expected.clone()));
    assert_eq!(veeksha_ports::judge(component.as_mut(), &batch), Ok(expected));
    // Without an answered request, no check is called.
    let failures = &batch[2..5];
    assert_eq!(veeksha_ports::judge(lua.as_mut(), failures), Ok(vec![false; 3]));
    assert_eq!(
        veeksha_ports::judge(component.as_mut(), failures),
        Ok(vec![false; 3])
    );
    let mut gullible = Gullible(AtomicUsize::new(0));
    assert_eq!(
        veeksha_ports::judge(&mut gullible, &batch),
        Ok(vec![true, true, false, false, false, true, true, true])
    );
    assert_eq!(gullible.0.into_inner(), 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn verdicts_on_any_mixture_agree(requests in proptest::collection::vec((0u32..6, 0u8..4), 1..300)) {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<RequestRecord> = (0..)
            .zip(&requests)
            .map(|(session, (output_tokens, end))| {
                let record = RequestRecord { output_tokens: *output_tokens, ..plain(session, 0) };
                match end {
                    0 => failed(ErrorClass::InStream, record),
                    1 => failed(ErrorClass::Cancelled, record),
                    _ => record,
                }
            })
            .collect();
        let batch: Vec<&RequestRecord> = records.iter().collect();
        let expected: Vec<bool> = requests.iter().map(|(tokens, end)| *tokens >= 3 && *end > 1).collect();
        prop_assert_eq!(veeksha_ports::judge(in_lua(folder.path()).as_mut(), &batch), Ok(expected.clone()));
        prop_assert_eq!(veeksha_ports::judge(in_a_component().as_mut(), &batch), Ok(expected));
    }
}
