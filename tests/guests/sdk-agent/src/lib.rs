//! An agent made with the Rust SDK: it asks for a plan, does `steps` of it in one conversation, and
//! is done; a failed request is asked once more. `{"steps": 2}`.

use veeksha_plugin::{Agent, Error, Failure, Opening, Plugin, Random, Request, Response, Step, synthetic};

struct Planner {
    /// Steps that are still to be done.
    left: u32,
    next: u32,
    random: Random,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    steps: u32,
}

impl Plugin for Planner {
    type Config = Config;
    const NAME: &'static str = "sdk-agent";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "does a plan step by step";
}

impl Agent for Planner {
    fn start(config: &Config, index: u64, random: Random) -> Result<(Self, Opening), Error> {
        if config.steps == 0 {
            return Err(
                Error::config("/steps", "a plan has at least one step").hint("set `steps` to 1 or more")
            );
        }
        veeksha_plugin::info!("session {index} begins");
        let tokens = random.stream("plan").between(10, 20);
        let planner = Planner {
            left: config.steps,
            next: 1,
            random,
        };
        let first = Request::new(0).user(synthetic(index, tokens)).output_exactly(8);
        Ok((planner, Step::request(first).into()))
    }

    fn answered(&mut self, response: Response) -> Result<Step, Error> {
        let words = response.text.split_whitespace().count();
        assert!(words < 1000, "no plan has {words} words");
        if self.left == 0 {
            return Ok(Step::done());
        }
        self.left -= 1;
        let node = self.next;
        self.next += 1;
        let thought = self.random.stream("thought").between(1, 9);
        let request = Request::new(node)
            .history(response.node)
            .user(format!("step {node} of {words} words"))
            .label("thought", thought.to_string());
        Ok(Step::request(request))
    }

    fn failed(&mut self, failure: Failure) -> Result<Step, Error> {
        if failure.code != "timeout" {
            return Ok(Step::done());
        }
        let node = self.next;
        self.next += 1;
        Ok(Step::request(
            Request::new(node).after(failure.node).user("again"),
        ))
    }
}

veeksha_plugin::export_agent!(Planner);
