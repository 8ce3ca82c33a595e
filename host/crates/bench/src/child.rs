//! Child processes of the bench.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command as Program, Stdio};

use crate::error::BenchError;
use crate::lines::write_line;
use crate::load::Cost;
use crate::server::{ChildMessage, LogEntry, ResponsePlan, ServerCommand, ServerCounters};
use crate::task::{CHILD_COMMAND, ChildTask};

/// A child process with an assigned task. It is ended on drop.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    process: Process,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    task: &'static str,
}

impl ChildProcess {
    /// Starts `program`, which must end in a call of [`crate::serve`].
    pub(crate) fn start(mut program: Program, task: &ChildTask) -> Result<Self, BenchError> {
        let name = match task {
            ChildTask::Serve { .. } => "serving",
            ChildTask::Drive { .. } => "driving a load",
        };
        let spawned = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = spawned.map_err(|source| BenchError::Spawn {
            program: program.get_program().into(),
            source,
        })?;
        let (Some(mut commands), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(BenchError::Empty("a child process came without its pipes"));
        };
        // A child that has already exited is reported by the first read, with its standard error.
        let _ = write_line(&mut commands, task);
        Ok(ChildProcess {
            process,
            commands: Some(commands),
            answers: BufReader::new(answers),
            task: name,
        })
    }

    /// Returns the command that starts `exe` as a child of the bench.
    pub(crate) fn of(exe: &Path) -> Program {
        let mut program = Program::new(exe);
        program.arg(CHILD_COMMAND);
        program
    }

    /// Waits for the next message.
    pub(crate) fn receive_message(&mut self) -> Result<ChildMessage, BenchError> {
        let mut line = String::new();
        let count = self
            .answers
            .read_line(&mut line)
            .map_err(BenchError::io("a child process's answer"))?;
        if count == 0 {
            let stderr_text = self.stderr_tail();
            return Err(self.failed(format!("exited without an answer{stderr_text}")));
        }
        match serde_json::from_str(&line) {
            Ok(ChildMessage::Failed(why)) => Err(self.failed(format!("failed: {why}"))),
            Ok(message) => Ok(message),
            Err(_) => Err(self.failed(format!("sent `{}`", line.trim()))),
        }
    }

    /// Waits for the cost of the load that this child drives.
    pub(crate) fn cost(&mut self) -> Result<Cost, BenchError> {
        match self.receive_message()? {
            ChildMessage::Load(cost) => Ok(cost),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Closes the child's input and waits until it has exited.
    pub(crate) fn finish(mut self) {
        self.commands = None;
        let _ = self.process.wait();
    }

    fn ask(&mut self, command: &ServerCommand) -> Result<ChildMessage, BenchError> {
        if let Some(commands) = &mut self.commands {
            write_line(commands, command)?;
        }
        self.receive_message()
    }

    fn stderr_tail(&mut self) -> String {
        self.commands = None;
        let mut stderr_text = String::new();
        if let Some(stderr) = &mut self.process.stderr {
            let _ = stderr.take(4_096).read_to_string(&mut stderr_text);
        }
        match stderr_text.trim() {
            "" => String::new(),
            stderr_text => format!(": {stderr_text}"),
        }
    }

    fn failed(&self, what: String) -> BenchError {
        BenchError::Child {
            task: self.task,
            what,
        }
    }

    fn unexpected(&self, message: &ChildMessage) -> BenchError {
        self.failed(format!("sent an unexpected message: {message:?}"))
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Closing the input ends a child; kill covers one that hangs. The wait prevents a zombie.
        self.commands = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A child process that runs the bench server.
#[derive(Debug)]
pub(crate) struct Serving {
    child: ChildProcess,
    /// The listening address.
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Starts `exe` as a server with an initial plan, pinned to `core` if given.
    pub(crate) fn start(exe: &Path, core: Option<usize>, plan: ResponsePlan) -> Result<Self, BenchError> {
        let mut child = ChildProcess::start(ChildProcess::of(exe), &ChildTask::Serve { core })?;
        let address = match child.receive_message()? {
            ChildMessage::Ready(address) => address,
            other => return Err(child.unexpected(&other)),
        };
        let mut serving = Serving { child, address };
        serving.plan(plan)?;
        Ok(serving)
    }

    /// Switches to another plan for requests that arrive from now on.
    pub(crate) fn plan(&mut self, plan: ResponsePlan) -> Result<(), BenchError> {
        match self.child.ask(&ServerCommand::Plan(plan))? {
            ChildMessage::Done => Ok(()),
            other => Err(self.child.unexpected(&other)),
        }
    }

    /// Returns the responses logged since the last call.
    pub(crate) fn log(&mut self) -> Result<Vec<LogEntry>, BenchError> {
        match self.child.ask(&ServerCommand::Log)? {
            ChildMessage::Log(log) => Ok(log),
            other => Err(self.child.unexpected(&other)),
        }
    }

    /// Returns the server's counters.
    pub(crate) fn counts(&mut self) -> Result<ServerCounters, BenchError> {
        match self.child.ask(&ServerCommand::ServerCounts)? {
            ChildMessage::ServerCounts(counts) => Ok(counts),
            other => Err(self.child.unexpected(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        let mut program = Program::new("sh");
        program.args(["-c", script]);
        program
    }

    const TASK: ChildTask = ChildTask::Serve { core: None };

    #[test]
    fn quotes_standard_error_of_a_failed_child() {
        let mut child =
            ChildProcess::start(shell("echo no such option >&2; exit 2"), &TASK).expect("a shell");
        let error = child.receive_message().expect_err("it has ended").to_string();
        assert_eq!(
            error,
            "the child process for serving exited without an answer: no such option"
        );
    }

    #[test]
    fn rejects_invalid_and_unexpected_messages() {
        let mut child = ChildProcess::start(
            shell("read task; echo hello; echo '\"done\"'; cat >/dev/null"),
            &TASK,
        )
        .expect("a shell");
        assert!(
            child
                .receive_message()
                .expect_err("nonsense")
                .to_string()
                .ends_with("sent `hello`")
        );
        let error = child.cost().expect_err("no cost").to_string();
        assert!(error.contains("sent an unexpected message: Done"), "{error}");
    }

    #[test]
    fn names_a_missing_program() {
        let error = ChildProcess::start(Program::new("/no/such/program"), &TASK).expect_err("no program");
        assert!(error.to_string().starts_with("cannot start /no/such/program"));
    }

    #[test]
    fn kills_a_hanging_child_on_drop() {
        let child = ChildProcess::start(shell("trap '' PIPE; sleep 1000"), &TASK).expect("a shell");
        drop(child);
    }
}
