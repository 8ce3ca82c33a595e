//! Invariants of every run, whatever the traffic, the graphs, the answers and the end.
//!
//! With a million random schedules for each property:
//! `PROPTEST_CASES=1000000 cargo test --release -p veeksha-scheduler`.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed check in the world of a test is a failed test"
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use veeksha_model::Nanos;
use veeksha_scheduler::{
    ConcurrencyLimits, DrawnArrivals, GracePeriod, Interval, SchedulerConfig, Shard, ToolClass, TrafficRule,
};

mod world;
use world::{Weather, arrival_of, run, target_at};

fn traffic() -> impl Strategy<Value = TrafficRule> {
    prop_oneof![
        (0u32..40).prop_map(|gap| TrafficRule::Rate(Interval::Fixed {
            interval: f64::from(gap) * 1e-9
        })),
        (1u32..40).prop_map(|gap| TrafficRule::Rate(Interval::Poisson {
            rate: 1e9 / f64::from(gap)
        })),
        (1u32..40, 2u32..30).prop_map(|(gap, cv)| {
            TrafficRule::Rate(Interval::Gamma {
                rate: 1e9 / f64::from(gap),
                cv: f64::from(cv) / 10.0,
            })
        }),
        any::<bool>().prop_map(|replays| TrafficRule::Scheduled { replays }),
        (1u32..9, prop_oneof![Just(0u64), 1u64..500])
            .prop_map(|(target, ramp)| TrafficRule::Concurrent { target, ramp }),
    ]
}

fn grace() -> impl Strategy<Value = GracePeriod> {
    prop_oneof![
        Just(GracePeriod::Unbounded),
        Just(GracePeriod::Bounded(0)),
        (1u64..200).prop_map(GracePeriod::Bounded)
    ]
}

prop_compose! {
    /// Limits that each shard of `count` has a part of.
    fn limits(count: u32)(
        sessions in proptest::option::weighted(0.4, count..8u32),
        in_flight in proptest::option::weighted(0.4, count..8u32),
        in_prefill in proptest::option::weighted(0.4, count..8u32),
    ) -> ConcurrencyLimits {
        ConcurrencyLimits { sessions, in_flight, in_prefill }
    }
}

prop_compose! {
    fn tool_class()(
        servers in proptest::option::of(1u32..4),
        cold_start in prop_oneof![Just(0u64), 1u64..60],
        keep_warm in proptest::option::of(0u64..60),
        spacing in prop_oneof![Just(0u64), 1u64..40],
    ) -> ToolClass {
        ToolClass { servers, cold_start, keep_warm, spacing }
    }
}

/// No classes, or some with that of the timers.
fn tools() -> impl Strategy<Value = Vec<ToolClass>> {
    let classes = proptest::collection::vec(tool_class(), 0..3).prop_map(|mut classes| {
        classes.push(ToolClass::default());
        classes
    });
    prop_oneof![1 => Just(Vec::new()), 3 => classes]
}

prop_compose! {
    fn config()(
        tools in tools(),
        traffic in traffic(),
        limits in prop_oneof![Just(ConcurrencyLimits::default()), limits(3)],
        cancel_session_on_failure in any::<bool>(),
        max_sessions in proptest::option::of(0u64..40),
        benchmark_timeout in proptest::option::of(0u64..900),
        grace in grace(),
        seed in any::<u64>(),
        count in 1u32..4,
        index in 0u32..3,
    ) -> SchedulerConfig {
        let count = count.min(traffic.most_shards());
        let shard = Shard { index: index % count, count };
        SchedulerConfig { tools, traffic, limits, cancel_session_on_failure, max_sessions, benchmark_timeout, grace, seed, shard }
    }
}

prop_compose! {
    fn weather()(
        seed in any::<u64>(),
        sessions in 0u64..50,
        failures in prop_oneof![Just(0u32), 0u32..60],
        agent_failures in prop_oneof![Just(0u32), 0u32..40],
        reactive in prop_oneof![Just(0u32), Just(100u32), 0u32..100],
        latency in 0u32..120,
        step_latency in 0u32..60,
        delivery in prop_oneof![Just(0u32), 0u32..80],
        stop in proptest::option::weighted(0.3, 0u64..1500),
        first_chunks in prop_oneof![Just(100u32), 0u32..100],
        cancellations in prop_oneof![Just(0u32), 0u32..60],
        tools in 0u32..100,
    ) -> Weather {
        Weather { seed, sessions, failures, agent_failures, reactive, latency, step_latency, delivery, stop, first_chunks, cancellations, tools }
    }
}

/// Returns true if nothing ends the run early.
fn unlimited(config: &SchedulerConfig, weather: &Weather) -> bool {
    config.benchmark_timeout.is_none() && weather.stop.is_none()
}

