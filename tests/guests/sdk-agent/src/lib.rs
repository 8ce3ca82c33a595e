//! An agent made with the Rust SDK: it asks for a plan, does `steps` of it in one conversation, and
//! is done; a failed request is asked once more. `{"steps": 2}`. With `"team": true` it plays
//! another session, asynchronously: two subagents work on a plan for `steps` and `steps + 1` turns.
//! With `"tools": true` it runs two tools at once. With `"impatient": true` it cancels each of its
//! requests. `sessions` is their number.

use std::time::Duration;

use veeksha_plugin::{
    Agent, AgentSession, AsyncAgent, AsyncSession, Error, Failure, Opening, Plugin, Random, Request,
    Response, Step, ToolResult, ToolRun, result_of, synthetic,
};

struct Planner {
    /// Steps that are still to be done.
    left: u32,
    next: u32,
    random: Random,
}

#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    steps: u32,
    #[serde(default)]
    team: bool,
    #[serde(default)]
    tools: bool,
    #[serde(default)]
    impatient: bool,
    #[serde(default)]
    sessions: Option<u64>,
}

/// The session that the configuration asks for.
enum Fixture {
    Planner(Planner),
    Team(AsyncSession<Team>),
    Tools(AsyncSession<Tools>),
    Impatient(AsyncSession<Impatient>),
}

impl Plugin for Fixture {
    type Config = Config;
    const NAME: &'static str = "sdk-agent";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "does a plan step by step";
}

impl Agent for Fixture {
    fn length(config: &Config) -> Option<u64> {
        config.sessions
    }

    fn start(config: &Config, index: u64, random: Random) -> Result<(Self, Opening), Error> {
        if config.team {
            let (team, opening) = AsyncSession::start(config, index, random)?;
            return Ok((Fixture::Team(team), opening));
        }
        if config.tools {
            let (tools, opening) = AsyncSession::start(config, index, random)?;
            return Ok((Fixture::Tools(tools), opening));
        }
        if config.impatient {
            let (impatient, opening) = AsyncSession::start(config, index, random)?;
            return Ok((Fixture::Impatient(impatient), opening));
        }
        let (planner, opening) = Planner::start(config, index, random)?;
        Ok((Fixture::Planner(planner), opening))
    }

    fn answered(&mut self, response: Response) -> Result<Step, Error> {
        match self {
            Fixture::Planner(planner) => planner.answered(response),
            Fixture::Team(team) => team.answered(response),
            Fixture::Tools(tools) => tools.answered(response),
            Fixture::Impatient(impatient) => impatient.answered(response),
        }
    }

    fn failed(&mut self, failure: Failure) -> Result<Step, Error> {
        match self {
            Fixture::Planner(planner) => planner.failed(failure),
            Fixture::Team(team) => team.failed(failure),
            Fixture::Tools(tools) => tools.failed(failure),
            Fixture::Impatient(impatient) => impatient.failed(failure),
        }
    }

    fn cancelled(&mut self, response: Response) -> Result<Step, Error> {
        match self {
            Fixture::Planner(_) => Ok(Step::done()),
            Fixture::Team(team) => team.cancelled(response),
            Fixture::Tools(tools) => tools.cancelled(response),
            Fixture::Impatient(impatient) => impatient.cancelled(response),
        }
    }

    fn tool_ended(&mut self, ended: ToolResult) -> Result<Step, Error> {
        match self {
            Fixture::Planner(_) => Ok(Step::wait()),
            Fixture::Team(team) => team.tool_ended(ended),
            Fixture::Tools(tools) => tools.tool_ended(ended),
            Fixture::Impatient(impatient) => impatient.tool_ended(ended),
        }
    }
}

impl Planner {
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

/// The same session as in `tests/runs/subagents.rs`.
struct Team;

impl Plugin for Team {
    type Config = Config;
    const NAME: &'static str = Fixture::NAME;
    const VERSION: &'static str = Fixture::VERSION;
    const SUMMARY: &'static str = Fixture::SUMMARY;
}

impl AsyncAgent for Team {
    async fn run(config: Config, session: AgentSession) -> Result<(), Error> {
        let tokens = session.random().stream("lua").between(20, 60);
        let first = Request::default().user(synthetic(1, tokens)).output_exactly(12);
        let Ok(plan) = session.request(first).await else {
            return Ok(());
        };
        let workers = [config.steps, config.steps + 1].map(|turns| {
            let plan = plan.node;
            session.spawn(async move |sub| work(&sub, plan, turns).await)
        });
        session.sleep(Duration::from_millis(100));
        let ended = session.parallel(workers).await;
        let hedge = |tokens: u32| {
            let request = Request::default().history(ended[0]).after(ended[1]);
            request.user(synthetic(2, 30)).output_exactly(tokens)
        };
        let (index, answer) = session.race([hedge(40), hedge(5)]).await;
        if let Ok(answer) = answer {
            let last = Request::default()
                .history(answer.node)
                .user(format!("number {index}"));
            let _ = session.request(last.output_exactly(3)).await;
        }
        Ok(())
    }
}

/// Continues the conversation of `last`; a tool runs after each answer. Returns the last node.
async fn work(sub: &AgentSession, mut last: u32, turns: u32) -> u32 {
    let mut draws = sub.random().stream("lua");
    for turn in 1..=turns {
        let prompt = synthetic(u64::from(turn) + 10, draws.between(10, 40));
        let request = Request::default().history(last).user(prompt);
        let request = request
            .output_exactly(draws.between(4, 16))
            .label("turn", turn.to_string());
        if let Ok(answer) = sub.request(request).await {
            last = answer.node;
        }
        sub.sleep(Duration::from_millis(u64::from(draws.between(1, 30))));
    }
    last
}

/// The same session as in `tests/runs/tools.rs`.
struct Tools;

impl Plugin for Tools {
    type Config = Config;
    const NAME: &'static str = Fixture::NAME;
    const VERSION: &'static str = Fixture::VERSION;
    const SUMMARY: &'static str = Fixture::SUMMARY;
}

impl AsyncAgent for Tools {
    async fn run(_config: Config, session: AgentSession) -> Result<(), Error> {
        let first = Request::default().user(synthetic(1, 40)).output_exactly(4);
        let Ok(plan) = session.request(first).await else {
            return Ok(());
        };
        session.sleep(Duration::from_millis(3));
        let run = |millis| ToolRun::of("sandbox").service_time(Duration::from_millis(millis));
        let found = session.parallel([run(30), run(20).result_tokens(17)]).await;
        let waited = found[1].waiting_time as f64 / 1e9;
        let last = Request::default()
            .history(plan.node)
            .user(result_of(found[0].node))
            .user(result_of(found[1].node))
            .output_exactly(4)
            .label("waited", waited.to_string());
        let _ = session.request(last).await;
        Ok(())
    }
}

/// Cancels a request after its dispatch, and another one after its first chunk.
struct Impatient;

impl Plugin for Impatient {
    type Config = Config;
    const NAME: &'static str = Fixture::NAME;
    const VERSION: &'static str = Fixture::VERSION;
    const SUMMARY: &'static str = Fixture::SUMMARY;
}

impl AsyncAgent for Impatient {
    async fn run(_config: Config, session: AgentSession) -> Result<(), Error> {
        let long = || Request::default().user("Continue.").output_exactly(400);
        let _ = session
            .request(long().cancel_after(Duration::from_millis(150)))
            .await;
        let _ = session
            .request(long().cancel_at_first_chunk(Duration::from_millis(50)))
            .await;
        Ok(())
    }
}

veeksha_plugin::export_agent!(Fixture);
