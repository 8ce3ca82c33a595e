//! For tests: what is a child process in a bench, as a thread of this one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use crate::BenchError;
use crate::lines::tell;
use crate::role::{Role, serve};
use crate::server::{Command, Counts, Plan, Served, Told};

/// A child's thread, and the way to speak to it.
pub(crate) struct Played {
    commands: Option<UnixStream>,
    answers: BufReader<UnixStream>,
    thread: Option<JoinHandle<Result<(), BenchError>>>,
}

impl Played {
    pub(crate) fn start(role: &Role) -> Self {
        let (mut commands, theirs) = UnixStream::pair().expect("a pair");
        let (ours, answers) = UnixStream::pair().expect("a pair");
        let thread = std::thread::spawn(move || serve(theirs, answers));
        tell(&mut commands, role).expect("a role");
        Played {
            commands: Some(commands),
            answers: BufReader::new(ours),
            thread: Some(thread),
        }
    }

    pub(crate) fn told(&mut self) -> Told {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }

    pub(crate) fn raw(&mut self, line: &str) -> Told {
        use std::io::Write;
        let commands = self.commands.as_mut().expect("open");
        writeln!(commands, "{line}").expect("a command");
        self.told()
    }

    pub(crate) fn ask(&mut self, command: &Command) -> Told {
        tell(self.commands.as_mut().expect("open"), command).expect("a command");
        self.told()
    }

    /// Ends its input and waits until it has ended.
    pub(crate) fn end(mut self) -> Result<(), BenchError> {
        self.commands = None;
        self.thread.take().expect("a thread").join().expect("no panic")
    }
}

/// A server with a plan.
pub(crate) fn server(plan: Plan) -> (Played, SocketAddr) {
    let mut server = Played::start(&Role::Serve { core: None });
    let Told::Ready(address) = server.told() else {
        panic!("it is not ready");
    };
    assert_eq!(server.ask(&Command::Plan(plan)), Told::Done);
    (server, address)
}

impl Played {
    pub(crate) fn log(&mut self) -> Vec<Served> {
        match self.ask(&Command::Log) {
            Told::Log(log) => log,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn counts(&mut self) -> Counts {
        match self.ask(&Command::Counts) {
            Told::Counts(counts) => counts,
            other => panic!("{other:?}"),
        }
    }
}
