//! Local ports: each connection to one server address needs a separate one, and keeps it for a
//! while after it is closed.

use crate::finding::{ExpectedLoad, MachineFinding, State};
use crate::tree::{Tree, numbers};

/// Seconds for which a closed connection holds its port (`TCP_TIMEWAIT_LEN` in the kernel).
const TIME_WAIT_SECONDS: f64 = 60.0;

/// Seconds for which it holds its port if waiting ports are reused (`tcp_tw_reuse = 1`): the
/// timestamp must have increased.
const REUSE_SECONDS: f64 = 1.0;

/// Returns the first and the last port of the range for outgoing connections, and the number of
/// ports in it that are not reserved.
pub(crate) fn range(tree: &Tree) -> Option<(u32, u32, u32)> {
    let text = tree.text("/proc/sys/net/ipv4/ip_local_port_range")?;
    let mut words = text.split_whitespace().map(str::parse::<u32>);
    let (first, last) = (words.next()?.ok()?, words.next()?.ok()?);
    if first > last || last > 65_535 {
        return None;
    }
    let reserved = tree.text("/proc/sys/net/ipv4/ip_local_reserved_ports");
    let taken = numbers(reserved.as_deref().unwrap_or(""), 65_536)
        .into_iter()
        .filter(|&port| (first as usize..=last as usize).contains(&port))
        .count() as u32;
    Some((first, last, (last - first + 1).saturating_sub(taken)))
}

pub(crate) fn finding(tree: &Tree, load: &ExpectedLoad) -> Option<MachineFinding> {
    let (first, last, free) = range(tree)?;
    let reuse: u8 = tree.number("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or(0);
    let waiting = waiting(tree);
    let held_for = if reuse == 1 {
        REUSE_SECONDS
    } else {
        TIME_WAIT_SECONDS
    };
    let closed = load.requests_per_second.max(0.0) * held_for;
    let all = f64::from(load.streams) + closed;
    let state = if load.streams > free {
        State::Bad
    } else if all > f64::from(free) {
        State::Advice
    } else {
        State::Good
    };
    let remedy = match state {
        State::Good => None,
        State::Advice => Some(
            "keep connections open between requests (client.connections other than `never`), or `sudo sysctl -w net.ipv4.tcp_tw_reuse=1`"
                .to_owned(),
        ),
        State::Bad => Some(
            "`sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"`, and several source or server addresses beyond that"
                .to_owned(),
        ),
    };
    let reused = match reuse {
        0 => "",
        1 => ", waiting ports are used again",
        _ => ", waiting ports are used again on loopback",
    };
    Some(MachineFinding {
        name: "local ports",
        state,
        found: format!("{free} ({first} to {last}), {waiting} waiting after a close{reused}"),
        why: format!(
            "each of {} streams to one server address needs a local port; with a connection for every request, {:.0} more would be waiting after their close",
            load.streams, closed
        ),
        remedy,
    })
}

/// Returns the number of sockets that are currently in `TIME_WAIT`.
fn waiting(tree: &Tree) -> u64 {
    let text = tree.text("/proc/net/sockstat").unwrap_or_default();
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("TCP:")) else {
        return 0;
    };
    let mut words = line.split_whitespace();
    words.find(|word| *word == "tw");
    words.next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn load(streams: u32, requests_per_second: f64) -> ExpectedLoad {
        ExpectedLoad {
            streams,
            requests_per_second,
        }
    }

    #[test]
    fn the_range_of_a_fresh_linux_holds_28232_streams() {
        let (_folder, tree) = tree(&[
            ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("/proc/sys/net/ipv4/tcp_tw_reuse", "2\n"),
            (
                "/proc/net/sockstat",
                "sockets: used 11\nTCP: inuse 1 orphan 0 tw 17 alloc 1 mem 182\n",
            ),
        ]);
        let enough = finding(&tree, &load(28_232, 0.0)).unwrap();
        assert_eq!(enough.state, State::Good);
        assert_eq!(
            enough.found,
            "28232 (32768 to 60999), 17 waiting after a close, waiting ports are used again on loopback"
        );
        assert_eq!(finding(&tree, &load(28_233, 0.0)).unwrap().state, State::Bad);
        // 500 per second for 60 s are 30,000 ports; reused after a second they are 500.
        assert_eq!(finding(&tree, &load(1, 500.0)).unwrap().state, State::Advice);
    }

    #[test]
    fn ports_that_are_used_again_count_for_a_second() {
        let (_folder, tree) = tree(&[
            ("/proc/sys/net/ipv4/ip_local_port_range", "1024 2023"),
            ("/proc/sys/net/ipv4/tcp_tw_reuse", "1"),
        ]);
        assert_eq!(finding(&tree, &load(500, 499.0)).unwrap().state, State::Good);
        assert_eq!(finding(&tree, &load(500, 501.0)).unwrap().state, State::Advice);
    }

    #[test]
    fn reserved_ports_do_not_count() {
        let (_folder, tree) = tree(&[
            ("/proc/sys/net/ipv4/ip_local_port_range", "1000 1099"),
            (
                "/proc/sys/net/ipv4/ip_local_reserved_ports",
                "80,1000-1009,1099,2000",
            ),
        ]);
        assert_eq!(range(&tree), Some((1000, 1099, 89)));
    }

    #[test]
    fn a_range_that_is_none_is_not_judged() {
        for text in ["", "5", "9 4", "a b", "1 70000"] {
            let (_folder, tree) = tree(&[("/proc/sys/net/ipv4/ip_local_port_range", text)]);
            assert!(finding(&tree, &load(1, 1.0)).is_none(), "{text:?}");
        }
    }
}
