//! The delivery of an answer.

/// Delivery of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    Whole,
    Stream,
    StreamWithUsage,
}
