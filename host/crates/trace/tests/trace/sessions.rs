//! Session `i` is independent of caller and history.

use proptest::prelude::*;
use veeksha_ports::TimestampUnit;
use veeksha_trace::{OpenTrace, Order, TraceOptions, open};

use crate::support::{Echo, Folder, LayoutExt, layout, options, seen, sessions, source};

fn trace(folder: &Folder, order: Order) -> OpenTrace {
    let text: String = (0..40)
        .map(|i| format!("{{\"s\":{},\"t\":{}}}\n", i % 13, i * 7 % 40))
        .collect();
    let options = TraceOptions {
        order,
        wrap: true,
        ..options(folder.file("trace", text))
    };
    let layout = layout(&["s:text", "t:number"])
        .grouped("s")
        .arrivals("t", TimestampUnit::Seconds);
    open(options, Echo::of(layout)).unwrap()
}

fn orders() -> impl Strategy<Value = Order> {
    prop::sample::select(vec![
        Order::File,
        Order::Shuffled,
        Order::ShuffledAfterFirst,
        Order::ByArrival {
            start: None,
            end: None,
        },
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_batches_in_any_order(order in orders(), asked in prop::collection::vec((0u64..100, 0u32..40), 1..8)) {
        let folder = Folder::new();
        let trace = trace(&folder, order);
        let all = sessions(&trace, 0, 140);
        let mut one = source(&trace);
        for (first, count) in asked {
            let expected = &all[first as usize..first as usize + count as usize];
            let again: Vec<_> = one.sessions(first, count).unwrap().iter().map(seen).collect();
            prop_assert_eq!(&again[..], expected);
            // A fresh instance.
            prop_assert_eq!(&sessions(&trace, first, count)[..], expected);
        }
    }

    /// The shards of a run take every k-th session: together they are the whole.
    #[test]
    fn shards_are_a_partition(order in orders(), shards in 1u64..5) {
        let folder = Folder::new();
        let trace = trace(&folder, order);
        let all = sessions(&trace, 0, 60);
        let mut parts: Vec<_> = (0..shards)
            .flat_map(|shard| {
                let mut source = source(&trace);
                (shard..60).step_by(shards as usize).map(move |i| (i, seen(&source.sessions(i, 1).unwrap()[0]))).collect::<Vec<_>>()
            })
            .collect();
        parts.sort_by_key(|(i, _)| *i);
        prop_assert_eq!(parts.into_iter().map(|(_, session)| session).collect::<Vec<_>>(), all);
    }
}

#[test]
fn sessions_do_not_depend_on_threads() {
    let folder = Folder::new();
    let trace = trace(&folder, Order::Shuffled);
    let all = sessions(&trace, 0, 130);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(sessions(&trace.clone(), 0, 130), all));
        }
    });
}

#[test]
fn flavor_receives_the_facts() {
    let folder = Folder::new();
    let trace = trace(&folder, Order::File);
    let session = &source(&trace).sessions(0, 1).unwrap()[0];
    assert!(session.labels.contains(&("facts".into(), "40 13".into())));
    assert_eq!(trace.factory().info().name, "echo");
    assert_eq!(trace.layout().columns.len(), 2);
}

#[test]
fn refusal_during_the_run_names_the_rows() {
    let folder = Folder::new();
    let text = "{\"s\":\"a\"}\n{\"s\":\"b\"}\n{\"s\":\"refuse\"}\n{\"s\":\"c\"}\n{\"s\":\"refuse\"}\n";
    let options = TraceOptions {
        wrap: true,
        ..options(folder.file("trace", text))
    };
    let trace = open(options, Echo::of(layout(&["s:text"]).grouped("s"))).unwrap();
    let error = source(&trace).sessions(4, 4).unwrap_err();
    assert_eq!(
        folder.without_path(&error.to_string()),
        "plugin `echo` failed in `flavor.sessions`: row 3: not this one [row]\n  input: trace, rows 3, 5 (epoch 1)\n  \
         code: VP0003 (docs/plugin-errors.md)"
    );
}
