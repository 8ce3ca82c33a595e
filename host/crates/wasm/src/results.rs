//! Implementation of the queries that an SLO check may make about the results of a run.

use veeksha_model::{Label, Nanos};
use veeksha_ports::{MetricStats, RunResults};
use wasmtime::component::Resource;

use crate::bindings::results as wit;
use crate::guest_resources::OpenResults;
use crate::host_call::HostCall;
use crate::host_refusal::HostRefusal;
use crate::state::HostState;
use crate::text::cut;

impl HostState {
    /// Answers a query. The elapsed time is charged to the host.
    fn ask<T>(
        &mut self,
        call: HostCall,
        handle: &Resource<OpenResults>,
        question: impl FnOnce(&dyn RunResults) -> T,
    ) -> wasmtime::Result<T> {
        self.last_host_call = Some(call);
        let began = self.host_time.now();
        let answer = question(&*self.table.get(handle)?.0);
        self.host_time.answered(began)?;
        Ok(answer)
    }
}

impl wit::Host for HostState {}

impl wit::HostResults for HostState {
    fn metrics(&mut self, handle: Resource<OpenResults>) -> wasmtime::Result<Vec<String>> {
        self.ask(HostCall::results("metrics", ""), &handle, |results| {
            results.metrics()
        })
    }

    fn aggregate(&mut self, handle: Resource<OpenResults>, name: String) -> wasmtime::Result<Option<f64>> {
        self.ask(HostCall::results("aggregate", &name), &handle, |results| {
            results.run_metric(&name)
        })
    }

    fn stats(
        &mut self,
        handle: Resource<OpenResults>,
        metric: String,
        filter: Vec<Label>,
    ) -> wasmtime::Result<wit::Stats> {
        self.ask(HostCall::results("stats", &metric), &handle, |results| {
            stats(results.stats(&metric, &filter))
        })
    }

    fn percentile(
        &mut self,
        handle: Resource<OpenResults>,
        metric: String,
        percent: f64,
        filter: Vec<Label>,
    ) -> wasmtime::Result<Option<f64>> {
        if !(0.0..=100.0).contains(&percent) {
            return Err(HostRefusal::arguments(format!(
                "results: percentile {percent} of `{}` requested; a percentile is from 0 to 100",
                cut(&metric, 80)
            )));
        }
        self.ask(HostCall::results("percentile", &metric), &handle, |results| {
            results.percentile(&metric, percent, &filter)
        })
    }

    fn windows(
        &mut self,
        handle: Resource<OpenResults>,
        metric: String,
        filter: Vec<Label>,
        length: Nanos,
    ) -> wasmtime::Result<Vec<wit::Window>> {
        if length == 0 {
            let message = format!("results: windows of length 0 of `{}` requested", cut(&metric, 80));
            return Err(HostRefusal::arguments(message));
        }
        let windows = self.ask(HostCall::results("windows", &metric), &handle, |results| {
            results.windows(&metric, &filter, length)
        })?;
        let window = |window: veeksha_ports::WindowStats| wit::Window {
            begin: window.from,
            end: window.to,
            stats: stats(window.stats),
        };
        Ok(windows.into_iter().map(window).collect())
    }

    fn drop(&mut self, handle: Resource<OpenResults>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

fn stats(stats: MetricStats) -> wit::Stats {
    wit::Stats {
        count: stats.count,
        mean: stats.mean,
        std: stats.std,
        min: stats.min,
        max: stats.max,
        p50: stats.p50,
        p90: stats.p90,
        p95: stats.p95,
        p99: stats.p99,
    }
}
