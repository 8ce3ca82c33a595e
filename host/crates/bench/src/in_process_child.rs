//! Test support: the bench's child process as a thread of this one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use crate::error::BenchError;
use crate::lines::write_line;
use crate::server::{ChildMessage, LogEntry, ResponsePlan, ServerCommand, ServerCounters};
use crate::task::{ChildTask, serve};

/// A child's thread and its connection.
pub(crate) struct InProcessChild {
    commands: Option<UnixStream>,
    answers: BufReader<UnixStream>,
    thread: Option<JoinHandle<Result<(), BenchError>>>,
}

impl InProcessChild {
    pub(crate) fn start(task: &ChildTask) -> Self {
        let (mut commands, theirs) = UnixStream::pair().expect("a pair");
        let (ours, answers) = UnixStream::pair().expect("a pair");
        let thread = std::thread::spawn(move || serve(theirs, answers));
        write_line(&mut commands, task).expect("a task");
        InProcessChild {
            commands: Some(commands),
            answers: BufReader::new(ours),
            thread: Some(thread),
        }
    }

    pub(crate) fn receive_message(&mut self) -> ChildMessage {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }

    pub(crate) fn raw(&mut self, line: &str) -> ChildMessage {
        use std::io::Write;
        let commands = self.commands.as_mut().expect("open");
        writeln!(commands, "{line}").expect("a command");
        self.receive_message()
    }

    pub(crate) fn ask(&mut self, command: &ServerCommand) -> ChildMessage {
        write_line(self.commands.as_mut().expect("open"), command).expect("a command");
        self.receive_message()
    }

    /// Closes the input and waits for the thread.
    pub(crate) fn end(mut self) -> Result<(), BenchError> {
        self.commands = None;
        self.thread.take().expect("a thread").join().expect("no panic")
    }
}

/// Starts a server with a plan.
pub(crate) fn server(plan: ResponsePlan) -> (InProcessChild, SocketAddr) {
    let mut server = InProcessChild::start(&ChildTask::Serve { core: None });
    let ChildMessage::Ready(address) = server.receive_message() else {
        panic!("it is not ready");
    };
    assert_eq!(server.ask(&ServerCommand::Plan(plan)), ChildMessage::Done);
    (server, address)
}

impl InProcessChild {
    pub(crate) fn log(&mut self) -> Vec<LogEntry> {
        match self.ask(&ServerCommand::Log) {
            ChildMessage::Log(log) => log,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn counts(&mut self) -> ServerCounters {
        match self.ask(&ServerCommand::ServerCounts) {
            ChildMessage::ServerCounts(counts) => counts,
            other => panic!("{other:?}"),
        }
    }
}
