//! Orders, epochs, arrivals.

use veeksha_ports::TimestampUnit;
use veeksha_trace::{OpenTrace, Order, TraceOptions, open};

use crate::support::{Echo, Folder, LayoutExt, Seen, layout, options, sessions, source};

const SECOND: u64 = 1_000_000_000;

fn numbered(folder: &Folder, rows: usize, order: Order, wrap: bool, seed: u64) -> OpenTrace {
    let text: String = (0..rows).map(|i| format!("{{\"t\":{i}}}\n")).collect();
    let options = TraceOptions {
        order,
        wrap,
        seed,
        ..options(folder.file("trace", text))
    };
    open(options, Echo::of(layout(&["t:number"]))).unwrap()
}

fn epoch(trace: &OpenTrace, epoch: u64) -> Vec<u64> {
    let n = trace.sessions_per_epoch();
    let sessions = sessions(trace, epoch * n, n as u32);
    assert_eq!(sessions.len() as u64, n);
    assert!(sessions.iter().all(|session| session.epoch == epoch));
    sessions.iter().map(|session| session.index).collect()
}

#[test]
fn each_epoch_has_every_group_once() {
    let folder = Folder::new();
    let file: Vec<u64> = (0..100).collect();
    let sorted = |mut order: Vec<u64>| {
        order.sort_unstable();
        order
    };
    let after_first = numbered(&folder, 100, Order::ShuffledAfterFirst, true, 1);
    assert_eq!(epoch(&after_first, 0), file);
    let shuffled = numbered(&folder, 100, Order::Shuffled, true, 1);
    assert_ne!(epoch(&shuffled, 0), file);
    for at in 1..5 {
        assert_ne!(epoch(&after_first, at), epoch(&after_first, at + 1));
        assert_eq!(epoch(&after_first, at), epoch(&shuffled, at));
        assert_eq!(sorted(epoch(&shuffled, at)), file);
    }
    assert_ne!(
        epoch(&shuffled, 1),
        epoch(&numbered(&folder, 100, Order::Shuffled, true, 2), 1)
    );
    let as_in_file = numbered(&folder, 100, Order::File, true, 1);
    assert_eq!(epoch(&as_in_file, 7), file);
}

#[test]
fn trace_ends_without_wrap() {
    let folder = Folder::new();
    let once = numbered(&folder, 10, Order::ShuffledAfterFirst, false, 1);
    let mut once = source(&once);
    assert_eq!(once.length().unwrap(), Some(10));
    assert_eq!(once.sessions(8, 5).unwrap().len(), 2);
    assert_eq!(once.sessions(10, 5).unwrap().len(), 0);
    assert_eq!(once.sessions(u64::MAX, 5).unwrap().len(), 0);
    let mut endless = source(&numbered(&folder, 10, Order::ShuffledAfterFirst, true, 1));
    assert_eq!(endless.length().unwrap(), None);
    assert_eq!(endless.sessions(8, 25).unwrap().len(), 25);
    assert_eq!(endless.sessions(1 << 60, 3).unwrap().len(), 3);
}

fn timed(folder: &Folder, text: &str, start: Option<u64>, end: Option<u64>) -> OpenTrace {
    let options = TraceOptions {
        order: Order::ByArrival { start, end },
        wrap: true,
        ..options(folder.file("trace", text))
    };
    let layout = layout(&["s:text", "t:number"])
        .grouped("s")
        .arrivals("t", TimestampUnit::Seconds);
    open(options, Echo::of(layout)).unwrap()
}

fn arrivals(sessions: &[Seen]) -> Vec<(&str, u64)> {
    sessions
        .iter()
        .map(|session| (session.key.as_str(), session.arrives_at.unwrap()))
        .collect()
}

/// Sessions arrive at 10 (c), 12 (a; its second row comes first and has no time), 12 (b), 20 (d)
/// seconds.
const TIMED: &str = "s,t\na,\na,112\nb,112\nc,110\nd,120\nb,113\nc,118.5\n";

#[test]
fn order_by_arrival_repeats_in_every_epoch() {
    let folder = Folder::new();
    let trace = timed(&folder, TIMED, None, None);
    assert_eq!(trace.span(), Some(10 * SECOND));
    let two = sessions(&trace, 0, 8);
    // The period is the span and the mean gap: 10 s and 10/3 s.
    let period = 10 * SECOND + 10 * SECOND / 3;
    let first = [("c", 0), ("a", 2 * SECOND), ("b", 2 * SECOND), ("d", 10 * SECOND)];
    assert_eq!(arrivals(&two[..4]), first);
    assert_eq!(arrivals(&two[4..]), first.map(|(key, at)| (key, at + period)));
    // The rows' own arrivals move too.
    let rows: Vec<_> = two[4].rows.iter().map(|row| row.1.unwrap()).collect();
    assert_eq!(rows, [period, period + 8_500_000_000]);
    assert_eq!(two[1].rows[0].1, None);
}

#[test]
fn replays_a_window_of_arrivals() {
    let folder = Folder::new();
    // Relative to the earliest: a and b at 2 s, d at 10 s. The start is in the window, the end is
    // not.
    let trace = timed(&folder, TIMED, Some(2 * SECOND), Some(10 * SECOND));
    assert_eq!(arrivals(&sessions(&trace, 0, 2)), [("a", 0), ("b", 0)]);
    assert_eq!(trace.sessions_per_epoch(), 2);
    assert_eq!(
        trace.facts().groups,
        4,
        "a window does not change what the trace is"
    );
    // All arrive at once: the next epoch follows after one second.
    assert_eq!(arrivals(&sessions(&trace, 2, 2)), [("a", SECOND), ("b", SECOND)]);
    let last = timed(&folder, TIMED, Some(10 * SECOND), None);
    assert_eq!(
        arrivals(&sessions(&last, 0, 3)),
        [("d", 0), ("d", SECOND), ("d", 2 * SECOND)]
    );
    assert_eq!(last.span(), Some(0));
}

#[test]
fn other_orders_keep_recorded_arrivals() {
    let folder = Folder::new();
    let options = TraceOptions {
        wrap: true,
        ..options(folder.file("trace", TIMED))
    };
    let layout = layout(&["s:text", "t:number"])
        .grouped("s")
        .arrivals("t", TimestampUnit::Seconds);
    let trace = open(options, Echo::of(layout)).unwrap();
    let expected = [("a", 2 * SECOND), ("b", 2 * SECOND), ("c", 0), ("d", 10 * SECOND)];
    assert_eq!(arrivals(&sessions(&trace, 0, 4)), expected);
    assert_eq!(arrivals(&sessions(&trace, 4, 4)), expected);
    assert_eq!(trace.span(), Some(10 * SECOND));
}

#[test]
fn epoch_beyond_the_time_limit_fails() {
    let folder = Folder::new();
    let trace = timed(&folder, TIMED, Some(10 * SECOND), None);
    // One session a second: the 2^53 ns end within session 9,007,199.
    let mut source = source(&trace);
    let at = source.sessions(9_007_199, 1).unwrap()[0].arrives_at;
    assert_eq!(at, Some(9_007_199 * SECOND));
    let error = source.sessions(9_007_200, 1).unwrap_err().to_string();
    assert!(
        error.contains("epoch 9007200 would arrive more than 104 days after the first"),
        "{error}"
    );
}
