//! Grouping of rows into sessions.

use proptest::prelude::*;
use veeksha_ports::{Grouping, MostFrequent};
use veeksha_trace::{BadRowRule, OpenTrace, TraceOptions, open};

use crate::support::{Echo, Folder, LayoutExt, layout, options, seen, sessions};

/// Returns key and row numbers of each group, in the order of the trace.
fn groups(trace: &OpenTrace) -> Vec<(String, Vec<u64>)> {
    let all = sessions(trace, 0, trace.sessions_per_epoch() as u32);
    for (index, session) in all.iter().enumerate() {
        assert_eq!(session.index, index as u64);
    }
    all.into_iter()
        .map(|session| (session.key, session.rows.iter().map(|row| row.0).collect()))
        .collect()
}

fn named(groups: &[(&str, &[u64])]) -> Vec<(String, Vec<u64>)> {
    groups
        .iter()
        .map(|(key, rows)| ((*key).to_owned(), rows.to_vec()))
        .collect()
}

#[test]
fn groups_by_a_column() {
    let folder = Folder::new();
    let text =
        "{\"s\":\"b\"}\n{\"s\":7}\n{}\n{\"s\":\"b\"}\n{\"s\":null}\n{\"s\":\"7\"}\n{\"s\":\"\\u0062\"}\n";
    let trace = folder.open(text, layout(&["s:text"]).grouped("s")).unwrap();
    let expected = named(&[("b", &[1, 4, 7]), ("7", &[2, 6]), ("", &[3]), ("", &[5])]);
    assert_eq!(groups(&trace), expected);
    assert_eq!((trace.facts().rows, trace.facts().groups), (7, 4));
}

#[test]
fn groups_by_a_numeric_column() {
    let folder = Folder::new();
    let trace = folder
        .open("s\n1\n1.0\n2\n\"1\"\n", layout(&["s:count"]).grouped("s"))
        .unwrap();
    assert_eq!(groups(&trace), named(&[("1", &[1, 2, 4]), ("2", &[3])]));
}

/// The shape of Bailian's traces: `parent_chat_id` is -1 for a root, children may fork.
#[test]
fn groups_by_trees() {
    let folder = Folder::new();
    let text = "chat_id,parent_chat_id\n3,1\n1,-1\n2,-1\n4,1\n5,4\n6,99\n,1\n7,\n";
    let layout = layout(&["chat_id:integer", "parent_chat_id:integer"]).tree("chat_id", "parent_chat_id");
    let trace = folder.open(text, layout).unwrap();
    let expected = named(&[("1", &[1, 2, 4, 5, 7]), ("2", &[3]), ("6", &[6]), ("7", &[8])]);
    assert_eq!(groups(&trace), expected);
}

#[test]
fn keeps_the_most_frequent_values() {
    let folder = Folder::new();
    // b and c occur twice, b appears first; a and d once.
    let text = "{\"d\":\"a\"}\n{\"d\":\"b\"}\n{\"d\":\"c\"}\n{}\n{\"d\":\"c\"}\n{\"d\":\"b\"}\n{\"d\":\"d\"}\n{\"d\":\"e\"}\n{\"d\":\"e\"}\n{\"d\":\"e\"}\n";
    let keeping = |count, warms_up| {
        let mut layout = layout(&["d:text"]);
        layout.keep = Some(MostFrequent {
            column: "d".into(),
            count,
        });
        layout.warms_up = warms_up;
        folder.open(text, layout).unwrap()
    };
    let trace = keeping(2, true);
    assert_eq!(
        groups(&trace),
        named(&[("", &[2]), ("", &[6]), ("", &[8]), ("", &[9]), ("", &[10])])
    );
    assert_eq!((trace.facts().rows, trace.facts().groups), (5, 5));
    assert_eq!(trace.facts().first_row, "{\"d\":\"b\"}");
    // Warm-up: the first row of each kept value, the most frequent first.
    let warmup: Vec<_> = trace.warmup().unwrap().iter().map(seen).collect();
    let found: Vec<_> = warmup
        .iter()
        .map(|session| (session.key.as_str(), session.index, session.rows[0].0))
        .collect();
    assert_eq!(found, [("e", 0, 8), ("b", 1, 2)]);
    assert_eq!(keeping(2, false).warmup().unwrap(), []);
    assert_eq!(keeping(99, false).facts().rows, 9);
}

