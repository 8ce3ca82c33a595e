//! Checks a JSON value and says where it ends.

/// How deep values may be nested: the limit of `serde_json`, with which flavors read rows.
const DEPTH: u32 = 127;

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end within it.
    Early,
    /// A syntax error.
    At {
        /// Where.
        at: usize,
        /// What was met or missed.
        why: &'static str,
    },
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A string; its bounds include the quotes.
    Text {
        /// Whether it holds a backslash.
        escaped: bool,
    },
    Number,
    True,
    False,
    Null,
    Items,
    Members,
}

/// A member of an object; all positions are in the bytes that were scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// Where the key's text begins, after its quote.
    pub(crate) key: usize,
    /// Where the key's text ends, before its quote.
    pub(crate) key_end: usize,
    /// Whether the key holds a backslash.
    pub(crate) key_escaped: bool,
    /// What its value is.
    pub(crate) kind: Kind,
    /// Where its value begins.
    pub(crate) start: usize,
    /// Where its value ends.
    pub(crate) end: usize,
}

/// The position of the first byte from `at` on that is no space.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Scans the value that begins at `at`, which is no space; gives what it is and where it ends.
#[inline]
pub(crate) fn scan_value(bytes: &[u8], at: usize) -> Result<(Kind, usize), Fault> {
    match bytes.get(at) {
        None => Err(Fault::Early),
        Some(b'"') => string(bytes, at + 1).map(|(end, escaped)| (Kind::Text { escaped }, end)),
        Some(b'-' | b'0'..=b'9') => number(bytes, at).map(|end| (Kind::Number, end)),
        Some(b'{') => container(bytes, at).map(|end| (Kind::Members, end)),
        Some(b'[') => container(bytes, at).map(|end| (Kind::Items, end)),
        Some(_) => word(bytes, at),
    }
}

/// Scans the object that begins at `at` and hands over its members in order; gives where it ends.
pub(crate) fn members(bytes: &[u8], at: usize, mut each: impl FnMut(Member)) -> Result<usize, Fault> {
    let mut at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let key = at + 1;
        let (after_key, key_escaped) = key_at(bytes, at)?;
        let start = value_after_key(bytes, after_key)?;
        let (kind, end) = scan_value(bytes, start)?;
        each(Member {
            key,
            key_end: after_key - 1,
            key_escaped,
            kind,
            start,
            end,
        });
        at = skip_space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b'}') => return Ok(at + 1),
            other => return Err(missed(other, at, "a comma or `}` is missing")),
        }
    }
}

fn missed(found: Option<&u8>, at: usize, why: &'static str) -> Fault {
    match found {
        None => Fault::Early,
        Some(_) => Fault::At { at, why },
    }
}

fn key_at(bytes: &[u8], at: usize) -> Result<(usize, bool), Fault> {
    match bytes.get(at) {
        Some(b'"') => string(bytes, at + 1),
        other => Err(missed(other, at, "a key in double quotes is missing")),
    }
}

fn value_after_key(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    let at = skip_space(bytes, at);
    match bytes.get(at) {
        Some(b':') => Ok(skip_space(bytes, at + 1)),
        other => Err(missed(other, at, "a colon is missing")),
    }
}

/// Scans an array or an object without recursion. `kinds` has one bit for each open level: 1 for an object.
fn container(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    let mut kinds: u128 = 0;
    let mut depth = 0;
    loop {
        // Here a container opens at `at`.
        depth += 1;
        if depth > DEPTH {
            return Err(Fault::At {
                at,
                why: "values are nested deeper than 127 levels",
            });
        }
        let object = bytes[at] == b'{';
        kinds = (kinds << 1) | u128::from(object);
        at = skip_space(bytes, at + 1);
        let mut first = true;
        // Here a member, an item or the end of the innermost container follows.
        loop {
            let object = kinds & 1 == 1;
            let close = if object { b'}' } else { b']' };
            match bytes.get(at) {
                None => return Err(Fault::Early),
                Some(&b) if b == close => {
                    at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at);
                    }
                    kinds >>= 1;
                    first = false;
                    at = skip_space(bytes, at);
                    continue;
                }
                Some(b',') if !first => at = skip_space(bytes, at + 1),
                Some(_) if !first => {
                    let why = if object {
                        "a comma or `}` is missing"
                    } else {
                        "a comma or `]` is missing"
                    };
                    return Err(Fault::At { at, why });
                }
                Some(_) => {}
            }
            first = false;
            if object {
                let (after_key, _) = key_at(bytes, at)?;
                at = value_after_key(bytes, after_key)?;
            }
            if let Some(b'{' | b'[') = bytes.get(at) {
                break;
            }
            at = skip_space(bytes, scan_value(bytes, at)?.1);
        }
    }
}

