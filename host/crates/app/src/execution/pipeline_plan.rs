//! Conversion of the traffic, limits and threads of a scenario to a plan of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use veeksha_pipeline::{ClientSpec, ClientSpecs, MinTokensPrompt, Plan, ReplaySchedule, ToolSpec, ToolSpecs};
use veeksha_ports::ArrivalFactory;
use veeksha_scenario::{Client, Grace, IntervalGenerator, NamedClient, QuantityConfig, Scenario, Traffic};
use veeksha_scheduler::{SchedulerConfig, Shard, ToolClass};
use veeksha_stats::DrawnQuantity;

use crate::cores::cores;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the plan of a scenario, unsharded and with threads that are not initialized.
pub(crate) fn plan(scenario: &Scenario, arrivals: Option<Arc<dyn ArrivalFactory>>) -> Plan {
    let runtime = &scenario.runtime;
    let cores = cores();
    let traffic = match &scenario.traffic_scheduler {
        Traffic::Rate(rate) => veeksha_scheduler::TrafficRule::Rate(match rate.interval_generator {
            IntervalGenerator::Fixed { interval } => veeksha_scheduler::Interval::Fixed { interval },
            IntervalGenerator::Poisson { arrival_rate } => {
                veeksha_scheduler::Interval::Poisson { rate: arrival_rate }
            }
            IntervalGenerator::Gamma { arrival_rate, cv } => veeksha_scheduler::Interval::Gamma {
                rate: arrival_rate,
                cv,
            },
        }),
        Traffic::FixedSchedule(_) => veeksha_scheduler::TrafficRule::Scheduled { replays: true },
        Traffic::ArrivalProcess(_) => veeksha_scheduler::TrafficRule::Scheduled { replays: false },
        Traffic::Concurrent(concurrent) => veeksha_scheduler::TrafficRule::Concurrent {
            target: concurrent.target_concurrent_sessions,
            ramp: nanos(Duration::try_from_secs_f64(concurrent.rampup_seconds).unwrap_or(Duration::MAX)),
        },
    };
    let tools = tool_specs(scenario);
    Plan {
        scheduler: SchedulerConfig {
            traffic,
            limits: limits(&scenario.traffic_scheduler),
            cancel_session_on_failure: scenario.traffic_scheduler.cancel_session_on_failure(),
            max_sessions: runtime.session_limit(),
            benchmark_timeout: runtime.timeout().map(nanos),
            grace: match runtime.grace() {
                Grace::Unlimited => veeksha_scheduler::GracePeriod::Unbounded,
                Grace::For(grace) => veeksha_scheduler::GracePeriod::Bounded(nanos(grace)),
            },
            seed: scenario.seed,
            shard: Shard::WHOLE,
            tools: tools.classes(),
        },
        clients: client_specs(scenario),
        tools,
        dispatchers: runtime.num_dispatcher_threads,
        completion_threads: runtime.num_completion_threads,
        plugin_threads: runtime.plugin_threads(cores) as u32,
        pregenerate: runtime.pregenerate_sessions,
        include_content: scenario.trace_recorder.include_content,
        arrivals,
        // Threads are initialized where they are started.
        spin: 0,
        on_dispatcher_start: None,
        thread_watch: None,
        run_id: None,
        shard: Shard::WHOLE,
        schedule: scenario.traffic_scheduler.recorded_arrivals().map_or_else(
            ReplaySchedule::default,
            |recorded| ReplaySchedule {
                offset: nanos(Duration::try_from_secs_f64(recorded.offset).unwrap_or(Duration::MAX)),
                speedup: recorded.speedup,
            },
        ),
        warmup: Vec::new(),
        track_prefixes: true,
    }
}

fn client_specs(scenario: &Scenario) -> ClientSpecs {
    let sentence = |client: &Client| {
        client.use_min_tokens_prompt_fallback.then(|| MinTokensPrompt {
            template: client.min_tokens_prompt.clone(),
        })
    };
    let spec = |named: NamedClient<'_>| ClientSpec {
        name: named.name.into(),
        min_tokens_prompt: sentence(named.client),
    };
    let others = scenario.all_clients().skip(1).map(spec).collect();
    ClientSpecs::new(sentence(&scenario.client), others)
}

fn tool_specs(scenario: &Scenario) -> ToolSpecs {
    let nanos = |seconds: f64| nanos(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    let spec = |(name, tool): (&String, &veeksha_scenario::ToolConfig)| ToolSpec {
        name: name.as_str().into(),
        class: ToolClass {
            servers: tool.servers,
            cold_start: nanos(tool.cold_start),
            keep_warm: tool.keep_warm.map(nanos),
            spacing: tool.spacing_seconds().map_or(0, nanos),
        },
        service_seconds: distribution(&tool.time),
        result_tokens: distribution(&tool.result_tokens),
        failure_rate: tool.failure_rate,
    };
    ToolSpecs::new(scenario.tools.iter().map(spec).collect(), scenario.seed)
}

fn distribution(quantity: &QuantityConfig) -> DrawnQuantity {
    match *quantity {
        QuantityConfig::Constant { value } => DrawnQuantity::Constant(value),
        QuantityConfig::Uniform { min, max } => DrawnQuantity::Uniform { min, max },
        QuantityConfig::Exponential { mean } => DrawnQuantity::Exponential { mean },
        QuantityConfig::Gamma { mean, cv } => DrawnQuantity::Gamma { mean, cv },
        QuantityConfig::LogNormal { median, sigma } => DrawnQuantity::LogNormal { median, sigma },
    }
}

fn limits(traffic: &Traffic) -> veeksha_scheduler::ConcurrencyLimits {
    let limits = traffic.limits();
    veeksha_scheduler::ConcurrencyLimits {
        sessions: limits.sessions,
        in_flight: limits.requests_in_flight,
        in_prefill: limits.requests_in_prefill,
    }
}
