//! Bytes that no server should send: the decoder rejects or decodes them, always terminates, and
//! holds no more than its limits allow.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use veeksha_http1::{Decoder, DecoderLimits};

use crate::decoding::{cut, decode, decode_with};
use crate::generated::{answer, cuts, mutate, mutations};

const SMALL: DecoderLimits = DecoderLimits {
    head_bytes: 200,
    headers: 3,
    chunk_line_bytes: 9,
    trailer_bytes: 20,
};

fn at(cuts: &[Index], bytes: &[u8]) -> Vec<usize> {
    cuts.iter().map(|cut| cut.index(bytes.len().max(1))).collect()
}

/// Returns random sequences of the elements of the grammar, in any order.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let morsel = prop_oneof![
        4 => select(vec!["\r\n", "\n", "\r", ":", ": ", " ", "\t", ";", ",", "0", "1", "a", "F", "0\r\n", "\r\n\r\n", "3\r\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
        2 => select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.0 200\r\n", "HTTP/1.1 100 \r\n", "HTTP/1.1 204 X\r\n",
            "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n", "Connection: close\r\n", "a: b\r\n",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..20),
    ];
    let start = select(vec![
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ]);
    (start, vec(morsel, 0..40))
        .prop_map(|(start, morsels)| [start.as_bytes().to_vec(), morsels.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    // `decode` itself checks progress, and the permitted calls to a decoder after an error.
    #[test]
    fn mutated_answers_come_to_an_end_wherever_they_are_cut(
        answer in answer(),
        mutations in mutations(),
        cuts in cuts(),
        small in any::<bool>(),
    ) {
        let limits = if small { SMALL } else { DecoderLimits::default() };
        let bytes = mutate(&answer.bytes, &mutations, usize::MAX);
        let whole = decode(limits, [bytes.as_slice()]);
        prop_assert_eq!(decode(limits, cut(&bytes, &at(&cuts, &bytes))).essence(), whole.essence());
        prop_assert_eq!(decode(limits, bytes.chunks(1)).essence(), whole.essence());
    }

    #[test]
    fn soup_comes_to_an_end_wherever_it_is_cut(bytes in soup(), cuts in cuts(), small in any::<bool>()) {
        let limits = if small { SMALL } else { DecoderLimits::default() };
        let whole = decode(limits, [bytes.as_slice()]);
        prop_assert_eq!(decode(limits, cut(&bytes, &at(&cuts, &bytes))).essence(), whole.essence());
        prop_assert_eq!(decode(limits, bytes.chunks(1)).essence(), whole.essence());
    }

    /// Nothing of one answer remains in the next, whatever the result of the first.
    #[test]
    fn a_restart_forgets(first in soup(), second in soup()) {
        let mut decoder = Decoder::new(SMALL);
        decode_with(&mut decoder, [first.as_slice()]);
        decoder.restart();
        prop_assert_eq!(decode_with(&mut decoder, second.chunks(3)), decode(SMALL, second.chunks(3)));
    }
}
