//! Child processes of the bench.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command as Program, Stdio};

use crate::lines::tell;
use crate::load::Cost;
use crate::role::Role;
use crate::server::{Command, Counts, Plan, Served, Told};
use crate::{BenchError, CHILD_COMMAND};

/// A child process that has been told its role. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    role: &'static str,
}

impl Child {
    /// Starts `program`, which must end in a call of [`crate::serve`].
    pub(crate) fn start(mut program: Program, role: &Role) -> Result<Self, BenchError> {
        let name = match role {
            Role::Serve { .. } => "serving",
            Role::Drive { .. } => "a load",
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
        // If it has ended already, asking for an answer says why.
        let _ = tell(&mut commands, role);
        Ok(Child {
            process,
            commands: Some(commands),
            answers: BufReader::new(answers),
            role: name,
        })
    }

    /// The program `exe` as a child of the bench.
    pub(crate) fn of(exe: &Path) -> Program {
        let mut program = Program::new(exe);
        program.arg(CHILD_COMMAND);
        program
    }

    /// Waits for what it tells next.
    pub(crate) fn told(&mut self) -> Result<Told, BenchError> {
        let mut line = String::new();
        let count = self
            .answers
            .read_line(&mut line)
            .map_err(BenchError::io("a child process's answer"))?;
        if count == 0 {
            let words = self.last_words();
            return Err(self.failed(format!("ended without an answer{words}")));
        }
        match serde_json::from_str(&line) {
            Ok(Told::Failed(why)) => Err(self.failed(format!("failed: {why}"))),
            Ok(told) => Ok(told),
            Err(_) => Err(self.failed(format!("said `{}`", line.trim()))),
        }
    }

    /// What a load that this child drives has cost.
    pub(crate) fn cost(&mut self) -> Result<Cost, BenchError> {
        match self.told()? {
            Told::Load(cost) => Ok(cost),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Tells it to end and waits until it has.
    pub(crate) fn finish(mut self) {
        self.commands = None;
        let _ = self.process.wait();
    }

    fn ask(&mut self, command: &Command) -> Result<Told, BenchError> {
        if let Some(commands) = &mut self.commands {
            tell(commands, command)?;
        }
        self.told()
    }

    fn last_words(&mut self) -> String {
        self.commands = None;
        let mut words = String::new();
        if let Some(stderr) = &mut self.process.stderr {
            let _ = stderr.take(4_096).read_to_string(&mut words);
        }
        match words.trim() {
            "" => String::new(),
            words => format!(": {words}"),
        }
    }

    fn failed(&self, what: String) -> BenchError {
        BenchError::Child {
            role: self.role,
            what,
        }
    }

    fn unexpected(&self, told: &Told) -> BenchError {
        self.failed(format!("answered what was not asked: {told:?}"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Closing its input ends it; one that is stuck is killed. Whoever does not wait leaves a zombie.
        self.commands = None;
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A child process that serves.
#[derive(Debug)]
pub(crate) struct Serving {
    child: Child,
    /// Where it takes connections.
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// Starts `exe` as a server with a first plan, on a core if one is given.
    pub(crate) fn start(exe: &Path, core: Option<usize>, plan: Plan) -> Result<Self, BenchError> {
        let mut child = Child::start(Child::of(exe), &Role::Serve { core })?;
        let address = match child.told()? {
            Told::Ready(address) => address,
            other => return Err(child.unexpected(&other)),
        };
        let mut serving = Serving { child, address };
        serving.plan(plan)?;
        Ok(serving)
    }

    /// Answers by another plan from now on.
    pub(crate) fn plan(&mut self, plan: Plan) -> Result<(), BenchError> {
        match self.child.ask(&Command::Plan(plan))? {
            Told::Done => Ok(()),
            other => Err(self.child.unexpected(&other)),
        }
    }

    /// What was kept of the answers since the last call.
    pub(crate) fn log(&mut self) -> Result<Vec<Served>, BenchError> {
        match self.child.ask(&Command::Log)? {
            Told::Log(log) => Ok(log),
            other => Err(self.child.unexpected(&other)),
        }
    }

    /// How much was served.
    pub(crate) fn counts(&mut self) -> Result<Counts, BenchError> {
        match self.child.ask(&Command::Counts)? {
            Told::Counts(counts) => Ok(counts),
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

    const ROLE: Role = Role::Serve { core: None };

    #[test]
    fn a_child_that_fails_is_quoted() {
        let mut child = Child::start(shell("echo no such option >&2; exit 2"), &ROLE).expect("a shell");
        let error = child.told().expect_err("it has ended").to_string();
        assert_eq!(
            error,
            "the child process for serving ended without an answer: no such option"
        );
    }

    #[test]
    fn a_child_that_talks_nonsense_or_something_else_is_refused() {
        let mut child = Child::start(
            shell("read role; echo hello; echo '\"done\"'; cat >/dev/null"),
            &ROLE,
        )
        .expect("a shell");
        assert!(
            child
                .told()
                .expect_err("nonsense")
                .to_string()
                .ends_with("said `hello`")
        );
        let error = child.cost().expect_err("no cost").to_string();
        assert!(error.contains("answered what was not asked: Done"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Child::start(Program::new("/no/such/program"), &ROLE).expect_err("no program");
        assert!(error.to_string().starts_with("cannot start /no/such/program"));
    }

    #[test]
    fn a_stuck_child_does_not_hold_anybody_up() {
        let child = Child::start(shell("trap '' PIPE; sleep 1000"), &ROLE).expect("a shell");
        drop(child);
    }
}
