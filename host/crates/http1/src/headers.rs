//! The header fields of an answer in one buffer.

/// The header fields of an answer, in the order in which they were sent, in two allocations
/// regardless of their number.
///
/// Names keep the case in which they were sent; comparisons ignore it. Values are bytes without the
/// surrounding white space; a folded line is one line with spaces.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Name, value, name, value.
    text: Vec<u8>,
    fields: Vec<Field>,
}

/// Position of a field in the text. It begins at the end of the previous field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    name_end: u32,
    value_end: u32,
}

impl Headers {
    /// Copies the fields of a parsed head, whose size fits 32 bits.
    pub(crate) fn collect(parsed: &[httparse::Header<'_>]) -> Self {
        let size = parsed
            .iter()
            .map(|field| field.name.len() + field.value.len())
            .sum();
        let mut headers = Self {
            text: Vec::with_capacity(size),
            fields: Vec::with_capacity(parsed.len()),
        };
        for field in parsed {
            headers.text.extend_from_slice(field.name.as_bytes());
            let name_end = headers.text.len() as u32;
            push_unfolded(&mut headers.text, field.value);
            headers.fields.push(Field {
                name_end,
                value_end: headers.text.len() as u32,
            });
        }
        headers
    }

    /// Returns the first value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields()
            .find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Returns the first value of this name as text. `None` if there is none or if it is not UTF-8.
    #[must_use]
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Returns every value of this name, in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Returns every field, name and value, in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            fields: self.fields(),
        }
    }

    /// Returns the number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns true if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn fields(&self) -> Fields<'_> {
        Fields {
            text: &self.text,
            ends: self.fields.iter(),
            begin: 0,
        }
    }

    /// Returns the elements of the comma-separated lists under this name, over all its lines,
    /// without empty ones (RFC 9110, section 5.6.1). Commas in quoted strings are not handled: the
    /// fields that framing needs have none.
    pub(crate) fn list<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(name)
            .flat_map(|line| line.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|element| !element.is_empty())
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(
                self.iter()
                    .map(|(name, value)| (name, String::from_utf8_lossy(value))),
            )
            .finish()
    }
}

impl<'a> IntoIterator for &'a Headers {
    type Item = (&'a str, &'a [u8]);
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Iterator over the fields of [`Headers`], name and value.
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    fields: Fields<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // A name consists of token bytes, which are ASCII.
        self.fields
            .next()
            .map(|(name, value)| (std::str::from_utf8(name).unwrap_or_default(), value))
    }
}

/// Iterator over the fields as bytes: a look-up does not need names as text.
#[derive(Debug, Clone)]
struct Fields<'a> {
    text: &'a [u8],
    ends: std::slice::Iter<'a, Field>,
    begin: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.ends.next()?;
        let (name_end, value_end) = (field.name_end as usize, field.value_end as usize);
        let name = &self.text[self.begin..name_end];
        self.begin = value_end;
        Some((name, &self.text[name_end..value_end]))
    }
}

/// Appends a value without its folds: each becomes one space (RFC 9112, section 5.2).
fn push_unfolded(text: &mut Vec<u8>, value: &[u8]) {
    if memchr::memchr(b'\n', value).is_none() {
        text.extend_from_slice(value);
        return;
    }
    for (nth, line) in value.split(|byte| *byte == b'\n').enumerate() {
        if nth > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(line.trim_ascii());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static [u8])]) -> Headers {
        let parsed: Vec<_> = fields
            .iter()
            .map(|&(name, value)| httparse::Header { name, value })
            .collect();
        Headers::collect(&parsed)
    }

    #[test]
    fn names_have_no_case_and_the_first_value_wins() {
        let headers = headers(&[("Set-Cookie", b"a"), ("X", b""), ("set-cookie", b"b")]);
        assert_eq!(headers.get("SET-COOKIE"), Some(&b"a"[..]));
        assert_eq!(headers.get_str("x"), Some(""));
        assert_eq!(headers.get("y"), None);
        assert_eq!(headers.get_all("set-cookie").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!((headers.len(), headers.is_empty()), (3, false));
        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("Set-Cookie", &b"a"[..]), ("X", b""), ("set-cookie", b"b")]);
    }

    #[test]
    fn a_value_that_is_not_text_is_only_bytes() {
        let headers = headers(&[("x", b"caf\xe9")]);
        assert_eq!(headers.get("x"), Some(&b"caf\xe9"[..]));
        assert_eq!(headers.get_str("x"), None);
        assert_eq!(format!("{headers:?}"), "{\"x\": \"caf\u{fffd}\"}");
    }

    #[test]
    fn a_fold_is_one_space() {
        let headers = headers(&[("x", b"one  \r\n\t two \n three"), ("y", b"z")]);
        assert_eq!(headers.get_str("x"), Some("one two three"));
        assert_eq!(headers.get_str("y"), Some("z"));
    }

    #[test]
    fn list_spans_lines_and_omits_empty_elements() {
        let headers = headers(&[("c", b" a ,,b"), ("d", b"x"), ("C", b"\tc,")]);
        assert_eq!(headers.list("c").collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    }
}