const ONES: u64 = u64::MAX / 255;
const HIGHS: u64 = ONES << 7;

/// A word whose bytes' high bits are set where a byte of `word` ends a run of plain text: a quote, a backslash or a control
/// character. A byte after such a byte may be marked too, never one before it.
#[inline]
fn marks(word: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}

/// Scans a string from after its opening quote; gives where it ends and whether it holds a backslash.
#[inline]
fn string(bytes: &[u8], mut at: usize) -> Result<(usize, bool), Fault> {
    let mut escaped = false;
    loop {
        while let Some(Ok(eight)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
            let marked = marks(u64::from_le_bytes(eight));
            if marked != 0 {
                at += marked.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        match bytes.get(at) {
            None => return Err(Fault::Early),
            Some(b'"') => return Ok((at + 1, escaped)),
            Some(b'\\') => {
                escaped = true;
                at = escape(bytes, at + 1)?;
            }
            Some(0..0x20) => {
                return Err(Fault::At {
                    at,
                    why: "a control character stands in a string",
                });
            }
            Some(_) => at += 1,
        }
    }
}

/// Scans an escape from after its backslash; gives where it ends.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Fault> {
    match bytes.get(at) {
        None => Err(Fault::Early),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => match four_digits(bytes, at + 1)? {
            0xd800..0xdc00 => {
                let lone = Fault::At {
                    at,
                    why: "half of a surrogate pair stands in a string",
                };
                for (next, wanted) in [(at + 5, b'\\'), (at + 6, b'u')] {
                    match bytes.get(next) {
                        None => return Err(Fault::Early),
                        Some(&found) if found == wanted => {}
                        Some(_) => return Err(lone),
                    }
                }
                match four_digits(bytes, at + 7)? {
                    0xdc00..0xe000 => Ok(at + 11),
                    _ => Err(lone),
                }
            }
            0xdc00..0xe000 => Err(Fault::At {
                at,
                why: "half of a surrogate pair stands in a string",
            }),
            _ => Ok(at + 5),
        },
        Some(_) => Err(Fault::At {
            at,
            why: "an unknown escape stands in a string",
        }),
    }
}

fn four_digits(bytes: &[u8], at: usize) -> Result<u32, Fault> {
    let mut code = 0;
    for at in at..at + 4 {
        let digit = bytes.get(at).ok_or(Fault::Early)?;
        let digit = char::from(*digit).to_digit(16).ok_or(Fault::At {
            at,
            why: "an escape needs four hexadecimal digits",
        })?;
        code = code * 16 + digit;
    }
    Ok(code)
}

/// Scans a number; it ends before the first byte that cannot belong to it.
#[inline]
fn number(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    if bytes[at] == b'-' {
        at += 1;
        // What Python and JavaScript write where no number is.
        if bytes.get(at) == Some(&b'I') {
            return Err(Fault::At {
                at: at - 1,
                why: "-Infinity is no number",
            });
        }
    }
    let whole = at;
    at = digits(bytes, at)?;
    if bytes[whole] == b'0' && at > whole + 1 {
        return Err(Fault::At {
            at: whole,
            why: "a number begins with 0",
        });
    }
    if bytes.get(at) == Some(&b'.') {
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(bytes, at)?;
    }
    Ok(at)
}

#[inline]
fn digits(bytes: &[u8], mut at: usize) -> Result<usize, Fault> {
    let start = at;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == start {
        return Err(missed(bytes.get(at), at, "a digit is missing"));
    }
    Ok(at)
}

fn word(bytes: &[u8], at: usize) -> Result<(Kind, usize), Fault> {
    let rest = &bytes[at..];
    for (word, kind) in [
        (&b"true"[..], Some(Kind::True)),
        (b"false", Some(Kind::False)),
        (b"null", Some(Kind::Null)),
        (b"NaN", None),
        (b"Infinity", None),
    ] {
        match kind {
            _ if rest.len() < word.len() && word.starts_with(rest) => return Err(Fault::Early),
            Some(kind) if rest.starts_with(word) => return Ok((kind, at + word.len())),
            None if rest.starts_with(word) => {
                return Err(Fault::At {
                    at,
                    why: "NaN and Infinity are no numbers",
                });
            }
            _ => {}
        }
    }
    let why = match bytes[at] {
        b'\'' => "JSON has double quotes only",
        b',' | b'}' | b']' | b':' => "a value is missing",
        _ => "no value begins like this",
    };
    Err(Fault::At { at, why })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> Result<Kind, Fault> {
        let bytes = text.as_bytes();
        let (kind, end) = scan_value(bytes, skip_space(bytes, 0))?;
        match skip_space(bytes, end) {
            end if end == bytes.len() => Ok(kind),
            at => Err(Fault::At { at, why: "more" }),
        }
    }

    /// `serde_json` is the judge; it also refuses numbers beyond the range of `f64`, which are left out here.
    fn agrees(text: &str) {
        let judge = serde_json::from_str::<serde_json::Value>(text);
        if judge
            .as_ref()
            .is_err_and(|error| error.to_string().starts_with("number out of range"))
        {
            return;
        }
        assert_eq!(
            whole(text).is_ok(),
            judge.is_ok(),
            "{text:?}: {:?} and {judge:?}",
            whole(text)
        );
        if judge.as_ref().is_err_and(serde_json::Error::is_eof) {
            assert_eq!(whole(text), Err(Fault::Early), "{text:?}");
        }
    }

    #[test]
    fn what_is_json_is_what_serde_json_takes() {
        for text in [
            "",
            " ",
            "{}",
            "[]",
            "[1,2]",
            "[1,]",
            "[,1]",
            "{,}",
            r#"{"a":1,}"#,
            r#"{"a" 1}"#,
            r#"{"a":}"#,
            r#"{a:1}"#,
            "01",
            "-0",
            "-",
            "1.",
            ".5",
            "1e",
            "1e+",
            "1E-7",
            "-0.0e00",
            "+1",
            "0x1",
            "tru",
            "true",
            "nul",
            "nulls",
            "NaN",
            "-Infinity",
            "Infinity",
            "'a'",
            r#""\u12"#,
            r#""\u12g4""#,
            r#""\ud83d\ude00""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83d\u0041""#,
            r#""\x""#,
            "\"a\tb\"",
            "\"a\u{7f}b\"",
            r#""a\\""#,
            r#""a\""#,
            "[[[]]]",
            "[[]",
            "[}",
            "{]",
            r#"{"a":[{"b":{}},[],{"c":"]}"}]}"#,
            "[1 2]",
            "[1]]",
            r#"{"a":1 "b":2}"#,
            r#"["12345678\"901"]"#,
            "\"1234567é\u{1F600}89\"",
        ] {
            agrees(text);
        }
    }

    #[test]
    fn nesting_ends_where_that_of_serde_json_does() {
        for depth in [126, 127, 128, 129] {
            agrees(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            agrees(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        }
    }

    #[test]
    fn members_are_handed_over() {
        let text = br#"{ "a" : 1 , "b\n":"x\"y" ,"c":[1, {"d":2}],"e":null}rest"#;
        let mut seen = Vec::new();
        let end = members(text, 0, |m| {
            let slice = |from: usize, to: usize| std::str::from_utf8(&text[from..to]).unwrap().to_owned();
            seen.push((
                slice(m.key, m.key_end),
                m.key_escaped,
                m.kind,
                slice(m.start, m.end),
            ));
        })
        .unwrap();
        assert_eq!(&text[end..], b"rest");
        let expected = [
            ("a", false, Kind::Number, "1"),
            ("b\\n", true, Kind::Text { escaped: true }, "\"x\\\"y\""),
            ("c", false, Kind::Items, "[1, {\"d\":2}]"),
            ("e", false, Kind::Null, "null"),
        ];
        let expected =
            expected.map(|(key, escaped, kind, value)| (key.to_owned(), escaped, kind, value.to_owned()));
        assert_eq!(seen, expected);
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn mutated_json_is_judged_alike(
            value in json(),
            pretty in any::<bool>(),
            cut in any::<prop::sample::Index>(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), "[\\[\\]{}:,\"\\\\0-9eE+. a-z-]"), 0..3),
        ) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            agrees(&text);
            let mut chars: Vec<char> = text.chars().collect();
            for (at, with) in &edits {
                let at = at.index(chars.len());
                chars[at] = with.chars().next().unwrap();
            }
            let text: String = chars.iter().collect();
            agrees(&text);
            let cut: String = chars[..cut.index(chars.len())].iter().collect();
            agrees(&cut);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..8) {
            if at < bytes.len() {
                if let Ok((_, end)) = scan_value(&bytes, at) {
                    prop_assert!(end <= bytes.len() && end > at);
                }
                let _ = members(&bytes, at, |m| assert!(m.end <= bytes.len() && m.start < m.end));
            }
        }
    }
}
