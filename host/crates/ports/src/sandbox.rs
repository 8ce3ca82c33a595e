//! Accesses to the machine that plugins do not have, and the advice to their authors. Components
//! and Lua report them with the same words.

/// An access that the sandbox refuses, or answers with a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SandboxedAccess {
    /// The file system.
    Files,
    /// Environment variables.
    Environment,
    /// A socket or the name of a host.
    Network,
    /// The time of day or a monotonic clock.
    Clock,
    /// Another process.
    Processes,
}

impl SandboxedAccess {
    /// All accesses.
    pub const ALL: [SandboxedAccess; 5] = [
        SandboxedAccess::Files,
        SandboxedAccess::Environment,
        SandboxedAccess::Network,
        SandboxedAccess::Clock,
        SandboxedAccess::Processes,
    ];

    /// Returns the reason why plugins do not have it.
    fn reason(self) -> &'static str {
        match self {
            SandboxedAccess::Files => "plugins have no file system",
            SandboxedAccess::Environment => "plugins have no environment",
            SandboxedAccess::Network => "plugins have no network, and no grant allows it",
            SandboxedAccess::Clock => "plugins have no clock, because sessions must not depend on it",
            SandboxedAccess::Processes => "plugins have no processes, and no grant allows them",
        }
    }

    /// Returns the remark for the author of a component: the access, the reason, the alternative.
    pub fn message(self) -> String {
        let (asked, alternative) = match self {
            SandboxedAccess::Files => (
                "a file",
                "read files through `blobs` of the contract, and grant them with `files` or `blob:read PATH`",
            ),
            SandboxedAccess::Environment => (
                "environment variables",
                "pass values in `config`, or grant single variables with `env:NAME`",
            ),
            SandboxedAccess::Network => ("the network", REQUESTS),
            SandboxedAccess::Clock => ("the time", TIMES),
            SandboxedAccess::Processes => ("a process", TOOLS),
        };
        format!("the plugin asked for {asked}; {}; {alternative}", self.reason())
    }

    /// Returns the error for a script that uses a function of Lua, such as `os.clock`.
    pub fn lua_message(self, function: &str) -> String {
        let alternative = match self {
            SandboxedAccess::Files => "`require` reads Lua files below the scenario's folder",
            SandboxedAccess::Environment => "write values into the scenario, and override them with --set",
            SandboxedAccess::Network => REQUESTS,
            SandboxedAccess::Clock => TIMES,
            SandboxedAccess::Processes => TOOLS,
        };
        format!("{function} is not available; {}; {alternative}", self.reason())
    }
}

const REQUESTS: &str = "requests are nodes of a session, which the host sends";
const TIMES: &str = "use the times that the host passes, and delays of edges";
const TOOLS: &str = "the work of tools is a tool run of a session";
