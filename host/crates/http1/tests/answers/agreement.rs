//! Checks that the decoder, the generator of the answer, and hyper agree on its meaning at any
//! cuts.

use proptest::prelude::*;
use proptest::sample::Index;
use veeksha_http1::{BodyFraming, DecodeError, DecoderLimits};

use crate::decoding::{Outcome, Seen, cut, decode};
use crate::generated::{Answer, End, answer, cuts, mutate, mutations};
use crate::hyper_client::{Afterwards, Opinion, ask};

fn places(cuts: &[Index], bytes: &[u8]) -> Vec<usize> {
    cuts.iter().map(|cut| cut.index(bytes.len().max(1))).collect()
}

/// Checks that the answer was decoded as its generator intended.
fn check_meaning(answer: &Answer, seen: &Seen) -> Result<(), TestCaseError> {
    let head = seen.head.as_ref().unwrap();
    prop_assert_eq!(&seen.interim, &answer.interim);
    prop_assert_eq!(head.status, answer.status);
    let fields: Vec<_> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_vec()))
        .collect();
    prop_assert_eq!(&fields, &answer.fields);
    prop_assert_eq!(&seen.body, &answer.body);
    let outcome = match answer.end {
        End::Announced => Outcome::Ended,
        End::Close => Outcome::EndedByClose,
    };
    prop_assert_eq!(&seen.outcome, &outcome);
    prop_assert_eq!(seen.unread, answer.extra);
    prop_assert_eq!(seen.reusable, answer.reusable);
    Ok(())
}

/// Returns the reason why the two may differ on this answer: one of the deliberate differences that
/// the crate's documentation lists.
fn deliberate(bytes: &[u8], seen: &Seen) -> Option<&'static str> {
    if let Outcome::Refused(error) = &seen.outcome {
        match error {
            DecodeError::SwitchingProtocols => return Some("101 is refused"),
            DecodeError::TransferEncoding { .. } => return Some("transfer codings are refused"),
            DecodeError::Trailers { .. } if ends_early(bytes) => return Some("trailers end once"),
            DecodeError::ContentLength { .. } | DecodeError::ContentLengths { .. }
                if bytes
                    .to_ascii_lowercase()
                    .windows(19)
                    .any(|name| name == b"\ntransfer-encoding:") =>
            {
                return Some("an empty transfer coding is ignored, so that the length counts");
            }
            _ => {}
        }
    }
    let head = seen.head.as_ref()?;
    let coding = head
        .headers
        .get_all("transfer-encoding")
        .last()
        .map(<[u8]>::trim_ascii_end);
    if head.framing == BodyFraming::Chunked
        && coding.is_some_and(|coding| coding.is_empty() || coding.ends_with(b","))
    {
        return Some("an empty element of a list is none");
    }
    if head.headers.get("transfer-encoding").is_some()
        && head.framing != BodyFraming::Chunked
        && head.framing != BodyFraming::None
    {
        return Some("an empty transfer coding is ignored");
    }
    if let BodyFraming::Length(u64::MAX | 0xffff_ffff_ffff_fffe) = head.framing {
        return Some("the largest lengths are lengths");
    }
    None
}

/// Returns true if there is an empty line with a lone LF at one end.
fn ends_early(bytes: &[u8]) -> bool {
    bytes
        .windows(3)
        .any(|three| three[1..] == *b"\n\n" || (three[0] != b'\r' && three[1..] == *b"\n\r"))
}

/// Checks that hyper returns the same result.
fn check_agreement(seen: &Seen, hyper: &Opinion) -> Result<(), TestCaseError> {
    prop_assert_eq!(&seen.interim, &hyper.interim);
    prop_assert_eq!(seen.head.as_ref().map(|head| head.status), hyper.status);
    if let Some(head) = &seen.head {
        let mut headers: Vec<_> = head
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()))
            .collect();
        headers.sort_by(|one, other| one.0.cmp(&other.0));
        prop_assert_eq!(&headers, &hyper.headers);
    }
    prop_assert_eq!(&seen.body, &hyper.body);
    let ended = matches!(seen.outcome, Outcome::Ended | Outcome::EndedByClose);
    prop_assert_eq!(
        ended,
        hyper.error.is_none(),
        "{:?} but {:?}",
        seen.outcome,
        hyper.error
    );
    Ok(())
}

