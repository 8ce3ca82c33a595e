//! Runs a decoder over pieces of an answer, as a connection would, and checks its contract on the
//! way.

use veeksha_http1::{Closed, DecodeError, DecodedPart, Decoder, DecoderLimits, Head};

/// The complete result of decoding some bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) interim: Vec<u16>,
    pub(crate) head: Option<Head>,
    pub(crate) body: Vec<u8>,
    /// The sizes of the parts of the body. They depend on the cuts; the body does not.
    pub(crate) parts: Vec<usize>,
    pub(crate) outcome: Outcome,
    /// Bytes after the end of the answer.
    pub(crate) unread: usize,
    pub(crate) reusable: bool,
}

/// Final state of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Ended,
    EndedByClose,
    /// Nothing arrived.
    Nothing,
    Refused(DecodeError),
}

impl Seen {
    /// Returns the part that must not depend on the cuts. Errors quote the current piece, so only
    /// their kind is compared.
    pub(crate) fn essence(&self) -> impl PartialEq + std::fmt::Debug + use<> {
        let kind = match &self.outcome {
            Outcome::Refused(error) => format!("{error:?}")
                .split([' ', '{'])
                .next()
                .unwrap_or_default()
                .to_owned(),
            other => format!("{other:?}"),
        };
        (
            self.interim.clone(),
            self.head.clone(),
            self.body.clone(),
            kind,
            self.unread,
            self.reusable,
        )
    }
}

/// Feeds the pieces, then closes the connection unless the answer has ended.
pub(crate) fn decode<'a>(limits: DecoderLimits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut decoder = Decoder::new(limits);
    decode_with(&mut decoder, pieces)
}

/// Decodes like [`decode`], on a decoder that may have been used before.
pub(crate) fn decode_with<'a>(decoder: &mut Decoder, pieces: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut seen = Seen {
        interim: Vec::new(),
        head: None,
        body: Vec::new(),
        parts: Vec::new(),
        outcome: Outcome::Nothing,
        unread: 0,
        reusable: false,
    };
    for piece in pieces {
        if let Err(error) = feed(decoder, piece, &mut seen) {
            assert_eq!(decoder.next(&mut &b"x"[..]), Err(DecodeError::Refused));
            assert_eq!(decoder.closed(), Err(DecodeError::Refused));
            assert!(!decoder.can_be_reused() && !decoder.is_ended());
            seen.outcome = Outcome::Refused(error);
            return seen;
        }
    }
    seen.reusable = decoder.can_be_reused();
    if seen.outcome == Outcome::Ended {
        assert!(decoder.is_ended());
        assert_eq!(decoder.closed(), Ok(Closed::Clean));
        assert!(!decoder.can_be_reused(), "a closed connection carries nothing");
        return seen;
    }
    assert!(!decoder.is_ended() && !seen.reusable);
    let begun = decoder.has_begun();
    seen.outcome = match decoder.closed() {
        Ok(Closed::Clean) => {
            assert!(!begun);
            Outcome::Nothing
        }
        Ok(Closed::EndOfBody) => {
            assert!(begun && decoder.is_ended() && !decoder.can_be_reused());
            Outcome::EndedByClose
        }
        Err(error) => {
            assert!(begun);
            Outcome::Refused(error)
        }
    };
    seen
}

fn feed(decoder: &mut Decoder, piece: &[u8], seen: &mut Seen) -> Result<(), DecodeError> {
    let mut rest = piece;
    // Every part but the end consumes at least one byte, so this number of calls suffices.
    for _ in 0..piece.len() + 2 {
        let before = rest.len();
        let part = decoder.next(&mut rest)?;
        let taken = before - rest.len();
        match part {
            None if decoder.is_ended() => {
                assert_eq!(taken, 0, "bytes after the end are not touched");
                seen.unread += rest.len();
                return Ok(());
            }
            None => {
                assert!(rest.is_empty(), "what is not understood yet is taken in");
                return Ok(());
            }
            Some(DecodedPart::Interim(status)) => {
                assert!(taken > 0 && seen.head.is_none());
                seen.interim.push(status);
            }
            Some(DecodedPart::Head(head)) => {
                assert!(taken > 0 && seen.head.is_none());
                seen.head = Some(head);
            }
            Some(DecodedPart::Body(bytes)) => {
                assert!(!bytes.is_empty() && taken >= bytes.len() && seen.head.is_some());
                assert!(
                    piece.as_ptr_range().contains(&bytes.as_ptr()),
                    "the body is not copied"
                );
                seen.body.extend_from_slice(bytes);
                seen.parts.push(bytes.len());
            }
            Some(DecodedPart::End) => {
                assert!(seen.head.is_some() && seen.outcome == Outcome::Nothing);
                assert!(decoder.is_ended());
                seen.outcome = Outcome::Ended;
            }
        }
    }
    panic!("the decoder makes no progress");
}

/// Cuts bytes at these positions, which may be in any order and beyond the end.
pub(crate) fn cut<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = at.iter().copied().filter(|at| *at < bytes.len()).collect();
    at.sort_unstable();
    at.dedup();
    let mut pieces = Vec::new();
    let mut begin = 0;
    for end in at.into_iter().chain([bytes.len()]) {
        if end > begin {
            pieces.push(&bytes[begin..end]);
        }
        begin = end;
    }
    pieces
}
