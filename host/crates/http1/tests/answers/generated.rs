//! Random valid answers with their meaning.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// An answer as bytes, and its meaning by construction.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) interim: Vec<u16>,
    pub(crate) status: u16,
    /// Names as sent, values as decoded.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) end: End,
    /// Bytes after the end of the answer.
    pub(crate) extra: usize,
    pub(crate) reusable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Announced,
    Close,
}

/// A field as it is sent after the colon, and its value.
#[derive(Debug, Clone)]
struct Field {
    name: String,
    sent: Vec<u8>,
    value: Vec<u8>,
}

fn field(name: &str, value: &[u8]) -> Field {
    Field {
        name: name.to_owned(),
        sent: [b" ", value].concat(),
        value: value.to_vec(),
    }
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![8 => 0x21..=0x7eu8, 1 => 0x80..=0xffu8], 0..12)
}

fn any_field() -> impl Strategy<Value = Field> {
    let name = "[xX]-[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,8}";
    let space = || select(vec!["", " ", "\t", "  \t"]);
    let folds = vec((select(vec!["\r\n ", "\r\n\t", "\n  "]), words()), 0..2);
    (name, space(), words(), folds, space()).prop_map(|(name, before, first, folds, after)| {
        let mut sent = before.as_bytes().to_vec();
        sent.extend_from_slice(&first);
        let mut value = first;
        for (fold, line) in folds {
            // The table covers values that begin or end with a fold, or contain an empty line.
            if line.is_empty() || value.is_empty() {
                continue;
            }
            sent.extend_from_slice(fold.as_bytes());
            sent.extend_from_slice(&line);
            value.push(b' ');
            value.extend_from_slice(&line);
        }
        sent.extend_from_slice(after.as_bytes());
        Field { name, sent, value }
    })
}

/// The bytes after the head, and the fields that announce them.
#[derive(Debug, Clone)]
struct Framed {
    fields: Vec<Field>,
    sent: Vec<u8>,
    body: Vec<u8>,
    end: End,
    doubt: bool,
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(select(b"0a\r\n;".to_vec()), 0..40),
        vec(any::<u8>(), 200..3000)
    ]
}

fn by_length() -> impl Strategy<Value = Framed> {
    (body(), select(vec!["once", "twice", "list"]), 0..4usize).prop_map(|(body, how, zeros)| {
        let length = format!("{}{}", "0".repeat(zeros), body.len());
        let name = "Content-Length";
        let fields = match how {
            "once" => vec![field(name, length.as_bytes())],
            "twice" => vec![
                field(name, length.as_bytes()),
                field("content-length", length.as_bytes()),
            ],
            _ => vec![field(name, format!("{length} ,{length}").as_bytes())],
        };
        Framed {
            fields,
            sent: body.clone(),
            body,
            end: End::Announced,
            doubt: false,
        }
    })
}

fn extension() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(String::new()),
        1 => "[ \t]{0,2};[a-z]{1,5}(=[a-z0-9]{1,5})?",
        1 => ";[a-z]{1,3}=\"[ -~]{0,9}\"",
        1 => "[ \t]{1,3}",
    ]
}

fn in_chunks() -> impl Strategy<Value = Framed> {
    let chunk = (body(), extension(), 0..3usize, any::<bool>());
    let trailer = ("[a-zA-Z-]{1,9}", "[ \t]?[!-~]{0,12}[ \t]?");
    (
        vec(chunk, 0..6),
        vec(trailer, 0..3),
        extension(),
        1..4usize,
        any::<bool>(),
    )
        .prop_map(|(chunks, trailers, last, zeros, length_too)| {
            let mut sent = Vec::new();
            let mut whole = Vec::new();
            for (body, extension, zeros, upper) in chunks.into_iter().filter(|chunk| !chunk.0.is_empty()) {
                let size = format!("{}{:x}", "0".repeat(zeros), body.len());
                let size = if upper { size.to_uppercase() } else { size };
                sent.extend_from_slice(format!("{size}{extension}\r\n").as_bytes());
                sent.extend_from_slice(&body);
                sent.extend_from_slice(b"\r\n");
                whole.extend_from_slice(&body);
            }
            sent.extend_from_slice(format!("{}{last}\r\n", "0".repeat(zeros)).as_bytes());
            for (name, value) in trailers {
                sent.extend_from_slice(format!("{name}:{value}\r\n").as_bytes());
            }
            sent.extend_from_slice(b"\r\n");
            let mut fields = vec![field("Transfer-Encoding", b"Chunked")];
            let doubt = length_too && zeros == 3;
            if doubt {
                fields.push(field("Content-Length", b"7"));
            }
            Framed {
                fields,
                sent,
                body: whole,
                end: End::Announced,
                doubt,
            }
        })
}

fn until_close() -> impl Strategy<Value = Framed> {
    body().prop_map(|body| Framed {
        fields: vec![],
        sent: body.clone(),
        body,
        end: End::Close,
        doubt: true,
    })
}

fn connection() -> impl Strategy<Value = Vec<&'static str>> {
    vec(
        select(vec![
            "close",
            "Keep-Alive",
            "Upgrade",
            "keep-alive, Upgrade",
            "x, CLOSE",
        ]),
        0..3,
    )
}

