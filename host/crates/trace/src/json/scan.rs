//! Validation of a JSON value, and the position of its end.

/// Maximum nesting depth: the limit of `serde_json`, with which flavors parse rows.
const DEPTH: u32 = 127;

/// A value that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanFault {
    /// The input ends within it.
    Early,
    /// A syntax error.
    At {
        /// Position of the error.
        at: usize,
        /// Description of the error.
        why: &'static str,
    },
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonKind {
    /// A string; its bounds include the quotes.
    Text {
        /// True if it contains a backslash.
        escaped: bool,
    },
    Number,
    True,
    False,
    Null,
    Items,
    Members,
}

/// A member of an object; all positions refer to the scanned bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedMember {
    /// Start of the key's text, after its quote.
    pub(crate) key: usize,
    /// End of the key's text, before its quote.
    pub(crate) key_end: usize,
    /// True if the key contains a backslash.
    pub(crate) key_escaped: bool,
    /// Type of the value.
    pub(crate) kind: JsonKind,
    /// Start of the value.
    pub(crate) start: usize,
    /// End of the value.
    pub(crate) end: usize,
}

/// Returns the position of the first byte from `at` on that is not white space.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Scans the value that begins at `at`, which must not be white space; returns its type and its
/// end.
#[inline]
pub(crate) fn scan_value(bytes: &[u8], at: usize) -> Result<(JsonKind, usize), ScanFault> {
    match bytes.get(at) {
        None => Err(ScanFault::Early),
        Some(b'"') => string(bytes, at + 1).map(|(end, escaped)| (JsonKind::Text { escaped }, end)),
        Some(b'-' | b'0'..=b'9') => number(bytes, at).map(|end| (JsonKind::Number, end)),
        Some(b'{') => container(bytes, at).map(|end| (JsonKind::Members, end)),
        Some(b'[') => container(bytes, at).map(|end| (JsonKind::Items, end)),
        Some(_) => word(bytes, at),
    }
}

/// Scans the object that begins at `at` and calls `each` with its members in order; returns its
/// end.
pub(crate) fn members(
    bytes: &[u8],
    at: usize,
    mut each: impl FnMut(ScannedMember),
) -> Result<usize, ScanFault> {
    let mut at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let key = at + 1;
        let (after_key, key_escaped) = key_at(bytes, at)?;
        let start = value_after_key(bytes, after_key)?;
        let (kind, end) = scan_value(bytes, start)?;
        each(ScannedMember {
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
            other => return Err(missed(other, at, "expected a comma or `}`")),
        }
    }
}

fn missed(found: Option<&u8>, at: usize, why: &'static str) -> ScanFault {
    match found {
        None => ScanFault::Early,
        Some(_) => ScanFault::At { at, why },
    }
}

fn key_at(bytes: &[u8], at: usize) -> Result<(usize, bool), ScanFault> {
    match bytes.get(at) {
        Some(b'"') => string(bytes, at + 1),
        other => Err(missed(other, at, "expected a key in double quotes")),
    }
}

fn value_after_key(bytes: &[u8], at: usize) -> Result<usize, ScanFault> {
    let at = skip_space(bytes, at);
    match bytes.get(at) {
        Some(b':') => Ok(skip_space(bytes, at + 1)),
        other => Err(missed(other, at, "expected a colon")),
    }
}

