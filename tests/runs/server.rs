//! A simulated server in a separate process, and interruption of a process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::program;

/// A simulated server in a separate process.
pub(crate) struct Sim {
    child: Child,
    /// Its base URL, with `/v1`.
    pub(crate) api_base: String,
}

impl Sim {
    /// Starts `veeksha-host sim --port 0` with additional arguments and waits for its address.
    pub(crate) fn start(arguments: &[&str]) -> Sim {
        Sim::from(program(), arguments)
    }

    /// Starts the simulator like [`Sim::start`], with at most `files` open files.
    pub(crate) fn with_open_files(files: u32, arguments: &[&str]) -> Sim {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {files}; exec \"$@\""), "sh"])
            .arg(program().get_program());
        Sim::from(command, arguments)
    }

    fn from(mut command: Command, arguments: &[&str]) -> Sim {
        command
            .args(["sim", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut child = command.spawn().expect("the simulator starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a line with the address");
        let start = line
            .find("http://")
            .unwrap_or_else(|| panic!("no address in {line:?}"));
        let api_base = line[start..]
            .split_whitespace()
            .next()
            .expect("an address")
            .to_owned();
        Sim { child, api_base }
    }

    /// Interrupts the server like Ctrl-C, and waits for its end.
    pub(crate) fn stop(mut self) {
        interrupt(&self.child);
        let _ = self.child.wait();
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends SIGINT.
pub(crate) fn interrupt(child: &Child) {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill").success());
}