pub(crate) fn answer() -> impl Strategy<Value = Answer> {
    let interim = vec(
        (select(vec![100u16, 102, 103, 199]), vec(any_field(), 0..2)),
        0..3,
    );
    let start = (
        select(vec!["", "\r\n", "\n\r\n"]),
        select(vec!["1.1", "1.1", "1.1", "1.0"]),
        select(vec![200u16, 200, 201, 204, 304, 400, 503, 799]),
        select(vec![" OK", "", " ", " two words", " \u{e9}"]),
        select(vec!["\r\n", "\r\n", "\n"]),
    );
    let framed = prop_oneof![2 => by_length(), 5 => in_chunks(), 1 => until_close()];
    let extra = prop_oneof![4 => Just(Vec::new()), 1 => vec(any::<u8>(), 1..9)];
    (
        interim,
        start,
        vec(any_field(), 0..5),
        any::<Index>(),
        connection(),
        framed,
        extra,
    )
        .prop_map(
            |(
                interim,
                (empty, version, status, reason, line_end),
                other,
                place,
                connection,
                mut framed,
                extra,
            )| {
                if version == "1.0"
                    && framed.fields[..]
                        .iter()
                        .any(|field| field.name == "Transfer-Encoding")
                {
                    framed.fields = vec![field("Content-Length", framed.sent.len().to_string().as_bytes())];
                    framed.body.clone_from(&framed.sent);
                    framed.doubt = false;
                }
                if matches!(status, 204 | 304) {
                    framed = Framed {
                        fields: vec![],
                        sent: vec![],
                        body: vec![],
                        end: End::Announced,
                        doubt: false,
                    };
                }
                let mut fields = other;
                fields.extend(
                    connection
                        .iter()
                        .map(|value| field("Connection", value.as_bytes())),
                );
                let place = place.index(fields.len() + 1);
                fields.splice(place..place, framed.fields);

                let mut bytes = empty.as_bytes().to_vec();
                for (status, fields) in &interim {
                    push_head(&mut bytes, &format!("HTTP/1.1 {status} Wait"), fields, "\r\n");
                }
                push_head(
                    &mut bytes,
                    &format!("HTTP/{version} {status}{reason}"),
                    &fields,
                    line_end,
                );
                bytes.extend_from_slice(&framed.sent);

                let contains =
                    |word: &str| connection.iter().any(|value| value.to_lowercase().contains(word));
                let keeps = !contains("close") && (version == "1.1" || contains("keep-alive"));
                let mut body = framed.body;
                let mut extra_size = 0;
                match framed.end {
                    End::Close => body.extend_from_slice(&extra),
                    End::Announced => extra_size = extra.len(),
                }
                bytes.extend_from_slice(&extra);
                Answer {
                    bytes,
                    interim: interim.into_iter().map(|(status, _)| status).collect(),
                    status,
                    fields: fields
                        .into_iter()
                        .map(|field| (field.name, field.value))
                        .collect(),
                    body,
                    end: framed.end,
                    extra: extra_size,
                    reusable: keeps && !framed.doubt && extra_size == 0 && framed.end == End::Announced,
                }
            },
        )
}

fn push_head(bytes: &mut Vec<u8>, start: &str, fields: &[Field], line_end: &str) {
    bytes.extend_from_slice(start.as_bytes());
    bytes.extend_from_slice(line_end.as_bytes());
    for field in fields {
        bytes.extend_from_slice(field.name.as_bytes());
        bytes.push(b':');
        bytes.extend_from_slice(&field.sent);
        bytes.extend_from_slice(line_end.as_bytes());
    }
    bytes.extend_from_slice(line_end.as_bytes());
}

/// Positions at which to cut an answer: none, a few, or nearly everywhere.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<Index>> {
    prop_oneof![
        vec(any::<Index>(), 0..1),
        vec(any::<Index>(), 1..8),
        vec(any::<Index>(), 100..300)
    ]
}

/// Changes to bytes, as a transmission error or a faulty server would make them.
#[derive(Debug, Clone)]
pub(crate) enum Mutation {
    Replace(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    CutOff(Index),
}

pub(crate) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let byte = prop_oneof![any::<u8>(), select(b"\r\n\0 \t:;,0159afAFgx\"".to_vec())];
    // Lines that change the meaning of a head instead of making it invalid.
    let line = select(vec![
        "\r\n",
        "\n",
        "\r\n\r\n",
        "0\r\n\r\n",
        "\r\nTransfer-Encoding: chunked",
        "\r\nTransfer-Encoding: gzip",
        "\r\nTransfer-Encoding: identity",
        "\r\nTransfer-Encoding:",
        "\r\nContent-Length: 3",
        "\r\nContent-Length: 99999999999999999999",
        "\r\nContent-Length: 18446744073709551615",
        "\r\nConnection: close",
        "HTTP/1.1 100 \r\n\r\n",
        "HTTP/1.1 101 \r\n\r\n",
        "fffffffffffffffff",
    ])
    .prop_map(|line| line.as_bytes().to_vec());
    let at = any::<Index>;
    vec(
        prop_oneof![
            3 => (at(), byte.clone()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
            3 => (at(), prop_oneof![vec(byte, 1..4), line]).prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
            2 => (at(), 1..5usize).prop_map(|(at, size)| Mutation::Remove(at, size)),
            1 => (at(), 1..40usize).prop_map(|(at, size)| Mutation::Repeat(at, size)),
            1 => at().prop_map(Mutation::CutOff),
        ],
        1..4,
    )
}

/// Returns the bytes after the changes. `reach`: number of bytes from the beginning that may be
/// changed.
pub(crate) fn mutate(bytes: &[u8], mutations: &[Mutation], reach: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for mutation in mutations {
        let size = bytes.len().min(reach);
        if size == 0 {
            return bytes;
        }
        match mutation {
            Mutation::Replace(at, byte) => bytes[at.index(size)] = *byte,
            Mutation::Insert(at, new) => {
                let at = at.index(size);
                bytes.splice(at..at, new.iter().copied());
            }
            Mutation::Remove(at, count) => {
                let at = at.index(size);
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Mutation::Repeat(at, count) => {
                let at = at.index(size);
                let again = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, again);
            }
            Mutation::CutOff(at) => bytes.truncate(at.index(size)),
        }
    }
    bytes
}
