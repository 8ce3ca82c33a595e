//! Names and codes of what has few values, both ways.

use veeksha_events::{NeverSentReason, PluginRole, SessionEnd, ToolDropReason};
use veeksha_model::{Better, ChunkKind, ErrorClass, HistoryMode, StampSource};

/// Chunk kinds by their code. A code never changes its meaning; a new kind is appended.
const CHUNK_KINDS: [ChunkKind; 8] = [
    ChunkKind::Role,
    ChunkKind::Reasoning,
    ChunkKind::Content,
    ChunkKind::Tool,
    ChunkKind::Finish,
    ChunkKind::Usage,
    ChunkKind::Done,
    ChunkKind::Comment,
];

/// The code of a chunk kind.
pub(crate) fn chunk_code(kind: ChunkKind) -> i32 {
    match kind {
        ChunkKind::Role => 0,
        ChunkKind::Reasoning => 1,
        ChunkKind::Content => 2,
        ChunkKind::Tool => 3,
        ChunkKind::Finish => 4,
        ChunkKind::Usage => 5,
        ChunkKind::Done => 6,
        ChunkKind::Comment => 7,
    }
}

/// The chunk kind of a code.
pub(crate) fn chunk_kind(code: i32) -> Option<ChunkKind> {
    CHUNK_KINDS.get(usize::try_from(code).ok()?).copied()
}

/// All codes with their names, for the file's metadata: `0=role,1=reasoning,...`.
pub(crate) fn chunk_legend() -> String {
    let codes = CHUNK_KINDS.map(|kind| format!("{}={}", chunk_code(kind), kind.name()));
    codes.join(",")
}

/// Finds a value by the name used in files.
macro_rules! by_name {
    ($(#[$about:meta])* $find:ident -> $type:ident: $($value:ident),*) => {
        $(#[$about])*
        pub(crate) fn $find(name: &str) -> Option<$type> {
            // A value that the list lacks does not compile.
            let _: fn($type) = |value| match value {
                $($type::$value => {})*
            };
            [$($type::$value),*].into_iter().find(|value| value.name() == name)
        }
    };
}

by_name! {
    /// Role of a failed plugin.
    plugin_part -> PluginRole: Metric, RequestCheck, SloCheck, Workload
}

by_name! {
    /// Class of a request's failure.
    error_class -> ErrorClass: Connect, Tls, Timeout, Status, Protocol, InStream, Truncated, Cancelled, Codec
}
by_name! {
    /// The history that a request sent.
    history_mode -> HistoryMode: Live, Recorded, Fresh
}
by_name! {
    /// Source of arrival times.
    stamp_source -> StampSource: Read, Kernel
}
by_name! {
    /// Reason for which a request was never sent.
    never_sent_reason -> NeverSentReason: SessionCancelled, RunEnded, PluginFailed, Held, Missed, CancelledByClient
}
by_name! {
    /// Outcome of a session.
    session_end -> SessionEnd: Completed, Errored, Cancelled, Incomplete
}
by_name! {
    /// Direction in which a metric improves.
    better -> Better: Higher, Less, Neither
}

/// Reason for which a tool run did not end.
pub(crate) fn tool_drop_reason(name: &str) -> Option<ToolDropReason> {
    let in_service = ToolDropReason::InService;
    if name == in_service.name() {
        return Some(in_service);
    }
    never_sent_reason(name).map(ToolDropReason::NotServed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legend_explains_chunk_codes() {
        assert_eq!(
            chunk_legend(),
            "0=role,1=reasoning,2=content,3=tool,4=finish,5=usage,6=done,7=comment"
        );
        for kind in CHUNK_KINDS {
            assert_eq!(chunk_kind(chunk_code(kind)), Some(kind));
        }
        assert_eq!((chunk_kind(8), chunk_kind(-1)), (None, None));
    }

    #[test]
    fn unknown_name_is_none() {
        assert_eq!(error_class("in_stream"), Some(ErrorClass::InStream));
        assert_eq!(error_class("InStream"), None);
        assert_eq!(session_end(""), None);
    }
}
