//! The settings of decode windows: Veeksha's `decode_window_config`.

/// The number of requests that must decode concurrently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeConcurrency {
    /// At least this number.
    AtLeast(u32),
    /// The peak number in the run.
    MaxObserved,
}

/// The selection of windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecodeWindowSelection {
    /// The longest; the first one among equally long ones.
    #[default]
    Longest,
    /// The first.
    First,
    /// All of them.
    All,
}

impl DecodeWindowSelection {
    /// Returns the name used in configuration and files.
    pub fn name(self) -> &'static str {
        match self {
            DecodeWindowSelection::Longest => "longest",
            DecodeWindowSelection::First => "first",
            DecodeWindowSelection::All => "all",
        }
    }
}

/// The host instant that a request must have besides its chunks. All arrivals are on the run's
/// clock, so the anchor does not shift them, whereas Veeksha adds durations to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowAnchor {
    /// `client_picked_up_at`.
    #[default]
    ClientPickup,
    /// `scheduler_dispatched_at`, which every request has.
    Dispatch,
}

/// The treatment of answers that arrived in one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WholeAnswers {
    /// They are reported separately, as `non_stream`.
    #[default]
    SkipAsNonStream,
    /// They are treated as requests without decode chunks.
    Take,
}

/// Veeksha's `decode_window_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeWindowRules {
    /// `min_active_requests`: a number, or `max_observed`.
    pub min_active_requests: DecodeConcurrency,
    /// `selection_strategy`.
    pub selection: DecodeWindowSelection,
    /// `anchor_to_client_pickup`.
    pub anchor: WindowAnchor,
    /// `require_streaming`.
    pub whole_answers: WholeAnswers,
}

/// Veeksha's defaults.
impl Default for DecodeWindowRules {
    fn default() -> Self {
        DecodeWindowRules {
            min_active_requests: DecodeConcurrency::AtLeast(1),
            selection: DecodeWindowSelection::default(),
            anchor: WindowAnchor::default(),
            whole_answers: WholeAnswers::default(),
        }
    }
}
