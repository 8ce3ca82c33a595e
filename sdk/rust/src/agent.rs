//! Plugins that decide a session step by step.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::agent_generator::exports::veeksha::plugin::agent_generator as contract;
use crate::frame;
use crate::plugin::Plugin;
use crate::random::Random;
use crate::types::{Error, Failure, Guarantees, Request, Response, ToolResult, ToolRun};

pub use contract::{Opening, Step};

/// One live session that answers what the model said.
///
/// A session must depend on (configuration, seed, index, the answers) and on nothing else.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an agent",
    label = "does not implement `Agent`",
    note = "write `impl Agent for {Self} {{ .. }}`; the documentation of `Agent` has a whole one"
)]
pub trait Agent: Plugin {
    /// Returns the properties that all sessions share. By default nothing is guaranteed.
    fn guarantees(config: &Self::Config) -> Guarantees {
        let _ = config;
        Guarantees::default()
    }

    /// Returns the number of sessions; `None` for an endless workload.
    fn length(config: &Self::Config) -> Option<u64> {
        let _ = config;
        None
    }

    /// Starts session `index`, which is below [`length`](Self::length).
    ///
    /// # Errors
    /// A configuration that cannot be; say where with [`Error::config`].
    fn start(config: &Self::Config, index: u64, random: Random) -> Result<(Self, Opening), Error>;

    /// A node was answered.
    ///
    /// # Errors
    /// An answer that the agent cannot go on from; it ends the session.
    fn answered(&mut self, response: Response) -> Result<Step, Error>;

    /// A node failed. By default the session ends.
    ///
    /// # Errors
    /// A failure that the agent cannot go on from; it ends the session.
    fn failed(&mut self, failure: Failure) -> Result<Step, Error> {
        let _ = failure;
        Ok(Step::done())
    }

    /// A node was cancelled, by [`Step::cancel`] or by an event that its request names; `response`
    /// is the part of the answer that had arrived. By default nothing follows from it.
    ///
    /// # Errors
    /// An end that the agent cannot go on from; it ends the session.
    fn cancelled(&mut self, response: Response) -> Result<Step, Error> {
        let _ = response;
        Ok(Step::wait())
    }

    /// A tool run ended. By default nothing follows from it.
    ///
    /// # Errors
    /// A result that the agent cannot go on from; it ends the session.
    fn tool_ended(&mut self, ended: ToolResult) -> Result<Step, Error> {
        let _ = ended;
        Ok(Step::wait())
    }
}

impl Step {
    /// Sends nothing now: other answers are still to come.
    pub fn wait() -> Self {
        Step {
            requests: Vec::new(),
            tool_runs: Vec::new(),
            cancel: Vec::new(),
            done: false,
        }
    }

    /// Sends one request.
    pub fn request(request: Request) -> Self {
        Step::requests([request])
    }

    /// Sends several requests.
    pub fn requests(requests: impl Into<Vec<Request>>) -> Self {
        Step {
            requests: requests.into(),
            ..Step::wait()
        }
    }

    /// Starts a tool run as well.
    pub fn tool_run(mut self, run: ToolRun) -> Self {
        self.tool_runs.push(run);
        self
    }

    /// Sends nothing and ends the session once every node is complete.
    pub fn done() -> Self {
        Step {
            done: true,
            ..Step::wait()
        }
    }

    /// Cancels nodes of this step or of earlier ones: a request in flight is cancelled, a node that
    /// was not sent never will be, a tool run that waits for a server is withdrawn. One that a
    /// server has taken runs to its end, and a node that has ended stays as it is.
    pub fn cancel(mut self, nodes: impl IntoIterator<Item = u32>) -> Self {
        self.cancel.extend(nodes);
        self
    }

    /// Declares that no further requests will come.
    pub fn last(mut self) -> Self {
        self.done = true;
        self
    }
}

impl Opening {
    /// Adds an HTTP header to each request of the session.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a label to the record of each request of the session.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }
}

/// A session without headers and labels.
impl From<Step> for Opening {
    fn from(step: Step) -> Self {
        Opening {
            step,
            headers: Vec::new(),
            labels: Vec::new(),
        }
    }
}

/// An agent generator as the contract sees it.
pub struct Exported<T>(PhantomData<T>);

/// An open generator as the contract sees it.
pub struct Generator<T: Agent>(T::Config);

/// A live session as the contract sees it.
pub struct Live<T>(RefCell<T>);

impl<T: Agent> contract::Guest for Exported<T> {
    type Generator = Generator<T>;
    type Agent = Live<T>;

    frame::describe!(T);
}

impl<T: Agent> contract::GuestGenerator for Generator<T> {
    fn open(config: String) -> Result<contract::Generator, Error> {
        frame::open(&config, |config| {
            Ok(contract::Generator::new(Generator::<T>(config)))
        })
    }

    fn guarantees(&self) -> Guarantees {
        T::guarantees(&self.0)
    }

    fn length(&self) -> Option<u64> {
        T::length(&self.0)
    }

    fn start(&self, index: u64) -> Result<(contract::Agent, Opening), Error> {
        let (agent, opening) = T::start(&self.0, index, Random::of_session(index))?;
        Ok((contract::Agent::new(Live(RefCell::new(agent))), opening))
    }
}

impl<T: Agent> contract::GuestAgent for Live<T> {
    fn answered(&self, response: Response) -> Result<Step, Error> {
        self.0.borrow_mut().answered(response)
    }

    fn failed(&self, failure: Failure) -> Result<Step, Error> {
        self.0.borrow_mut().failed(failure)
    }

    fn cancelled(&self, response: Response) -> Result<Step, Error> {
        self.0.borrow_mut().cancelled(response)
    }

    fn tool_ended(&self, ended: ToolResult) -> Result<Step, Error> {
        self.0.borrow_mut().tool_ended(ended)
    }
}

/// Makes a type that is an [`Agent`] the agent generator of this component.
///
/// The crate must be a `cdylib`. On other targets than WebAssembly nothing is exported, so that the
/// plugin's own tests run natively.
#[macro_export]
macro_rules! export_agent {
    ($agent:ty) => {
        $crate::__export!($agent, $crate::Agent, ExportedAgent, agent_generator);
    };
}