/// Returns an end of the connection that leaves hyper's view of it visible: nothing follows a
/// complete answer.
fn afterwards(seen: &Seen) -> Afterwards {
    if seen.outcome == Outcome::Ended {
        Afterwards::StayOpen
    } else {
        Afterwards::Close
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decodes_generated_answers_as_intended(answer in answer(), cuts in cuts()) {
        let pieces = cut(&answer.bytes, &places(&cuts, &answer.bytes));
        let whole = decode(DecoderLimits::default(), [answer.bytes.as_slice()]);
        check_meaning(&answer, &whole)?;
        let seen = decode(DecoderLimits::default(), pieces.iter().copied());
        check_meaning(&answer, &seen)?;
        let bytewise = decode(DecoderLimits::default(), answer.bytes.chunks(1));
        check_meaning(&answer, &bytewise)?;

        let hyper = ask(&pieces, afterwards(&seen));
        check_agreement(&seen, &hyper)?;
        let two_framings = seen.head.as_ref().is_some_and(|head| {
            head.framing == BodyFraming::Chunked && head.headers.get("content-length").is_some()
        });
        if !two_framings {
            prop_assert_eq!(seen.reusable, hyper.reusable);
        }
    }

    #[test]
    fn accepts_and_refuses_like_hyper(
        answer in answer(),
        mutations in mutations(),
        reach in prop_oneof![Just(120usize), Just(usize::MAX)],
        cuts in cuts(),
    ) {
        let bytes = mutate(&answer.bytes, &mutations, reach);
        let pieces = cut(&bytes, &places(&cuts, &bytes));
        let seen = decode(DecoderLimits::default(), pieces.iter().copied());
        let whole = decode(DecoderLimits::default(), [bytes.as_slice()]);
        prop_assert_eq!(seen.essence(), whole.essence());
        if deliberate(&bytes, &seen).is_none() {
            check_agreement(&seen, &ask(&pieces, afterwards(&seen)))
                .map_err(|error| TestCaseError::fail(format!("{error}, on {}", bytes.escape_ascii())))?;
        }
    }
}

/// Each listed difference exists: if hyper changes its behaviour, the line in the documentation is
/// wrong.
#[test]
fn deliberate_differences() {
    let both = |bytes: &str| {
        let seen = decode(DecoderLimits::default(), [bytes.as_bytes()]);
        let hyper = ask(&[bytes.as_bytes()], Afterwards::Close);
        (seen, hyper)
    };
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");

    let (seen, hyper) = both("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    assert_eq!(seen.outcome, Outcome::Refused(DecodeError::SwitchingProtocols));
    assert_eq!(hyper.status, Some(101));

    let (seen, hyper) = both(&(head("Transfer-Encoding: gzip, chunked") + "1\r\na\r\n0\r\n\r\n"));
    assert!(matches!(
        seen.outcome,
        Outcome::Refused(DecodeError::TransferEncoding { .. })
    ));
    assert_eq!((hyper.error, hyper.body.as_slice()), (None, &b"a"[..]));

    let (seen, hyper) = both(&(head("Transfer-Encoding: gzip") + "a"));
    assert!(matches!(
        seen.outcome,
        Outcome::Refused(DecodeError::TransferEncoding { .. })
    ));
    assert_eq!((hyper.error, hyper.body.as_slice()), (None, &b"a"[..]));

    for empty in ["chunked,", "chunked\r\nTransfer-Encoding:"] {
        let (seen, hyper) = both(&(head(&format!("Transfer-Encoding: {empty}")) + "1\r\na\r\n0\r\n\r\n"));
        assert_eq!((seen.outcome, seen.body.as_slice()), (Outcome::Ended, &b"a"[..]));
        assert_eq!(
            (hyper.error, hyper.body.as_slice()),
            (None, &b"1\r\na\r\n0\r\n\r\n"[..])
        );
    }

    for nothing in ["identity", ""] {
        let (seen, hyper) =
            both(&(head(&format!("Transfer-Encoding: {nothing}\r\nContent-Length: 1")) + "ab"));
        assert_eq!((seen.outcome, seen.body.as_slice()), (Outcome::Ended, &b"a"[..]));
        assert_eq!((hyper.error, hyper.body.as_slice()), (None, &b"ab"[..]));
    }

    let (seen, hyper) = both(&(head("Transfer-Encoding: chunked") + "1\r\na\r\n0\r\nb: c\n\r\nd\r\n\r\n"));
    assert!(matches!(
        seen.outcome,
        Outcome::Refused(DecodeError::Trailers { .. })
    ));
    assert_eq!((hyper.error, hyper.body.as_slice()), (None, &b"a"[..]));

    for length in ["18446744073709551615", "18446744073709551614"] {
        let (seen, hyper) = both(&(head(&format!("Content-Length: {length}")) + "ab"));
        assert_eq!((seen.head.is_some(), seen.body.as_slice()), (true, &b"ab"[..]));
        assert_eq!((hyper.status, hyper.error.is_some()), (None, true));
    }

    // Five times 4,000 bytes of extensions are accepted, one of 5,000 is not.
    let chunk = |size: usize| format!("1;{}\r\na\r\n", "x".repeat(size));
    let chunked = head("Transfer-Encoding: chunked");
    let (seen, hyper) = both(&format!("{chunked}{}0\r\n\r\n", chunk(4000).repeat(5)));
    assert_eq!((seen.outcome, hyper.error.is_some()), (Outcome::Ended, true));
    let (seen, hyper) = both(&format!("{chunked}{}0\r\n\r\n", chunk(5000)));
    assert_eq!(
        seen.outcome,
        Outcome::Refused(DecodeError::ChunkLineTooLong { limit: 4096 })
    );
    assert_eq!(hyper.error, None);

    let (seen, hyper) = both(&head(&format!("x: {}\r\nContent-Length: 0", "y".repeat(1 << 16))));
    assert_eq!(
        seen.outcome,
        Outcome::Refused(DecodeError::HeadTooLarge { limit: 1 << 16 })
    );
    assert_eq!((hyper.error, hyper.status), (None, Some(200)));
}
