//! The kinds of time of which critical paths consist.

use crate::table::Metric;

/// A kind of time on a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathPart {
    /// From the scheduled instant of a request until its last byte was sent, including the time for
    /// which limits held it back.
    ClientQueueing,
    /// Until its first generated chunk.
    Prefill,
    /// Until its end.
    Decode,
    /// From the call of a tool to the instant at which a server took it.
    ToolWaiting,
    /// From then to the end of the tool run, cold starts included.
    ToolService,
    /// From an event to the scheduled instant of the node that waited for it: think times,
    /// delays of edges, and waits for the instants of a recording.
    Think,
}

impl PathPart {
    /// All parts, in the order of files and tables.
    pub const ALL: [PathPart; 6] = [
        PathPart::ClientQueueing,
        PathPart::Prefill,
        PathPart::Decode,
        PathPart::ToolWaiting,
        PathPart::ToolService,
        PathPart::Think,
    ];

    /// Returns the name in files and options.
    pub fn name(self) -> &'static str {
        match self {
            PathPart::ClientQueueing => "client_queueing",
            PathPart::Prefill => "prefill",
            PathPart::Decode => "decode",
            PathPart::ToolWaiting => "tool_waiting",
            PathPart::ToolService => "tool_service",
            PathPart::Think => "think",
        }
    }

    /// Returns the metric with the sum of this part on the critical path of each session.
    pub fn metric(self) -> Metric {
        match self {
            PathPart::ClientQueueing => Metric::PathClientQueueing,
            PathPart::Prefill => Metric::PathPrefill,
            PathPart::Decode => Metric::PathDecode,
            PathPart::ToolWaiting => Metric::PathToolWaiting,
            PathPart::ToolService => Metric::PathToolService,
            PathPart::Think => Metric::PathThink,
        }
    }
}

/// A value for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathParts<T>([T; PathPart::ALL.len()]);

impl<T: Copy> PathParts<T> {
    /// Returns the same value for all parts.
    pub fn all(value: T) -> Self {
        PathParts([value; PathPart::ALL.len()])
    }

    /// Returns the value of a part.
    pub fn of(&self, part: PathPart) -> T {
        self.0[part as usize]
    }

    /// Returns the value of a part for changes.
    pub fn of_mut(&mut self, part: PathPart) -> &mut T {
        &mut self.0[part as usize]
    }
}