fn owned(config: &SchedulerConfig, weather: &Weather) -> Vec<u64> {
    let end = config.max_sessions.unwrap_or(u64::MAX).min(weather.sessions);
    (0..end)
        .filter(|id| id % u64::from(config.shard.count) == u64::from(config.shard.index))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1500), failure_persistence: None, ..ProptestConfig::default() })]

    /// The world checks every action; here follows what only the whole run shows.
    #[test]
    fn every_run_is_whole(config in config(), weather in weather()) {
        let log = run(&config, &weather);
        if unlimited(&config, &weather) {
            let mut started: Vec<u64> = log.started.iter().map(|(id, _)| *id).collect();
            started.sort_unstable();
            prop_assert_eq!(started, owned(&config, &weather));
        }
        if let (Some(timeout), GracePeriod::Bounded(0), None) = (config.benchmark_timeout, config.grace, weather.stop)
            && log.timeout_at.is_some()
        {
            // Nothing is sent after the timeout.
            prop_assert!(log.dispatched.values().all(|(intended, measured)| *measured && *intended <= timeout));
        }
    }

    /// Never more sessions than the ramp allows, by the sessions' own instants.
    #[test]
    fn concurrency_stays_below_the_ramp(
        target in 1u32..9, ramp in 0u64..500, config in config(), weather in weather(),
    ) {
        let traffic = TrafficRule::Concurrent { target, ramp };
        let count = config.shard.count.min(target);
        let config = SchedulerConfig { traffic, shard: Shard { index: config.shard.index % count, count }, ..config };
        let log = run(&config, &weather);
        let Shard { index, count } = config.shard;
        for (_, at) in &log.started {
            let active = log.started.iter().filter(|(id, start)| start <= at && (log.finished[id].0 > *at || (start == at && log.finished[id].0 == *at))).count();
            let instant = log.started.iter().filter(|(id, start)| start == at && log.finished[id].0 == *at).count();
            let part = (target_at(target, ramp, *at) + u64::from(count - 1 - index)) / u64::from(count);
            // Sessions without duration share an instant one after the other.
            prop_assert!((active - instant) as u64 <= part, "{} at {}", active, at);
        }
    }

    /// Sessions start at their scheduled instants, whatever the sharding, the limits, the answers
    /// and the delivery.
    #[test]
    fn arrivals_depend_on_seed_and_id_alone(gap in 1u32..40, seed in any::<u64>(), weather in weather(), count in 1u32..4, limits in limits(3)) {
        let interval = Interval::Poisson { rate: 1e9 / f64::from(gap) };
        let weather = Weather { stop: None, ..weather };
        let mut starts: BTreeMap<u64, Nanos> = BTreeMap::new();
        for index in 0..count {
            let config = SchedulerConfig { tools: Vec::new(),
                traffic: TrafficRule::Rate(interval),
                limits,
                cancel_session_on_failure: true,
                max_sessions: None,
                benchmark_timeout: None,
                grace: GracePeriod::Unbounded,
                seed,
                shard: Shard { index, count },
            };
            for (id, at) in run(&config, &weather).started {
                prop_assert!(starts.insert(id, at).is_none());
            }
        }
        let mut arrivals = DrawnArrivals::new(interval, seed, Shard::WHOLE);
        let expected: BTreeMap<u64, Nanos> =
            (0..weather.sessions).filter_map(|id| Some((id, arrivals.take(id)?))).collect();
        prop_assert_eq!(starts, expected);
    }

    /// Replayed sessions start at their own arrivals, whatever the sharding, the limits, the
    /// answers and the delivery.
    #[test]
    fn replayed_arrivals_are_the_recorded_ones(weather in weather(), count in 1u32..4, limits in limits(3)) {
        let weather = Weather { stop: None, ..weather };
        let mut starts: BTreeMap<u64, Nanos> = BTreeMap::new();
        for index in 0..count {
            let config = SchedulerConfig { tools: Vec::new(),
                traffic: TrafficRule::Scheduled { replays: true },
                limits,
                cancel_session_on_failure: true,
                max_sessions: None,
                benchmark_timeout: None,
                grace: GracePeriod::Unbounded,
                seed: 0,
                shard: Shard { index, count },
            };
            for (id, at) in run(&config, &weather).started {
                prop_assert!(starts.insert(id, at).is_none());
            }
        }
        prop_assert_eq!(starts.len() as u64, weather.sessions);
        for (id, at) in starts {
            prop_assert!(arrival_of(weather.seed, id).is_none_or(|recorded| recorded == at));
        }
    }

    /// Delivered sessions start in the order of arrival, whatever their ids: with all of them
    /// delivered at the beginning, that is the order of the whole run.
    #[test]
    fn replayed_sessions_start_in_the_order_of_arrival(weather in weather()) {
        let weather = Weather { stop: None, delivery: 0, ..weather };
        let config = SchedulerConfig { tools: Vec::new(),
            traffic: TrafficRule::Scheduled { replays: true },
            limits: ConcurrencyLimits::default(),
            cancel_session_on_failure: false,
            max_sessions: None,
            benchmark_timeout: None,
            grace: GracePeriod::Unbounded,
            seed: 0,
            shard: Shard::WHOLE,
        };
        let log = run(&config, &weather);
        let after_zero: Vec<_> = log.started.iter().filter(|(_, at)| *at > 0).map(|(id, at)| (*at, *id)).collect();
        prop_assert!(after_zero.is_sorted(), "{:?}", after_zero);
    }

    /// The same world gives the same run.
    #[test]
    fn runs_repeat(config in config(), weather in weather()) {
        prop_assert_eq!(format!("{:?}", run(&config, &weather)), format!("{:?}", run(&config, &weather)));
    }
}

/// Ten thousand short sessions, each of which is gone before the next but a few comes.
#[test]
fn memory_follows_the_live_sessions() {
    let config = SchedulerConfig {
        tools: Vec::new(),
        traffic: TrafficRule::Concurrent { target: 4, ramp: 0 },
        limits: ConcurrencyLimits::default(),
        cancel_session_on_failure: true,
        max_sessions: None,
        benchmark_timeout: None,
        grace: GracePeriod::Unbounded,
        seed: 1,
        shard: Shard::WHOLE,
    };
    let weather = Weather {
        seed: 5,
        sessions: 2_000,
        failures: 20,
        agent_failures: 0,
        reactive: 20,
        latency: 3,
        step_latency: 1,
        delivery: 1600,
        stop: None,
        first_chunks: 0,
        cancellations: 20,
        tools: 0,
    };
    let log = run(&config, &weather);
    assert_eq!(log.started.len(), 2_000);
    // Deliveries are spread so that they lie waiting for at most a few sessions' time.
    assert!(log.most_live <= 64, "{}", log.most_live);
}