/// Scans an array or an object without recursion. `kinds` has one bit for each open level: 1 for an
/// object.
fn container(bytes: &[u8], mut at: usize) -> Result<usize, ScanFault> {
    let mut kinds: u128 = 0;
    let mut depth = 0;
    loop {
        // Here a container opens at `at`.
        depth += 1;
        if depth > DEPTH {
            return Err(ScanFault::At {
                at,
                why: "nested deeper than 127 levels",
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
                None => return Err(ScanFault::Early),
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
                        "expected a comma or `}`"
                    } else {
                        "expected a comma or `]`"
                    };
                    return Err(ScanFault::At { at, why });
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

/// Sets the high bit of each byte of `word` that ends a run of plain text: a quote, a backslash or
/// a control character. A byte after such a byte may be marked too, never one before it.
#[inline]
fn marks(word: u64) -> u64 {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGHS
}

/// Scans a string from after its opening quote; returns its end, and true if it contains a
/// backslash.
#[inline]
fn string(bytes: &[u8], mut at: usize) -> Result<(usize, bool), ScanFault> {
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
            None => return Err(ScanFault::Early),
            Some(b'"') => return Ok((at + 1, escaped)),
            Some(b'\\') => {
                escaped = true;
                at = escape(bytes, at + 1)?;
            }
            Some(0..0x20) => {
                return Err(ScanFault::At {
                    at,
                    why: "control character in a string",
                });
            }
            Some(_) => at += 1,
        }
    }
}

/// Scans an escape from after its backslash; returns its end.
fn escape(bytes: &[u8], at: usize) -> Result<usize, ScanFault> {
    match bytes.get(at) {
        None => Err(ScanFault::Early),
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 1),
        Some(b'u') => match four_digits(bytes, at + 1)? {
            0xd800..0xdc00 => {
                let lone = ScanFault::At {
                    at,
                    why: "lone surrogate in a string",
                };
                for (next, wanted) in [(at + 5, b'\\'), (at + 6, b'u')] {
                    match bytes.get(next) {
                        None => return Err(ScanFault::Early),
                        Some(&found) if found == wanted => {}
                        Some(_) => return Err(lone),
                    }
                }
                match four_digits(bytes, at + 7)? {
                    0xdc00..0xe000 => Ok(at + 11),
                    _ => Err(lone),
                }
            }
            0xdc00..0xe000 => Err(ScanFault::At {
                at,
                why: "lone surrogate in a string",
            }),
            _ => Ok(at + 5),
        },
        Some(_) => Err(ScanFault::At {
            at,
            why: "unknown escape in a string",
        }),
    }
}

fn four_digits(bytes: &[u8], at: usize) -> Result<u32, ScanFault> {
    let mut code = 0;
    for at in at..at + 4 {
        let digit = bytes.get(at).ok_or(ScanFault::Early)?;
        let digit = char::from(*digit).to_digit(16).ok_or(ScanFault::At {
            at,
            why: "expected four hexadecimal digits",
        })?;
        code = code * 16 + digit;
    }
    Ok(code)
}

/// Scans a number; it ends before the first byte that cannot belong to it.
#[inline]
fn number(bytes: &[u8], mut at: usize) -> Result<usize, ScanFault> {
    if bytes[at] == b'-' {
        at += 1;
        // Python and JavaScript write `NaN` and `Infinity`.
        if bytes.get(at) == Some(&b'I') {
            return Err(ScanFault::At {
                at: at - 1,
                why: "-Infinity is not a JSON number",
            });
        }
    }
    let whole = at;
    at = digits(bytes, at)?;
    if bytes[whole] == b'0' && at > whole + 1 {
        return Err(ScanFault::At {
            at: whole,
            why: "number with a leading 0",
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
fn digits(bytes: &[u8], mut at: usize) -> Result<usize, ScanFault> {
    let start = at;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    if at == start {
        return Err(missed(bytes.get(at), at, "expected a digit"));
    }
    Ok(at)
}

fn word(bytes: &[u8], at: usize) -> Result<(JsonKind, usize), ScanFault> {
    let rest = &bytes[at..];
    for (word, kind) in [
        (&b"true"[..], Some(JsonKind::True)),
        (b"false", Some(JsonKind::False)),
        (b"null", Some(JsonKind::Null)),
        (b"NaN", None),
        (b"Infinity", None),
    ] {
        match kind {
            _ if rest.len() < word.len() && word.starts_with(rest) => return Err(ScanFault::Early),
            Some(kind) if rest.starts_with(word) => return Ok((kind, at + word.len())),
            None if rest.starts_with(word) => {
                return Err(ScanFault::At {
                    at,
                    why: "NaN and Infinity are not JSON numbers",
                });
            }
            _ => {}
        }
    }
    let why = match bytes[at] {
        b'\'' => "JSON strings need double quotes",
        b',' | b'}' | b']' | b':' => "expected a value",
        _ => "expected a value",
    };
    Err(ScanFault::At { at, why })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> Result<JsonKind, ScanFault> {
        let bytes = text.as_bytes();
        let (kind, end) = scan_value(bytes, skip_space(bytes, 0))?;
        match skip_space(bytes, end) {
            end if end == bytes.len() => Ok(kind),
            at => Err(ScanFault::At { at, why: "more" }),
        }
    }

    /// `serde_json` is the reference; it also refuses numbers beyond the range of `f64`, which are
    /// excluded here.
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
            assert_eq!(whole(text), Err(ScanFault::Early), "{text:?}");
        }
    }

    #[test]
    fn accepts_exactly_what_serde_json_accepts() {
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
    fn nesting_limit_equals_serde_jsons() {
        for depth in [126, 127, 128, 129] {
            agrees(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
            agrees(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)));
        }
    }

    #[test]
    fn reports_members_in_order() {
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
            ("a", false, JsonKind::Number, "1"),
            ("b\\n", true, JsonKind::Text { escaped: true }, "\"x\\\"y\""),
            ("c", false, JsonKind::Items, "[1, {\"d\":2}]"),
            ("e", false, JsonKind::Null, "null"),
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