#[test]
fn warmup_without_kept_values_is_the_first_row() {
    let folder = Folder::new();
    let mut grouped = layout(&["s:text"]).grouped("s");
    grouped.warms_up = true;
    let trace = folder
        .open("{\"s\":\"x\"}\n{\"s\":\"y\"}\n{\"s\":\"x\"}\n", grouped)
        .unwrap();
    let warmup: Vec<_> = trace.warmup().unwrap().iter().map(seen).collect();
    assert_eq!(warmup.len(), 1);
    assert_eq!(
        (warmup[0].key.as_str(), warmup[0].rows.len(), warmup[0].rows[0].0),
        ("x", 1, 1)
    );
}

#[test]
fn pools_give_one_row_of_each_file() {
    let folder = Folder::new();
    for (name, rows) in [("a", 3), ("b", 5)] {
        let text: String = (0..rows).map(|i| format!("{{\"v\":\"{name}{i}\"}}\n")).collect();
        folder.file(name, text);
    }
    let pools = |seed| {
        let mut layout = layout(&["v:text"]);
        layout.grouping = Grouping::Pools;
        let options = TraceOptions {
            seed,
            ..options(folder.path())
        };
        open(options, Echo::of(layout)).unwrap()
    };
    let trace = pools(1);
    assert_eq!(
        (
            trace.facts().rows,
            trace.facts().groups,
            trace.sessions_per_epoch()
        ),
        (8, 5, 5)
    );
    let drawn = sessions(&trace, 0, 3000);
    let mut counts = std::collections::BTreeMap::new();
    for (i, session) in drawn.iter().enumerate() {
        assert_eq!(
            (session.index, session.epoch, session.rows.len()),
            (i as u64, 0, 2)
        );
        for (_, _, fields) in &session.rows {
            *counts.entry(fields.clone()).or_insert(0u32) += 1;
        }
    }
    // 1000 or 600 expected; five standard deviations are 129 and 110.
    for (fields, count) in &counts {
        let (expected, tolerance) = if fields.contains('a') {
            (1000, 129)
        } else {
            (600, 110)
        };
        assert!(count.abs_diff(expected) < tolerance, "{fields}: {count}");
    }
    assert_eq!(counts.len(), 8);
    // The pools are drawn from independently, and the draws depend on the seed.
    let pairs: std::collections::BTreeSet<_> = drawn
        .iter()
        .map(|session| (session.rows[0].0, session.rows[1].0))
        .collect();
    assert_eq!(pairs.len(), 15);
    assert_eq!(sessions(&trace, 1000, 5), drawn[1000..1005]);
    assert_ne!(sessions(&pools(2), 0, 100), drawn[..100]);
}

#[test]
fn refused_rows_are_removed_from_a_pool() {
    let folder = Folder::new();
    let path = folder.file("trace", "{\"v\":\"a\"}\n{\"v\":\"refuse\"}\n{\"v\":\"c\"}\n");
    let mut layout = layout(&["v:text"]);
    layout.grouping = Grouping::Pools;
    let options = TraceOptions {
        on_bad_row: BadRowRule::Skip,
        check: veeksha_trace::CheckExtent::Whole,
        ..options(path)
    };
    let trace = open(options, Echo::of(layout)).unwrap();
    let drawn: std::collections::BTreeSet<u64> = sessions(&trace, 0, 200)
        .iter()
        .map(|session| session.rows[0].0)
        .collect();
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(trace.skipped().total, 1);
}

proptest! {
    /// The reference implementation groups by a map of lists.
    #[test]
    fn groups_are_those_of_a_map(keys in prop::collection::vec(prop::option::of(0u8..6), 1..60)) {
        let folder = Folder::new();
        let text: String = keys.iter().map(|key| format!("{{\"k\":{}}}\n", key.map_or("null".into(), |key| key.to_string()))).collect();
        let mut judge: Vec<(String, Vec<u64>)> = Vec::new();
        for (row, key) in keys.iter().enumerate() {
            let name = key.map(|key| key.to_string()).unwrap_or_default();
            match judge.iter_mut().find(|(other, _)| key.is_some() && *other == name) {
                Some((_, rows)) => rows.push(row as u64 + 1),
                None => judge.push((name, vec![row as u64 + 1])),
            }
        }
        let trace = folder.open(text, layout(&["k:count"]).grouped("k")).unwrap();
        prop_assert_eq!(groups(&trace), judge);
    }
}
