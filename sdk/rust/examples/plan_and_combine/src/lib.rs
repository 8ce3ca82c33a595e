//! An agent that plans, runs two tools at once, combines their results, and asks again with twice
//! the length while its answer is cut off. It is written in every language of the SDKs
//! (sdk/README.md), and makes the same sessions in each.

use std::time::Duration;

use veeksha_plugin::{
    Agent, Error, Failure, Message, Opening, Plugin, Random, Request, Response, Role, Step, ToolResult,
    ToolRun, result_of, synthetic, text,
};

/// The nodes of a session; further attempts to combine follow.
const PLAN: u32 = 1;
const SEARCH: u32 = 2;
const SANDBOX: u32 = 3;
const COMBINE: u32 = 4;

/// The configuration.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    plan_tokens: u32,
    retries: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            plan_tokens: 200,
            retries: 2,
        }
    }
}

/// A live session.
pub struct PlanAndCombine {
    retries_left: u32,
    tools_running: u32,
    /// The number of the next attempt to combine, from 1, and its length.
    attempt: u32,
    tokens: u32,
}

impl Plugin for PlanAndCombine {
    type Config = Config;
    const NAME: &'static str = "plan_and_combine";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "a plan, two tools at once, and their combination";

    fn config_schema() -> String {
        include_str!("../schema.json").into()
    }
}

impl PlanAndCombine {
    /// The next attempt to combine: the first one follows the tools, a later one the attempt before
    /// it.
    fn combine(&mut self) -> Step {
        let node = COMBINE + self.attempt - 1;
        let request = Request::new(node).history(PLAN);
        let request = if self.attempt == 1 {
            request.after(SEARCH).after(SANDBOX)
        } else {
            request.after(node - 1)
        };
        let results = [
            text("Results:\n"),
            result_of(SEARCH),
            result_of(SANDBOX),
            text("\nCombine them."),
        ];
        let request = request
            .message(Message::new(Role::User, results.into()))
            .output_at_most(self.tokens)
            .label("attempt", self.attempt.to_string());
        self.attempt += 1;
        self.tokens *= 2;
        Step::request(request)
    }
}

impl Agent for PlanAndCombine {
    fn start(config: &Config, index: u64, random: Random) -> Result<(Self, Opening), Error> {
        let task = config.plan_tokens + random.stream("plan").word() % 100;
        let plan = Request::new(PLAN)
            .system(synthetic(1, 300))
            .message(Message::new(
                Role::User,
                vec![text("Task:\n"), synthetic(index, task)],
            ))
            .output_at_most(120);
        let agent = PlanAndCombine {
            retries_left: config.retries,
            tools_running: 2,
            attempt: 1,
            tokens: 200,
        };
        let opening = Opening::from(Step::request(plan)).label("agent", "plan_and_combine");
        Ok((agent, opening))
    }

    fn answered(&mut self, response: Response) -> Result<Step, Error> {
        if response.node == PLAN {
            let search = ToolRun::new(SEARCH, "search").after(PLAN);
            let sandbox = ToolRun::new(SANDBOX, "sandbox")
                .after(PLAN)
                .service_time(Duration::from_millis(250))
                .result_tokens(150);
            return Ok(Step::wait().tool_run(search).tool_run(sandbox));
        }
        if response.finish_reason == "length" && self.retries_left > 0 {
            self.retries_left -= 1;
            return Ok(self.combine());
        }
        Ok(Step::done())
    }

    fn tool_ended(&mut self, _ended: ToolResult) -> Result<Step, Error> {
        self.tools_running -= 1;
        if self.tools_running > 0 {
            return Ok(Step::wait());
        }
        Ok(self.combine())
    }

    fn failed(&mut self, _failure: Failure) -> Result<Step, Error> {
        Ok(Step::done())
    }

    fn cancelled(&mut self, _response: Response) -> Result<Step, Error> {
        Ok(Step::done())
    }
}

veeksha_plugin::export_agent!(PlanAndCombine);
