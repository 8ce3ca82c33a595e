//! Plugins that decide a session step by step.

use std::any::Any;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use serde::de::DeserializeOwned;

use crate::bindings::agent_generator::exports::veeksha::plugin::agent_generator as contract;
use crate::config;
use crate::frame;
use crate::log;
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

    /// Starts session `index`.
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

    /// Cancels nodes of earlier steps as well: a request in flight is cancelled, one that was not
    /// sent never will be, and a node that has ended stays as it is.
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

/// A live session as the contract sees it.
pub struct Live<T>(RefCell<T>);

impl<T: Agent> contract::Guest for Exported<T> {
    type Agent = Live<T>;

    frame::describe!(T);
}

impl<T: Agent> contract::GuestAgent for Live<T> {
    fn guarantees(config: String) -> Result<Guarantees, Error> {
        log::report_panics();
        Ok(T::guarantees(&*parsed::<T::Config>(config)?))
    }

    fn start(config: String, index: u64) -> Result<(contract::Agent, Opening), Error> {
        log::report_panics();
        let (agent, opening) = T::start(&*parsed::<T::Config>(config)?, index, Random::of_session(index))?;
        Ok((contract::Agent::new(Live(RefCell::new(agent))), opening))
    }

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

thread_local! {
    /// The newest configuration, by its text. A run has one, and starts many sessions with it.
    static PARSED: RefCell<Option<(String, Rc<dyn Any>)>> = const { RefCell::new(None) };
}

fn parsed<C: DeserializeOwned + 'static>(text: String) -> Result<Rc<C>, Error> {
    PARSED.with_borrow_mut(|slot| {
        if let Some((known, config)) = slot
            && *known == text
            && let Ok(config) = Rc::clone(config).downcast::<C>()
        {
            return Ok(config);
        }
        let config: Rc<C> = Rc::new(config::from_json(&text)?);
        *slot = Some((text, config.clone()));
        Ok(config)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_parsed_once_and_a_new_text_again() {
        let first = parsed::<u32>("7".into()).unwrap();
        assert!(Rc::ptr_eq(&first, &parsed::<u32>("7".into()).unwrap()));
        assert_eq!(*parsed::<u32>("8".into()).unwrap(), 8);
        assert_eq!(*parsed::<u64>("8".into()).unwrap(), 8);
        assert!(parsed::<u32>("x".into()).is_err());
    }
}
